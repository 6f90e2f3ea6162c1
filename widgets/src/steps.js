// A program run step by step: Python's picture of all blocks, of which only what is made so far is shown.

import { saveMenu } from "./save.js";
import { selectable } from "./select.js";
import { cellsIn, positions, stage } from "./stages.js";

const PAUSE = 1100;

function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/** The buttons, the slider and the menus; calls `go(step)`, and `play()` when that is pressed. */
function controls(model, { signal, last, go, play }) {
  const bar = element("div", "ein-steps-bar");
  const button = (text, label, act) => {
    const made = element("button", "ein-button", text);
    made.type = "button";
    made.setAttribute("aria-label", label);
    made.title = label;
    made.addEventListener("click", act, { signal });
    bar.append(made);
    return made;
  };
  const step = () => model.get("step");
  const first = button("First", "To the beginning (Home)", () => go(0));
  const back = button("◀ Back", "One step back (←)", () => go(step() - 1));
  const next = button("Next ▶", "One step on (→)", () => go(step() + 1));
  const playing = button("Play", "Step by itself (Space)", play);
  const slider = document.createElement("input");
  Object.assign(slider, { type: "range", min: 0, max: last, className: "ein-steps-slider" });
  slider.setAttribute("aria-label", "step");
  slider.addEventListener("input", () => go(Number(slider.value)), { signal });
  const count = element("span", "ein-steps-count");
  const speed = document.createElement("select");
  speed.setAttribute("aria-label", "speed");
  for (const [value, text] of [
    [0.5, "slow"],
    [1, "normal"],
    [3, "fast"],
  ]) {
    speed.append(new Option(text, value, value === 1, value === 1));
  }
  bar.append(slider, count, speed, saveMenu(model, { title: "steps", signal }));
  return {
    bar,
    pause: () => PAUSE / Number(speed.value),
    show(at, isPlaying) {
      first.disabled = back.disabled = at === 0;
      next.disabled = at === last;
      playing.textContent = isPlaying ? "Pause" : "Play";
      playing.setAttribute("aria-pressed", String(isPlaying));
      slider.value = at;
      count.textContent = `${at} of ${last}`;
    },
  };
}

/** The formula with the span of one node marked. */
function formula(view) {
  const pre = element("pre", "ein-mono ein-steps-formula");
  pre.textContent = view.text.trimEnd();
  return {
    pre,
    mark(node) {
      const [start, stop] = node?.span ?? [0, 0];
      const mark = element("mark", "", view.text.slice(start, stop));
      pre.replaceChildren(
        view.text.slice(0, start),
        ...(stop ? [mark] : []),
        view.text.slice(stop).trimEnd(),
      );
    },
  };
}

function panel(title, child) {
  const made = element("section", "ein-panel");
  made.append(element("h4", "", title), child);
  return made;
}

function picture(svg) {
  const frame = element("div", "ein-steps-picture");
  frame.innerHTML = svg;
  const drawn = frame.querySelector("svg");
  drawn.setAttribute("role", "group");
  return frame;
}

/** Everything about the cards of the blocks. */
function board(view, frame) {
  const cards = view.tasks.map((task) => frame.querySelector(`[data-task="${task.id}"]`));
  const grids = view.tasks.map((task) => {
    const grid = frame.querySelector(`[data-cells="${task.id}"]`);
    return {
      boxes: [...(grid?.querySelectorAll("rect") ?? [])],
      texts: [...(grid?.querySelectorAll("text") ?? [])],
    };
  });
  const flights = view.tasks.map((task) => frame.querySelector(`[data-move="${task.id}"]`));

  function write(i, cells) {
    cells?.forEach((text, k) => {
      if (grids[i].texts[k].textContent !== text) grids[i].texts[k].textContent = text;
    });
  }

  function show(now) {
    const current = now ? view.tasks[now.task] : null;
    const at = now ? now.task : -1;
    view.tasks.forEach((task, i) => {
      cards[i].dataset.stage = stage(task, at);
      cards[i].classList.toggle("ein-read", current?.inputs.includes(i) ?? false);
      for (const box of grids[i].boxes) box.classList.remove("ein-cell");
      if (i !== at) write(i, task.frames.at(-1).cells);
      if (flights[i]) flights[i].dataset.stage = i === at ? "now" : i < at ? "gone" : "yet";
    });
    if (!current) return;
    const state = current.frames[now.frame];
    write(at, state.cells);
    current.inputs.forEach((j, k) => {
      if (!state.reads[k]) return;
      for (const cell of cellsIn(state.reads[k], view.tasks[j].shape)) {
        grids[j].boxes[cell]?.classList.add("ein-cell");
      }
    });
    reveal(frame, cards[at]);
  }

  /** A copy of what moves flies from its site to where it is needed. */
  function fly(task, duration) {
    const [from, to] = [cards[task.inputs[0]], cards[task.id]];
    const [a, b] = [from.getBBox(), to.getBBox()];
    const ghost = from.cloneNode(true);
    for (const name of ["data-task", "data-keys", "tabindex"]) ghost.removeAttribute(name);
    ghost.dataset.stage = "ghost";
    ghost.setAttribute("aria-hidden", "true");
    to.parentNode.append(ghost);
    to.dataset.stage = "yet";
    const move = `translate(${b.x - a.x}px, ${b.y - a.y}px)`;
    const flight = ghost.animate([{ transform: "translate(0, 0)" }, { transform: move }], {
      duration,
      easing: "ease-in-out",
    });
    const land = () => {
      ghost.remove();
      if (to.dataset.stage === "yet" && flights[task.id].dataset.stage === "now") to.dataset.stage = "now";
    };
    flight.onfinish = land;
    flight.oncancel = land;
    return flight;
  }

  /** Scrolls to what runs, once there is room to scroll in. */
  function follow(now) {
    if (now) reveal(frame, cards[now.task]);
  }

  return { show, fly, follow };
}

/** Scrolls `frame`, and nothing around it, so that `card` is seen. */
function reveal(frame, card) {
  const [room, box] = [frame.getBoundingClientRect(), card.getBoundingClientRect()];
  const shift = (low, high, from, to) => (low < from ? low - from : high > to ? high - to : 0);
  const left = shift(box.left - 20, box.right + 20, room.left, room.right);
  const top = shift(box.top - 20, box.bottom + 20, room.top, room.bottom);
  if (left || top) frame.scrollBy({ left, top });
}

function render({ model, el, signal }) {
  const view = model.get("view");
  const places = positions(view.tasks);
  const nodes = new Map(view.nodes.map((node) => [node.id, node]));
  const root = element("div", "ein-widget ein-steps");
  root.tabIndex = -1;
  root.dataset.lmSuppressShortcuts = "true"; // also where nothing selectable has the focus
  let timer = 0;
  let flight = null;

  const bar = controls(model, { signal, last: places.length, go: (to) => go(to), play });
  const words = element("p", "ein-steps-words");
  words.setAttribute("aria-live", "polite");
  const text = formula(view);
  const graph = picture(model.get("graph"));
  const blocks = picture(model.get("blocks"));
  blocks.dataset.rove = "";
  const top = element("div", "ein-steps-top");
  top.append(panel("formula", text.pre), panel("graph", graph));
  root.append(bar.bar, words, top, panel("blocks", blocks));
  el.append(root);
  const selection = selectable(root, {
    signal,
    onSelect: (key) => {
      model.set("selection", key);
      model.save_changes();
    },
  });
  const cards = board(view, blocks);
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  function show(flies = false) {
    flight?.cancel();
    flight = null;
    const at = model.get("step");
    const now = places[at - 1];
    const task = now && view.tasks[now.task];
    cards.show(now);
    bar.show(at, timer !== 0);
    words.textContent = task
      ? [task.words, task.frames[now.frame].words].filter(Boolean).join(" — ")
      : view.caption;
    text.mark(task && nodes.get(task.node));
    for (const drawn of graph.querySelectorAll("[data-keys]")) {
      const keys = drawn.dataset.keys.split(" ");
      drawn.classList.toggle("ein-now", task !== undefined && keys[0] === `node:${task.node}`);
    }
    if (flies && task?.type === "Move" && !still.matches) flight = cards.fly(task, bar.pause() * 0.7);
  }

  function go(to, byItself = false) {
    if (!byItself) stop();
    const step = Math.min(Math.max(to, 0), places.length);
    const forward = step === model.get("step") + 1;
    model.set("step", step);
    model.save_changes();
    show(forward);
  }

  function stop() {
    clearTimeout(timer);
    timer = 0;
  }

  function tick() {
    if (model.get("step") >= places.length) stop();
    else {
      timer = setTimeout(tick, bar.pause());
      go(model.get("step") + 1, true);
    }
    bar.show(model.get("step"), timer !== 0);
  }

  function play() {
    if (timer) {
      stop();
      show();
    } else {
      if (model.get("step") >= places.length) model.set("step", 0);
      tick();
    }
  }

  root.addEventListener(
    "keydown",
    (event) => {
      if (event.defaultPrevented || event.target.closest("input, select, [data-rove], details")) return;
      const to = { ArrowRight: 1, ArrowLeft: -1, Home: -places.length, End: places.length }[event.key];
      if (to !== undefined) go(model.get("step") + to);
      else if (event.key === " " && !event.target.closest("button")) play();
      else return;
      event.preventDefault();
    },
    { signal },
  );
  signal?.addEventListener("abort", stop);
  const sized = new ResizeObserver(() => cards.follow(places[model.get("step") - 1]));
  sized.observe(blocks);
  signal?.addEventListener("abort", () => sized.disconnect());
  model.on("change:step", () => show());
  selection.refresh(model.get("links"));
  show();
}

export default { render };

// A program run step by step: Python's picture of all blocks, of which only what is made so far is shown.

import { board } from "./board.js";
import { button, element, panel } from "./parts.js";
import { saveMenu } from "./save.js";
import { selectable } from "./select.js";
import { positions } from "./stages.js";

const PAUSE = 1100;

/** The buttons, the slider and the menus; calls `go(step)`, and `play()` when that is pressed. */
function controls(model, { signal, last, go, play }) {
  const bar = element("div", "ein-steps-bar");
  const add = (text, label, act) => {
    const made = button(text, act, { signal, label });
    bar.append(made);
    return made;
  };
  const step = () => model.get("step");
  const first = add("First", "To the beginning (Home)", () => go(0));
  const back = add("◀ Back", "One step back (←)", () => go(step() - 1));
  const next = add("Next ▶", "One step on (→)", () => go(step() + 1));
  const playing = add("Play", "Step by itself (Space)", play);
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

function picture(svg) {
  const frame = element("div", "ein-steps-picture");
  frame.innerHTML = svg;
  const drawn = frame.querySelector("svg");
  drawn.setAttribute("role", "group");
  return frame;
}

/** The page: controls, words, formula and graph, and the blocks. */
function page(model, view, bar) {
  const root = element("div", "ein-widget ein-steps");
  root.tabIndex = -1;
  root.dataset.lmSuppressShortcuts = "true"; // also where nothing selectable has the focus
  const words = element("p", "ein-steps-words");
  words.setAttribute("aria-live", "polite");
  const text = formula(view);
  const graph = picture(model.get("graph"));
  const blocks = picture(model.get("blocks"));
  blocks.dataset.rove = "";
  const top = element("div", "ein-steps-top");
  top.append(panel("formula", text.pre), panel("graph", graph));
  root.append(bar, words, top, panel("blocks", blocks));
  const nodes = new Map(view.nodes.map((node) => [node.id, node]));
  return {
    root,
    blocks,
    /** Says what `task` does at one of its frames, and marks its node; of none, what there is to see. */
    say(task, frame) {
      words.textContent = task
        ? [task.words, task.frames[frame].words].filter(Boolean).join(" — ")
        : view.caption;
      text.mark(task && nodes.get(task.node));
      for (const drawn of graph.querySelectorAll("[data-keys]")) {
        const keys = drawn.dataset.keys.split(" ");
        drawn.classList.toggle("ein-now", task !== undefined && keys[0] === `node:${task.node}`);
      }
    },
  };
}

/** Calls `step` again and again, each time after the pause that it answers, until that is 0 or stopped. */
function player(step) {
  let timer = 0;
  let running = false;
  const stop = () => {
    clearTimeout(timer);
    running = false;
  };
  const tick = () => {
    running = true;
    const pause = step();
    if (pause) timer = setTimeout(tick, pause);
    else running = false;
  };
  return { start: tick, stop, on: () => running };
}

function render({ model, el, signal }) {
  const view = model.get("view");
  const places = positions(view.tasks);
  const last = places.length;
  let flight = null;
  const bar = controls(model, { signal, last, go, play });
  const shown = page(model, view, bar.bar);
  el.append(shown.root);
  const selection = selectable(shown.root, {
    signal,
    onSelect: (key) => {
      model.set("selection", key);
      model.save_changes();
    },
  });
  const cards = board(view, shown.blocks);
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const playing = player(() => {
    if (model.get("step") < last) move(model.get("step") + 1);
    if (model.get("step") < last) return bar.pause();
    bar.show(last, false);
    return 0;
  });

  function show(flies = false) {
    flight?.cancel();
    const at = model.get("step");
    const now = places[at - 1];
    const task = now && view.tasks[now.task];
    cards.show(now);
    bar.show(at, playing.on());
    shown.say(task, now?.frame);
    flight = flies && task?.type === "Move" && !still.matches ? cards.fly(task, bar.pause() * 0.7) : null;
  }

  function move(to) {
    const step = Math.min(Math.max(to, 0), last);
    const forward = step === model.get("step") + 1;
    model.set("step", step);
    model.save_changes();
    show(forward);
  }

  function go(to) {
    playing.stop();
    move(to);
  }

  function play() {
    if (playing.on()) playing.stop();
    else {
      if (model.get("step") >= last) model.set("step", 0);
      playing.start();
    }
    bar.show(model.get("step"), playing.on());
  }

  function press(event) {
    if (event.defaultPrevented || event.target.closest("input, select, [data-rove], details")) return;
    const by = { ArrowRight: 1, ArrowLeft: -1, Home: -last, End: last }[event.key];
    if (by !== undefined) go(model.get("step") + by);
    else if (event.key === " " && !event.target.closest("button")) play();
    else return;
    event.preventDefault();
  }

  const follow = () => show();
  const sized = new ResizeObserver(() => cards.follow(places[model.get("step") - 1]));
  sized.observe(shown.blocks);
  shown.root.addEventListener("keydown", press, { signal });
  model.on("change:step", follow);
  signal?.addEventListener("abort", () => {
    playing.stop();
    sized.disconnect();
    model.off("change:step", follow);
  });
  selection.refresh(model.get("links"));
  show();
}

export default { render };

// src/stages.js
function positions(tasks) {
  return tasks.flatMap((task, i) => task.frames.map((_, frame) => ({ task: i, frame })));
}
function stage(task, at) {
  return task.id > at ? "yet" : task.id === at ? "now" : task.last < at ? "gone" : "here";
}
function cellsIn(box, shape) {
  let found = [0];
  return shape.forEach((extent, d) => {
    let [start, stop] = box[d], inside = Array.from({ length: Math.max(stop - start, 0) }, (_, k) => start + k);
    found = found.flatMap((at) => inside.map((k) => at * extent + k));
  }), found;
}

// src/board.js
function board(view, frame) {
  let cards = view.tasks.map((task) => frame.querySelector(`[data-task="${task.id}"]`)), grids = view.tasks.map((task) => {
    let grid = frame.querySelector(`[data-cells="${task.id}"]`);
    return {
      boxes: [...grid?.querySelectorAll("rect") ?? []],
      texts: [...grid?.querySelectorAll("text") ?? []]
    };
  }), flights = view.tasks.map((task) => frame.querySelector(`[data-move="${task.id}"]`));
  function write(i, cells) {
    cells?.forEach((text, k) => {
      grids[i].texts[k].textContent !== text && (grids[i].texts[k].textContent = text);
    });
  }
  function show(now) {
    let current = now ? view.tasks[now.task] : null, at = now ? now.task : -1;
    if (view.tasks.forEach((task, i) => {
      cards[i].dataset.stage = stage(task, at), cards[i].classList.toggle("ein-read", current?.inputs.includes(i) ?? !1);
      for (let box of grids[i].boxes) box.classList.remove("ein-cell");
      i !== at && write(i, task.frames.at(-1).cells), flights[i] && (flights[i].dataset.stage = i === at ? "now" : i < at ? "gone" : "yet");
    }), !current) return;
    let state = current.frames[now.frame];
    write(at, state.cells), current.inputs.forEach((j, k) => {
      if (state.reads[k])
        for (let cell of cellsIn(state.reads[k], view.tasks[j].shape))
          grids[j].boxes[cell]?.classList.add("ein-cell");
    }), reveal(frame, cards[at]);
  }
  function fly(task, duration) {
    let [from, to] = [cards[task.inputs[0]], cards[task.id]], [a, b] = [from.getBBox(), to.getBBox()], ghost = from.cloneNode(!0);
    for (let name of ["data-task", "data-keys", "tabindex"]) ghost.removeAttribute(name);
    ghost.dataset.stage = "ghost", ghost.setAttribute("aria-hidden", "true"), to.parentNode.append(ghost), to.dataset.stage = "yet";
    let move = `translate(${b.x - a.x}px, ${b.y - a.y}px)`, flight = ghost.animate([{ transform: "translate(0, 0)" }, { transform: move }], {
      duration,
      easing: "ease-in-out"
    }), land = () => {
      ghost.remove(), to.dataset.stage === "yet" && flights[task.id].dataset.stage === "now" && (to.dataset.stage = "now");
    };
    return flight.onfinish = land, flight.oncancel = land, flight;
  }
  function follow(now) {
    now && reveal(frame, cards[now.task]);
  }
  return { show, fly, follow };
}
function reveal(frame, card) {
  let [room, box] = [frame.getBoundingClientRect(), card.getBoundingClientRect()], shift = (low, high, from, to) => low < from ? low - from : high > to ? high - to : 0, left = shift(box.left - 20, box.right + 20, room.left, room.right), top = shift(box.top - 20, box.bottom + 20, room.top, room.bottom);
  (left || top) && frame.scrollBy({ left, top });
}

// src/parts.js
function element(tag, className = "", text = "") {
  let made = document.createElement(tag);
  return className && (made.className = className), text && (made.textContent = text), made;
}
function button(text, act, { signal, label = "" } = {}) {
  let made = element("button", "ein-button", text);
  return made.type = "button", label && (made.setAttribute("aria-label", label), made.title = label), made.addEventListener("click", act, { signal }), made;
}
function panel(title, ...children) {
  let made = element("section", "ein-panel");
  return made.append(element("h4", "", title), ...children), made;
}

// src/save.js
function fileName(title, extension) {
  return `${title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "") || "picture"}.${extension}`;
}
function themed(svg, value) {
  let style = [...new Set(svg.match(/--jp-[\w-]+/g) ?? [])].map((name) => [name, value(name).trim()]).filter(([, v]) => v).map(([name, v]) => `${name}:${v}`).join(";");
  return style ? svg.replace(/<svg ([^>]*?)style="/, (_, rest) => `<svg ${rest}style="${style};`) : svg;
}
function ask(model, what) {
  return new Promise((resolve) => {
    let answer = (message) => {
      message?.answer === what && (model.off("msg:custom", answer), resolve(message.text));
    };
    model.on("msg:custom", answer), model.send({ ask: what });
  });
}
function download(name, blob) {
  let link = document.createElement("a");
  link.href = URL.createObjectURL(blob), link.download = name, link.click(), setTimeout(() => URL.revokeObjectURL(link.href), 1e3);
}
async function png(svg) {
  let image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`, await image.decode();
  let canvas = document.createElement("canvas");
  return [canvas.width, canvas.height] = [image.width * 2, image.height * 2], canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height), new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    let area = document.createElement("textarea");
    area.value = text, document.body.append(area), area.select(), document.execCommand("copy"), area.remove();
  }
}
function saveMenu(model, { title, signal, kinds = ["svg", "png", "python", "json"] }) {
  let words = { svg: "Save as SVG", png: "Save as PNG", python: "Copy as Python", json: "Copy as JSON" }, menu = document.createElement("details");
  menu.className = "ein-menu";
  let summary = document.createElement("summary");
  summary.className = "ein-button", summary.textContent = "Save", summary.setAttribute("aria-label", "Save the picture, or copy the program");
  let list = document.createElement("div");
  list.className = "ein-menu-list", menu.append(summary, list);
  let value = (name) => getComputedStyle(menu).getPropertyValue(name), hand = {
    svg: async () => download(
      fileName(title, "svg"),
      new Blob([themed(await ask(model, "svg"), value)], { type: "image/svg+xml" })
    ),
    png: async () => download(fileName(title, "png"), await png(themed(await ask(model, "svg"), value))),
    python: async () => copy(await ask(model, "python")),
    json: async () => copy(await ask(model, "json"))
  };
  for (let kind of kinds) {
    let button2 = document.createElement("button");
    button2.type = "button", button2.textContent = words[kind], button2.addEventListener(
      "click",
      async () => {
        await hand[kind](), menu.open = !1, summary.textContent = kind === "python" || kind === "json" ? "Copied" : "Saved", setTimeout(() => {
          summary.textContent = "Save";
        }, 1500);
      },
      { signal }
    ), list.append(button2);
  }
  let close = () => {
    menu.open = !1;
  }, outside = (event) => menu.contains(event.target) || close();
  return document.addEventListener("pointerdown", outside, { signal }), menu.addEventListener("keydown", (event) => event.key === "Escape" && close(), { signal }), menu;
}

// src/select.js
function litKeys(key, links) {
  return new Set(key ? [key, ...links[key] ?? []] : []);
}
function keysOf(text) {
  return (text ?? "").split(" ").filter(Boolean);
}
function nextBox(boxes, from, direction) {
  let [ox, oy] = middle(boxes[from]), best = -1, least = Number.POSITIVE_INFINITY;
  return boxes.forEach((box, i) => {
    let [dx, dy] = middle(box).map((v, k) => v - [ox, oy][k]), [ahead, aside] = {
      ArrowLeft: [-dx, dy],
      ArrowRight: [dx, dy],
      ArrowUp: [-dy, dx],
      ArrowDown: [dy, dx]
    }[direction], distance = ahead + 3 * Math.abs(aside);
    i !== from && ahead > 1 && distance < least && (best = i, least = distance);
  }), best;
}
function middle(box) {
  return [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
}
function selectable(root, { signal, onSelect = () => {
}, onHover = () => {
} }) {
  let links = {}, sticky = "", hovered = "", byKey = /* @__PURE__ */ new Map(), lit = [], listen = (type, handler) => root.addEventListener(type, handler, { signal }), found = (target) => target.closest?.("[data-keys]"), primary = (element2) => keysOf(element2?.dataset.keys)[0] ?? "";
  function show() {
    let keys = litKeys(hovered || sticky, links);
    for (let element2 of lit) element2.classList.remove("ein-lit");
    lit = [...new Set([...keys].flatMap((key) => byKey.get(key) ?? []))];
    for (let element2 of lit) element2.classList.add("ein-lit");
    root.classList.toggle("ein-selecting", lit.length > 0), root.dataset.lit = hovered || sticky;
  }
  function hover(key) {
    key !== hovered && (hovered = key, show(), onHover(key || sticky));
  }
  function select(key) {
    key !== sticky && (sticky = key, show());
  }
  function choose(key) {
    hovered = "", select(key), show(), onSelect(key);
  }
  function refresh(newLinks = links) {
    links = newLinks, byKey = /* @__PURE__ */ new Map();
    for (let element2 of root.querySelectorAll("[data-keys]")) {
      for (let key of keysOf(element2.dataset.keys))
        byKey.has(key) || byKey.set(key, []), byKey.get(key).push(element2);
      element2.classList.toggle("ein-leaf", element2.querySelector("[data-keys]") === null), makeFocusable(element2);
    }
    for (let area of root.querySelectorAll("[data-rove]")) {
      let members = [...area.querySelectorAll("[data-keys]")];
      members.length && !members.some((m) => m.tabIndex === 0) && (members[0].tabIndex = 0);
    }
    lit = [], show();
  }
  function rove(event, element2) {
    let area = element2.closest("[data-rove]");
    if (!area || !event.key.startsWith("Arrow")) return;
    let members = [...area.querySelectorAll(".ein-leaf")].filter((m) => m.getClientRects().length), from = members.indexOf(element2);
    if (from < 0) return;
    let boxes = members.map((m) => m.getBoundingClientRect()), next = nextBox(boxes, from, event.key);
    if (next >= 0) {
      for (let member of area.querySelectorAll('[tabindex="0"]')) member.tabIndex = -1;
      members[next].tabIndex = 0, members[next].focus(), event.preventDefault();
    }
  }
  return listen("pointerover", (event) => hover(primary(found(event.target)))), listen("pointerleave", () => hover("")), listen("focusin", (event) => {
    event.target.dataset.lmSuppressShortcuts = "true", hover(primary(found(event.target)));
  }), listen("focusout", () => hover("")), listen("click", (event) => {
    let element2 = found(event.target), control = event.target.closest?.("button, input, select, a, summary");
    element2 && (!control || control === element2) && choose(primary(element2) === sticky ? "" : primary(element2));
  }), listen("keydown", (event) => {
    if (event.key === "Escape" && (sticky || hovered)) {
      choose(""), event.stopPropagation();
      return;
    }
    let element2 = found(event.target);
    !element2 || event.target !== element2 || ((event.key === " " || event.key === "Enter") && (choose(primary(element2) === sticky ? "" : primary(element2)), event.preventDefault()), rove(event, element2));
  }), { refresh, select, selected: () => sticky };
}
function makeFocusable(element2) {
  if (element2.hasAttribute("tabindex") || element2.matches("button, input, select, a")) return;
  element2.setAttribute("tabindex", "-1"), element2.hasAttribute("role") || element2.setAttribute("role", "button");
  let title = element2.querySelector(":scope > title")?.textContent;
  title && !element2.hasAttribute("aria-label") && element2.setAttribute("aria-label", title);
}

// src/steps.js
var PAUSE = 1100;
function controls(model, { signal, last, go, play }) {
  let bar = element("div", "ein-steps-bar"), add = (text, label, act) => {
    let made = button(text, act, { signal, label });
    return bar.append(made), made;
  }, step = () => model.get("step"), first = add("First", "To the beginning (Home)", () => go(0)), back = add("◀ Back", "One step back (←)", () => go(step() - 1)), next = add("Next ▶", "One step on (→)", () => go(step() + 1)), playing = add("Play", "Step by itself (Space)", play), slider = document.createElement("input");
  Object.assign(slider, { type: "range", min: 0, max: last, className: "ein-steps-slider" }), slider.setAttribute("aria-label", "step"), slider.addEventListener("input", () => go(Number(slider.value)), { signal });
  let count = element("span", "ein-steps-count"), speed = document.createElement("select");
  speed.setAttribute("aria-label", "speed");
  for (let [value, text] of [
    [0.5, "slow"],
    [1, "normal"],
    [3, "fast"]
  ])
    speed.append(new Option(text, value, value === 1, value === 1));
  return bar.append(slider, count, speed, saveMenu(model, { title: "steps", signal })), {
    bar,
    pause: () => PAUSE / Number(speed.value),
    show(at, isPlaying) {
      first.disabled = back.disabled = at === 0, next.disabled = at === last, playing.textContent = isPlaying ? "Pause" : "Play", playing.setAttribute("aria-pressed", String(isPlaying)), slider.value = at, count.textContent = `${at} of ${last}`;
    }
  };
}
function formula(view) {
  let pre = element("pre", "ein-mono ein-steps-formula");
  return pre.textContent = view.text.trimEnd(), {
    pre,
    mark(node) {
      let [start, stop] = node?.span ?? [0, 0], mark = element("mark", "", view.text.slice(start, stop));
      pre.replaceChildren(
        view.text.slice(0, start),
        ...stop ? [mark] : [],
        view.text.slice(stop).trimEnd()
      );
    }
  };
}
function picture(svg) {
  let frame = element("div", "ein-steps-picture");
  return frame.innerHTML = svg, frame.querySelector("svg").setAttribute("role", "group"), frame;
}
function page(model, view, bar) {
  let root = element("div", "ein-widget ein-steps");
  root.tabIndex = -1, root.dataset.lmSuppressShortcuts = "true";
  let words = element("p", "ein-steps-words");
  words.setAttribute("aria-live", "polite");
  let text = formula(view), graph = picture(model.get("graph")), blocks = picture(model.get("blocks"));
  blocks.dataset.rove = "";
  let top = element("div", "ein-steps-top");
  top.append(panel("formula", text.pre), panel("graph", graph)), root.append(bar, words, top, panel("blocks", blocks));
  let nodes = new Map(view.nodes.map((node) => [node.id, node]));
  return {
    root,
    blocks,
    /** Says what `task` does at one of its frames, and marks its node; of none, what there is to see. */
    say(task, frame) {
      words.textContent = task ? [task.words, task.frames[frame].words].filter(Boolean).join(" — ") : view.caption, text.mark(task && nodes.get(task.node));
      for (let drawn of graph.querySelectorAll("[data-keys]")) {
        let keys = drawn.dataset.keys.split(" ");
        drawn.classList.toggle("ein-now", task !== void 0 && keys[0] === `node:${task.node}`);
      }
    }
  };
}
function player(step) {
  let timer = 0, running = !1, stop = () => {
    clearTimeout(timer), running = !1;
  }, tick = () => {
    running = !0;
    let pause = step();
    pause ? timer = setTimeout(tick, pause) : running = !1;
  };
  return { start: tick, stop, on: () => running };
}
function render({ model, el, signal }) {
  let view = model.get("view"), places = positions(view.tasks), last = places.length, flight = null, bar = controls(model, { signal, last, go, play }), shown = page(model, view, bar.bar);
  el.append(shown.root);
  let selection = selectable(shown.root, {
    signal,
    onSelect: (key) => {
      model.set("selection", key), model.save_changes();
    }
  }), cards = board(view, shown.blocks), still = matchMedia("(prefers-reduced-motion: reduce)"), playing = player(() => (model.get("step") < last && move(model.get("step") + 1), model.get("step") < last ? bar.pause() : (bar.show(last, !1), 0)));
  function show(flies = !1) {
    flight?.cancel();
    let at = model.get("step"), now = places[at - 1], task = now && view.tasks[now.task];
    cards.show(now), bar.show(at, playing.on()), shown.say(task, now?.frame), flight = flies && task?.type === "Move" && !still.matches ? cards.fly(task, bar.pause() * 0.7) : null;
  }
  function move(to) {
    let step = Math.min(Math.max(to, 0), last), forward = step === model.get("step") + 1;
    model.set("step", step), model.save_changes(), show(forward);
  }
  function go(to) {
    playing.stop(), move(to);
  }
  function play() {
    playing.on() ? playing.stop() : (model.get("step") >= last && model.set("step", 0), playing.start()), bar.show(model.get("step"), playing.on());
  }
  function press(event) {
    if (event.defaultPrevented || event.target.closest("input, select, [data-rove], details")) return;
    let by = { ArrowRight: 1, ArrowLeft: -1, Home: -last, End: last }[event.key];
    if (by !== void 0) go(model.get("step") + by);
    else if (event.key === " " && !event.target.closest("button")) play();
    else return;
    event.preventDefault();
  }
  let follow = () => show(), sized = new ResizeObserver(() => cards.follow(places[model.get("step") - 1]));
  sized.observe(shown.blocks), shown.root.addEventListener("keydown", press, { signal }), model.on("change:step", follow), signal?.addEventListener("abort", () => {
    playing.stop(), sized.disconnect(), model.off("change:step", follow);
  }), selection.refresh(model.get("links")), show();
}
var steps_default = { render };
export {
  steps_default as default
};

// What happens on which site: Python's picture of the tasks, to pan, zoom, fold and select in.

import { laneNames, lanesIn } from "./lanenames.js";
import { panBy, panzoom } from "./panzoom.js";
import { button, element, heed } from "./parts.js";
import { saveMenu } from "./save.js";
import { litKeys, selectable } from "./select.js";
import { formula } from "./spans.js";

const WORDS = {
  tasks: "Every task",
  nodes: "A box a node and site",
  sites: "All sites as one",
  summary: "Counts a node and site",
};
/** Smaller than this nothing can be read, so a large picture begins at its corner. */
const READABLE = 0.92;

/** Which of `wires` ("3-17") lead from one lit item to another. */
export function litWires(wires, items) {
  return wires.filter((wire) => wire.split("-").every((item) => items.has(item)));
}

function chips(nodes) {
  const bar = element("div", "ein-tl-chips");
  for (const node of nodes) {
    const chip = element("button", "ein-tl-chip", node.name);
    chip.type = "button";
    chip.title = node.formula ? `${node.tensor} = ${node.formula}` : `${node.tensor}, an input`;
    chip.dataset.keys = `node:${node.id} tensor:${node.name}`;
    bar.append(chip);
  }
  return bar;
}

/** The facts of what is selected, and buttons that fold it. */
function factsPanel(aside, { signal, fold }) {
  return (facts, folded, nodes) => {
    aside.replaceChildren();
    if (!facts.title) {
      const hint =
        "Select a task, a node or a site: Enter or a click pins it, Esc lets go. Drag to pan, Ctrl and wheel to zoom.";
      aside.append(element("p", "ein-tg-hint", hint));
      return;
    }
    aside.append(element("h4", "ein-tg-title", facts.title));
    // Not a list of definitions: Jupyter has a look of its own for these.
    const list = element("div", "ein-tg-facts");
    for (const [name, value] of facts.rows) {
      list.append(element("span", "ein-tg-name-of", name), element("span", "", value));
    }
    aside.append(list);
    for (const key of facts.folds) {
      const [kind, number] = key.split(":");
      const name =
        kind === "site" ? `site ${number}` : nodes.find((node) => node.id === Number(number))?.name;
      const done = folded.includes(key);
      const words = `${done ? "Unfold" : "Fold"} ${name}`;
      const label = `${words}: ${kind === "site" ? "what it does for each node" : "what each site does for it"} in one box`;
      aside.append(button(words, () => fold(key, !done), { signal, label }));
    }
    if (facts.before.length) {
      aside.append(element("p", "ein-tg-hint", "In the same task, before that:"));
      aside.append(element("pre", "ein-mono ein-tg-before", facts.before.join("\n")));
    }
  };
}

function render({ model, el, signal }) {
  const root = element("div", "ein-widget ein-taskgraph");
  const bar = element("div", "ein-tl-bar");
  const top = element("div", "ein-tl-top");
  const error = element("div", "ein-error");
  const frame = element("div", "ein-panel ein-tg-frame");
  const picture = element("div", "ein-tg-picture");
  const names = element("div", "ein-tg-names");
  const aside = element("aside", "ein-panel ein-tg-aside");
  aside.setAttribute("aria-live", "polite");
  const main = element("div", "ein-tg-main");
  const key = element("div", "ein-tg-key");
  const caption = element("div", "ein-caption");
  frame.tabIndex = 0;
  frame.setAttribute("role", "group");
  frame.dataset.rove = "";
  frame.append(picture, names);
  main.append(frame, aside);
  root.append(bar, error, top, main, key, caption);
  el.append(root);
  let size = { width: 1, height: 1 };
  let lanes = [];
  let items = new Map();
  let wires = new Map();

  const detail = element("select");
  detail.setAttribute("aria-label", "how much is drawn");
  detail.addEventListener(
    "change",
    () => {
      model.set("detail", detail.value);
      model.save_changes();
    },
    { signal },
  );
  const view = panzoom(frame, picture, {
    signal,
    size: () => size,
    onChange: (now) => laneNames(names, lanes, now, frame.clientHeight),
  });
  const space = element("span", "ein-tg-space");
  bar.append(
    detail,
    button("Unfold all", () => fold("", false), { signal, label: "Unfold all nodes and sites" }),
    space,
    button("−", () => view.zoom(0.7), { signal, label: "Zoom out (-)" }),
    button("+", () => view.zoom(1.4), { signal, label: "Zoom in (+)" }),
    button("All", () => view.fit(), { signal, label: "Show all of the picture (0)" }),
    saveMenu(model, { title: "tasks", signal }),
  );
  const selection = selectable(root, { signal, onSelect: select, onHover: light });
  const show = factsPanel(aside, { signal, fold });

  function select(key) {
    model.set("selection", key);
    model.save_changes();
    light(key);
  }

  function fold(key, on) {
    const rest = key ? model.get("folded").filter((one) => one !== key) : [];
    model.set("folded", on ? [...rest, key] : rest);
    model.save_changes();
  }

  /** Wires have no keys of their own: they are lit where both ends are. */
  function light(key) {
    const keys = litKeys(key, model.get("links"));
    for (const drawn of picture.querySelectorAll(".ein-wire-lit")) drawn.classList.remove("ein-wire-lit");
    if (!key) return;
    const lit = new Set([...keys].flatMap((one) => items.get(one) ?? []));
    for (const wire of litWires([...wires.keys()], lit)) {
      for (const drawn of wires.get(wire)) drawn.classList.add("ein-wire-lit");
    }
  }

  /** Which items a key lights, and which elements are a wire. */
  function index() {
    items = new Map();
    wires = new Map();
    for (const drawn of picture.querySelectorAll("[data-item]")) {
      for (const key of drawn.dataset.keys.split(" ")) {
        if (!items.has(key)) items.set(key, []);
        items.get(key).push(drawn.dataset.item);
      }
    }
    for (const drawn of picture.querySelectorAll("[data-wire]")) {
      const { wire } = drawn.dataset;
      if (!wires.has(wire)) wires.set(wire, []);
      wires.get(wire).push(drawn);
    }
  }

  function draw() {
    const began = performance.now();
    const first = !picture.firstElementChild;
    picture.innerHTML = model.get("picture");
    key.innerHTML = model.get("key").join("");
    for (const drawn of key.children) drawn.setAttribute("role", "presentation");
    const svg = picture.querySelector("svg");
    svg.setAttribute("role", "group");
    size = { width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height };
    svg.style.cssText = `width:${size.width}px;height:${size.height}px`;
    picture.style.width = `${size.width}px`;
    lanes = lanesIn(svg);
    const wide = frame.clientWidth / size.width;
    frame.style.height = `${Math.min(Math.max(size.height * Math.min(Math.max(wide, READABLE), 1), 260), 560)}px`;
    index();
    selection.refresh(model.get("links"));
    const room = { width: frame.clientWidth, height: frame.clientHeight };
    const whole = Math.min(room.width / size.width, room.height / size.height);
    if (!first) view.set(panBy(view.view(), 0, 0, size, room));
    else if (whole >= READABLE) view.fit();
    else view.set({ x: 0, y: 0, scale: READABLE });
    light(model.get("selection"));
    // Two frames later it has been painted.
    const painted = () => {
      root.dataset.drawn = (performance.now() - began).toFixed(0);
    };
    requestAnimationFrame(() => requestAnimationFrame(painted));
  }

  function update() {
    const { choices, nodes, text, spans } = model.get("view");
    detail.replaceChildren(...choices.map((name) => new Option(WORDS[name], name)));
    detail.value = model.get("detail");
    top.replaceChildren(...(text ? [formula(text, spans)] : []), chips(nodes));
    caption.textContent = model.get("view").caption;
    draw();
    tell();
  }

  const tell = () => show(model.get("details"), model.get("folded"), model.get("view").nodes);
  const complain = () => {
    error.textContent = model.get("error");
  };
  heed(model, signal, {
    "change:picture": draw,
    "change:detail": () => {
      detail.value = model.get("detail");
    },
    "change:details": tell,
    "change:folded": tell,
    "change:error": complain,
    "change:selection": () => {
      selection.select(model.get("selection"));
      light(model.get("selection"));
    },
  });
  complain();
  requestAnimationFrame(update);
}

export default { render };

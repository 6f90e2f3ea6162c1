// The plan explorer: puts together what Python says and what the reader asks for.

import { cardDeck } from "./cards.js";
import { controls } from "./controls.js";
import { showCosts } from "./costs.js";
import { showCutter } from "./cutter.js";
import { showFormula } from "./formula.js";
import { graphPane } from "./graphpane.js";
import { button, element, panel } from "./parts.js";
import { nextStep } from "./scales.js";
import { selectable } from "./select.js";
import { showStrip } from "./strip.js";

function layout(model, { signal, ask }) {
  const root = element("div", "ein-widget");
  const grid = element("div", "ein-explorer");
  const part = {
    controls: controls(model, { signal, ask }),
    error: element("div", "ein-error"),
    busy: element("div", "ein-planning"),
    formula: element("pre", "ein-formula ein-mono"),
    graph: graphPane({ signal }),
    deck: element("div", "ein-deck"),
    costs: element("div", "ein-costs"),
    cutter: element("div", "ein-cutter"),
    strip: element("div", "ein-strip"),
    caption: element("p", "ein-caption"),
  };
  part.error.setAttribute("role", "alert");
  part.caption.setAttribute("aria-live", "polite");
  part.busy.setAttribute("role", "status");
  part.busyText = element("span");
  part.busy.append(
    part.busyText,
    button("Cancel", () => ask("cancel"), { signal, label: "Stop planning" }),
  );
  part.deck.dataset.rove = "";
  part.formula.dataset.rove = "";
  const named = (name, title, ...children) => {
    const made = panel(title, ...children);
    made.classList.add(`ein-area-${name}`);
    return made;
  };
  grid.append(
    named("formula", "Formula", part.formula),
    named("controls", "Plan for", part.controls.bar, part.busy, part.error),
    named("graph", "Graph", part.graph.pane),
    named("blocks", "Blocks, coloured by site", part.deck),
    named("costs", "Cost of strategies", part.costs),
    named("cutter", "Cut", part.cutter),
    named("tasks", "Run", part.strip),
  );
  root.append(grid, part.caption);
  return { root, part };
}

/** Scrolls `frame`, and nothing else, so far that `inside` is in sight. */
function reveal(frame, inside) {
  if (!inside) return;
  const [box, around] = [inside.getBoundingClientRect(), frame.getBoundingClientRect()];
  if (box.top < around.top || box.bottom > around.bottom) {
    frame.scrollTop += box.top - around.top - around.height / 3;
  }
}

/** The node that a key stands for or belongs to. */
export function nodeOf(key, links) {
  if (key.startsWith("label:")) return Number(key.split(":")[1]);
  const found = [key, ...(links[key] ?? [])].find((k) => k.startsWith("node:"));
  return found === undefined ? null : Number(found.slice(5));
}

function render({ model, el }) {
  const closing = new AbortController();
  const { signal } = closing;
  const ask = (what, more = {}) => model.send({ do: what, ...more });
  const { root, part } = layout(model, { signal, ask });
  const deck = cardDeck(part.deck);
  const selection = selectable(root, {
    signal,
    onSelect: (key) => {
      model.set("selection", key);
      model.save_changes();
      chosen();
    },
  });
  const view = () => model.get("view");
  const node = () => {
    const id = nodeOf(model.get("selection"), model.get("links"));
    return id === null ? null : view().nodes?.find((n) => n.id === id);
  };
  const label = () => {
    const key = model.get("selection");
    const labels = node()?.labels ?? [];
    const named = key.startsWith("label:") ? key.split(":").slice(2).join(":") : "";
    const focused = part.cutter.contains(document.activeElement) ? document.activeElement.dataset.label : "";
    return (
      labels.find((l) => l.label === (focused || named)) ??
      labels.find((l) => l.steps.length > 1) ??
      labels[0]
    );
  };

  function cutter() {
    const detail = model.get("detail");
    const one = node();
    showCutter(part.cutter, one, one && detail.node === one.id ? detail.svg : "", {
      ask,
      signal,
      label: label()?.label,
    });
  }

  function chosen() {
    cutter();
    const one = node();
    if (one) {
      deck.reveal(one.id);
      part.graph.reveal(one.id);
    }
    selection.refresh();
    reveal(part.formula, part.formula.querySelector(".ein-lit"));
  }

  function update() {
    part.controls.show();
    part.error.textContent = model.get("error");
    const now = view();
    if (!now.nodes) return;
    showFormula(part.formula, now.formula);
    deck.show(model.get("cards"), now.nodes);
    showCosts(part.costs, now, {
      signal,
      choose: (name) => {
        model.set("shown", name);
        model.save_changes();
      },
    });
    cutter();
    showStrip(part.strip, model.get("strip"));
    part.caption.textContent = now.caption;
    root.dataset.done = String(now.done);
    root.dataset.sites = now.setting.sites;
    selection.refresh(model.get("links"));
  }

  function busy() {
    const { what, since } = model.get("busy");
    part.busy.classList.toggle("ein-on", Boolean(what));
    if (what) part.busyText.textContent = `${what} … ${since.toFixed(1)} s`;
  }

  root.addEventListener(
    "keydown",
    (event) => {
      const one = label();
      if (!one || event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey) return;
      if (event.key === "[" || event.key === "]") {
        const parts = nextStep(one.steps, one.parts, event.key === "]" ? 1 : -1);
        if (parts !== one.parts) ask("edit", { node: node().id, label: one.label, parts });
      } else if (event.key === "Enter" && node().edited) {
        ask("pin", { node: node().id });
      } else return;
      event.preventDefault();
      event.stopPropagation();
    },
    { signal, capture: true },
  );

  const on = (name, handler) => {
    model.on(name, handler);
    signal.addEventListener("abort", () => model.off(name, handler));
  };
  // Python sends what belongs together in one message; it is drawn once, when all of it is there.
  let waiting = false;
  const soon = () => {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => {
      waiting = false;
      update();
    });
  };
  for (const name of ["view", "cards", "strip", "links", "error", "undoable", "setting"]) {
    on(`change:${name}`, soon);
  }
  on("change:detail", cutter);
  on("change:busy", busy);
  on("change:graph", () => part.graph.show(model.get("graph")));
  on("change:selection", () => {
    selection.select(model.get("selection"));
    chosen();
  });
  el.append(root);
  part.graph.show(model.get("graph"));
  update();
  busy();
  selection.select(model.get("selection"));
  return () => closing.abort();
}

export default { render };

// How the selected tensor is cut: a stepper for each label, and a pin.

import { button, element } from "./parts.js";
import { nextStep } from "./scales.js";

/** So many pixels of a drag are one step. */
const DRAG = 16;

/** How many steps a drag of `pixels` goes, towards zero. */
export function stepsOf(pixels) {
  return Math.trunc(pixels / DRAG);
}

/** The value `count` steps from `value`. */
export function stepped(steps, value, count) {
  let found = value;
  for (let k = 0; k < Math.abs(count); k++) found = nextStep(steps, found, Math.sign(count));
  return found;
}

/** Makes a number of parts follow a drag. */
function dragged(target, label, set, signal) {
  target.addEventListener(
    "pointerdown",
    (down) => {
      if (down.button !== 0) return;
      down.preventDefault();
      target.focus();
      const stop = new AbortController();
      const options = { signal: AbortSignal.any([stop.signal, signal]) };
      let last = label.parts;
      document.addEventListener(
        "pointermove",
        (move) => {
          const value = stepped(label.steps, label.parts, stepsOf(move.clientX - down.clientX));
          if (value !== last) set(value);
          last = value;
        },
        options,
      );
      document.addEventListener("pointerup", () => stop.abort(), options);
    },
    { signal },
  );
}

function labelRow(node, label, { ask, signal, active }) {
  const row = element("div", `ein-cut-row${active ? " ein-cut-active" : ""}`);
  row.dataset.keys = `label:${node.id}:${label.label}`;
  row.setAttribute("role", "group");
  row.setAttribute("aria-label", `label ${label.name} of extent ${label.extent}`);
  const set = (parts) => ask("edit", { node: node.id, label: label.label, parts });
  const name = element("span", "ein-cut-name ein-mono", label.name);
  if (label.colour) name.style.setProperty("--ein-cut", label.colour);
  const extent = element(
    "span",
    "ein-cut-extent",
    `${label.extent}${label.aggregated ? ", summed over" : ""}`,
  );
  const value = element("span", "ein-cut-parts", String(label.parts));
  Object.assign(value, { tabIndex: 0, title: "Drag, or press [ and ]" });
  value.setAttribute("role", "spinbutton");
  value.setAttribute("aria-label", `parts of ${label.name}`);
  value.setAttribute("aria-valuenow", label.parts);
  value.setAttribute("aria-valuemin", 1);
  value.setAttribute("aria-valuemax", label.steps.at(-1));
  value.dataset.label = label.label;
  dragged(value, label, set, signal);
  const less = button("−", () => set(nextStep(label.steps, label.parts, -1)), {
    signal,
    label: `Fewer parts of ${label.name}`,
  });
  const more = button("+", () => set(nextStep(label.steps, label.parts, 1)), {
    signal,
    label: `More parts of ${label.name}`,
  });
  less.disabled = label.parts <= label.steps[0];
  more.disabled = label.parts >= label.steps.at(-1);
  row.append(name, extent, less, value, more);
  return row;
}

/** Puts the labels of `node` into `target`, and the picture of its kernel calls. */
export function showCutter(target, node, picture, { ask, signal, label }) {
  const now = JSON.stringify([node, label]);
  if (target.dataset.shown === now && node) {
    target.lastElementChild.innerHTML = picture;
    return;
  }
  target.dataset.shown = now;
  const focused = target.contains(document.activeElement) ? document.activeElement : null;
  const at = focused && [focused.dataset.label, focused.getAttribute("aria-label")];
  if (!node) {
    target.replaceChildren(
      element("p", "ein-hint", "Select a tensor, a node or a part of the formula to change how it is cut."),
    );
    return;
  }
  const head = element("div", "ein-cutter-head");
  const title = element("span", "ein-cutter-title ein-mono");
  title.textContent = node.formula ? `${node.title} = ${node.formula}` : node.title;
  const pin = node.pinned
    ? button("Unpin", () => ask("free", { node: node.id }), { signal, label: `Let ${node.name} be planned` })
    : button("Pin", () => ask("pin", { node: node.id }), {
        signal,
        label: `Keep this cut of ${node.name} and plan the rest around it (Enter)`,
      });
  head.append(title, pin);
  const labels = node.labels.map((one) => labelRow(node, one, { ask, signal, active: one.label === label }));
  const drawn = element("div", "ein-join");
  drawn.innerHTML = picture;
  target.replaceChildren(head, ...labels, drawn);
  if (at) {
    const same = [...target.querySelectorAll("[data-label], button")].find(
      (e) => e.dataset.label === at[0] && e.getAttribute("aria-label") === at[1],
    );
    same?.focus();
  }
}

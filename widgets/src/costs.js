// What strategies cost: a row each, its bar stacked, with the lower bound as a tick.

import { element } from "./parts.js";

/** The widths in percent of the stacked parts of every row, and where the lower bound is; null without one. */
export function barWidths(strategies, bound, timed) {
  const parts = strategies.map((s) => (timed ? [s.seconds ?? 0] : s.parts));
  const sums = parts.map((row) => row.reduce((a, b) => a + b, 0));
  const most = Math.max(...sums, timed ? 0 : bound);
  const percent = (value) => (most > 0 ? (100 * value) / most : 0);
  return {
    rows: parts.map((row) => row.map(percent)),
    bound: timed || bound <= 0 ? null : percent(bound),
  };
}

function row(strategy, widths, { view, bound, timed, choose, signal }) {
  const made = element("button", "ein-strategy");
  made.type = "button";
  const shown = strategy.name === view.shown;
  made.setAttribute("aria-pressed", String(shown));
  made.dataset.strategy = strategy.name;
  const { text } = strategy;
  const parts = view.parts.map((part, k) => `${part} ${text.parts[k]}`).join(", ");
  made.title = `${strategy.name}\npredicted ${text.cost}: ${parts}\nmoved by its tasks ${text.moved}\nsimulated ${text.seconds}\nwork of the busiest site ${text.balance} the mean\nmemory of the fullest site ${text.peak}`;
  const head = element("span", "ein-strategy-head");
  head.append(
    element("span", "ein-strategy-name", strategy.name),
    element("span", "ein-strategy-cost", timed ? text.seconds : text.cost),
  );
  const bar = element("span", "ein-cost-bar");
  widths.forEach((width, k) => {
    const piece = element("span", `ein-cost-part ein-part-${timed ? "time" : k}`);
    piece.style.width = `${width}%`;
    bar.append(piece);
  });
  if (bound !== null) {
    const tick = element("span", "ein-cost-bound");
    tick.style.left = `${bound}%`;
    bar.append(tick);
  }
  const rest = timed ? `${text.cost} predicted` : text.seconds;
  const foot = element("span", "ein-strategy-foot");
  foot.append(
    element("span", "", `${text.moved} moved · ${rest}`),
    element("span", "", `load ${text.balance}`),
  );
  made.append(head, bar, foot);
  made.addEventListener("click", () => choose(shown ? "" : strategy.name), { signal });
  return made;
}

/** Puts the strategies of `view` into `target`; `choose(name)` is called to see the blocks of one. */
export function showCosts(target, view, { choose, signal }) {
  const timed = view.setting.objective === "time";
  const widths = barWidths(view.strategies, view.bound, timed);
  const focused = target.contains(document.activeElement) ? document.activeElement.dataset.strategy : null;
  const legend = element("div", "ein-cost-legend");
  const names = timed ? ["simulated time"] : view.parts;
  names.forEach((name, k) => {
    const key = element("span", "ein-cost-key");
    key.append(element("span", `ein-cost-swatch ein-part-${timed ? "time" : k}`), element("span", "", name));
    legend.append(key);
  });
  if (widths.bound !== null) {
    const key = element("span", "ein-cost-key");
    key.append(element("span", "ein-swatch-bound"), element("span", "", `at least ${view.bound_text}`));
    key.title = "what moves at least if every matrix product is evenly shared out";
    legend.append(key);
  }
  target.replaceChildren(
    legend,
    ...view.strategies.map((strategy, k) =>
      row(strategy, widths.rows[k], { view, bound: widths.bound, timed, choose, signal }),
    ),
  );
  if (focused) target.querySelector(`[data-strategy="${CSS.escape(focused)}"]`)?.focus();
}

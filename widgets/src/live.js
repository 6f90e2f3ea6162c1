// A run under way, as Python sees it a few times a second, and a button that ends it.

import { bar, button, chip, element, panel, table } from "./parts.js";
import { saveMenu } from "./save.js";

const STATES = {
  waiting: "starting",
  running: "running",
  cancelling: "cancelling …",
  cancelled: "cancelled",
  done: "done",
  failed: "failed",
};

/** Whether a run in `state` can still be cancelled. */
export function canCancel(state) {
  return state === "waiting" || state === "running";
}

function figures(pairs) {
  const list = element("dl", "ein-figures");
  for (const [name, value] of pairs) {
    const item = element("div");
    item.append(element("dt", "", name), element("dd", "", value));
    list.append(item);
  }
  return list;
}

function sites(view) {
  const most = Math.max(1, ...view.rows.map((row) => row.peak));
  return table(
    ["site", "tasks done", "", "busy", "holds", "", "at most", "works on"],
    view.rows.map((row) => [
      [chip(row.colour), row.name],
      [bar(row.tasks ? row.done / row.tasks : 1, row.colour)],
      `${row.done}/${row.tasks}`,
      row.busy,
      [bar(row.held / most, row.colour, row.peak / most)],
      row.held_text,
      row.peak_text,
      row.working || "–",
    ]),
  );
}

/** Who sent how much to whom: a table of all pairs, or of the busiest where there are too many. */
function links(view) {
  if (view.sites > 10) {
    const busiest = view.flows.slice(0, 12);
    return table(
      ["from", "to", "bytes"],
      busiest.map(([a, b, , text]) => [view.rows[a].name, view.rows[b].name, text]),
    );
  }
  const most = Math.max(1, ...view.flows.map(([, , bytes]) => bytes));
  const made = table(
    ["from \\ to", ...view.rows.map((row) => `${row.site}`)],
    view.rows.map((row) => [
      [chip(row.colour), `${row.site}`],
      ...view.rows.map((to) => {
        const flow = view.flows.find(([a, b]) => a === row.site && b === to.site);
        const cell = element("span", "ein-flow", flow ? flow[3] : to.site === row.site ? "" : "·");
        if (flow) cell.style.setProperty("--share", flow[2] / most);
        return [cell];
      }),
    ]),
    "ein-table ein-links",
  );
  return made;
}

function render({ model, el, signal }) {
  const root = element("div", "ein-widget ein-live");
  const head = element("div", "ein-live-head");
  const state = element("strong", "ein-live-state");
  const whole = element("div", "ein-live-whole");
  whole.setAttribute("role", "progressbar");
  whole.setAttribute("aria-label", "tasks done");
  const full = element("div", "ein-live-full");
  whole.append(full);
  const cancel = button("Cancel", () => model.send({ do: "cancel" }), {
    signal,
    label: "Cancel the run on all sites",
  });
  head.append(state, whole, cancel, saveMenu(model, { title: "run", signal }));
  const words = element("p", "ein-caption");
  words.setAttribute("role", "status");
  const body = element("div", "ein-live-body");
  const error = element("pre", "ein-error ein-mono");
  root.append(head, words, error, body);
  el.append(root);
  let said = "";

  function show() {
    const view = model.get("view");
    root.dataset.state = view.state;
    state.textContent = STATES[view.state];
    const share = view.tasks ? view.done / view.tasks : 1;
    full.style.width = `${100 * share}%`;
    whole.setAttribute("aria-valuenow", Math.round(100 * share));
    whole.setAttribute("aria-valuetext", `${view.done} of ${view.tasks} tasks`);
    cancel.disabled = !canCancel(view.state);
    if (said !== view.state) {
      said = view.state; // a screen reader hears of changes, not ten times a second of figures
      words.textContent = view.caption;
    }
    if (!canCancel(view.state)) words.textContent = view.caption;
    words.hidden = canCancel(view.state);
    error.textContent = view.error;
    const panels = [panel("sites", sites(view))];
    if (view.flows.length) panels.push(panel("bytes from site to site", links(view)));
    body.replaceChildren(figures(view.figures), ...panels);
  }
  model.on("change:view", show);
  signal?.addEventListener("abort", () => model.off("change:view", show));
  show();
}

export default { render };

// A cluster: a table of engines, and buttons that start and stop them.

import { bar, button, chip, element, table } from "./parts.js";
import { saveMenu } from "./save.js";

/** A whole number from 1 out of what somebody typed. */
export function whole(text, otherwise) {
  const n = Number.parseInt(text, 10);
  return n >= 1 ? n : otherwise;
}

function field(label, value) {
  const box = element("label", "ein-field", label);
  const input = Object.assign(element("input"), { type: "number", min: 1, max: 256, value });
  box.append(input);
  return { box, input };
}

function engines(view) {
  return table(
    ["site", "engine", "host", "pid", "BLAS threads", "BLAS", "process", "tensors kept", ""],
    view.engines.map((row) => [
      [chip(row.colour), `${row.site}`],
      `${row.engine}`,
      row.host,
      `${row.pid}`,
      `${row.threads}`,
      row.blas,
      row.process || "–",
      view.memory && !row.lost ? [bar(row.share, row.colour), ` ${row.kept}`] : row.kept || "–",
      row.lost ? [element("span", "ein-lost", row.lost)] : "",
    ]),
  );
}

function render({ model, el, signal }) {
  const root = element("div", "ein-widget ein-cluster");
  const head = element("div", "ein-live-head");
  const words = element("span", "ein-live-state");
  words.setAttribute("role", "status");
  const n = field("engines ", 2);
  const threads = field("threads each ", 1);
  const start = button(
    "Start",
    () => model.send({ do: "start", n: whole(n.input.value, 2), threads: whole(threads.input.value, 1) }),
    { signal, label: "Start engines on this machine" },
  );
  const stop = button("Stop", () => model.send({ do: "stop" }), { signal, label: "Stop the engines" });
  const gap = element("span", "ein-gap");
  head.append(words, gap, n.box, threads.box, start, stop, saveMenu(model, { title: "cluster", signal }));
  const error = element("pre", "ein-error ein-mono");
  const body = element("div", "ein-panel ein-cluster-table");
  root.append(head, error, body);
  el.append(root);

  function show() {
    const view = model.get("view");
    root.dataset.state = view.state;
    words.textContent = view.caption;
    error.textContent = model.get("error");
    const running = view.state === "running";
    for (const part of [n.box, threads.box, start]) part.hidden = running;
    start.disabled = view.state !== "none";
    stop.hidden = !running;
    body.hidden = !view.engines.length;
    body.replaceChildren(engines(view));
  }
  for (const change of ["change:view", "change:error"]) {
    model.on(change, show);
    signal?.addEventListener("abort", () => model.off(change, show));
  }
  show();
}

export default { render };

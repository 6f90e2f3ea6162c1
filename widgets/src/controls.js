// What a plan is asked for: sites, hosts, link, memory, objective.

import { button, element } from "./parts.js";
import { saveMenu } from "./save.js";
import { stops, withUnit } from "./scales.js";

const MOST_SITES = 64;

function field(label, ...inputs) {
  const made = element("label", "ein-ask-field");
  made.append(element("span", "ein-ask-field-name", label), ...inputs);
  return made;
}

function number(label, { signal, most, change }) {
  const input = element("input");
  Object.assign(input, { type: "number", min: 1, max: most, step: 1 });
  input.setAttribute("aria-label", label);
  input.addEventListener(
    "change",
    () => {
      const value = Math.round(Number(input.value));
      if (value >= 1) change(value);
    },
    { signal },
  );
  return input;
}

/** A slider over stops; `endless` adds one more stop that means no limit. */
function scale(label, { signal, least, most, unit, endless = false, change }) {
  const input = element("input");
  const output = element("output");
  let at = [];
  input.type = "range";
  input.setAttribute("aria-label", label);
  const text = () => {
    const value = at[Number(input.value)];
    output.textContent = value === null ? "∞" : withUnit(value, unit);
    input.setAttribute("aria-valuetext", value === null ? "no limit" : output.textContent);
  };
  input.addEventListener(
    "input",
    () => {
      text();
      change(at[Number(input.value)]);
    },
    { signal },
  );
  const show = (value) => {
    at = [...stops(least, most, value ?? Number.NaN), ...(endless ? [null] : [])];
    Object.assign(input, { min: 0, max: at.length - 1, step: 1, value: at.indexOf(value) });
    text();
  };
  return { input, output, show };
}

/** The bar of controls of `model`, with what shows a setting in it. */
export function controls(model, { signal, ask }) {
  const bar = element("div", "ein-controls");
  const change = (figures) => {
    const setting = { ...model.get("setting"), p: null, ...figures };
    setting.hosts = Math.min(setting.hosts, setting.sites);
    model.set("setting", setting);
    model.save_changes();
    show();
  };

  const slider = element("input");
  Object.assign(slider, { type: "range", min: 1, max: MOST_SITES, step: 1 });
  slider.setAttribute("aria-label", "number of sites");
  slider.addEventListener("input", () => change({ sites: Number(slider.value) }), { signal });
  const sites = number("number of sites, typed", { signal, most: 1024, change: (n) => change({ sites: n }) });
  const hosts = number("number of hosts", { signal, most: 1024, change: (n) => change({ hosts: n }) });
  const bandwidth = scale("bandwidth of the link", {
    signal,
    least: 1e6,
    most: 1e12,
    unit: "B/s",
    change: (x) => change({ bandwidth: x }),
  });
  const latency = scale("latency of the link", {
    signal,
    least: 1e-7,
    most: 1e-1,
    unit: "s",
    change: (x) => change({ latency: x }),
  });
  const memory = scale("memory of a site", {
    signal,
    least: 1e3,
    most: 1e12,
    unit: "B",
    endless: true,
    change: (x) => change({ memory: x }),
  });
  const objective = element("select");
  objective.setAttribute("aria-label", "what the plan makes least");
  objective.append(new Option("fewest bytes", "bytes"), new Option("least time", "time"));
  objective.addEventListener("change", () => change({ objective: objective.value }), { signal });
  const undo = button("Undo", () => ask("undo"), { signal, label: "Undo the last change" });
  const reset = button("Reset", () => ask("reset"), { signal, label: "Go back to the setting at the start" });
  const buttons = element("span", "ein-buttons");
  buttons.append(undo, reset, saveMenu(model, { title: "plan", signal }));
  bar.append(
    field("sites", slider, sites),
    field("hosts", hosts),
    field("link", bandwidth.input, bandwidth.output),
    field("latency", latency.input, latency.output),
    field("memory", memory.input, memory.output),
    field("plan for", objective),
    buttons,
  );

  function show() {
    const setting = model.get("setting");
    slider.value = setting.sites;
    sites.value = setting.sites;
    hosts.value = setting.hosts;
    hosts.max = setting.sites;
    bandwidth.show(setting.bandwidth);
    latency.show(setting.latency);
    memory.show(setting.memory);
    objective.value = setting.objective;
    undo.disabled = model.get("undoable") === 0;
  }
  return { bar, show };
}

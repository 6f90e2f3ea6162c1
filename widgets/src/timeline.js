// Sites and time: what ran where and when, measured and simulated on one scale, also while it runs.

import { seconds } from "./clock.js";
import { timelineFrame } from "./frame.js";
import { button, element, heed } from "./parts.js";
import { Run } from "./runs.js";
import { saveMenu } from "./save.js";
import { litKeys, selectable } from "./select.js";
import { formula } from "./spans.js";

/** How long a replay takes, in milliseconds. */
const REPLAY = 6000;
/** Up to so many nodes all have a chip, else those with a colour of their own. */
const CHIPS = 24;
const OTHER = "#9a9a9a";

/** Of which tasks `isLit` is true when `key` is selected; null where nothing is. */
export function lighting(key, links, stage) {
  if (!key) return null;
  const keys = litKeys(key, links);
  if (key.startsWith("site:")) {
    const site = Number(key.slice(5));
    return (task) => stage.site[task] === site || stage.source[task] === site;
  }
  const tasks = new Set();
  const nodes = new Set();
  for (const one of keys) {
    if (one.startsWith("task:")) tasks.add(Number(one.slice(5)));
    if (one.startsWith("node:") && !key.startsWith("task:")) nodes.add(Number(one.slice(5)));
  }
  return (task) => tasks.has(task) || nodes.has(stage.node[task]);
}

/** The runs of a view, each with what is written above its lanes. */
function runsOf(view) {
  return view.tracks.map((track) => {
    const run = new Run(view.stage, track.name).add(track);
    return Object.assign(run, { title: track.name, words: track.headline ?? "" });
  });
}

function legend(stage, runs) {
  const bar = element("div", "ein-tl-chips");
  const coloured = stage.nodes.filter((node) => stage.nodes.length <= CHIPS || node.colour !== OTHER);
  for (const node of coloured) {
    const chip = element("button", "ein-tl-chip", node.name);
    chip.type = "button";
    chip.title = node.does;
    chip.dataset.keys = `node:${node.id} tensor:${node.name}`;
    const colour = element("i", "ein-tl-swatch");
    colour.style.background = node.colour;
    chip.prepend(colour);
    bar.append(chip);
  }
  const others = stage.nodes.length - coloured.length;
  const keys = others ? [["ein-tl-swatch-other", `${others} other kernels`]] : [];
  keys.push(["ein-tl-swatch-copy", "copying"], ["ein-tl-swatch-move", "move arriving"]);
  keys.push(["ein-tl-swatch-critical", "critical path"], ["ein-tl-swatch-held", "bytes held"]);
  if (runs.some((run) => run.disk.some((rows) => rows.length))) {
    keys.push(["ein-tl-swatch-evicted", "to disk"], ["ein-tl-swatch-loaded", "in memory again"]);
  }
  if (stage.budget) keys.push(["ein-tl-swatch-budget", `budget ${stage.budget_text}`]);
  for (const [look, words] of keys) {
    const key = element("span", "ein-tl-key", words);
    key.prepend(element("i", `ein-tl-swatch ${look}`));
    bar.append(key);
  }
  return bar;
}

/** What is known of a task, in words. */
function describe(task, stage, runs) {
  const node = stage.nodes.find((one) => one.id === stage.node[task]);
  const place = stage.kind[task] === "m" ? "" : ` on site ${stage.site[task]}`;
  const lines = [];
  for (const run of runs) {
    const row = run.where.get(task);
    if (!row) continue;
    const critical = run.critical.has(task) ? ", on the critical path" : "";
    lines.push(`${run.title}: ${seconds(row[2] - row[1])} from ${seconds(row[1])}${place}${critical}`);
  }
  return [...lines, stage.texts[task] ?? node?.does ?? `task ${task}`].join("\n");
}

/** What is known of a node, in words: the figures are Python's. */
function describeNode(id, stage, runs) {
  const node = stage.nodes.find((one) => one.id === id);
  if (!node) return "";
  const spent = runs.filter((run) => run.facts.spent?.[id]);
  return [node.does, ...spent.map((run) => `${run.title}: ${run.facts.spent[id]} in its kernels`)].join("\n");
}

/** What every site does at a moment, in words. */
function describeMoment(time, stage, run) {
  const names = new Map(stage.nodes.map((node) => [node.id, node.name]));
  const sites = run.bars.slice(0, 8).map((rows, site) => {
    const row = run.near(rows, time, 0);
    const what = row && row[1] <= time && time <= row[2] ? stage.node[row[0]] : -1;
    return `site ${site}: ${what < 0 ? "waits" : (names.get(what) ?? "copies")}`;
  });
  return `${run.title}, at ${seconds(time)}\n${sites.join(" · ")}`;
}

function render({ model, el, signal }) {
  const root = element("div", "ein-widget ein-timeline");
  const bar = element("div", "ein-tl-bar");
  const error = element("div", "ein-error");
  const top = element("div", "ein-tl-top");
  const details = element("div", "ein-tl-details");
  details.setAttribute("aria-live", "polite");
  const caption = element("div", "ein-caption ein-tl-caption");
  let [stage, runs, shown, playing] = [null, [], [], 0];
  // What is selected, what the pointer is on in the lanes, and outside of them.
  let [sticky, pointed, hovered] = ["", "", ""];

  const add = (text, label, act) => {
    const made = button(text, act, { signal, label });
    bar.append(made);
    return made;
  };
  const play = add("▶ Replay", "Move through the run in time", () => (playing ? pause() : replay()));
  const slider = element("input", "ein-tl-slider");
  Object.assign(slider, { type: "range", min: 0, max: 1000, value: 1000 });
  slider.setAttribute("aria-label", "moment of the run");
  slider.addEventListener(
    "input",
    () => {
      pause();
      moveTo(slider.value / 1000);
    },
    { signal },
  );
  const clock = element("span", "ein-tl-clock");
  const which = element("span", "ein-tl-which");
  bar.append(slider, clock, which);
  add("−", "Zoom out (-)", () => frame.zoom(1 / 1.6));
  add("+", "Zoom in (+)", () => frame.zoom(1.6));
  add("All", "Show all of the run (0)", () => frame.all());
  bar.append(saveMenu(model, { title: "timeline", signal }));

  const frame = timelineFrame({
    signal,
    onHover: point,
    onSelect: (key) => select(key === sticky ? "" : key),
  });
  root.append(bar, error, top, frame.outer, details, caption);
  el.append(root);
  const selection = selectable(root, { signal, onSelect: select, onHover: hover });

  function point(key) {
    if (key === pointed) return;
    pointed = key;
    light();
  }

  function hover(key) {
    hovered = key;
    light();
  }

  function select(key) {
    [pointed, hovered, sticky] = ["", "", key];
    model.set("selection", sticky);
    model.save_changes();
    light();
  }

  const chosen = () => pointed || hovered || sticky;

  function light() {
    const key = chosen();
    // What is hovered outside of the lanes is lit already.
    selection.select(pointed || sticky);
    const number = (kind) => (key.startsWith(kind) ? Number(key.slice(kind.length)) : null);
    frame.light(lighting(key, model.get("links"), stage), number("task:"), number("site:"));
    tell();
  }

  function tell() {
    const key = chosen();
    if (key.startsWith("task:")) details.textContent = describe(Number(key.slice(5)), stage, shown);
    else if (key.startsWith("node:")) details.textContent = describeNode(Number(key.slice(5)), stage, shown);
    else if (frame.cursor() !== null && shown.length) {
      details.textContent = describeMoment(frame.cursor(), stage, shown[0]);
    } else
      details.textContent =
        "Point at a task, a move or a name. Drag to pan, Ctrl and wheel or + and − to zoom.";
  }

  function moveTo(share) {
    const end = frame.end();
    frame.setCursor(share >= 1 ? null : share * end);
    slider.value = share * 1000;
    clock.textContent = share >= 1 ? seconds(end) : `${seconds(share * end)} of ${seconds(end)}`;
    tell();
  }

  function replay() {
    const from = slider.value >= 1000 ? 0 : slider.value / 1000;
    const began = performance.now() - from * REPLAY;
    const step = (now) => {
      const share = Math.min((now - began) / REPLAY, 1);
      moveTo(share);
      playing = share < 1 ? requestAnimationFrame(step) : 0;
      showPlay();
    };
    playing = requestAnimationFrame(step);
    showPlay();
  }

  function pause() {
    cancelAnimationFrame(playing);
    playing = 0;
    showPlay();
  }

  function showPlay() {
    play.textContent = playing ? "❚❚ Pause" : "▶ Replay";
    play.setAttribute("aria-pressed", String(playing !== 0));
  }

  /** Buttons that show and hide runs, where there are several. */
  function choose() {
    which.replaceChildren();
    if (runs.length < 2) return;
    for (const run of runs) {
      const turn = () => {
        const left = runs.filter((one) => shown.includes(one) !== (one === run));
        show(left.length ? left : runs);
      };
      const made = button(run.title, turn, { signal, label: `Show or hide the ${run.title} run` });
      made.setAttribute("aria-pressed", String(shown.includes(run)));
      which.append(made);
    }
  }

  function show(some) {
    shown = some;
    frame.show(stage, shown);
    caption.textContent = shown
      .filter((run) => run.facts.caption)
      .map((run) => `${run.title}: ${run.facts.caption}`)
      .join("\n");
    choose();
    progress();
  }

  function progress() {
    root.dataset.tasks = shown[0] ? shown[0].where.size : 0;
    root.dataset.over = String(runs.every((run) => run.over));
    if (frame.cursor() === null) clock.textContent = seconds(frame.end());
  }

  function complain() {
    error.textContent = model.get("error");
  }

  function rebuild() {
    const view = model.get("view");
    const hidden = runs.filter((run) => !shown.includes(run)).map((run) => run.name);
    const other = view.stage.text !== stage?.text || view.stage.node.length !== stage?.node.length;
    stage = view.stage;
    runs = runsOf(view);
    const strip = other
      ? stage.text
        ? [formula(stage.text, stage.spans)]
        : []
      : [...top.querySelectorAll("pre")];
    top.replaceChildren(...strip, legend(stage, runs));
    const left = runs.filter((run) => !hidden.includes(run.name));
    show(left.length ? left : runs);
    selection.refresh(model.get("links"));
    light();
  }

  heed(model, signal, {
    "change:view": rebuild,
    "change:selection": () => {
      if (model.get("selection") === sticky) return;
      [sticky, hovered] = [model.get("selection"), ""];
      light();
    },
    "change:error": complain,
    "msg:custom": (message) => {
      const run = runs.find((one) => one.name === message?.run);
      if (!run) return;
      run.add(message.more);
      frame.grew();
      progress();
    },
  });
  signal?.addEventListener("abort", pause);
  complain();
  rebuild();
}

export default { render };

// The window of a timeline: a canvas that scrolls through lanes and zooms along time.

import { AXIS, paint, themeOf } from "./paint.js";
import { element } from "./parts.js";
import { layout, panTime, zoomTime } from "./swimlanes.js";

const LEFT = 74;
const TALLEST = 620;

/**
 * A frame with the lanes of some runs, shown with `show(stage, runs)`; `grew()` after one of them did.
 *
 * Calls `onHover(key)` and `onSelect(key)` with the key of a task or a site, or "" for nothing.
 */
export function timelineFrame({ signal, onHover, onSelect }) {
  const outer = element("div", "ein-panel ein-tl-frame");
  outer.tabIndex = 0;
  outer.setAttribute("role", "application");
  outer.setAttribute(
    "aria-label",
    "Timeline. Arrows go from task to task, Enter pins, Z zooms to the task, plus and minus zoom, 0 shows all.",
  );
  const canvas = element("canvas", "ein-tl-canvas");
  const spacer = element("div");
  outer.append(canvas, spacer);
  const pen = canvas.getContext("2d", { alpha: false });
  const state = {
    stage: null,
    runs: [],
    layout: { lanes: [], headings: [], sizes: {}, height: 0 },
    window: [0, 1],
    whole: true,
    cursor: null,
    isLit: null,
    marked: null,
    site: null,
    width: 0,
    height: 0,
    theme: null,
  };
  let asked = 0;
  let drag = null;
  const listen = (type, handler, more = {}) => outer.addEventListener(type, handler, { signal, ...more });
  const right = () => (state.width >= 760 ? 128 : 8);
  const room = () => Math.max(state.width - LEFT - right(), 1);
  const end = () => Math.max(...state.runs.map((run) => run.end), 1e-9);
  const timeAt = (x) => state.window[0] + ((x - LEFT) / room()) * (state.window[1] - state.window[0]);

  function draw() {
    asked = 0;
    if (!state.stage || !state.width) return;
    const started = performance.now();
    const { stage, runs } = state;
    const most = Math.max(...runs.map((run) => run.peak), 1);
    const budget = stage.budget && stage.budget < 4 * most ? stage.budget : 0;
    paint(pen, {
      ...state,
      left: LEFT,
      right: right(),
      scroll: outer.scrollTop,
      most: Math.max(most, budget) * 1.05,
      siteLit: (site) => state.site === null || state.site === site,
    });
    outer.dataset.painted = (performance.now() - started).toFixed(2);
    outer.dataset.window = state.window.map((t) => t.toPrecision(6)).join(" ");
  }

  function ask() {
    if (!asked) asked = requestAnimationFrame(draw);
  }

  function resize() {
    state.width = outer.clientWidth;
    state.height = Math.min(state.layout.height + AXIS, TALLEST);
    const dense = window.devicePixelRatio || 1;
    outer.style.height = `${state.height + 2}px`;
    canvas.width = Math.round(state.width * dense);
    canvas.height = Math.round(state.height * dense);
    canvas.style.height = `${state.height}px`;
    // The canvas stays where it is while the frame scrolls: the spacer makes up for the lanes below it.
    spacer.style.height = `${Math.max(state.layout.height + AXIS - state.height, 0)}px`;
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    state.theme = themeOf(outer);
    ask();
  }

  function setWindow(window) {
    state.window = window;
    const [from, to] = window;
    state.whole = from <= 0 && to >= end();
    ask();
  }

  const all = () => setWindow([0, end() * 1.01]);
  const zoom = (factor, at = (state.window[0] + state.window[1]) / 2) =>
    setWindow(zoomTime(state.window, factor, at, end()));

  function zoomTo(task) {
    const row = state.runs.map((run) => run.where.get(task)).find(Boolean);
    if (!row) return;
    const margin = Math.max((row[2] - row[1]) * 2, end() * 1e-5);
    setWindow(panTime([row[1] - margin, row[2] + margin], 0, end()));
  }

  /** The key of the task, the move or the name of a site at a place. */
  function found(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + outer.scrollTop];
    const lane = state.layout.lanes.find((one) => one.top <= y && y < one.top + one.height);
    if (!lane || x > LEFT + room()) return "";
    if (x < LEFT) return `site:${lane.site}`;
    const run = state.runs[lane.run];
    const { bars, moves } = state.layout.sizes;
    const inside = y - lane.top;
    if (inside > bars + moves + 2) return "";
    const rows = inside <= bars ? run.bars[lane.site] : run.moves[lane.site];
    const slack = (2 * (state.window[1] - state.window[0])) / room();
    const row = run.near(rows, timeAt(x), slack);
    return row ? `task:${row[0]}` : "";
  }

  /** The task next to the marked one in a direction: earlier, later, or at the same time in another lane. */
  function neighbour(key) {
    const { lanes } = state.layout;
    const place = lanes.findIndex(({ run, site }) =>
      state.runs[run].bars[site].some((row) => row[0] === state.marked),
    );
    if (place < 0) return state.runs[0]?.bars.find((rows) => rows.length)?.[0][0] ?? null;
    const rows = state.runs[lanes[place].run].bars[lanes[place].site];
    const at = rows.findIndex((row) => row[0] === state.marked);
    if (key === "ArrowLeft" || key === "ArrowRight") {
      return rows[at + (key === "ArrowRight" ? 1 : -1)]?.[0] ?? state.marked;
    }
    const next = lanes[place + (key === "ArrowDown" ? 1 : -1)];
    const beside = next && state.runs[next.run].bars[next.site];
    return beside?.length
      ? state.runs[0].near(beside, rows[at][1], Number.POSITIVE_INFINITY)[0]
      : state.marked;
  }

  listen("pointermove", (event) => {
    if (!drag) {
      onHover(found(event));
      return;
    }
    const dx = event.clientX - drag.x;
    if (!drag.moved && Math.abs(dx) + Math.abs(event.clientY - drag.y) < 4) return;
    if (!drag.moved) outer.setPointerCapture(event.pointerId);
    drag.moved = true;
    setWindow(panTime(drag.window, (-dx / room()) * (drag.window[1] - drag.window[0]), end()));
    outer.scrollTop = drag.scroll - (event.clientY - drag.y);
  });
  listen("pointerdown", (event) => {
    if (event.button !== 0) return;
    drag = {
      x: event.clientX,
      y: event.clientY,
      window: state.window,
      scroll: outer.scrollTop,
      moved: false,
    };
  });
  listen("pointerup", (event) => {
    if (drag && !drag.moved) onSelect(found(event));
    drag = null;
  });
  listen("pointercancel", () => {
    drag = null;
  });
  listen("pointerleave", () => onHover(""));
  listen("dblclick", (event) => {
    const key = found(event);
    if (key.startsWith("task:")) zoomTo(Number(key.slice(5)));
  });
  listen(
    "wheel",
    (event) => {
      const box = canvas.getBoundingClientRect();
      const [from, to] = state.window;
      if (event.ctrlKey || event.metaKey)
        zoom(Math.exp(-event.deltaY / 250), timeAt(event.clientX - box.left));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        setWindow(panTime(state.window, ((event.deltaX || event.deltaY) / room()) * (to - from), end()));
      } else return; // a plain wheel scrolls the page
      event.preventDefault();
    },
    { passive: false },
  );
  listen("scroll", ask);
  listen("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    if (key === "+" || key === "=") zoom(1.6);
    else if (key === "-") zoom(1 / 1.6);
    else if (key === "0") all();
    else if ((key === "z" || key === "Z") && state.marked !== null) zoomTo(state.marked);
    else if (key === "Escape") onSelect("");
    else if (key === "Enter" && state.marked !== null) onSelect(`task:${state.marked}`);
    else if (key.startsWith("Arrow")) {
      const task = neighbour(key);
      if (task !== null) {
        onHover(`task:${task}`);
        reveal(task);
      }
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  /** Moves the window so that a task is seen. */
  function reveal(task) {
    const row = state.runs.map((run) => run.where.get(task)).find(Boolean);
    const [from, to] = state.window;
    if (row && (row[2] < from || row[1] > to))
      setWindow(panTime(state.window, row[1] - (from + to) / 2, end()));
  }

  const sized = new ResizeObserver(resize);
  sized.observe(outer);
  const themed = new MutationObserver(resize);
  for (const one of [document.documentElement, document.body]) {
    themed.observe(one, { attributes: true, attributeFilter: ["class", "data-jp-theme-light", "style"] });
  }
  signal?.addEventListener("abort", () => {
    sized.disconnect();
    themed.disconnect();
    cancelAnimationFrame(asked);
  });

  return {
    outer,
    end,
    all,
    zoom,
    zoomTo,
    cursor: () => state.cursor,
    setCursor(time) {
      state.cursor = time;
      ask();
    },
    light(isLit, marked, site) {
      Object.assign(state, { isLit, marked, site });
      ask();
    },
    show(stage, runs) {
      const same = state.stage === stage || state.whole === false;
      Object.assign(state, { stage, runs, layout: layout(runs.length, stage.sites), cursor: null });
      state.colours = new Map(stage.nodes.map((node) => [node.id, node.colour]));
      state.names = new Map(stage.nodes.map((node) => [node.id, node.name]));
      if (!same || state.whole) all();
      resize();
    },
    grew() {
      if (state.whole) all();
      ask();
    },
  };
}

// src/clock.js
var UNITS = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"]
];
function seconds(time) {
  if (time <= 0) return "0 s";
  let [size, unit] = UNITS.find(([u]) => time >= u * 0.9995) ?? UNITS.at(-1), value = time / size, decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(decimals)} ${unit}`;
}
function marks(from, to, wanted) {
  let span = to - from;
  if (!(span > 0)) return [];
  let rough = span / Math.max(wanted, 1), power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999), [size, unit] = UNITS.find(([u]) => to >= u) ?? UNITS.at(-1), decimals = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9)), found = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to * (1 + 1e-12); k++)
    found.push({ at: k * step, text: (k * step / size).toFixed(decimals) });
  return found.length && (found.at(-1).text += ` ${unit}`), found;
}

// src/runs.js
function firstFrom(rows, column, value) {
  let [low, high] = [0, rows.length];
  for (; low < high; ) {
    let middle2 = low + high >> 1;
    rows[middle2][column] < value ? low = middle2 + 1 : high = middle2;
  }
  return low;
}
function insert(rows, row, column) {
  !rows.length || rows.at(-1)[column] <= row[column] ? rows.push(row) : rows.splice(firstFrom(rows, column, row[column]), 0, row);
}
var Run = class {
  constructor(stage, name2) {
    let each = () => Array.from({ length: stage.sites }, () => []);
    Object.assign(this, { stage, name: name2, at: 0, over: !1, error: "", working: [] }), this.bars = each(), this.moves = each(), this.disk = each(), this.changes = each(), this.where = /* @__PURE__ */ new Map(), this.critical = /* @__PURE__ */ new Set(), this.facts = {}, this.levels = each().map(() => null);
  }
  /** Adds what Python sent. */
  add(rows) {
    for (let [kind, into] of [
      ["bars", this.bars],
      ["moves", this.moves]
    ])
      for (let row of rows[kind])
        insert(into[this.stage.site[row[0]]], row, 1), this.where.set(row[0], row);
    for (let row of rows.disk) insert(this.disk[this.stage.site[row[0]]], row, 1);
    for (let [site, time, bytes] of rows.held)
      insert(this.changes[site], [time, bytes], 0), this.levels[site] = null;
    return this.at = rows.at, this.over = rows.over, this.error = rows.error, this.working = rows.working, rows.critical && (this.critical = new Set(rows.critical)), rows.caption && (this.facts = rows), this;
  }
  /** When the last thing ended, or the run. */
  get end() {
    return this.at;
  }
  /** [time, bytes from then on] of a site. */
  held(site) {
    if (!this.levels[site]) {
      let now = 0;
      this.levels[site] = this.changes[site].map(([time, bytes]) => (now += bytes, [time, now]));
    }
    return this.levels[site];
  }
  /** The most bytes that any site holds. */
  get peak() {
    let most = 0;
    for (let site = 0; site < this.stage.sites; site++)
      for (let [, bytes] of this.held(site)) most = Math.max(most, bytes);
    return most;
  }
  /** The row of a site at `time`, or one no further away than `slack` seconds; undefined where it waits. */
  near(rows, time, slack) {
    let best, least = slack;
    for (let row of rows) {
      if (row[1] - slack > time) break;
      let away = Math.max(row[1] - time, time - row[2], 0);
      (away < least || away === least && best === void 0) && ([best, least] = [row, away]), away === 0 && (best = row);
    }
    return best;
  }
};
function stretches(rows, from, to, near, same, draw) {
  let [start, stop, first, count] = [0, 0, null, 0];
  for (let row of rows)
    if (!(row[2] < from)) {
      if (row[1] > to) break;
      if (first && row[1] - stop < near && (same(first, row) || row[2] - stop < near)) {
        stop = Math.max(stop, row[2]), count++;
        continue;
      }
      first && draw(start, stop, first, count), [start, stop, first, count] = [row[1], row[2], row, 1];
    }
  first && draw(start, stop, first, count);
}

// src/swimlanes.js
function laneSizes(lanes) {
  return lanes <= 10 ? { bars: 22, moves: 8, memory: 18, gap: 9 } : lanes <= 24 ? { bars: 15, moves: 5, memory: 9, gap: 5 } : lanes <= 72 ? { bars: 9, moves: 3, memory: 0, gap: 3 } : { bars: 4, moves: 2, memory: 0, gap: 1 };
}
function layout(runs, sites) {
  let sizes = laneSizes(runs * sites), height = sizes.bars + sizes.moves + (sizes.memory ? sizes.memory + 1 : 0) + sizes.gap, [lanes, headings] = [[], []], top = 6;
  for (let run = 0; run < runs; run++) {
    headings.push({ run, top }), top += 27;
    for (let site = 0; site < sites; site++)
      lanes.push({ run, site, top, height }), top += height;
    top += 6;
  }
  return { lanes, headings, sizes, height: top };
}
function isNamed(site, sizes, sites) {
  return sizes.bars + sizes.moves + sizes.memory >= 14 || site % (sites <= 100 ? 5 : 10) === 0;
}
function zoomTime([from, to], factor, at, end) {
  let least = Math.max(end * 1e-6, 1e-9), span = Math.min(Math.max((to - from) / factor, least), end * 1.02), share = (at - from) / (to - from);
  return panTime([at - share * span, at + (1 - share) * span], 0, end);
}
function panTime([from, to], dt, end) {
  let span = to - from, start = Math.min(Math.max(from + dt, 0), Math.max(end * 1.02 - span, 0));
  return [start, start + span];
}

// src/paint.js
var FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", AXIS = 24, [EVICTED, LOADED] = ["#d0342c", "#3f8f3f"];
function themeOf(element2) {
  let style = getComputedStyle(element2), value = (name2) => style.getPropertyValue(name2).trim(), [ink, paper, soft, bad] = ["ink", "paper", "soft", "bad"].map((name2) => value(`--ein-${name2}`));
  return { ink, paper, soft, bad, accent: value("--ein-accent"), hatch: hatching(ink) };
}
function hatching(ink) {
  let tile = new OffscreenCanvas(6, 6), pen = tile.getContext("2d");
  pen.strokeStyle = ink, pen.globalAlpha = 0.75, pen.beginPath();
  for (let shift of [-6, 0, 6])
    pen.moveTo(shift, 6), pen.lineTo(shift + 6, 0);
  return pen.stroke(), tile;
}
function inkOn(colour) {
  let [r, g, b] = [1, 3, 5].map((i) => {
    let v = Number.parseInt(colour.slice(i, i + 2), 16) / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.1791 ? "#000000" : "#ffffff";
}
function paint(pen, scene) {
  let { width, height, theme, layout: layout2, scroll } = scene;
  pen.font = FONT, pen.textBaseline = "middle", pen.globalAlpha = 1, pen.fillStyle = theme.paper, pen.fillRect(0, 0, width, height);
  let room = width - scene.left - scene.right, scale = room / (scene.window[1] - scene.window[0]), at = { scale, x: (time) => scene.left + (time - scene.window[0]) * scale, room };
  axis(pen, scene, at), pen.save(), pen.beginPath(), pen.rect(0, 0, width, height - AXIS), pen.clip(), pen.translate(0, -scroll);
  for (let heading of layout2.headings) title(pen, scene, heading);
  for (let lane of layout2.lanes)
    lane.top + lane.height < scroll || lane.top > scroll + height || (name(pen, scene, lane), pen.save(), pen.beginPath(), pen.rect(scene.left, lane.top - 2, room, lane.height), pen.clip(), paintLane(pen, scene, lane, at), pen.restore());
  pen.restore(), cursor(pen, scene, at);
}
function axis(pen, scene, at) {
  let { theme, height, left, window: window2 } = scene, bottom = height - AXIS;
  pen.strokeStyle = theme.ink, pen.fillStyle = theme.soft, pen.textAlign = "center", pen.lineWidth = 1;
  let found = marks(window2[0], window2[1], Math.max(Math.floor(at.room / 110), 2));
  for (let mark of found) {
    let x = Math.round(at.x(mark.at)) + 0.5;
    pen.globalAlpha = 0.14, pen.beginPath(), pen.moveTo(x, 0), pen.lineTo(x, bottom), pen.stroke(), pen.globalAlpha = 1;
    let half = pen.measureText(mark.text).width / 2;
    pen.fillText(mark.text, Math.min(Math.max(x, left + half), scene.width - half - 2), bottom + 12);
  }
}
function title(pen, scene, { run, top }) {
  let one = scene.runs[run];
  pen.textAlign = "left", pen.globalAlpha = 1, pen.fillStyle = scene.theme.ink, pen.font = `600 ${FONT}`, pen.fillText(one.title, 4, top + 12);
  let used = pen.measureText(one.title).width;
  pen.font = FONT, pen.fillStyle = one.error ? scene.theme.bad : scene.theme.soft;
  let room = scene.width - scene.right - used - 24;
  pen.fillText(fitted(pen, one.error || one.words, room), used + 14, top + 12), scene.right > 60 && (pen.textAlign = "right", pen.fillStyle = scene.theme.soft, one.facts.busy && pen.fillText("busy · most held", scene.width - 4, top + 12));
}
function fitted(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length];
  for (; low < high; ) {
    let middle2 = low + high + 1 >> 1;
    pen.measureText(`${text.slice(0, middle2)}…`).width <= room ? low = middle2 : high = middle2 - 1;
  }
  return low ? `${text.slice(0, low).trimEnd()}…` : "";
}
function name(pen, scene, lane) {
  let { theme, stage, left, layout: layout2 } = scene, { bars, moves } = layout2.sizes, colour = stage.colours[lane.site];
  pen.globalAlpha = scene.siteLit(lane.site) ? 1 : 0.25, pen.fillStyle = colour === "ink" ? theme.ink : colour, pen.fillRect(left - 11, lane.top, 7, bars + moves);
  let named = isNamed(lane.site, layout2.sizes, stage.sites);
  pen.fillStyle = theme.ink, named && (pen.textAlign = "right", pen.fillText(`site ${lane.site}`, left - 16, lane.top + Math.max(bars / 2, 4) + 1));
  let facts = scene.runs[lane.run].facts;
  facts.busy && scene.right > 60 && bars >= 15 && (pen.textAlign = "right", pen.fillStyle = theme.soft, pen.fillText(
    `${facts.busy[lane.site]} · ${facts.peaks[lane.site]}`,
    scene.width - 4,
    lane.top + bars / 2 + 1
  )), pen.globalAlpha = 1;
}
function paintLane(pen, scene, lane, at) {
  let { theme, layout: layout2, window: window2, left } = scene, run = scene.runs[lane.run], { bars, moves, memory } = layout2.sizes;
  pen.fillStyle = theme.ink, pen.globalAlpha = 0.045, pen.fillRect(left, lane.top, at.room, bars + moves), paintMoves(pen, scene, run, lane, at), paintBars(pen, scene, run, lane, at), paintDisk(pen, scene, run, lane, at), memory && paintMemory(pen, scene, run, lane, at), !run.over && run.at > window2[0] && run.at < window2[1] && (pen.globalAlpha = 0.8, pen.fillStyle = theme.accent, pen.fillRect(at.x(run.at), lane.top, 1, bars + moves));
}
function paintBars(pen, scene, run, lane, at) {
  let { theme, stage, layout: layout2, window: window2, isLit } = scene, height = layout2.sizes.bars, computes = (row) => stage.kind[row[0]] === "c", lit = (row) => !isLit || isLit(row[0]), ahead = (row) => scene.cursor !== null && row[1] > scene.cursor, same = (a, b) => stage.node[a[0]] === stage.node[b[0]] && computes(a) === computes(b) && lit(a) === lit(b) && ahead(a) === ahead(b) && run.critical.has(a[0]) === run.critical.has(b[0]);
  stretches(run.bars[lane.site], window2[0], window2[1], 0.5 / at.scale, same, (start, stop, row) => {
    let x = at.x(start), wide = Math.max((stop - start) * at.scale, 0.7);
    if (pen.globalAlpha = (lit(row) ? 1 : 0.25) * (ahead(row) ? 0.2 : 1), !computes(row)) {
      pen.globalAlpha *= 0.45, pen.fillStyle = theme.ink, pen.fillRect(x, lane.top + height * 0.25, wide, height * 0.5);
      return;
    }
    let colour = scene.colours.get(stage.node[row[0]]);
    pen.fillStyle = colour, pen.fillRect(x, lane.top, wide, height), wide > 3 && outline(pen, theme.ink, 1, 0.4, x, lane.top, wide, height), run.critical.has(row[0]) && outline(pen, theme.ink, Math.min(2, wide / 3), 1, x, lane.top, wide, height), row[0] === scene.marked && outline(pen, theme.accent, 2, 1, x, lane.top, wide, height);
    let label = scene.names.get(stage.node[row[0]]), [from, to] = [Math.max(x, scene.left), Math.min(x + wide, scene.width - scene.right)];
    height >= 15 && pen.measureText(label).width + 8 <= to - from && (pen.textAlign = "center", pen.fillStyle = inkOn(colour), pen.fillText(label, (from + to) / 2, lane.top + height / 2 + 1));
  });
  let task = run.working[lane.site] ?? -1;
  if (task >= 0 && scene.colours.has(stage.node[task])) {
    let begun = run.bars[lane.site].at(-1)?.[2] ?? 0;
    pen.globalAlpha = 0.5, pen.fillStyle = scene.colours.get(stage.node[task]), pen.fillRect(at.x(begun), lane.top, Math.max((run.at - begun) * at.scale, 0), height);
  }
}
function outline(pen, colour, weight, strength, x, y, width, height) {
  let before = pen.globalAlpha;
  pen.globalAlpha = before * strength, pen.strokeStyle = colour, pen.lineWidth = weight;
  let inset = weight / 2;
  pen.strokeRect(x + inset, y + inset, Math.max(width - weight, 0.1), height - weight), pen.globalAlpha = before;
}
function paintMoves(pen, scene, run, lane, at) {
  let { theme, layout: layout2, window: window2, isLit } = scene, { bars, moves } = layout2.sizes, top = lane.top + bars, lit = (row) => !isLit || isLit(row[0]), ahead = (row) => scene.cursor !== null && row[1] > scene.cursor, critical = (row) => run.critical.has(row[0]), same = (a, b) => lit(a) === lit(b) && ahead(a) === ahead(b) && critical(a) === critical(b), pattern = pen.createPattern(theme.hatch, "repeat");
  stretches(run.moves[lane.site], window2[0], window2[1], 0.5 / at.scale, same, (start, stop, row) => {
    let x = at.x(start), wide = Math.max((stop - start) * at.scale, 1);
    pen.globalAlpha = (lit(row) ? 0.85 : 0.2) * (ahead(row) ? 0.2 : 1), pen.fillStyle = moves > 3 && wide > 3 ? pattern : theme.ink, pen.fillRect(x, top + 1, wide, moves - 1), moves > 3 && outline(pen, theme.ink, critical(row) ? 2 : 1, 0.8, x, top + 1, wide, moves - 1), row[0] === scene.marked && outline(pen, theme.accent, 2, 1, x, top, wide, moves);
  });
}
function paintDisk(pen, { layout: layout2, window: window2 }, run, lane, at) {
  let thick = Math.max(layout2.sizes.bars / 7, 1);
  pen.globalAlpha = 0.9;
  let alike = (a, b) => a[3] === b[3];
  stretches(run.disk[lane.site], window2[0], window2[1], 0.5 / at.scale, alike, (start, stop, row) => {
    pen.fillStyle = row[3] ? LOADED : EVICTED, pen.fillRect(
      at.x(start),
      lane.top + layout2.sizes.bars - thick,
      Math.max((stop - start) * at.scale, 1),
      thick
    );
  });
}
function paintMemory(pen, scene, run, lane, at) {
  let { theme, layout: layout2, window: window2, most } = scene, { bars, moves, memory } = layout2.sizes, base = lane.top + bars + moves + 1 + memory, y = (bytes) => base - memory * bytes / most, levels = run.held(lane.site);
  pen.fillStyle = theme.accent, pen.globalAlpha = 0.35, pen.beginPath();
  let now = 0, last = Number.NEGATIVE_INFINITY;
  pen.moveTo(at.x(window2[0]), base);
  for (let [time, bytes] of levels) {
    if (time > window2[1] || scene.cursor !== null && time > scene.cursor) break;
    let x = Math.max(at.x(time), at.x(window2[0]));
    x - last > 0.3 && (pen.lineTo(x, y(now)), last = x), now = bytes, pen.lineTo(x, y(now));
  }
  let end = Math.min(run.at, window2[1], scene.cursor ?? run.at);
  end > window2[0] && (pen.lineTo(at.x(end), y(now)), pen.lineTo(at.x(end), base)), pen.fill(), pen.globalAlpha = 0.5, pen.fillStyle = theme.ink, pen.fillRect(scene.left, base, at.room, 0.5), scene.stage.budget && scene.stage.budget <= most && (pen.strokeStyle = theme.bad, pen.globalAlpha = 0.9, pen.lineWidth = 1, pen.setLineDash([4, 3]), pen.beginPath(), pen.moveTo(scene.left, y(scene.stage.budget) + 0.5), pen.lineTo(scene.left + at.room, y(scene.stage.budget) + 0.5), pen.stroke(), pen.setLineDash([]));
}
function cursor(pen, scene, at) {
  if (scene.cursor === null) return;
  let x = at.x(scene.cursor);
  x < scene.left || x > scene.width - scene.right || (pen.globalAlpha = 1, pen.fillStyle = scene.theme.accent, pen.fillRect(x - 0.75, 0, 1.5, scene.height - AXIS + 4));
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
function heed(model, signal, handlers) {
  for (let [event, handler] of Object.entries(handlers))
    model.on(event, handler), signal?.addEventListener("abort", () => model.off(event, handler));
}

// src/frame.js
var LEFT = 74, TALLEST = 620;
function timelineFrame({ signal, onHover, onSelect }) {
  let outer = element("div", "ein-panel ein-tl-frame");
  outer.tabIndex = 0, outer.setAttribute("role", "application"), outer.setAttribute(
    "aria-label",
    "Timeline. Arrows go from task to task, Enter pins, Z zooms to the task, plus and minus zoom, 0 shows all."
  );
  let canvas = element("canvas", "ein-tl-canvas"), spacer = element("div");
  outer.append(canvas, spacer);
  let pen = canvas.getContext("2d", { alpha: !1 }), state = {
    stage: null,
    runs: [],
    layout: { lanes: [], headings: [], sizes: {}, height: 0 },
    window: [0, 1],
    whole: !0,
    cursor: null,
    isLit: null,
    marked: null,
    site: null,
    width: 0,
    height: 0,
    theme: null
  }, asked = 0, drag = null, listen = (type, handler, more = {}) => outer.addEventListener(type, handler, { signal, ...more }), right = () => state.width >= 760 ? 128 : 8, room = () => Math.max(state.width - LEFT - right(), 1), end = () => Math.max(...state.runs.map((run) => run.end), 1e-9), timeAt = (x) => state.window[0] + (x - LEFT) / room() * (state.window[1] - state.window[0]);
  function draw() {
    if (asked = 0, !state.stage || !state.width) return;
    let started = performance.now(), { stage, runs } = state, most = Math.max(...runs.map((run) => run.peak), 1), budget = stage.budget && stage.budget < 4 * most ? stage.budget : 0;
    paint(pen, {
      ...state,
      left: LEFT,
      right: right(),
      scroll: outer.scrollTop,
      most: Math.max(most, budget) * 1.05,
      siteLit: (site) => state.site === null || state.site === site
    }), outer.dataset.painted = (performance.now() - started).toFixed(2), outer.dataset.window = state.window.map((t) => t.toPrecision(6)).join(" ");
  }
  function ask2() {
    asked || (asked = requestAnimationFrame(draw));
  }
  function resize() {
    state.width = outer.clientWidth, state.height = Math.min(state.layout.height + AXIS, TALLEST);
    let dense = window.devicePixelRatio || 1;
    outer.style.height = `${state.height + 2}px`, canvas.width = Math.round(state.width * dense), canvas.height = Math.round(state.height * dense), canvas.style.height = `${state.height}px`, spacer.style.height = `${Math.max(state.layout.height + AXIS - state.height, 0)}px`, pen.setTransform(dense, 0, 0, dense, 0, 0), state.theme = themeOf(outer), ask2();
  }
  function setWindow(window2) {
    state.window = window2;
    let [from, to] = window2;
    state.whole = from <= 0 && to >= end(), ask2();
  }
  let all = () => setWindow([0, end() * 1.01]), zoom = (factor, at = (state.window[0] + state.window[1]) / 2) => setWindow(zoomTime(state.window, factor, at, end()));
  function zoomTo(task) {
    let row = state.runs.map((run) => run.where.get(task)).find(Boolean);
    if (!row) return;
    let margin = Math.max((row[2] - row[1]) * 2, end() * 1e-5);
    setWindow(panTime([row[1] - margin, row[2] + margin], 0, end()));
  }
  function found(event) {
    let box = canvas.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top + outer.scrollTop], lane = state.layout.lanes.find((one) => one.top <= y && y < one.top + one.height);
    if (!lane || x > LEFT + room()) return "";
    if (x < LEFT) return `site:${lane.site}`;
    let run = state.runs[lane.run], { bars, moves } = state.layout.sizes, inside = y - lane.top;
    if (inside > bars + moves + 2) return "";
    let rows = inside <= bars ? run.bars[lane.site] : run.moves[lane.site], slack = 2 * (state.window[1] - state.window[0]) / room(), row = run.near(rows, timeAt(x), slack);
    return row ? `task:${row[0]}` : "";
  }
  function neighbour(key) {
    let { lanes } = state.layout, place = lanes.findIndex(
      ({ run, site }) => state.runs[run].bars[site].some((row) => row[0] === state.marked)
    );
    if (place < 0) return state.runs[0]?.bars.find((rows2) => rows2.length)?.[0][0] ?? null;
    let rows = state.runs[lanes[place].run].bars[lanes[place].site], at = rows.findIndex((row) => row[0] === state.marked);
    if (key === "ArrowLeft" || key === "ArrowRight")
      return rows[at + (key === "ArrowRight" ? 1 : -1)]?.[0] ?? state.marked;
    let next = lanes[place + (key === "ArrowDown" ? 1 : -1)], beside = next && state.runs[next.run].bars[next.site];
    return beside?.length ? state.runs[0].near(beside, rows[at][1], Number.POSITIVE_INFINITY)[0] : state.marked;
  }
  listen("pointermove", (event) => {
    if (!drag) {
      onHover(found(event));
      return;
    }
    let dx = event.clientX - drag.x;
    !drag.moved && Math.abs(dx) + Math.abs(event.clientY - drag.y) < 4 || (drag.moved || outer.setPointerCapture(event.pointerId), drag.moved = !0, setWindow(panTime(drag.window, -dx / room() * (drag.window[1] - drag.window[0]), end())), outer.scrollTop = drag.scroll - (event.clientY - drag.y));
  }), listen("pointerdown", (event) => {
    event.button === 0 && (drag = {
      x: event.clientX,
      y: event.clientY,
      window: state.window,
      scroll: outer.scrollTop,
      moved: !1
    });
  }), listen("pointerup", (event) => {
    drag && !drag.moved && onSelect(found(event)), drag = null;
  }), listen("pointercancel", () => {
    drag = null;
  }), listen("pointerleave", () => onHover("")), listen("dblclick", (event) => {
    let key = found(event);
    key.startsWith("task:") && zoomTo(Number(key.slice(5)));
  }), listen(
    "wheel",
    (event) => {
      let box = canvas.getBoundingClientRect(), [from, to] = state.window;
      if (event.ctrlKey || event.metaKey)
        zoom(Math.exp(-event.deltaY / 250), timeAt(event.clientX - box.left));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
        setWindow(panTime(state.window, (event.deltaX || event.deltaY) / room() * (to - from), end()));
      else return;
      event.preventDefault();
    },
    { passive: !1 }
  ), listen("scroll", ask2), listen("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    let { key } = event;
    if (key === "+" || key === "=") zoom(1.6);
    else if (key === "-") zoom(1 / 1.6);
    else if (key === "0") all();
    else if ((key === "z" || key === "Z") && state.marked !== null) zoomTo(state.marked);
    else if (key === "Escape") onSelect("");
    else if (key === "Enter" && state.marked !== null) onSelect(`task:${state.marked}`);
    else if (key.startsWith("Arrow")) {
      let task = neighbour(key);
      task !== null && (onHover(`task:${task}`), reveal(task));
    } else return;
    event.preventDefault(), event.stopPropagation();
  });
  function reveal(task) {
    let row = state.runs.map((run) => run.where.get(task)).find(Boolean), [from, to] = state.window;
    row && (row[2] < from || row[1] > to) && setWindow(panTime(state.window, row[1] - (from + to) / 2, end()));
  }
  let sized = new ResizeObserver(resize);
  sized.observe(outer);
  let themed2 = new MutationObserver(resize);
  for (let one of [document.documentElement, document.body])
    themed2.observe(one, { attributes: !0, attributeFilter: ["class", "data-jp-theme-light", "style"] });
  return signal?.addEventListener("abort", () => {
    sized.disconnect(), themed2.disconnect(), cancelAnimationFrame(asked);
  }), {
    outer,
    end,
    all,
    zoom,
    zoomTo,
    cursor: () => state.cursor,
    setCursor(time) {
      state.cursor = time, ask2();
    },
    light(isLit, marked, site) {
      Object.assign(state, { isLit, marked, site }), ask2();
    },
    show(stage, runs) {
      let same = state.stage === stage || state.whole === !1;
      Object.assign(state, { stage, runs, layout: layout(runs.length, stage.sites), cursor: null }), state.colours = new Map(stage.nodes.map((node) => [node.id, node.colour])), state.names = new Map(stage.nodes.map((node) => [node.id, node.name])), (!same || state.whole) && all(), resize();
    },
    grew() {
      state.whole && all(), ask2();
    }
  };
}

// src/save.js
function fileName(title2, extension) {
  return `${title2.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "") || "picture"}.${extension}`;
}
function themed(svg, value) {
  let style = [...new Set(svg.match(/--jp-[\w-]+/g) ?? [])].map((name2) => [name2, value(name2).trim()]).filter(([, v]) => v).map(([name2, v]) => `${name2}:${v}`).join(";");
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
function download(name2, blob) {
  let link = document.createElement("a");
  link.href = URL.createObjectURL(blob), link.download = name2, link.click(), setTimeout(() => URL.revokeObjectURL(link.href), 1e3);
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
function saveMenu(model, { title: title2, signal, kinds = ["svg", "png", "python", "json"] }) {
  let words = { svg: "Save as SVG", png: "Save as PNG", python: "Copy as Python", json: "Copy as JSON" }, menu = document.createElement("details");
  menu.className = "ein-menu";
  let summary = document.createElement("summary");
  summary.className = "ein-button", summary.textContent = "Save", summary.setAttribute("aria-label", "Save the picture, or copy the program");
  let list = document.createElement("div");
  list.className = "ein-menu-list", menu.append(summary, list);
  let value = (name2) => getComputedStyle(menu).getPropertyValue(name2), hand = {
    svg: async () => download(
      fileName(title2, "svg"),
      new Blob([themed(await ask(model, "svg"), value)], { type: "image/svg+xml" })
    ),
    png: async () => download(fileName(title2, "png"), await png(themed(await ask(model, "svg"), value))),
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
  let title2 = element2.querySelector(":scope > title")?.textContent;
  title2 && !element2.hasAttribute("aria-label") && element2.setAttribute("aria-label", title2);
}

// src/spans.js
function margins(text) {
  let lines = [], at = 0;
  for (let line of text.split(`
`))
    lines.push([at, line]), at += line.length + 1;
  let full = lines.filter(([, line]) => line.trim()), indent = Math.min(...full.map(([, line]) => line.length - line.trimStart().length)), first = full[0]?.[0] ?? 0;
  return lines.map(
    ([start, line]) => start < first ? [start, start + line.length + 1] : [start, start + Math.min(indent, line.length)]
  );
}
function pieces(text, spans) {
  let dropped = margins(text).filter(([from, to]) => to > from), at = [.../* @__PURE__ */ new Set([0, text.length, ...spans.flat(), ...dropped.flat()])].filter((cut) => cut >= 0 && cut <= text.length).sort((a, b) => a - b), inside = (ranges, start, stop) => ranges.filter(([from, to]) => from <= start && stop <= to);
  return at.slice(0, -1).map((start, i) => [start, at[i + 1]]).filter(([start, stop]) => !inside(dropped, start, stop).length).map(([start, stop]) => ({
    text: text.slice(start, stop),
    spans: inside(spans, start, stop).sort((a, b) => a[1] - a[0] - (b[1] - b[0]))
  }));
}
function formula(text, spans) {
  let pre = document.createElement("pre");
  pre.className = "ein-mono ein-spans";
  for (let piece of pieces(text.trimEnd(), spans)) {
    if (!piece.spans.length) {
      pre.append(piece.text);
      continue;
    }
    let span = document.createElement("span");
    span.textContent = piece.text, span.dataset.keys = piece.spans.map(([from, to]) => `span:${from}-${to}`).join(" "), pre.append(span);
  }
  return pre;
}

// src/timeline.js
var REPLAY = 6e3, CHIPS = 24, OTHER = "#9a9a9a";
function lighting(key, links, stage) {
  if (!key) return null;
  let keys = litKeys(key, links);
  if (key.startsWith("site:")) {
    let site = Number(key.slice(5));
    return (task) => stage.site[task] === site || stage.source[task] === site;
  }
  let tasks = /* @__PURE__ */ new Set(), nodes = /* @__PURE__ */ new Set();
  for (let one of keys)
    one.startsWith("task:") && tasks.add(Number(one.slice(5))), one.startsWith("node:") && !key.startsWith("task:") && nodes.add(Number(one.slice(5)));
  return (task) => tasks.has(task) || nodes.has(stage.node[task]);
}
function runsOf(view) {
  return view.tracks.map((track) => {
    let run = new Run(view.stage, track.name).add(track);
    return Object.assign(run, { title: track.name, words: track.headline ?? "" });
  });
}
function legend(stage, runs) {
  let bar = element("div", "ein-tl-chips"), coloured = stage.nodes.filter((node) => stage.nodes.length <= CHIPS || node.colour !== OTHER);
  for (let node of coloured) {
    let chip = element("button", "ein-tl-chip", node.name);
    chip.type = "button", chip.title = node.does, chip.dataset.keys = `node:${node.id} tensor:${node.name}`;
    let colour = element("i", "ein-tl-swatch");
    colour.style.background = node.colour, chip.prepend(colour), bar.append(chip);
  }
  let others = stage.nodes.length - coloured.length, keys = others ? [["ein-tl-swatch-other", `${others} other kernels`]] : [];
  keys.push(["ein-tl-swatch-copy", "copying"], ["ein-tl-swatch-move", "move arriving"]), keys.push(["ein-tl-swatch-critical", "critical path"], ["ein-tl-swatch-held", "bytes held"]), runs.some((run) => run.disk.some((rows) => rows.length)) && keys.push(["ein-tl-swatch-evicted", "to disk"], ["ein-tl-swatch-loaded", "in memory again"]), stage.budget && keys.push(["ein-tl-swatch-budget", `budget ${stage.budget_text}`]);
  for (let [look, words] of keys) {
    let key = element("span", "ein-tl-key", words);
    key.prepend(element("i", `ein-tl-swatch ${look}`)), bar.append(key);
  }
  return bar;
}
function describe(task, stage, runs) {
  let node = stage.nodes.find((one) => one.id === stage.node[task]), place = stage.kind[task] === "m" ? "" : ` on site ${stage.site[task]}`, lines = [];
  for (let run of runs) {
    let row = run.where.get(task);
    if (!row) continue;
    let critical = run.critical.has(task) ? ", on the critical path" : "";
    lines.push(`${run.title}: ${seconds(row[2] - row[1])} from ${seconds(row[1])}${place}${critical}`);
  }
  return [...lines, stage.texts[task] ?? node?.does ?? `task ${task}`].join(`
`);
}
function describeNode(id, stage, runs) {
  let node = stage.nodes.find((one) => one.id === id);
  if (!node) return "";
  let spent = runs.filter((run) => run.facts.spent?.[id]);
  return [node.does, ...spent.map((run) => `${run.title}: ${run.facts.spent[id]} in its kernels`)].join(`
`);
}
function describeMoment(time, stage, run) {
  let names = new Map(stage.nodes.map((node) => [node.id, node.name])), sites = run.bars.slice(0, 8).map((rows, site) => {
    let row = run.near(rows, time, 0), what = row && row[1] <= time && time <= row[2] ? stage.node[row[0]] : -1;
    return `site ${site}: ${what < 0 ? "waits" : names.get(what) ?? "copies"}`;
  });
  return `${run.title}, at ${seconds(time)}
${sites.join(" · ")}`;
}
function render({ model, el, signal }) {
  let root = element("div", "ein-widget ein-timeline"), bar = element("div", "ein-tl-bar"), error = element("div", "ein-error"), top = element("div", "ein-tl-top"), details = element("div", "ein-tl-details");
  details.setAttribute("aria-live", "polite");
  let caption = element("div", "ein-caption ein-tl-caption"), [stage, runs, shown, playing] = [null, [], [], 0], [sticky, pointed, hovered] = ["", "", ""], add = (text, label, act) => {
    let made = button(text, act, { signal, label });
    return bar.append(made), made;
  }, play = add("▶ Replay", "Move through the run in time", () => playing ? pause() : replay()), slider = element("input", "ein-tl-slider");
  Object.assign(slider, { type: "range", min: 0, max: 1e3, value: 1e3 }), slider.setAttribute("aria-label", "moment of the run"), slider.addEventListener(
    "input",
    () => {
      pause(), moveTo(slider.value / 1e3);
    },
    { signal }
  );
  let clock = element("span", "ein-tl-clock"), which = element("span", "ein-tl-which");
  bar.append(slider, clock, which), add("−", "Zoom out (-)", () => frame.zoom(1 / 1.6)), add("+", "Zoom in (+)", () => frame.zoom(1.6)), add("All", "Show all of the run (0)", () => frame.all()), bar.append(saveMenu(model, { title: "timeline", signal }));
  let frame = timelineFrame({
    signal,
    onHover: point,
    onSelect: (key) => select(key === sticky ? "" : key)
  });
  root.append(bar, error, top, frame.outer, details, caption), el.append(root);
  let selection = selectable(root, { signal, onSelect: select, onHover: hover });
  function point(key) {
    key !== pointed && (pointed = key, light());
  }
  function hover(key) {
    hovered = key, light();
  }
  function select(key) {
    [pointed, hovered, sticky] = ["", "", key], model.set("selection", sticky), model.save_changes(), light();
  }
  let chosen = () => pointed || hovered || sticky;
  function light() {
    let key = chosen();
    selection.select(pointed || sticky);
    let number = (kind) => key.startsWith(kind) ? Number(key.slice(kind.length)) : null;
    frame.light(lighting(key, model.get("links"), stage), number("task:"), number("site:")), tell();
  }
  function tell() {
    let key = chosen();
    key.startsWith("task:") ? details.textContent = describe(Number(key.slice(5)), stage, shown) : key.startsWith("node:") ? details.textContent = describeNode(Number(key.slice(5)), stage, shown) : frame.cursor() !== null && shown.length ? details.textContent = describeMoment(frame.cursor(), stage, shown[0]) : details.textContent = "Point at a task, a move or a name. Drag to pan, Ctrl and wheel or + and − to zoom.";
  }
  function moveTo(share) {
    let end = frame.end();
    frame.setCursor(share >= 1 ? null : share * end), slider.value = share * 1e3, clock.textContent = share >= 1 ? seconds(end) : `${seconds(share * end)} of ${seconds(end)}`, tell();
  }
  function replay() {
    let from = slider.value >= 1e3 ? 0 : slider.value / 1e3, began = performance.now() - from * REPLAY, step = (now) => {
      let share = Math.min((now - began) / REPLAY, 1);
      moveTo(share), playing = share < 1 ? requestAnimationFrame(step) : 0, showPlay();
    };
    playing = requestAnimationFrame(step), showPlay();
  }
  function pause() {
    cancelAnimationFrame(playing), playing = 0, showPlay();
  }
  function showPlay() {
    play.textContent = playing ? "❚❚ Pause" : "▶ Replay", play.setAttribute("aria-pressed", String(playing !== 0));
  }
  function choose() {
    if (which.replaceChildren(), !(runs.length < 2))
      for (let run of runs) {
        let turn = () => {
          let left = runs.filter((one) => shown.includes(one) !== (one === run));
          show(left.length ? left : runs);
        }, made = button(run.title, turn, { signal, label: `Show or hide the ${run.title} run` });
        made.setAttribute("aria-pressed", String(shown.includes(run))), which.append(made);
      }
  }
  function show(some) {
    shown = some, frame.show(stage, shown), caption.textContent = shown.filter((run) => run.facts.caption).map((run) => `${run.title}: ${run.facts.caption}`).join(`
`), choose(), progress();
  }
  function progress() {
    root.dataset.tasks = shown[0] ? shown[0].where.size : 0, root.dataset.over = String(runs.every((run) => run.over)), frame.cursor() === null && (clock.textContent = seconds(frame.end()));
  }
  function complain() {
    error.textContent = model.get("error");
  }
  function rebuild() {
    let view = model.get("view"), hidden = runs.filter((run) => !shown.includes(run)).map((run) => run.name), other = view.stage.text !== stage?.text || view.stage.node.length !== stage?.node.length;
    stage = view.stage, runs = runsOf(view);
    let strip = other ? stage.text ? [formula(stage.text, stage.spans)] : [] : [...top.querySelectorAll("pre")];
    top.replaceChildren(...strip, legend(stage, runs));
    let left = runs.filter((run) => !hidden.includes(run.name));
    show(left.length ? left : runs), selection.refresh(model.get("links")), light();
  }
  heed(model, signal, {
    "change:view": rebuild,
    "change:selection": () => {
      model.get("selection") !== sticky && ([sticky, hovered] = [model.get("selection"), ""], light());
    },
    "change:error": complain,
    "msg:custom": (message) => {
      let run = runs.find((one) => one.name === message?.run);
      run && (run.add(message.more), frame.grew(), progress());
    }
  }), signal?.addEventListener("abort", pause), complain(), rebuild();
}
var timeline_default = { render };
export {
  timeline_default as default,
  lighting
};

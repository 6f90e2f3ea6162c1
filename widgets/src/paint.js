// Paints a timeline on a canvas: only what is seen, as many strokes as there are pixels for.

import { marks } from "./clock.js";
import { stretches } from "./runs.js";
import { isNamed } from "./swimlanes.js";

export const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
export const AXIS = 24;
const [EVICTED, LOADED] = ["#d0342c", "#3f8f3f"];

/** The colours of the page, as its theme has them. */
export function themeOf(element) {
  const style = getComputedStyle(element);
  const value = (name) => style.getPropertyValue(name).trim();
  const [ink, paper, soft, bad] = ["ink", "paper", "soft", "bad"].map((name) => value(`--ein-${name}`));
  return { ink, paper, soft, bad, accent: value("--ein-accent"), hatch: hatching(ink) };
}

/** Diagonal lines, for what is on its way. */
function hatching(ink) {
  const tile = new OffscreenCanvas(6, 6);
  const pen = tile.getContext("2d");
  pen.strokeStyle = ink;
  pen.globalAlpha = 0.75;
  pen.beginPath();
  for (const shift of [-6, 0, 6]) {
    pen.moveTo(shift, 6);
    pen.lineTo(shift + 6, 0);
  }
  pen.stroke();
  return tile;
}

/** Black or white, whichever is read better on `colour` (#rrggbb). */
export function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => {
    const v = Number.parseInt(colour.slice(i, i + 2), 16) / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.1791 ? "#000000" : "#ffffff";
}

/**
 * Paints all of `scene`: {width, height, left, right, scroll, layout, runs, window, cursor, isLit, marked, stage,
 * colours, names, theme}.  `isLit(task)` is null where nothing is selected; `marked` is the task under the pointer.
 */
export function paint(pen, scene) {
  const { width, height, theme, layout, scroll } = scene;
  pen.font = FONT;
  pen.textBaseline = "middle";
  pen.globalAlpha = 1;
  pen.fillStyle = theme.paper;
  pen.fillRect(0, 0, width, height);
  const room = width - scene.left - scene.right;
  const scale = room / (scene.window[1] - scene.window[0]);
  const at = { scale, x: (time) => scene.left + (time - scene.window[0]) * scale, room };
  axis(pen, scene, at);
  pen.save();
  pen.beginPath();
  pen.rect(0, 0, width, height - AXIS);
  pen.clip();
  pen.translate(0, -scroll);
  for (const heading of layout.headings) title(pen, scene, heading);
  for (const lane of layout.lanes) {
    if (lane.top + lane.height < scroll || lane.top > scroll + height) continue;
    name(pen, scene, lane);
    pen.save();
    pen.beginPath();
    pen.rect(scene.left, lane.top - 2, room, lane.height);
    pen.clip();
    paintLane(pen, scene, lane, at);
    pen.restore();
  }
  pen.restore();
  cursor(pen, scene, at);
}

function axis(pen, scene, at) {
  const { theme, height, left, window } = scene;
  const bottom = height - AXIS;
  pen.strokeStyle = theme.ink;
  pen.fillStyle = theme.soft;
  pen.textAlign = "center";
  pen.lineWidth = 1;
  const found = marks(window[0], window[1], Math.max(Math.floor(at.room / 110), 2));
  for (const mark of found) {
    const x = Math.round(at.x(mark.at)) + 0.5;
    pen.globalAlpha = 0.14;
    pen.beginPath();
    pen.moveTo(x, 0);
    pen.lineTo(x, bottom);
    pen.stroke();
    pen.globalAlpha = 1;
    const half = pen.measureText(mark.text).width / 2;
    pen.fillText(mark.text, Math.min(Math.max(x, left + half), scene.width - half - 2), bottom + 12);
  }
}

function title(pen, scene, { run, top }) {
  const one = scene.runs[run];
  pen.textAlign = "left";
  pen.globalAlpha = 1;
  pen.fillStyle = scene.theme.ink;
  pen.font = `600 ${FONT}`;
  pen.fillText(one.title, 4, top + 12);
  const used = pen.measureText(one.title).width;
  pen.font = FONT;
  pen.fillStyle = one.error ? scene.theme.bad : scene.theme.soft;
  const room = scene.width - scene.right - used - 24;
  pen.fillText(fitted(pen, one.error || one.words, room), used + 14, top + 12);
  if (scene.right > 60) {
    pen.textAlign = "right";
    pen.fillStyle = scene.theme.soft;
    if (one.facts.busy) pen.fillText("busy · most held", scene.width - 4, top + 12);
  }
}

/** As much of `text` as there is room for. */
export function fitted(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low).trimEnd()}…` : "";
}

function name(pen, scene, lane) {
  const { theme, stage, left, layout } = scene;
  const { bars, moves } = layout.sizes;
  const colour = stage.colours[lane.site];
  pen.globalAlpha = scene.siteLit(lane.site) ? 1 : 0.25;
  pen.fillStyle = colour === "ink" ? theme.ink : colour;
  pen.fillRect(left - 11, lane.top, 7, bars + moves);
  const named = isNamed(lane.site, layout.sizes, stage.sites);
  pen.fillStyle = theme.ink;
  if (named) {
    pen.textAlign = "right";
    pen.fillText(`site ${lane.site}`, left - 16, lane.top + Math.max(bars / 2, 4) + 1);
  }
  const facts = scene.runs[lane.run].facts;
  if (facts.busy && scene.right > 60 && bars >= 15) {
    pen.textAlign = "right";
    pen.fillStyle = theme.soft;
    pen.fillText(
      `${facts.busy[lane.site]} · ${facts.peaks[lane.site]}`,
      scene.width - 4,
      lane.top + bars / 2 + 1,
    );
  }
  pen.globalAlpha = 1;
}

function paintLane(pen, scene, lane, at) {
  const { theme, layout, window, left } = scene;
  const run = scene.runs[lane.run];
  const { bars, moves, memory } = layout.sizes;
  pen.fillStyle = theme.ink;
  pen.globalAlpha = 0.045;
  pen.fillRect(left, lane.top, at.room, bars + moves);
  paintMoves(pen, scene, run, lane, at);
  paintBars(pen, scene, run, lane, at);
  paintDisk(pen, scene, run, lane, at);
  if (memory) paintMemory(pen, scene, run, lane, at);
  if (!run.over && run.at > window[0] && run.at < window[1]) {
    pen.globalAlpha = 0.8;
    pen.fillStyle = theme.accent;
    pen.fillRect(at.x(run.at), lane.top, 1, bars + moves);
  }
}

function paintBars(pen, scene, run, lane, at) {
  const { theme, stage, layout, window, isLit } = scene;
  const height = layout.sizes.bars;
  const computes = (row) => stage.kind[row[0]] === "c";
  const lit = (row) => !isLit || isLit(row[0]);
  const ahead = (row) => scene.cursor !== null && row[1] > scene.cursor;
  const same = (a, b) =>
    stage.node[a[0]] === stage.node[b[0]] &&
    computes(a) === computes(b) &&
    lit(a) === lit(b) &&
    ahead(a) === ahead(b) &&
    run.critical.has(a[0]) === run.critical.has(b[0]);
  stretches(run.bars[lane.site], window[0], window[1], 0.5 / at.scale, same, (start, stop, row) => {
    const x = at.x(start);
    const wide = Math.max((stop - start) * at.scale, 0.7);
    pen.globalAlpha = (lit(row) ? 1 : 0.25) * (ahead(row) ? 0.2 : 1);
    if (!computes(row)) {
      pen.globalAlpha *= 0.45;
      pen.fillStyle = theme.ink;
      pen.fillRect(x, lane.top + height * 0.25, wide, height * 0.5);
      return;
    }
    const colour = scene.colours.get(stage.node[row[0]]);
    pen.fillStyle = colour;
    pen.fillRect(x, lane.top, wide, height);
    if (wide > 3) outline(pen, theme.ink, 1, 0.4, x, lane.top, wide, height);
    // Of a narrow bar something of its colour is to be seen, too.
    if (run.critical.has(row[0]))
      outline(pen, theme.ink, Math.min(2, wide / 3), 1, x, lane.top, wide, height);
    if (row[0] === scene.marked) outline(pen, theme.accent, 2, 1, x, lane.top, wide, height);
    const label = scene.names.get(stage.node[row[0]]);
    // Where a bar goes on beyond the window, its name stays in sight.
    const [from, to] = [Math.max(x, scene.left), Math.min(x + wide, scene.width - scene.right)];
    if (height >= 15 && pen.measureText(label).width + 8 <= to - from) {
      pen.textAlign = "center";
      pen.fillStyle = inkOn(colour);
      pen.fillText(label, (from + to) / 2, lane.top + height / 2 + 1);
    }
  });
  const task = run.working[lane.site] ?? -1;
  if (task >= 0 && scene.colours.has(stage.node[task])) {
    const begun = run.bars[lane.site].at(-1)?.[2] ?? 0;
    pen.globalAlpha = 0.5;
    pen.fillStyle = scene.colours.get(stage.node[task]);
    pen.fillRect(at.x(begun), lane.top, Math.max((run.at - begun) * at.scale, 0), height);
  }
}

function outline(pen, colour, weight, strength, x, y, width, height) {
  const before = pen.globalAlpha;
  pen.globalAlpha = before * strength;
  pen.strokeStyle = colour;
  pen.lineWidth = weight;
  const inset = weight / 2;
  pen.strokeRect(x + inset, y + inset, Math.max(width - weight, 0.1), height - weight);
  pen.globalAlpha = before;
}

function paintMoves(pen, scene, run, lane, at) {
  const { theme, layout, window, isLit } = scene;
  const { bars, moves } = layout.sizes;
  const top = lane.top + bars;
  const lit = (row) => !isLit || isLit(row[0]);
  const ahead = (row) => scene.cursor !== null && row[1] > scene.cursor;
  const critical = (row) => run.critical.has(row[0]);
  const same = (a, b) => lit(a) === lit(b) && ahead(a) === ahead(b) && critical(a) === critical(b);
  const pattern = pen.createPattern(theme.hatch, "repeat");
  stretches(run.moves[lane.site], window[0], window[1], 0.5 / at.scale, same, (start, stop, row) => {
    const x = at.x(start);
    const wide = Math.max((stop - start) * at.scale, 1);
    pen.globalAlpha = (lit(row) ? 0.85 : 0.2) * (ahead(row) ? 0.2 : 1);
    pen.fillStyle = moves > 3 && wide > 3 ? pattern : theme.ink;
    pen.fillRect(x, top + 1, wide, moves - 1);
    if (moves > 3) outline(pen, theme.ink, critical(row) ? 2 : 1, 0.8, x, top + 1, wide, moves - 1);
    if (row[0] === scene.marked) outline(pen, theme.accent, 2, 1, x, top, wide, moves);
  });
}

/** What went to disk, and what came back, as a stripe at the foot of the bars. */
function paintDisk(pen, { layout, window }, run, lane, at) {
  const thick = Math.max(layout.sizes.bars / 7, 1);
  pen.globalAlpha = 0.9;
  const alike = (a, b) => a[3] === b[3];
  stretches(run.disk[lane.site], window[0], window[1], 0.5 / at.scale, alike, (start, stop, row) => {
    pen.fillStyle = row[3] ? LOADED : EVICTED;
    pen.fillRect(
      at.x(start),
      lane.top + layout.sizes.bars - thick,
      Math.max((stop - start) * at.scale, 1),
      thick,
    );
  });
}

function paintMemory(pen, scene, run, lane, at) {
  const { theme, layout, window, most } = scene;
  const { bars, moves, memory } = layout.sizes;
  const base = lane.top + bars + moves + 1 + memory;
  const y = (bytes) => base - (memory * bytes) / most;
  const levels = run.held(lane.site);
  pen.fillStyle = theme.accent;
  pen.globalAlpha = 0.35;
  pen.beginPath();
  let now = 0;
  let last = Number.NEGATIVE_INFINITY;
  pen.moveTo(at.x(window[0]), base);
  for (const [time, bytes] of levels) {
    if (time > window[1] || (scene.cursor !== null && time > scene.cursor)) break;
    const x = Math.max(at.x(time), at.x(window[0]));
    if (x - last > 0.3) {
      pen.lineTo(x, y(now));
      last = x;
    }
    now = bytes;
    pen.lineTo(x, y(now));
  }
  const end = Math.min(run.at, window[1], scene.cursor ?? run.at);
  if (end > window[0]) {
    pen.lineTo(at.x(end), y(now));
    pen.lineTo(at.x(end), base);
  }
  pen.fill();
  pen.globalAlpha = 0.5;
  pen.fillStyle = theme.ink;
  pen.fillRect(scene.left, base, at.room, 0.5);
  if (scene.stage.budget && scene.stage.budget <= most) {
    pen.strokeStyle = theme.bad;
    pen.globalAlpha = 0.9;
    pen.lineWidth = 1;
    pen.setLineDash([4, 3]);
    pen.beginPath();
    pen.moveTo(scene.left, y(scene.stage.budget) + 0.5);
    pen.lineTo(scene.left + at.room, y(scene.stage.budget) + 0.5);
    pen.stroke();
    pen.setLineDash([]);
  }
}

function cursor(pen, scene, at) {
  if (scene.cursor === null) return;
  const x = at.x(scene.cursor);
  if (x < scene.left || x > scene.width - scene.right) return;
  pen.globalAlpha = 1;
  pen.fillStyle = scene.theme.accent;
  pen.fillRect(x - 0.75, 0, 1.5, scene.height - AXIS + 4);
}

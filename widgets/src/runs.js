// What is known of a run: rows as Python's `tracks` sends them, kept by site and in order, while they grow.

/** The index of the first of `rows` whose number `column` is at least `value`; rows are in that order. */
export function firstFrom(rows, column, value) {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle][column] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Adds `row` to `rows`, which stay in the order of their number `column`; it mostly goes to the end. */
export function insert(rows, row, column) {
  if (!rows.length || rows.at(-1)[column] <= row[column]) rows.push(row);
  else rows.splice(firstFrom(rows, column, row[column]), 0, row);
}

/** A run of a program that `stage` describes. */
export class Run {
  constructor(stage, name) {
    const each = () => Array.from({ length: stage.sites }, () => []);
    Object.assign(this, { stage, name, at: 0, over: false, error: "", working: [] });
    this.bars = each(); // [task, start, stop] by site
    this.moves = each(); // the same, by the site that they reach
    this.disk = each(); // [task, start, stop, 0 for out or 1 for in again]
    this.changes = each(); // [time, bytes]
    this.where = new Map(); // a task's row
    this.critical = new Set();
    this.facts = {};
    this.levels = each().map(() => null);
  }

  /** Adds what Python sent. */
  add(rows) {
    for (const [kind, into] of [
      ["bars", this.bars],
      ["moves", this.moves],
    ]) {
      for (const row of rows[kind]) {
        insert(into[this.stage.site[row[0]]], row, 1);
        this.where.set(row[0], row);
      }
    }
    for (const row of rows.disk) insert(this.disk[this.stage.site[row[0]]], row, 1);
    for (const [site, time, bytes] of rows.held) {
      insert(this.changes[site], [time, bytes], 0);
      this.levels[site] = null;
    }
    this.at = rows.at;
    this.over = rows.over;
    this.error = rows.error;
    this.working = rows.working;
    if (rows.critical) this.critical = new Set(rows.critical);
    if (rows.caption) this.facts = rows;
    return this;
  }

  /** When the last thing ended, or the run. */
  get end() {
    return this.at;
  }

  /** [time, bytes from then on] of a site. */
  held(site) {
    if (!this.levels[site]) {
      let now = 0;
      this.levels[site] = this.changes[site].map(([time, bytes]) => {
        now += bytes;
        return [time, now];
      });
    }
    return this.levels[site];
  }

  /** The most bytes that any site holds. */
  get peak() {
    let most = 0;
    for (let site = 0; site < this.stage.sites; site++) {
      for (const [, bytes] of this.held(site)) most = Math.max(most, bytes);
    }
    return most;
  }

  /** The row of a site at `time`, or one no further away than `slack` seconds; undefined where it waits. */
  near(rows, time, slack) {
    let best;
    let least = slack;
    for (const row of rows) {
      if (row[1] - slack > time) break;
      const away = Math.max(row[1] - time, time - row[2], 0);
      if (away < least || (away === least && best === undefined)) [best, least] = [row, away];
      if (away === 0) best = row;
    }
    return best;
  }
}

/**
 * Rows of one site that are seen between two times, those that touch on the screen as one.
 *
 * `same(a, b)` says whether two may be drawn as one; `near` is how many seconds make less than a pixel.  Calls
 * `draw(start, stop, row, count)`.
 */
export function stretches(rows, from, to, near, same, draw) {
  let [start, stop, first, count] = [0, 0, null, 0];
  for (const row of rows) {
    if (row[2] < from) continue;
    if (row[1] > to) break;
    if (first && row[1] - stop < near && (same(first, row) || row[2] - stop < near)) {
      stop = Math.max(stop, row[2]);
      count++;
      continue;
    }
    if (first) draw(start, stop, first, count);
    [start, stop, first, count] = [row[1], row[2], row, 1];
  }
  if (first) draw(start, stop, first, count);
}

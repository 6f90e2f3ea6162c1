import assert from "node:assert/strict";
import { test } from "node:test";
import { marks, seconds } from "../src/clock.js";
import { inkOn } from "../src/paint.js";
import { firstFrom, insert, Run, stretches } from "../src/runs.js";
import { margins, pieces } from "../src/spans.js";
import { isNamed, layout, panTime, zoomTime } from "../src/swimlanes.js";
import { lighting } from "../src/timeline.js";

test("times have three digits and a unit, as Python writes them", () => {
  const times = [0, 4.2e-8, 9.996e-6, 0.0462, 1.5, 61];
  assert.deepEqual(times.map(seconds), ["0 s", "42.0 ns", "10.0 µs", "46.2 ms", "1.50 s", "61.0 s"]);
});

test("marks are round, inside, and the last one has the unit", () => {
  assert.deepEqual(
    marks(0, 0.0225, 5).map((m) => m.text),
    ["0", "5", "10", "15", "20 ms"],
  );
  assert.deepEqual(
    marks(1.0002, 1.0009, 4).map((m) => m.text),
    ["1.0002", "1.0004", "1.0006", "1.0008 s"],
  );
  assert.deepEqual(marks(1, 1, 5), []);
});

test("rows stay in order while they come", () => {
  const rows = [];
  for (const row of [
    [0, 1],
    [1, 5],
    [2, 3],
    [3, 9],
    [4, 3],
  ])
    insert(rows, row, 1);
  assert.deepEqual(
    rows.map((row) => row[1]),
    [1, 3, 3, 5, 9],
  );
  assert.equal(firstFrom(rows, 1, 3), 1);
  assert.equal(firstFrom(rows, 1, 10), 5);
});

const stage = { sites: 2, site: [0, 0, 1, 1], node: [0, 2, 2, 2], kind: "vccm", source: { 3: 0 } };
const rows = (more) => ({
  at: 4,
  over: false,
  error: "",
  working: [],
  bars: [],
  moves: [],
  disk: [],
  held: [],
  ...more,
});

test("a run adds up what it is sent", () => {
  const run = new Run(stage, "measured");
  run.add(
    rows({
      at: 2,
      bars: [
        [0, 0, 1],
        [1, 1, 2],
      ],
      held: [
        [0, 0, 64],
        [0, 2, -64],
        [0, 1, 32],
      ],
    }),
  );
  assert.deepEqual(run.held(0), [
    [0, 64],
    [1, 96],
    [2, 32],
  ]);
  run.add(rows({ bars: [[2, 3, 4]], moves: [[3, 2, 3]], held: [[1, 2, 128]], working: [1, -1] }));
  assert.deepEqual(run.where.get(2), [2, 3, 4]);
  assert.equal(run.bars[1].length, 1);
  assert.deepEqual(run.moves[1], [[3, 2, 3]]); // at the site that it reaches
  assert.equal(run.peak, 128);
  assert.deepEqual([run.end, run.over, run.working[0]], [4, false, 1]);
});

test("what is near a time is found", () => {
  const run = new Run(stage, "measured");
  const bars = [
    [0, 0, 1],
    [1, 2, 3],
    [2, 3, 5],
  ];
  assert.equal(run.near(bars, 2.5, 0)[0], 1);
  assert.equal(run.near(bars, 1.4, 0.5)[0], 0);
  assert.equal(run.near(bars, 1.4, 0.1), undefined);
  assert.equal(run.near(bars, 9, Number.POSITIVE_INFINITY)[0], 2);
});

test("rows that touch on the screen are one stretch where they may be", () => {
  const drawn = [];
  const bars = [
    [0, 0, 1],
    [1, 1.01, 2],
    [2, 5, 5.001],
    [3, 5.002, 5.003],
    [4, 9, 10],
  ];
  stretches(
    bars,
    0.5,
    8,
    0.1,
    (a, b) => a[0] < 2 && b[0] < 2,
    (start, stop, row, n) => drawn.push([start, stop, row[0], n]),
  );
  // The last two before 8 are less than a pixel apart and wide, so they are one although they differ.
  assert.deepEqual(drawn, [
    [0, 2, 0, 2],
    [5, 5.003, 2, 2],
  ]);
});

test("lanes are under each other, a heading above each run, and thinner where there are many", () => {
  const two = layout(2, 3);
  assert.equal(two.lanes.length, 6);
  assert.equal(two.headings.length, 2);
  for (let i = 1; i < 6; i++) {
    assert.ok(two.lanes[i].top >= two.lanes[i - 1].top + two.lanes[i - 1].height);
  }
  assert.ok(two.headings[1].top > two.lanes[2].top);
  assert.ok(layout(2, 64).height < 2 * 64 * 20);
  assert.ok(isNamed(1, two.sizes, 3));
  assert.ok(!isNamed(1, layout(2, 64).sizes, 64));
});

test("zoom keeps the time under the pointer, and the window stays inside of the run", () => {
  const [from, to] = zoomTime([0, 10], 2, 4, 10);
  assert.equal(to - from, 5);
  assert.ok(Math.abs((4 - from) / 5 - 0.4) < 1e-12);
  assert.deepEqual(panTime([2, 4], -5, 10), [0, 2]);
  assert.deepEqual(zoomTime([0, 10], 0.1, 5, 10), [0, 10.2]);
  assert.ok(zoomTime([0, 10], 1e12, 5, 10)[1] > zoomTime([0, 10], 1e12, 5, 10)[0]);
});

test("a selection lights its tasks, those of its node, or those of its site", () => {
  const links = { "task:1": ["node:2", "task:3"], "node:2": ["span:0-5"], "span:0-5": ["node:2"] };
  const lit = (key) => [0, 1, 2, 3].filter(lighting(key, links, stage));
  assert.deepEqual(lit("task:1"), [1, 3]); // not all of its node
  assert.deepEqual(lit("node:2"), [1, 2, 3]);
  assert.deepEqual(lit("span:0-5"), [1, 2, 3]);
  assert.deepEqual(lit("site:0"), [0, 1, 3]); // what it sends, too
  assert.equal(lighting("", links, stage), null);
});

test("a formula loses its margins and keeps its spans", () => {
  const text = "\n  a = b\n    c = d\n";
  const cut = margins(text).filter(([from, to]) => to > from);
  assert.deepEqual(cut, [
    [0, 1],
    [1, 3],
    [9, 11],
  ]);
  const found = pieces(text, [
    [3, 8],
    [7, 8],
  ]);
  assert.equal(found.map((p) => p.text).join(""), "a = b\n  c = d\n");
  assert.deepEqual(found.find((p) => p.text === "b").spans, [
    [7, 8],
    [3, 8],
  ]);
  assert.deepEqual(pieces("ab", []), [{ text: "ab", spans: [] }]);
});

test("what is written on a colour can be read", () => {
  assert.equal(inkOn("#332288"), "#ffffff");
  assert.equal(inkOn("#88ccee"), "#000000");
});

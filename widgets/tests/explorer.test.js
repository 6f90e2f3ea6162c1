import assert from "node:assert/strict";
import { test } from "node:test";
import { changed } from "../src/cards.js";
import { barWidths } from "../src/costs.js";
import { stepped, stepsOf } from "../src/cutter.js";
import { nodeOf } from "../src/explorer.js";
import { firstView, viewOf } from "../src/graphpane.js";
import { nextStep, stops, withUnit } from "../src/scales.js";
import { laneHeight } from "../src/strip.js";

test("bars are as wide as the dearest strategy and the bound allow", () => {
  const strategies = [
    { parts: [10, 20, 10], seconds: 2 },
    { parts: [0, 0, 0], seconds: null },
  ];
  const bytes = barWidths(strategies, 80, false);
  assert.deepEqual(bytes.rows, [
    [12.5, 25, 12.5],
    [0, 0, 0],
  ]);
  assert.equal(bytes.bound, 100);
  assert.deepEqual(barWidths(strategies, 80, true), { rows: [[100], [0]], bound: null });
  assert.deepEqual(barWidths([{ parts: [0, 0, 0] }], 0, false), { rows: [[0, 0, 0]], bound: null });
});

test("sliders stop at 1, 2, 5 and at what was asked for", () => {
  assert.deepEqual(stops(1, 20, 4), [1, 2, 4, 5, 10, 20]);
  assert.deepEqual(stops(1e-7, 1e-6, Number.NaN), [1e-7, 2e-7, 5e-7, 1e-6]);
  assert.equal(withUnit(4e9, "B/s"), "4 GB/s");
  assert.equal(withUnit(5e-5, "s"), "50 µs");
  assert.equal(withUnit(0, "s"), "0 s");
  assert.equal(withUnit(1e3, "B"), "1 kB");
});

test("steps go to the next number of parts and end at the ends", () => {
  const steps = [1, 2, 4, 8];
  assert.equal(nextStep(steps, 2, 1), 4);
  assert.equal(nextStep(steps, 3, -1), 2);
  assert.equal(nextStep(steps, 8, 1), 8);
  assert.equal(stepped(steps, 1, 2), 4);
  assert.equal(stepped(steps, 4, -9), 1);
  assert.equal(stepsOf(-40), -2);
});

test("only cards whose picture changed are made anew", () => {
  assert.deepEqual(changed({ 0: "a", 1: "b", 2: "c" }, { 0: "a", 1: "x", 3: "d" }), {
    fresh: ["1", "3"],
    gone: ["2"],
  });
});

test("a graph is first shown whole where it can be read, else from its left", () => {
  const frame = { width: 400, height: 200 };
  assert.deepEqual(firstView({ width: 200, height: 100 }, frame), { x: 100, y: 50, scale: 1 });
  const first = firstView({ width: 4000, height: 100 }, frame);
  assert.equal(first.x, 0);
  assert.ok(first.scale >= 0.9);
});

test("a node out of sight is brought to the middle, one in sight stays", () => {
  const frame = { width: 400, height: 200 };
  const view = { x: 0, y: 0, scale: 1 };
  assert.equal(viewOf({ x: 10, y: 10, width: 50, height: 20 }, view, frame), view);
  assert.deepEqual(viewOf({ x: 900, y: 90, width: 100, height: 20 }, view, frame), {
    x: -750,
    y: 0,
    scale: 1,
  });
});

test("the node of a key", () => {
  const links = { "tensor:H": ["node:4"], "site:1": [] };
  assert.deepEqual(
    ["node:7", "label:5:b", "tensor:H", "site:1", ""].map((key) => nodeOf(key, links)),
    [7, 5, 4, null, null],
  );
});

test("lanes of many sites are low, those of few are not tall", () => {
  assert.equal(laneHeight(1), 20);
  assert.equal(laneHeight(64), 5);
});

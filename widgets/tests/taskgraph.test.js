import assert from "node:assert/strict";
import { test } from "node:test";
import { placed } from "../src/lanenames.js";
import { litWires } from "../src/taskgraph.js";

test("a wire is lit where both of its ends are", () => {
  assert.deepEqual(litWires(["0-1", "1-2", "0-12"], new Set(["0", "1", "12"])), ["0-1", "0-12"]);
});

test("names of lanes stay in the middle of what is seen of them", () => {
  const lanes = [
    { name: "site 0", top: 0, bottom: 100 },
    { name: "site 1", top: 110, bottom: 210 },
    { name: "site 2", top: 220, bottom: 320 },
  ];
  assert.deepEqual(placed(lanes, { x: -9, y: -50, scale: 1 }, 100), [
    { name: "site 0", y: 25 },
    { name: "site 1", y: 80 },
  ]);
  // Too near each other to be read, some are left out.
  assert.equal(placed(lanes, { x: -9, y: 0, scale: 0.1 }, 100).length, 2);
});

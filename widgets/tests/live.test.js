import assert from "node:assert/strict";
import { test } from "node:test";
import { whole } from "../src/cluster.js";
import { canCancel } from "../src/live.js";

test("a run can be cancelled until it ends, once", () => {
  const states = ["waiting", "running", "cancelling", "cancelled", "done", "failed"];
  assert.deepEqual(states.filter(canCancel), ["waiting", "running"]);
});

test("a number of engines is a whole number from 1", () => {
  assert.deepEqual(
    ["3", " 12 ", "2.9", "0", "-1", "", "x"].map((text) => whole(text, 2)),
    [3, 12, 2, 2, 2, 2, 2],
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { cellsIn, positions, stage } from "../src/stages.js";

test("every state of every block is a position", () => {
  const tasks = [{ frames: [{}] }, { frames: [{}, {}, {}] }];
  assert.deepEqual(
    positions(tasks).map(({ task, frame }) => `${task}.${frame}`),
    ["0.0", "1.0", "1.1", "1.2"],
  );
  assert.deepEqual(positions([]), []);
});

test("a block comes, stays while somebody reads it, and goes", () => {
  const task = { id: 2, last: 4 };
  assert.deepEqual(
    [-1, 1, 2, 3, 4, 5].map((at) => stage(task, at)),
    ["yet", "yet", "now", "here", "here", "gone"],
  );
});

test("cells of a box are counted with the last dimension fastest", () => {
  assert.deepEqual(
    cellsIn(
      [
        [1, 3],
        [0, 2],
      ],
      [3, 4],
    ),
    [4, 5, 8, 9],
  );
  assert.deepEqual(cellsIn([], []), [0]);
  assert.deepEqual(cellsIn([[2, 2]], [5]), []);
  assert.deepEqual(
    cellsIn(
      [
        [0, 1],
        [1, 2],
        [0, 2],
      ],
      [2, 2, 2],
    ),
    [2, 3],
  );
});

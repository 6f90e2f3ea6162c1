import assert from "node:assert/strict";
import { test } from "node:test";
import { fit, panBy, zoomAt } from "../src/panzoom.js";

test("zooming keeps the point under the pointer where it is", () => {
  const before = { x: 10, y: -5, scale: 2 };
  const after = zoomAt(before, 1.5, { x: 100, y: 40 });
  assert.equal(after.scale, 3);
  const seen = (view, v, axis) => (v - view[axis]) / view.scale;
  assert.equal(seen(after, 100, "x"), seen(before, 100, "x"));
  assert.equal(seen(after, 40, "y"), seen(before, 40, "y"));
});

test("zooming stops at its limits, and the picture then stays put", () => {
  const view = { x: 3, y: 4, scale: 8 };
  assert.deepEqual(zoomAt(view, 10, { x: 50, y: 50 }), view);
});

test("a picture cannot be dragged out of its frame", () => {
  const picture = { width: 100, height: 50 };
  const frame = { width: 200, height: 200 };
  const view = { x: 0, y: 0, scale: 1 };
  assert.equal(panBy(view, 999, 0, picture, frame).x, 152);
  assert.equal(panBy(view, -999, 0, picture, frame).x, -52);
  assert.equal(panBy(view, 7, 9, picture, frame).y, 9);
});

test("fitting shows all of a picture and magnifies none", () => {
  const frame = { width: 200, height: 100 };
  assert.deepEqual(fit({ width: 400, height: 100 }, frame), { x: 0, y: 25, scale: 0.5 });
  assert.deepEqual(fit({ width: 100, height: 50 }, frame), { x: 50, y: 25, scale: 1 });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { keysOf, litKeys, nextBox } from "../src/select.js";

test("what is selected is lit together with its links", () => {
  const links = { "node:3": ["tensor:W", "span:5-9"] };
  assert.deepEqual([...litKeys("node:3", links)], ["node:3", "tensor:W", "span:5-9"]);
  assert.deepEqual([...litKeys("site:2", links)], ["site:2"]);
  assert.deepEqual([...litKeys("", links)], []);
});

test("keys are parted by spaces", () => {
  assert.deepEqual(keysOf("block:W:0,1 tensor:W  site:2"), ["block:W:0,1", "tensor:W", "site:2"]);
  assert.deepEqual(keysOf(undefined), []);
});

test("arrows go to the nearest box that lies ahead", () => {
  const box = (x, y) => ({ left: x, top: y, right: x + 10, bottom: y + 10 });
  const grid = [box(0, 0), box(20, 0), box(40, 0), box(0, 20), box(20, 20)];
  assert.equal(nextBox(grid, 0, "ArrowRight"), 1);
  assert.equal(nextBox(grid, 0, "ArrowDown"), 3);
  assert.equal(nextBox(grid, 4, "ArrowUp"), 1);
  assert.equal(nextBox(grid, 2, "ArrowLeft"), 1);
  assert.equal(nextBox(grid, 0, "ArrowLeft"), -1);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteModel } from "../src/page.js";

test("what is set is told here at once and posted when it is saved", () => {
  const posted = [];
  const model = new RemoteModel("k", { a: 1, b: 2 }, (...call) => posted.push(call));
  const told = [];
  const handler = () => told.push(model.get("a"));
  model.on("change:a", handler);
  model.set("a", 5);
  assert.deepEqual(told, [5]);
  assert.deepEqual(posted, []);
  model.save_changes();
  model.send({ do: "undo" });
  assert.deepEqual(posted, [
    ["/set/k", { a: 5 }],
    ["/ask/k", { do: "undo" }],
  ]);
  model.off("change:a", handler);
  model.set("a", 6);
  assert.deepEqual(told, [5]);
});

test("news are taken over together, then told", () => {
  const model = new RemoteModel("k", { a: 1, b: 2 }, () => {});
  const seen = [];
  model.on("change:a", () => seen.push([model.get("a"), model.get("b")]));
  model.on("msg:custom", (message) => seen.push(message));
  model.hear([{ state: { a: 3 } }, { message: { answer: "svg" } }, { state: { b: 4 } }]);
  assert.deepEqual(seen, [[3, 4], { answer: "svg" }]);
});

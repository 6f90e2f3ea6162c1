import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, fileName, themed } from "../src/save.js";

test("a title becomes a file name", () => {
  assert.equal(fileName("Plan of Näher, p = 8", "svg"), "plan-of-näher-p-8.svg");
  assert.equal(fileName("…", "png"), "picture.png");
});

test("a saved picture has the colours of the page", () => {
  const svg = '<svg class="ein-svg" style="width:100%"><style>a{fill:var(--jp-x,#000)}</style></svg>';
  assert.match(
    themed(svg, () => " #fff"),
    /style="--jp-x:#fff;width:100%"/,
  );
  assert.equal(
    themed(svg, () => ""),
    svg,
  );
});

test("an answer is matched to its question", async () => {
  const handlers = new Set();
  const model = {
    on: (_, handler) => handlers.add(handler),
    off: (_, handler) => handlers.delete(handler),
    send: ({ ask: what }) => {
      for (const text of ["another", what])
        for (const h of [...handlers]) h({ answer: text, text: `<${text}>` });
    },
  };
  assert.equal(await ask(model, "json"), "<json>");
  assert.equal(handlers.size, 0);
});

// Bundles src/<widget>.js of every <widget>.py, and all style sheets, into a folder (default static/).

import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const outdir = argv[2] ?? join(here, "static");
const sources = readdirSync(join(here, "src")).sort();
const widgets = sources
  .filter((name) => name.endsWith(".js"))
  .map((name) => name.slice(0, -3))
  .filter((name) => existsSync(join(here, `${name}.py`)));
// The theme first: what a widget says about its own parts may overrule it.
const sheets = ["theme.css", ...sources.filter((name) => name.endsWith(".css") && name !== "theme.css")];
const common = { bundle: true, outdir, logLevel: "warning", charset: "utf8" };

await build({
  ...common,
  entryPoints: widgets.map((name) => join(here, "src", `${name}.js`)),
  format: "esm",
  target: "es2022",
  minifySyntax: true,
  legalComments: "none",
});
await build({
  ...common,
  stdin: {
    contents: sheets.map((name) => `@import "./${name}";`).join("\n"),
    loader: "css",
    resolveDir: join(here, "src"),
    sourcefile: "einsummable.css",
  },
  entryNames: "einsummable",
});

// src/parts.js
function element(tag, className = "", text = "") {
  let made = document.createElement(tag);
  return className && (made.className = className), text && (made.textContent = text), made;
}
function button(text, act, { signal, label = "" } = {}) {
  let made = element("button", "ein-button", text);
  return made.type = "button", label && (made.setAttribute("aria-label", label), made.title = label), made.addEventListener("click", act, { signal }), made;
}
function colour(name) {
  return name === "ink" ? "var(--ein-ink)" : name;
}
function chip(name) {
  let made = element("span", "ein-chip");
  return made.style.background = colour(name), made;
}
function bar(share, name, tick) {
  let made = element("span", "ein-bar"), full = element("span", "ein-bar-full");
  if (full.style.width = `${100 * Math.min(Math.max(share, 0), 1)}%`, full.style.background = colour(name), made.append(full), tick !== void 0) {
    let mark = element("span", "ein-bar-tick");
    mark.style.left = `${100 * Math.min(Math.max(tick, 0), 1)}%`, made.append(mark);
  }
  return made;
}
function table(head, rows, className = "ein-table") {
  let made = element("table", className), line = made.createTHead().insertRow();
  for (let word of head) line.append(Object.assign(element("th", "", word), { scope: "col" }));
  let body = made.createTBody();
  for (let cells of rows) {
    let row = body.insertRow();
    cells.forEach((cell, k) => {
      let made_ = element(k ? "td" : "th");
      k || (made_.scope = "row"), made_.append(...Array.isArray(cell) ? cell : [cell]), row.append(made_);
    });
  }
  return made;
}

// src/save.js
function fileName(title, extension) {
  return `${title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "") || "picture"}.${extension}`;
}
function themed(svg, value) {
  let style = [...new Set(svg.match(/--jp-[\w-]+/g) ?? [])].map((name) => [name, value(name).trim()]).filter(([, v]) => v).map(([name, v]) => `${name}:${v}`).join(";");
  return style ? svg.replace(/<svg ([^>]*?)style="/, (_, rest) => `<svg ${rest}style="${style};`) : svg;
}
function ask(model, what) {
  return new Promise((resolve) => {
    let answer = (message) => {
      message?.answer === what && (model.off("msg:custom", answer), resolve(message.text));
    };
    model.on("msg:custom", answer), model.send({ ask: what });
  });
}
function download(name, blob) {
  let link = document.createElement("a");
  link.href = URL.createObjectURL(blob), link.download = name, link.click(), setTimeout(() => URL.revokeObjectURL(link.href), 1e3);
}
async function png(svg) {
  let image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`, await image.decode();
  let canvas = document.createElement("canvas");
  return [canvas.width, canvas.height] = [image.width * 2, image.height * 2], canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height), new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    let area = document.createElement("textarea");
    area.value = text, document.body.append(area), area.select(), document.execCommand("copy"), area.remove();
  }
}
function saveMenu(model, { title, signal, kinds = ["svg", "png", "python", "json"] }) {
  let words = { svg: "Save as SVG", png: "Save as PNG", python: "Copy as Python", json: "Copy as JSON" }, menu = document.createElement("details");
  menu.className = "ein-menu";
  let summary = document.createElement("summary");
  summary.className = "ein-button", summary.textContent = "Save", summary.setAttribute("aria-label", "Save the picture, or copy the program");
  let list = document.createElement("div");
  list.className = "ein-menu-list", menu.append(summary, list);
  let value = (name) => getComputedStyle(menu).getPropertyValue(name), hand = {
    svg: async () => download(
      fileName(title, "svg"),
      new Blob([themed(await ask(model, "svg"), value)], { type: "image/svg+xml" })
    ),
    png: async () => download(fileName(title, "png"), await png(themed(await ask(model, "svg"), value))),
    python: async () => copy(await ask(model, "python")),
    json: async () => copy(await ask(model, "json"))
  };
  for (let kind of kinds) {
    let button2 = document.createElement("button");
    button2.type = "button", button2.textContent = words[kind], button2.addEventListener(
      "click",
      async () => {
        await hand[kind](), menu.open = !1, summary.textContent = kind === "python" || kind === "json" ? "Copied" : "Saved", setTimeout(() => {
          summary.textContent = "Save";
        }, 1500);
      },
      { signal }
    ), list.append(button2);
  }
  let close = () => {
    menu.open = !1;
  }, outside = (event) => menu.contains(event.target) || close();
  return document.addEventListener("pointerdown", outside, { signal }), menu.addEventListener("keydown", (event) => event.key === "Escape" && close(), { signal }), menu;
}

// src/cluster.js
function whole(text, otherwise) {
  let n = Number.parseInt(text, 10);
  return n >= 1 ? n : otherwise;
}
function field(label, value) {
  let box = element("label", "ein-field", label), input = Object.assign(element("input"), { type: "number", min: 1, max: 256, value });
  return box.append(input), { box, input };
}
function engines(view) {
  return table(
    ["site", "engine", "host", "pid", "BLAS threads", "BLAS", "process", "tensors kept", ""],
    view.engines.map((row) => [
      [chip(row.colour), `${row.site}`],
      `${row.engine}`,
      row.host,
      `${row.pid}`,
      `${row.threads}`,
      row.blas,
      row.process || "–",
      view.memory && !row.lost ? [bar(row.share, row.colour), ` ${row.kept}`] : row.kept || "–",
      row.lost ? [element("span", "ein-lost", row.lost)] : ""
    ])
  );
}
function render({ model, el, signal }) {
  let root = element("div", "ein-widget ein-cluster"), head = element("div", "ein-live-head"), words = element("span", "ein-live-state");
  words.setAttribute("role", "status");
  let n = field("engines ", 2), threads = field("threads each ", 1), start = button(
    "Start",
    () => model.send({ do: "start", n: whole(n.input.value, 2), threads: whole(threads.input.value, 1) }),
    { signal, label: "Start engines on this machine" }
  ), stop = button("Stop", () => model.send({ do: "stop" }), { signal, label: "Stop the engines" }), gap = element("span", "ein-gap");
  head.append(words, gap, n.box, threads.box, start, stop, saveMenu(model, { title: "cluster", signal }));
  let error = element("pre", "ein-error ein-mono"), body = element("div", "ein-panel ein-cluster-table");
  root.append(head, error, body), el.append(root);
  function show() {
    let view = model.get("view");
    root.dataset.state = view.state, words.textContent = view.caption, error.textContent = model.get("error");
    let running = view.state === "running";
    for (let part of [n.box, threads.box, start]) part.hidden = running;
    start.disabled = view.state !== "none", stop.hidden = !running, body.hidden = !view.engines.length, body.replaceChildren(engines(view));
  }
  for (let change of ["change:view", "change:error"])
    model.on(change, show), signal?.addEventListener("abort", () => model.off(change, show));
  show();
}
var cluster_default = { render };
export {
  cluster_default as default,
  whole
};

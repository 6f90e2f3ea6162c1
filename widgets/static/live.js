// src/parts.js
function element(tag, className = "", text = "") {
  let made = document.createElement(tag);
  return className && (made.className = className), text && (made.textContent = text), made;
}
function button(text, act, { signal, label = "" } = {}) {
  let made = element("button", "ein-button", text);
  return made.type = "button", label && (made.setAttribute("aria-label", label), made.title = label), made.addEventListener("click", act, { signal }), made;
}
function panel(title, ...children) {
  let made = element("section", "ein-panel");
  return made.append(element("h4", "", title), ...children), made;
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

// src/live.js
var STATES = {
  waiting: "starting",
  running: "running",
  cancelling: "cancelling …",
  cancelled: "cancelled",
  done: "done",
  failed: "failed"
};
function canCancel(state) {
  return state === "waiting" || state === "running";
}
function figures(pairs) {
  let list = element("dl", "ein-figures");
  for (let [name, value] of pairs) {
    let item = element("div");
    item.append(element("dt", "", name), element("dd", "", value)), list.append(item);
  }
  return list;
}
function sites(view) {
  let most = Math.max(1, ...view.rows.map((row) => row.peak));
  return table(
    ["site", "tasks done", "", "busy", "holds", "", "at most", "works on"],
    view.rows.map((row) => [
      [chip(row.colour), row.name],
      [bar(row.tasks ? row.done / row.tasks : 1, row.colour)],
      `${row.done}/${row.tasks}`,
      row.busy,
      [bar(row.held / most, row.colour, row.peak / most)],
      row.held_text,
      row.peak_text,
      row.working || "–"
    ])
  );
}
function links(view) {
  if (view.sites > 10) {
    let busiest = view.flows.slice(0, 12);
    return table(
      ["from", "to", "bytes"],
      busiest.map(([a, b, , text]) => [view.rows[a].name, view.rows[b].name, text])
    );
  }
  let most = Math.max(1, ...view.flows.map(([, , bytes]) => bytes));
  return table(
    ["from \\ to", ...view.rows.map((row) => `${row.site}`)],
    view.rows.map((row) => [
      [chip(row.colour), `${row.site}`],
      ...view.rows.map((to) => {
        let flow = view.flows.find(([a, b]) => a === row.site && b === to.site), cell = element("span", "ein-flow", flow ? flow[3] : to.site === row.site ? "" : "·");
        return flow && cell.style.setProperty("--share", flow[2] / most), [cell];
      })
    ]),
    "ein-table ein-links"
  );
}
function render({ model, el, signal }) {
  let root = element("div", "ein-widget ein-live"), head = element("div", "ein-live-head"), state = element("strong", "ein-live-state"), whole = element("div", "ein-live-whole");
  whole.setAttribute("role", "progressbar"), whole.setAttribute("aria-label", "tasks done");
  let full = element("div", "ein-live-full");
  whole.append(full);
  let cancel = button("Cancel", () => model.send({ do: "cancel" }), {
    signal,
    label: "Cancel the run on all sites"
  });
  head.append(state, whole, cancel, saveMenu(model, { title: "run", signal }));
  let words = element("p", "ein-caption");
  words.setAttribute("role", "status");
  let body = element("div", "ein-live-body"), error = element("pre", "ein-error ein-mono");
  root.append(head, words, error, body), el.append(root);
  let said = "";
  function show() {
    let view = model.get("view");
    root.dataset.state = view.state, state.textContent = STATES[view.state];
    let share = view.tasks ? view.done / view.tasks : 1;
    full.style.width = `${100 * share}%`, whole.setAttribute("aria-valuenow", Math.round(100 * share)), whole.setAttribute("aria-valuetext", `${view.done} of ${view.tasks} tasks`), cancel.disabled = !canCancel(view.state), said !== view.state && (said = view.state, words.textContent = view.caption), canCancel(view.state) || (words.textContent = view.caption), words.hidden = canCancel(view.state), error.textContent = view.error;
    let panels = [panel("sites", sites(view))];
    view.flows.length && panels.push(panel("bytes from site to site", links(view))), body.replaceChildren(figures(view.figures), ...panels);
  }
  model.on("change:view", show), signal?.addEventListener("abort", () => model.off("change:view", show)), show();
}
var live_default = { render };
export {
  canCancel,
  live_default as default
};

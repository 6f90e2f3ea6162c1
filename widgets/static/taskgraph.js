// src/parts.js
function element(tag, className = "", text = "") {
  let made = document.createElement(tag);
  return className && (made.className = className), text && (made.textContent = text), made;
}
function button(text, act, { signal, label = "" } = {}) {
  let made = element("button", "ein-button", text);
  return made.type = "button", label && (made.setAttribute("aria-label", label), made.title = label), made.addEventListener("click", act, { signal }), made;
}
function heed(model, signal, handlers) {
  for (let [event, handler] of Object.entries(handlers))
    model.on(event, handler), signal?.addEventListener("abort", () => model.off(event, handler));
}

// src/lanenames.js
function lanesIn(svg) {
  let corner = svg.viewBox.baseVal.y;
  return [...svg.querySelectorAll("[data-lane]")].map((lane) => {
    let [y, height] = ["y", "height"].map((name) => Number(lane.querySelector("rect").getAttribute(name)));
    return { name: lane.dataset.name, top: y - corner, bottom: y + height - corner };
  });
}
function placed(lanes, view, height, line = 16) {
  let found = [], free = Number.NEGATIVE_INFINITY;
  for (let { name, top, bottom } of lanes) {
    let [from, to] = [top * view.scale + view.y, bottom * view.scale + view.y];
    if (to < 0 || from > height) continue;
    let y = (Math.max(from, 0) + Math.min(to, height)) / 2;
    y - free < line || (free = y, found.push({ name, y }));
  }
  return found;
}
function laneNames(target, lanes, view, height) {
  let hidden = view.x < -4;
  target.replaceChildren(
    ...(hidden ? placed(lanes, view, height) : []).map(({ name, y }) => {
      let made = element("span", "ein-tg-name", name);
      return made.style.top = `${y}px`, made;
    })
  );
}

// src/panzoom.js
function zoomAt(view, factor, point, limits = { least: 0.05, most: 8 }) {
  let scale = Math.min(Math.max(view.scale * factor, limits.least), limits.most), ratio = scale / view.scale;
  return {
    x: point.x - (point.x - view.x) * ratio,
    y: point.y - (point.y - view.y) * ratio,
    scale
  };
}
function panBy(view, dx, dy, picture, frame, keep = 48) {
  let clamp = (value, size, room) => Math.min(Math.max(value, keep - size * view.scale), room - keep);
  return {
    ...view,
    x: clamp(view.x + dx, picture.width, frame.width),
    y: clamp(view.y + dy, picture.height, frame.height)
  };
}
function fit(picture, frame, most = 1) {
  let scale = Math.min(frame.width / picture.width, frame.height / picture.height, most);
  return {
    x: Math.max((frame.width - picture.width * scale) / 2, 0),
    y: Math.max((frame.height - picture.height * scale) / 2, 0),
    scale
  };
}
function panzoom(frame, picture, { signal, size, onChange = () => {
} }) {
  let view = { x: 0, y: 0, scale: 1 }, drag = null, still = 0, listen = (target, type, handler, more = {}) => target.addEventListener(type, handler, { signal, ...more }), room = () => ({ width: frame.clientWidth, height: frame.clientHeight });
  function set(next) {
    view = next, picture.style.willChange = "transform", clearTimeout(still), still = setTimeout(() => {
      picture.style.willChange = "";
    }, 250), picture.style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.scale})`, onChange(view);
  }
  function zoom(factor, point = { x: frame.clientWidth / 2, y: frame.clientHeight / 2 }) {
    set(zoomAt(view, factor, point));
  }
  picture.style.transformOrigin = "0 0", listen(
    frame,
    "wheel",
    (event) => {
      let box = frame.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey)
        zoom(Math.exp(-event.deltaY / 300), { x: event.clientX - box.left, y: event.clientY - box.top });
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
        set(panBy(view, -(event.deltaX || event.deltaY), 0, size(), room()));
      else
        return;
      event.preventDefault();
    },
    { passive: !1 }
  ), listen(frame, "pointerdown", (event) => {
    event.button === 0 && (drag = { id: event.pointerId, x: event.clientX, y: event.clientY, moved: !1 });
  }), listen(frame, "pointermove", (event) => {
    if (!drag || event.pointerId !== drag.id) return;
    let [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    !drag.moved && Math.hypot(dx, dy) < 4 || (drag.moved || frame.setPointerCapture(drag.id), drag = { ...drag, x: event.clientX, y: event.clientY, moved: !0 }, set(panBy(view, dx, dy, size(), room())));
  });
  let release = () => {
    if (drag?.moved) {
      let stop = (event) => event.stopPropagation();
      frame.addEventListener("click", stop, { capture: !0, once: !0 }), setTimeout(() => frame.removeEventListener("click", stop, { capture: !0 }), 0);
    }
    drag = null;
  };
  return listen(frame, "scroll", () => {
    let { scrollLeft, scrollTop } = frame;
    scrollLeft === 0 && scrollTop === 0 || (frame.scrollTo(0, 0), set({ ...view, x: view.x - scrollLeft, y: view.y - scrollTop }));
  }), listen(frame, "pointerup", release), listen(frame, "pointercancel", release), listen(frame, "keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey || event.altKey)) {
      if (event.key === "+" || event.key === "=") zoom(1.25);
      else if (event.key === "-") zoom(0.8);
      else if (event.key === "0") set(fit(size(), room()));
      else return;
      event.preventDefault();
    }
  }), { fit: (most) => set(fit(size(), room(), most)), zoom, set, view: () => view };
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

// src/select.js
function litKeys(key, links) {
  return new Set(key ? [key, ...links[key] ?? []] : []);
}
function keysOf(text) {
  return (text ?? "").split(" ").filter(Boolean);
}
function nextBox(boxes, from, direction) {
  let [ox, oy] = middle(boxes[from]), best = -1, least = Number.POSITIVE_INFINITY;
  return boxes.forEach((box, i) => {
    let [dx, dy] = middle(box).map((v, k) => v - [ox, oy][k]), [ahead, aside] = {
      ArrowLeft: [-dx, dy],
      ArrowRight: [dx, dy],
      ArrowUp: [-dy, dx],
      ArrowDown: [dy, dx]
    }[direction], distance = ahead + 3 * Math.abs(aside);
    i !== from && ahead > 1 && distance < least && (best = i, least = distance);
  }), best;
}
function middle(box) {
  return [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
}
function selectable(root, { signal, onSelect = () => {
}, onHover = () => {
} }) {
  let links = {}, sticky = "", hovered = "", byKey = /* @__PURE__ */ new Map(), lit = [], listen = (type, handler) => root.addEventListener(type, handler, { signal }), found = (target) => target.closest?.("[data-keys]"), primary = (element2) => keysOf(element2?.dataset.keys)[0] ?? "";
  function show() {
    let keys = litKeys(hovered || sticky, links);
    for (let element2 of lit) element2.classList.remove("ein-lit");
    lit = [...new Set([...keys].flatMap((key) => byKey.get(key) ?? []))];
    for (let element2 of lit) element2.classList.add("ein-lit");
    root.classList.toggle("ein-selecting", lit.length > 0), root.dataset.lit = hovered || sticky;
  }
  function hover(key) {
    key !== hovered && (hovered = key, show(), onHover(key || sticky));
  }
  function select(key) {
    key !== sticky && (sticky = key, show());
  }
  function choose(key) {
    hovered = "", select(key), show(), onSelect(key);
  }
  function refresh(newLinks = links) {
    links = newLinks, byKey = /* @__PURE__ */ new Map();
    for (let element2 of root.querySelectorAll("[data-keys]")) {
      for (let key of keysOf(element2.dataset.keys))
        byKey.has(key) || byKey.set(key, []), byKey.get(key).push(element2);
      element2.classList.toggle("ein-leaf", element2.querySelector("[data-keys]") === null), makeFocusable(element2);
    }
    for (let area of root.querySelectorAll("[data-rove]")) {
      let members = [...area.querySelectorAll("[data-keys]")];
      members.length && !members.some((m) => m.tabIndex === 0) && (members[0].tabIndex = 0);
    }
    lit = [], show();
  }
  function rove(event, element2) {
    let area = element2.closest("[data-rove]");
    if (!area || !event.key.startsWith("Arrow")) return;
    let members = [...area.querySelectorAll(".ein-leaf")].filter((m) => m.getClientRects().length), from = members.indexOf(element2);
    if (from < 0) return;
    let boxes = members.map((m) => m.getBoundingClientRect()), next = nextBox(boxes, from, event.key);
    if (next >= 0) {
      for (let member of area.querySelectorAll('[tabindex="0"]')) member.tabIndex = -1;
      members[next].tabIndex = 0, members[next].focus(), event.preventDefault();
    }
  }
  return listen("pointerover", (event) => hover(primary(found(event.target)))), listen("pointerleave", () => hover("")), listen("focusin", (event) => {
    event.target.dataset.lmSuppressShortcuts = "true", hover(primary(found(event.target)));
  }), listen("focusout", () => hover("")), listen("click", (event) => {
    let element2 = found(event.target), control = event.target.closest?.("button, input, select, a, summary");
    element2 && (!control || control === element2) && choose(primary(element2) === sticky ? "" : primary(element2));
  }), listen("keydown", (event) => {
    if (event.key === "Escape" && (sticky || hovered)) {
      choose(""), event.stopPropagation();
      return;
    }
    let element2 = found(event.target);
    !element2 || event.target !== element2 || ((event.key === " " || event.key === "Enter") && (choose(primary(element2) === sticky ? "" : primary(element2)), event.preventDefault()), rove(event, element2));
  }), { refresh, select, selected: () => sticky };
}
function makeFocusable(element2) {
  if (element2.hasAttribute("tabindex") || element2.matches("button, input, select, a")) return;
  element2.setAttribute("tabindex", "-1"), element2.hasAttribute("role") || element2.setAttribute("role", "button");
  let title = element2.querySelector(":scope > title")?.textContent;
  title && !element2.hasAttribute("aria-label") && element2.setAttribute("aria-label", title);
}

// src/spans.js
function margins(text) {
  let lines = [], at = 0;
  for (let line of text.split(`
`))
    lines.push([at, line]), at += line.length + 1;
  let full = lines.filter(([, line]) => line.trim()), indent = Math.min(...full.map(([, line]) => line.length - line.trimStart().length)), first = full[0]?.[0] ?? 0;
  return lines.map(
    ([start, line]) => start < first ? [start, start + line.length + 1] : [start, start + Math.min(indent, line.length)]
  );
}
function pieces(text, spans) {
  let dropped = margins(text).filter(([from, to]) => to > from), at = [.../* @__PURE__ */ new Set([0, text.length, ...spans.flat(), ...dropped.flat()])].filter((cut) => cut >= 0 && cut <= text.length).sort((a, b) => a - b), inside = (ranges, start, stop) => ranges.filter(([from, to]) => from <= start && stop <= to);
  return at.slice(0, -1).map((start, i) => [start, at[i + 1]]).filter(([start, stop]) => !inside(dropped, start, stop).length).map(([start, stop]) => ({
    text: text.slice(start, stop),
    spans: inside(spans, start, stop).sort((a, b) => a[1] - a[0] - (b[1] - b[0]))
  }));
}
function formula(text, spans) {
  let pre = document.createElement("pre");
  pre.className = "ein-mono ein-spans";
  for (let piece of pieces(text.trimEnd(), spans)) {
    if (!piece.spans.length) {
      pre.append(piece.text);
      continue;
    }
    let span = document.createElement("span");
    span.textContent = piece.text, span.dataset.keys = piece.spans.map(([from, to]) => `span:${from}-${to}`).join(" "), pre.append(span);
  }
  return pre;
}

// src/taskgraph.js
var WORDS = {
  tasks: "Every task",
  nodes: "A box a node and site",
  sites: "All sites as one",
  summary: "Counts a node and site"
}, READABLE = 0.92;
function litWires(wires, items) {
  return wires.filter((wire) => wire.split("-").every((item) => items.has(item)));
}
function chips(nodes) {
  let bar = element("div", "ein-tl-chips");
  for (let node of nodes) {
    let chip = element("button", "ein-tl-chip", node.name);
    chip.type = "button", chip.title = node.formula ? `${node.tensor} = ${node.formula}` : `${node.tensor}, an input`, chip.dataset.keys = `node:${node.id} tensor:${node.name}`, bar.append(chip);
  }
  return bar;
}
function factsPanel(aside, { signal, fold }) {
  return (facts, folded, nodes) => {
    if (aside.replaceChildren(), !facts.title) {
      aside.append(element("p", "ein-tg-hint", "Select a task, a node or a site: Enter or a click pins it, Esc lets go. Drag to pan, Ctrl and wheel to zoom."));
      return;
    }
    aside.append(element("h4", "ein-tg-title", facts.title));
    let list = element("div", "ein-tg-facts");
    for (let [name, value] of facts.rows)
      list.append(element("span", "ein-tg-name-of", name), element("span", "", value));
    aside.append(list);
    for (let key of facts.folds) {
      let [kind, number] = key.split(":"), name = kind === "site" ? `site ${number}` : nodes.find((node) => node.id === Number(number))?.name, done = folded.includes(key), words = `${done ? "Unfold" : "Fold"} ${name}`, label = `${words}: ${kind === "site" ? "what it does for each node" : "what each site does for it"} in one box`;
      aside.append(button(words, () => fold(key, !done), { signal, label }));
    }
    facts.before.length && (aside.append(element("p", "ein-tg-hint", "In the same task, before that:")), aside.append(element("pre", "ein-mono ein-tg-before", facts.before.join(`
`))));
  };
}
function render({ model, el, signal }) {
  let root = element("div", "ein-widget ein-taskgraph"), bar = element("div", "ein-tl-bar"), top = element("div", "ein-tl-top"), error = element("div", "ein-error"), frame = element("div", "ein-panel ein-tg-frame"), picture = element("div", "ein-tg-picture"), names = element("div", "ein-tg-names"), aside = element("aside", "ein-panel ein-tg-aside");
  aside.setAttribute("aria-live", "polite");
  let main = element("div", "ein-tg-main"), key = element("div", "ein-tg-key"), caption = element("div", "ein-caption");
  frame.tabIndex = 0, frame.setAttribute("role", "group"), frame.dataset.rove = "", frame.append(picture, names), main.append(frame, aside), root.append(bar, error, top, main, key, caption), el.append(root);
  let size = { width: 1, height: 1 }, lanes = [], items = /* @__PURE__ */ new Map(), wires = /* @__PURE__ */ new Map(), detail = element("select");
  detail.setAttribute("aria-label", "how much is drawn"), detail.addEventListener(
    "change",
    () => {
      model.set("detail", detail.value), model.save_changes();
    },
    { signal }
  );
  let view = panzoom(frame, picture, {
    signal,
    size: () => size,
    onChange: (now) => laneNames(names, lanes, now, frame.clientHeight)
  }), space = element("span", "ein-tg-space");
  bar.append(
    detail,
    button("Unfold all", () => fold("", !1), { signal, label: "Unfold all nodes and sites" }),
    space,
    button("−", () => view.zoom(0.7), { signal, label: "Zoom out (-)" }),
    button("+", () => view.zoom(1.4), { signal, label: "Zoom in (+)" }),
    button("All", () => view.fit(), { signal, label: "Show all of the picture (0)" }),
    saveMenu(model, { title: "tasks", signal })
  );
  let selection = selectable(root, { signal, onSelect: select, onHover: light }), show = factsPanel(aside, { signal, fold });
  function select(key2) {
    model.set("selection", key2), model.save_changes(), light(key2);
  }
  function fold(key2, on) {
    let rest = key2 ? model.get("folded").filter((one) => one !== key2) : [];
    model.set("folded", on ? [...rest, key2] : rest), model.save_changes();
  }
  function light(key2) {
    let keys = litKeys(key2, model.get("links"));
    for (let drawn of picture.querySelectorAll(".ein-wire-lit")) drawn.classList.remove("ein-wire-lit");
    if (!key2) return;
    let lit = new Set([...keys].flatMap((one) => items.get(one) ?? []));
    for (let wire of litWires([...wires.keys()], lit))
      for (let drawn of wires.get(wire)) drawn.classList.add("ein-wire-lit");
  }
  function index() {
    items = /* @__PURE__ */ new Map(), wires = /* @__PURE__ */ new Map();
    for (let drawn of picture.querySelectorAll("[data-item]"))
      for (let key2 of drawn.dataset.keys.split(" "))
        items.has(key2) || items.set(key2, []), items.get(key2).push(drawn.dataset.item);
    for (let drawn of picture.querySelectorAll("[data-wire]")) {
      let { wire } = drawn.dataset;
      wires.has(wire) || wires.set(wire, []), wires.get(wire).push(drawn);
    }
  }
  function draw() {
    let began = performance.now(), first = !picture.firstElementChild;
    picture.innerHTML = model.get("picture"), key.innerHTML = model.get("key").join("");
    for (let drawn of key.children) drawn.setAttribute("role", "presentation");
    let svg = picture.querySelector("svg");
    svg.setAttribute("role", "group"), size = { width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height }, svg.style.cssText = `width:${size.width}px;height:${size.height}px`, picture.style.width = `${size.width}px`, lanes = lanesIn(svg);
    let wide = frame.clientWidth / size.width;
    frame.style.height = `${Math.min(Math.max(size.height * Math.min(Math.max(wide, READABLE), 1), 260), 560)}px`, index(), selection.refresh(model.get("links"));
    let room = { width: frame.clientWidth, height: frame.clientHeight }, whole = Math.min(room.width / size.width, room.height / size.height);
    first ? whole >= READABLE ? view.fit() : view.set({ x: 0, y: 0, scale: READABLE }) : view.set(panBy(view.view(), 0, 0, size, room)), light(model.get("selection"));
    let painted = () => {
      root.dataset.drawn = (performance.now() - began).toFixed(0);
    };
    requestAnimationFrame(() => requestAnimationFrame(painted));
  }
  function update() {
    let { choices, nodes, text, spans } = model.get("view");
    detail.replaceChildren(...choices.map((name) => new Option(WORDS[name], name))), detail.value = model.get("detail"), top.replaceChildren(...text ? [formula(text, spans)] : [], chips(nodes)), caption.textContent = model.get("view").caption, draw(), tell();
  }
  let tell = () => show(model.get("details"), model.get("folded"), model.get("view").nodes), complain = () => {
    error.textContent = model.get("error");
  };
  heed(model, signal, {
    "change:picture": draw,
    "change:detail": () => {
      detail.value = model.get("detail");
    },
    "change:details": tell,
    "change:folded": tell,
    "change:error": complain,
    "change:selection": () => {
      selection.select(model.get("selection")), light(model.get("selection"));
    }
  }), complain(), requestAnimationFrame(update);
}
var taskgraph_default = { render };
export {
  taskgraph_default as default,
  litWires
};

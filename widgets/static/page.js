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

// src/cards.js
var FRAME = 6;
function changed(before, next) {
  return {
    fresh: Object.keys(next).filter((id) => next[id] !== before[id]),
    gone: Object.keys(before).filter((id) => !(id in next))
  };
}
function cardDeck(target) {
  let cards = /* @__PURE__ */ new Map(), before = {};
  function show(pictures, nodes) {
    let { fresh, gone } = changed(before, pictures);
    for (let id of gone)
      cards.get(id)?.remove(), cards.delete(id);
    for (let id of fresh) {
      if (!cards.has(id)) {
        let made = element("div", "ein-tensor");
        made.dataset.node = id, cards.set(id, made);
      }
      let card = cards.get(id);
      card.innerHTML = pictures[id];
      let svg = card.firstElementChild;
      svg.style.cssText = "", card.style.width = `${svg.viewBox.baseVal.width + FRAME}px`;
    }
    for (let node of nodes) {
      let card = cards.get(String(node.id));
      card?.classList.toggle("ein-pinned", node.pinned), card?.classList.toggle("ein-edited", node.edited);
    }
    fresh.length + gone.length && cards.size !== target.children.length && target.replaceChildren(...nodes.map((n) => cards.get(String(n.id))).filter(Boolean)), before = pictures;
  }
  function reveal2(id) {
    for (let card2 of cards.values()) card2.classList.remove("ein-chosen");
    let card = cards.get(String(id));
    if (!card) return;
    card.classList.add("ein-chosen");
    let [box, frame] = [card.getBoundingClientRect(), target.getBoundingClientRect()];
    (box.top < frame.top || box.bottom > frame.bottom) && (target.scrollTop += box.top - frame.top - Math.max((frame.height - box.height) / 2, 8));
  }
  return { show, reveal: reveal2 };
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

// src/scales.js
function stops(least, most, value) {
  let found = [];
  for (let e = Math.floor(Math.log10(least)); e <= Math.ceil(Math.log10(most)); e++)
    for (let m of [1, 2, 5]) {
      let stop = +`${m}e${e}`;
      stop >= least && stop <= most && found.push(stop);
    }
  return Number.isFinite(value) && !found.includes(value) && found.push(value), found.sort((a, b) => a - b);
}
function withUnit(value, unit) {
  let prefixes = [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
    [1, ""],
    [1e-3, "m"],
    [1e-6, "µ"],
    [1e-9, "n"]
  ];
  if (value === 0) return `0 ${unit}`;
  let [size, prefix] = prefixes.find(([s]) => value >= s * 0.9995) ?? prefixes.at(-1);
  return `${Number((value / size).toPrecision(3))} ${prefix}${unit}`;
}
function nextStep(steps, value, by) {
  return (by > 0 ? steps.filter((s) => s > value) : steps.filter((s) => s < value).reverse())[0] ?? value;
}

// src/controls.js
var MOST_SITES = 64;
function field(label, ...inputs) {
  let made = element("label", "ein-ask-field");
  return made.append(element("span", "ein-ask-field-name", label), ...inputs), made;
}
function number(label, { signal, most, change }) {
  let input = element("input");
  return Object.assign(input, { type: "number", min: 1, max: most, step: 1 }), input.setAttribute("aria-label", label), input.addEventListener(
    "change",
    () => {
      let value = Math.round(Number(input.value));
      value >= 1 && change(value);
    },
    { signal }
  ), input;
}
function scale(label, { signal, least, most, unit, endless = !1, change }) {
  let input = element("input"), output = element("output"), at = [];
  input.type = "range", input.setAttribute("aria-label", label);
  let text = () => {
    let value = at[Number(input.value)];
    output.textContent = value === null ? "∞" : withUnit(value, unit), input.setAttribute("aria-valuetext", value === null ? "no limit" : output.textContent);
  };
  return input.addEventListener(
    "input",
    () => {
      text(), change(at[Number(input.value)]);
    },
    { signal }
  ), { input, output, show: (value) => {
    at = [...stops(least, most, value ?? Number.NaN), ...endless ? [null] : []], Object.assign(input, { min: 0, max: at.length - 1, step: 1, value: at.indexOf(value) }), text();
  } };
}
function controls(model, { signal, ask: ask2 }) {
  let bar2 = element("div", "ein-controls"), change = (figures) => {
    let setting = { ...model.get("setting"), p: null, ...figures };
    setting.hosts = Math.min(setting.hosts, setting.sites), model.set("setting", setting), model.save_changes(), show();
  }, slider = element("input");
  Object.assign(slider, { type: "range", min: 1, max: MOST_SITES, step: 1 }), slider.setAttribute("aria-label", "number of sites"), slider.addEventListener("input", () => change({ sites: Number(slider.value) }), { signal });
  let sites = number("number of sites, typed", { signal, most: 1024, change: (n) => change({ sites: n }) }), hosts = number("number of hosts", { signal, most: 1024, change: (n) => change({ hosts: n }) }), bandwidth = scale("bandwidth of the link", {
    signal,
    least: 1e6,
    most: 1e12,
    unit: "B/s",
    change: (x) => change({ bandwidth: x })
  }), latency = scale("latency of the link", {
    signal,
    least: 1e-7,
    most: 0.1,
    unit: "s",
    change: (x) => change({ latency: x })
  }), memory = scale("memory of a site", {
    signal,
    least: 1e3,
    most: 1e12,
    unit: "B",
    endless: !0,
    change: (x) => change({ memory: x })
  }), objective = element("select");
  objective.setAttribute("aria-label", "what the plan makes least"), objective.append(new Option("fewest bytes", "bytes"), new Option("least time", "time")), objective.addEventListener("change", () => change({ objective: objective.value }), { signal });
  let undo = button("Undo", () => ask2("undo"), { signal, label: "Undo the last change" }), reset = button("Reset", () => ask2("reset"), { signal, label: "Go back to the setting at the start" }), buttons = element("span", "ein-buttons");
  buttons.append(undo, reset, saveMenu(model, { title: "plan", signal })), bar2.append(
    field("sites", slider, sites),
    field("hosts", hosts),
    field("link", bandwidth.input, bandwidth.output),
    field("latency", latency.input, latency.output),
    field("memory", memory.input, memory.output),
    field("plan for", objective),
    buttons
  );
  function show() {
    let setting = model.get("setting");
    slider.value = setting.sites, sites.value = setting.sites, hosts.value = setting.hosts, hosts.max = setting.sites, bandwidth.show(setting.bandwidth), latency.show(setting.latency), memory.show(setting.memory), objective.value = setting.objective, undo.disabled = model.get("undoable") === 0;
  }
  return { bar: bar2, show };
}

// src/costs.js
function barWidths(strategies, bound, timed) {
  let parts = strategies.map((s) => timed ? [s.seconds ?? 0] : s.parts), sums = parts.map((row2) => row2.reduce((a, b) => a + b, 0)), most = Math.max(...sums, timed ? 0 : bound), percent = (value) => most > 0 ? 100 * value / most : 0;
  return {
    rows: parts.map((row2) => row2.map(percent)),
    bound: timed || bound <= 0 ? null : percent(bound)
  };
}
function row(strategy, widths, { view, bound, timed, choose, signal }) {
  let made = element("button", "ein-strategy");
  made.type = "button";
  let shown = strategy.name === view.shown;
  made.setAttribute("aria-pressed", String(shown)), made.dataset.strategy = strategy.name;
  let { text } = strategy, parts = view.parts.map((part, k) => `${part} ${text.parts[k]}`).join(", ");
  made.title = `${strategy.name}
predicted ${text.cost}: ${parts}
moved by its tasks ${text.moved}
simulated ${text.seconds}
work of the busiest site ${text.balance} the mean
memory of the fullest site ${text.peak}`;
  let head = element("span", "ein-strategy-head");
  head.append(
    element("span", "ein-strategy-name", strategy.name),
    element("span", "ein-strategy-cost", timed ? text.seconds : text.cost)
  );
  let bar2 = element("span", "ein-cost-bar");
  if (widths.forEach((width, k) => {
    let piece = element("span", `ein-cost-part ein-part-${timed ? "time" : k}`);
    piece.style.width = `${width}%`, bar2.append(piece);
  }), bound !== null) {
    let tick = element("span", "ein-cost-bound");
    tick.style.left = `${bound}%`, bar2.append(tick);
  }
  let rest = timed ? `${text.cost} predicted` : text.seconds, foot = element("span", "ein-strategy-foot");
  return foot.append(
    element("span", "", `${text.moved} moved · ${rest}`),
    element("span", "", `load ${text.balance}`)
  ), made.append(head, bar2, foot), made.addEventListener("click", () => choose(shown ? "" : strategy.name), { signal }), made;
}
function showCosts(target, view, { choose, signal }) {
  let timed = view.setting.objective === "time", widths = barWidths(view.strategies, view.bound, timed), focused = target.contains(document.activeElement) ? document.activeElement.dataset.strategy : null, legend = element("div", "ein-cost-legend");
  if ((timed ? ["simulated time"] : view.parts).forEach((name, k) => {
    let key = element("span", "ein-cost-key");
    key.append(element("span", `ein-cost-swatch ein-part-${timed ? "time" : k}`), element("span", "", name)), legend.append(key);
  }), widths.bound !== null) {
    let key = element("span", "ein-cost-key");
    key.append(element("span", "ein-swatch-bound"), element("span", "", `at least ${view.bound_text}`)), key.title = "what moves at least if every matrix product is evenly shared out", legend.append(key);
  }
  target.replaceChildren(
    legend,
    ...view.strategies.map(
      (strategy, k) => row(strategy, widths.rows[k], { view, bound: widths.bound, timed, choose, signal })
    )
  ), focused && target.querySelector(`[data-strategy="${CSS.escape(focused)}"]`)?.focus();
}

// src/cutter.js
var DRAG = 16;
function stepsOf(pixels) {
  return Math.trunc(pixels / DRAG);
}
function stepped(steps, value, count) {
  let found = value;
  for (let k = 0; k < Math.abs(count); k++) found = nextStep(steps, found, Math.sign(count));
  return found;
}
function dragged(target, label, set, signal) {
  target.addEventListener(
    "pointerdown",
    (down) => {
      if (down.button !== 0) return;
      down.preventDefault(), target.focus();
      let stop = new AbortController(), options = { signal: AbortSignal.any([stop.signal, signal]) }, last = label.parts;
      document.addEventListener(
        "pointermove",
        (move) => {
          let value = stepped(label.steps, label.parts, stepsOf(move.clientX - down.clientX));
          value !== last && set(value), last = value;
        },
        options
      ), document.addEventListener("pointerup", () => stop.abort(), options);
    },
    { signal }
  );
}
function labelRow(node, label, { ask: ask2, signal, active }) {
  let row2 = element("div", `ein-cut-row${active ? " ein-cut-active" : ""}`);
  row2.dataset.keys = `label:${node.id}:${label.label}`, row2.setAttribute("role", "group"), row2.setAttribute("aria-label", `label ${label.name} of extent ${label.extent}`);
  let set = (parts) => ask2("edit", { node: node.id, label: label.label, parts }), name = element("span", "ein-cut-name ein-mono", label.name);
  label.colour && name.style.setProperty("--ein-cut", label.colour);
  let extent = element(
    "span",
    "ein-cut-extent",
    `${label.extent}${label.aggregated ? ", summed over" : ""}`
  ), value = element("span", "ein-cut-parts", String(label.parts));
  Object.assign(value, { tabIndex: 0, title: "Drag, or press [ and ]" }), value.setAttribute("role", "spinbutton"), value.setAttribute("aria-label", `parts of ${label.name}`), value.setAttribute("aria-valuenow", label.parts), value.setAttribute("aria-valuemin", 1), value.setAttribute("aria-valuemax", label.steps.at(-1)), value.dataset.label = label.label, dragged(value, label, set, signal);
  let less = button("−", () => set(nextStep(label.steps, label.parts, -1)), {
    signal,
    label: `Fewer parts of ${label.name}`
  }), more = button("+", () => set(nextStep(label.steps, label.parts, 1)), {
    signal,
    label: `More parts of ${label.name}`
  });
  return less.disabled = label.parts <= label.steps[0], more.disabled = label.parts >= label.steps.at(-1), row2.append(name, extent, less, value, more), row2;
}
function showCutter(target, node, picture, { ask: ask2, signal, label }) {
  let now = JSON.stringify([node, label]);
  if (target.dataset.shown === now && node) {
    target.lastElementChild.innerHTML = picture;
    return;
  }
  target.dataset.shown = now;
  let focused = target.contains(document.activeElement) ? document.activeElement : null, at = focused && [focused.dataset.label, focused.getAttribute("aria-label")];
  if (!node) {
    target.replaceChildren(
      element("p", "ein-hint", "Select a tensor, a node or a part of the formula to change how it is cut.")
    );
    return;
  }
  let head = element("div", "ein-cutter-head"), title = element("span", "ein-cutter-title ein-mono");
  title.textContent = node.formula ? `${node.title} = ${node.formula}` : node.title;
  let pin = node.pinned ? button("Unpin", () => ask2("free", { node: node.id }), { signal, label: `Let ${node.name} be planned` }) : button("Pin", () => ask2("pin", { node: node.id }), {
    signal,
    label: `Keep this cut of ${node.name} and plan the rest around it (Enter)`
  });
  head.append(title, pin);
  let labels = node.labels.map((one) => labelRow(node, one, { ask: ask2, signal, active: one.label === label })), drawn = element("div", "ein-join");
  drawn.innerHTML = picture, target.replaceChildren(head, ...labels, drawn), at && [...target.querySelectorAll("[data-label], button")].find(
    (e) => e.dataset.label === at[0] && e.getAttribute("aria-label") === at[1]
  )?.focus();
}

// src/formula.js
function showFormula(target, segments) {
  target.replaceChildren(
    ...segments.map((segment) => {
      let made = element("span", "", segment.text);
      return segment.keys.length ? made.dataset.keys = segment.keys.join(" ") : made.className = "ein-plain", segment.parts > 1 ? (made.className = "ein-cut", made.style.setProperty("--ein-cut", segment.colour), made.append(element("sub", "", String(segment.parts))), made.setAttribute("aria-label", `label ${segment.text}, cut into ${segment.parts} parts`)) : segment.keys.length && made.setAttribute("aria-label", segment.text.trim()), made;
    })
  );
}

// src/panzoom.js
function zoomAt(view, factor, point, limits = { least: 0.05, most: 8 }) {
  let scale2 = Math.min(Math.max(view.scale * factor, limits.least), limits.most), ratio = scale2 / view.scale;
  return {
    x: point.x - (point.x - view.x) * ratio,
    y: point.y - (point.y - view.y) * ratio,
    scale: scale2
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
  let scale2 = Math.min(frame.width / picture.width, frame.height / picture.height, most);
  return {
    x: Math.max((frame.width - picture.width * scale2) / 2, 0),
    y: Math.max((frame.height - picture.height * scale2) / 2, 0),
    scale: scale2
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

// src/graphpane.js
var READABLE = 0.9, [LEAST, MOST] = [140, 360];
function firstView(picture, frame) {
  let whole = fit(picture, frame);
  if (whole.scale >= READABLE) return whole;
  let scale2 = Math.max(Math.min(frame.height / picture.height, 1), READABLE);
  return { x: 0, y: (frame.height - picture.height * scale2) / 2, scale: scale2 };
}
function viewOf(box, view, frame) {
  let [left, top] = [box.x * view.scale + view.x, box.y * view.scale + view.y], [right, bottom] = [left + box.width * view.scale, top + box.height * view.scale];
  return left >= 0 && top >= 0 && right <= frame.width && bottom <= frame.height ? view : {
    ...view,
    x: frame.width / 2 - (box.x + box.width / 2) * view.scale,
    y: frame.height / 2 - (box.y + box.height / 2) * view.scale
  };
}
function graphPane({ signal }) {
  let pane = element("div", "ein-graph-pane"), picture = element("div", "ein-graph-picture"), tools = element("div", "ein-graph-tools");
  pane.dataset.rove = "";
  let box = () => picture.firstElementChild?.viewBox.baseVal ?? { width: 1, height: 1, x: 0, y: 0 }, frame = () => ({ width: pane.clientWidth, height: pane.clientHeight }), mover = panzoom(pane, picture, { signal, size: box });
  tools.append(
    button("+", () => mover.zoom(1.25), { signal, label: "Zoom in (+)" }),
    button("−", () => mover.zoom(0.8), { signal, label: "Zoom out (-)" }),
    button("Fit", () => mover.fit(), { signal, label: "Show all of the graph (0)" })
  ), pane.append(picture, tools);
  let waiting = !1, place = () => {
    pane.clientWidth !== 0 && (waiting = !1, mover.set(firstView(box(), frame())));
  }, watcher = new ResizeObserver(() => waiting && place());
  watcher.observe(pane), signal.addEventListener("abort", () => watcher.disconnect());
  function show(svg) {
    picture.innerHTML = svg;
    let drawn = picture.firstElementChild;
    if (!drawn) return;
    drawn.style.cssText = "";
    let height = Math.min(Math.max(box().height * READABLE + 16, LEAST), MOST);
    pane.style.setProperty("--ein-graph-height", `${height}px`), waiting = !0, place();
  }
  function reveal2(id) {
    let node = picture.querySelector(`[data-node="${id}"]`);
    if (!node) return;
    let at = node.getBBox(), origin = box(), inside = { x: at.x - origin.x, y: at.y - origin.y, width: at.width, height: at.height }, next = viewOf(inside, mover.view(), frame());
    next !== mover.view() && mover.set(next);
  }
  return { pane, show, reveal: reveal2 };
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

// src/strip.js
var SVG = "http://www.w3.org/2000/svg", WIDE = 1e3;
function laneHeight(sites) {
  return Math.max(Math.min(Math.floor(170 / sites), 20), 5);
}
function shape(tag, attributes) {
  let made = document.createElementNS(SVG, tag);
  for (let [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
function bar([site, source, start, stop, keys, title], { wall, colours }, lane) {
  let moving = source !== null, made = shape("rect", {
    x: start / wall * WIDE,
    y: site * (lane + 2) + (moving ? lane * 0.72 : 0),
    width: Math.max((stop - start) / wall * WIDE, 0.6),
    height: lane * (moving ? 0.28 : 0.68),
    "data-keys": keys
  });
  if (made.style.fill = colour(colours[moving ? source : site]), title) {
    let words = shape("title", {});
    words.textContent = title, made.append(words);
  }
  return made;
}
function showStrip(target, strip) {
  let lane = laneHeight(strip.sites), height = strip.sites * (lane + 2), svg = shape("svg", {
    viewBox: `0 0 ${WIDE} ${height}`,
    preserveAspectRatio: "none",
    height,
    role: "img",
    "aria-label": `simulated run of ${strip.wall_text} on ${strip.sites} sites`,
    class: "ein-strip-bars",
    "data-rove": ""
  });
  for (let site = 0; site < strip.sites; site++)
    svg.append(shape("rect", { x: 0, y: site * (lane + 2), width: WIDE, height: lane, class: "ein-lane" }));
  for (let one of strip.bars) svg.append(bar(one, strip, lane));
  let every = lane >= 13 ? 1 : Math.ceil(15 / (lane + 2)), names = element("div", "ein-strip-names"), busy = element("div", "ein-strip-names");
  for (let [column, text] of [
    [names, (site) => `site ${site}`],
    [busy, (site) => strip.busy[site]]
  ]) {
    column.style.height = `${height}px`;
    for (let site = 0; site < strip.sites; site += every) {
      let name = element("span", "", text(site));
      name.style.top = `${site * (lane + 2) + lane / 2}px`, column === names && (name.dataset.keys = `site:${site}`), column.append(name);
    }
  }
  let axis = element("div", "ein-strip-axis");
  axis.append(
    element("span", "", "0"),
    element("span", "", `${strip.wall_text}, simulated`),
    element("span", "", "busy")
  ), target.replaceChildren(names, svg, busy, axis);
}

// src/explorer.js
function layout(model, { signal, ask: ask2 }) {
  let root = element("div", "ein-widget"), grid = element("div", "ein-explorer"), part = {
    controls: controls(model, { signal, ask: ask2 }),
    error: element("div", "ein-error"),
    busy: element("div", "ein-planning"),
    formula: element("pre", "ein-formula ein-mono"),
    graph: graphPane({ signal }),
    deck: element("div", "ein-deck"),
    costs: element("div", "ein-costs"),
    cutter: element("div", "ein-cutter"),
    strip: element("div", "ein-strip"),
    caption: element("p", "ein-caption")
  };
  part.error.setAttribute("role", "alert"), part.caption.setAttribute("aria-live", "polite"), part.busy.setAttribute("role", "status"), part.busyText = element("span"), part.busy.append(
    part.busyText,
    button("Cancel", () => ask2("cancel"), { signal, label: "Stop planning" })
  ), part.deck.dataset.rove = "", part.formula.dataset.rove = "";
  let named = (name, title, ...children) => {
    let made = panel(title, ...children);
    return made.classList.add(`ein-area-${name}`), made;
  };
  return grid.append(
    named("formula", "Formula", part.formula),
    named("controls", "Plan for", part.controls.bar, part.busy, part.error),
    named("graph", "Graph", part.graph.pane),
    named("blocks", "Blocks, coloured by site", part.deck),
    named("costs", "Cost of strategies", part.costs),
    named("cutter", "Cut", part.cutter),
    named("tasks", "Run", part.strip)
  ), root.append(grid, part.caption), { root, part };
}
function reveal(frame, inside) {
  if (!inside) return;
  let [box, around] = [inside.getBoundingClientRect(), frame.getBoundingClientRect()];
  (box.top < around.top || box.bottom > around.bottom) && (frame.scrollTop += box.top - around.top - around.height / 3);
}
function nodeOf(key, links) {
  if (key.startsWith("label:")) return Number(key.split(":")[1]);
  let found = [key, ...links[key] ?? []].find((k) => k.startsWith("node:"));
  return found === void 0 ? null : Number(found.slice(5));
}
function render({ model, el }) {
  let closing = new AbortController(), { signal } = closing, ask2 = (what, more = {}) => model.send({ do: what, ...more }), { root, part } = layout(model, { signal, ask: ask2 }), deck = cardDeck(part.deck), selection = selectable(root, {
    signal,
    onSelect: (key) => {
      model.set("selection", key), model.save_changes(), chosen();
    }
  }), view = () => model.get("view"), node = () => {
    let id = nodeOf(model.get("selection"), model.get("links"));
    return id === null ? null : view().nodes?.find((n) => n.id === id);
  }, label = () => {
    let key = model.get("selection"), labels = node()?.labels ?? [], named = key.startsWith("label:") ? key.split(":").slice(2).join(":") : "", focused = part.cutter.contains(document.activeElement) ? document.activeElement.dataset.label : "";
    return labels.find((l) => l.label === (focused || named)) ?? labels.find((l) => l.steps.length > 1) ?? labels[0];
  };
  function cutter() {
    let detail = model.get("detail"), one = node();
    showCutter(part.cutter, one, one && detail.node === one.id ? detail.svg : "", {
      ask: ask2,
      signal,
      label: label()?.label
    });
  }
  function chosen() {
    cutter();
    let one = node();
    one && (deck.reveal(one.id), part.graph.reveal(one.id)), selection.refresh(), reveal(part.formula, part.formula.querySelector(".ein-lit"));
  }
  function update() {
    part.controls.show(), part.error.textContent = model.get("error");
    let now = view();
    now.nodes && (showFormula(part.formula, now.formula), deck.show(model.get("cards"), now.nodes), showCosts(part.costs, now, {
      signal,
      choose: (name) => {
        model.set("shown", name), model.save_changes();
      }
    }), cutter(), showStrip(part.strip, model.get("strip")), part.caption.textContent = now.caption, root.dataset.done = String(now.done), root.dataset.sites = now.setting.sites, selection.refresh(model.get("links")));
  }
  function busy() {
    let { what, since } = model.get("busy");
    part.busy.classList.toggle("ein-on", !!what), what && (part.busyText.textContent = `${what} … ${since.toFixed(1)} s`);
  }
  root.addEventListener(
    "keydown",
    (event) => {
      let one = label();
      if (!(!one || event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey)) {
        if (event.key === "[" || event.key === "]") {
          let parts = nextStep(one.steps, one.parts, event.key === "]" ? 1 : -1);
          parts !== one.parts && ask2("edit", { node: node().id, label: one.label, parts });
        } else if (event.key === "Enter" && node().edited)
          ask2("pin", { node: node().id });
        else return;
        event.preventDefault(), event.stopPropagation();
      }
    },
    { signal, capture: !0 }
  );
  let on = (name, handler) => {
    model.on(name, handler), signal.addEventListener("abort", () => model.off(name, handler));
  }, waiting = !1, soon = () => {
    waiting || (waiting = !0, queueMicrotask(() => {
      waiting = !1, update();
    }));
  };
  for (let name of ["view", "cards", "strip", "links", "error", "undoable", "setting"])
    on(`change:${name}`, soon);
  return on("change:detail", cutter), on("change:busy", busy), on("change:graph", () => part.graph.show(model.get("graph"))), on("change:selection", () => {
    selection.select(model.get("selection")), chosen();
  }), el.append(root), part.graph.show(model.get("graph")), update(), busy(), selection.select(model.get("selection")), () => closing.abort();
}
var explorer_default = { render };

// src/page.js
var RemoteModel = class {
  constructor(key, state, post2) {
    this.state = state, this.changed = {}, this.handlers = /* @__PURE__ */ new Map(), this.post = (what, data) => post2(`/${what}/${key}`, data);
  }
  get(name) {
    return this.state[name];
  }
  set(name, value) {
    this.changed[name] = value, this.receive({ [name]: value });
  }
  save_changes() {
    let changed2 = this.changed;
    return this.changed = {}, this.post("set", changed2);
  }
  send(content) {
    return this.post("ask", content);
  }
  on(event, handler) {
    this.handlers.set(event, [...this.handlers.get(event) ?? [], handler]);
  }
  off(event, handler) {
    this.handlers.set(
      event,
      (this.handlers.get(event) ?? []).filter((h) => h !== handler)
    );
  }
  /** Takes over new state, all of it before anybody hears of it. */
  receive(state) {
    Object.assign(this.state, state);
    for (let name of Object.keys(state)) this.tell(`change:${name}`);
  }
  tell(event, ...data) {
    for (let handler of this.handlers.get(event) ?? []) handler(...data);
  }
  /** Takes what the server says happened, in order. */
  hear(news) {
    let state = Object.assign({}, ...news.map((one) => one.state ?? {}));
    this.receive(state);
    for (let one of news) one.message && this.tell("msg:custom", one.message);
  }
};
async function post(path, data) {
  return (await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(data)
  })).json();
}
function open(body, programs) {
  let bar2 = element("header", "ein-page-bar"), menu = element("select");
  menu.setAttribute("aria-label", "program");
  for (let name of Object.keys(programs)) menu.append(new Option(name));
  menu.append(new Option("write your own …", ""));
  let own = element("form", "ein-page-own"), text = element("textarea", "ein-mono");
  text.setAttribute("aria-label", "formulas"), text.rows = 8, text.spellcheck = !1;
  let error = element("pre", "ein-error");
  error.setAttribute("role", "alert"), own.append(
    text,
    button("Explore", () => start(text.value), { label: "Explore these formulas" }),
    error
  ), own.hidden = !0, own.addEventListener("submit", (event) => event.preventDefault());
  let main = element("main");
  bar2.append(element("h1", "", "Einsummable"), element("span", "", "how would this be cut?"), menu), body.append(bar2, own, main);
  let close = () => {
  };
  async function start(source) {
    error.textContent = "", main.classList.add("ein-page-waiting");
    let answer = await post("/open", { text: source });
    if (main.classList.remove("ein-page-waiting"), answer.error) {
      own.hidden = !1, error.textContent = answer.error;
      return;
    }
    close(), main.replaceChildren();
    let model = new RemoteModel(answer.key, answer.state, post), news = new EventSource(`/news/${answer.key}`);
    news.onmessage = (event) => model.hear(JSON.parse(event.data));
    let ended = explorer_default.render({ model, el: main });
    close = () => {
      news.close(), ended();
    };
  }
  menu.addEventListener("change", () => {
    own.hidden = menu.value !== "", menu.value && (text.value = programs[menu.value], start(programs[menu.value]));
  }), text.value = Object.values(programs)[0], start(text.value);
}
export {
  RemoteModel,
  open
};

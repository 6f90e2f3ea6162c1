// Small parts of a page that several widgets are made of.

/** An element with a class and text. */
export function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

/** A button that says and does one thing. */
export function button(text, act, { signal, label = "" } = {}) {
  const made = element("button", "ein-button", text);
  made.type = "button";
  if (label) {
    made.setAttribute("aria-label", label);
    made.title = label;
  }
  made.addEventListener("click", act, { signal });
  return made;
}

/** A panel with a heading. */
export function panel(title, ...children) {
  const made = element("section", "ein-panel");
  made.append(element("h4", "", title), ...children);
  return made;
}

/** A colour of Python's palettes: the theme's text for the role "ink". */
export function colour(name) {
  return name === "ink" ? "var(--ein-ink)" : name;
}

/** A square in the colour of a site. */
export function chip(name) {
  const made = element("span", "ein-chip");
  made.style.background = colour(name);
  return made;
}

/** A bar that is `share` full, with a tick at `tick` if there is one; both from 0 to 1. */
export function bar(share, name, tick) {
  const made = element("span", "ein-bar");
  const full = element("span", "ein-bar-full");
  full.style.width = `${100 * Math.min(Math.max(share, 0), 1)}%`;
  full.style.background = colour(name);
  made.append(full);
  if (tick !== undefined) {
    const mark = element("span", "ein-bar-tick");
    mark.style.left = `${100 * Math.min(Math.max(tick, 0), 1)}%`;
    made.append(mark);
  }
  return made;
}

/** A table: the words of its head, and rows of nodes or texts; the first cell of a row is its heading. */
export function table(head, rows, className = "ein-table") {
  const made = element("table", className);
  const line = made.createTHead().insertRow();
  for (const word of head) line.append(Object.assign(element("th", "", word), { scope: "col" }));
  const body = made.createTBody();
  for (const cells of rows) {
    const row = body.insertRow();
    cells.forEach((cell, k) => {
      const made_ = element(k ? "td" : "th");
      if (!k) made_.scope = "row";
      made_.append(...(Array.isArray(cell) ? cell : [cell]));
      row.append(made_);
    });
  }
  return made;
}

/** Calls `handlers` for what happens to a model, until the widget's view is taken away. */
export function heed(model, signal, handlers) {
  for (const [event, handler] of Object.entries(handlers)) {
    model.on(event, handler);
    signal?.addEventListener("abort", () => model.off(event, handler));
  }
}

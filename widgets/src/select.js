// One selection for a whole widget: what is hovered, focused or clicked, and all that belongs to it, is lit.
//
// An element says with data-keys="block:W:0,1 tensor:W site:2" what it stands for, its own key first.  `links`
// (from Python) has for each key what else belongs to it.  An element is lit if one of its keys is the selected
// one or one of its links; of the others, those that hold no further elements with keys fade.

/** What is lit when `key` is selected, as a set of keys. */
export function litKeys(key, links) {
  return new Set(key ? [key, ...(links[key] ?? [])] : []);
}

/** The keys of a data-keys attribute. */
export function keysOf(text) {
  return (text ?? "").split(" ").filter(Boolean);
}

/**
 * Of boxes {left, top, right, bottom}, the index of the next one from `from` in a direction ("ArrowLeft" …), or
 * -1.  A box that lies straight ahead is nearer than one aside.
 */
export function nextBox(boxes, from, direction) {
  const [ox, oy] = middle(boxes[from]);
  let best = -1;
  let least = Number.POSITIVE_INFINITY;
  boxes.forEach((box, i) => {
    const [dx, dy] = middle(box).map((v, k) => v - [ox, oy][k]);
    const [ahead, aside] = {
      ArrowLeft: [-dx, dy],
      ArrowRight: [dx, dy],
      ArrowUp: [-dy, dx],
      ArrowDown: [dy, dx],
    }[direction];
    const distance = ahead + 3 * Math.abs(aside);
    if (i !== from && ahead > 1 && distance < least) {
      best = i;
      least = distance;
    }
  });
  return best;
}

function middle(box) {
  return [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
}

/**
 * Makes everything with data-keys under `root` selectable.
 *
 * Within each [data-rove] one element can be reached with Tab and the others with the arrows.  `onSelect(key)` is
 * called when something is clicked, or "" when the selection is given up; `onHover(key)` for what is hovered or
 * focused.  Call `refresh(links)` after elements came or went, `select(key)` to select from outside.
 */
export function selectable(root, { signal, onSelect = () => {}, onHover = () => {} }) {
  let links = {};
  let sticky = "";
  let hovered = "";
  let byKey = new Map();
  let lit = [];
  const listen = (type, handler) => root.addEventListener(type, handler, { signal });
  const found = (target) => target.closest?.("[data-keys]");
  const primary = (element) => keysOf(element?.dataset.keys)[0] ?? "";

  function show() {
    const keys = litKeys(hovered || sticky, links);
    for (const element of lit) element.classList.remove("ein-lit");
    lit = [...new Set([...keys].flatMap((key) => byKey.get(key) ?? []))];
    for (const element of lit) element.classList.add("ein-lit");
    root.classList.toggle("ein-selecting", lit.length > 0);
    root.dataset.lit = hovered || sticky;
  }

  function hover(key) {
    if (key === hovered) return;
    hovered = key;
    show();
    onHover(key || sticky);
  }

  function select(key) {
    if (key !== sticky) {
      sticky = key;
      show();
    }
  }

  function choose(key) {
    hovered = "";
    select(key);
    show();
    onSelect(key);
  }

  function refresh(newLinks = links) {
    links = newLinks;
    byKey = new Map();
    for (const element of root.querySelectorAll("[data-keys]")) {
      for (const key of keysOf(element.dataset.keys)) {
        if (!byKey.has(key)) byKey.set(key, []);
        byKey.get(key).push(element);
      }
      element.classList.toggle("ein-leaf", element.querySelector("[data-keys]") === null);
      makeFocusable(element);
    }
    for (const area of root.querySelectorAll("[data-rove]")) {
      const members = [...area.querySelectorAll("[data-keys]")];
      if (members.length && !members.some((m) => m.tabIndex === 0)) members[0].tabIndex = 0;
    }
    lit = [];
    show();
  }

  function rove(event, element) {
    const area = element.closest("[data-rove]");
    if (!area || !event.key.startsWith("Arrow")) return;
    const members = [...area.querySelectorAll(".ein-leaf")].filter((m) => m.getClientRects().length);
    const from = members.indexOf(element);
    if (from < 0) return;
    const boxes = members.map((m) => m.getBoundingClientRect());
    const next = nextBox(boxes, from, event.key);
    if (next >= 0) {
      for (const member of area.querySelectorAll('[tabindex="0"]')) member.tabIndex = -1;
      members[next].tabIndex = 0;
      members[next].focus();
      event.preventDefault();
    }
  }

  listen("pointerover", (event) => hover(primary(found(event.target))));
  listen("pointerleave", () => hover(""));
  listen("focusin", (event) => {
    // Keys pressed in here are not commands of the notebook, where "d d" deletes a cell; Jupyter asks the
    // element itself.
    event.target.dataset.lmSuppressShortcuts = "true";
    hover(primary(found(event.target)));
  });
  listen("focusout", () => hover(""));
  listen("click", (event) => {
    const element = found(event.target);
    const control = event.target.closest?.("button, input, select, a, summary");
    // A button inside of something selectable does what it says, and selects nothing.
    if (element && (!control || control === element))
      choose(primary(element) === sticky ? "" : primary(element));
  });
  listen("keydown", (event) => {
    if (event.key === "Escape" && (sticky || hovered)) {
      choose("");
      event.stopPropagation();
      return;
    }
    const element = found(event.target);
    if (!element || event.target !== element) return;
    if (event.key === " " || event.key === "Enter") {
      choose(primary(element) === sticky ? "" : primary(element));
      event.preventDefault();
    }
    rove(event, element);
  });
  return { refresh, select, selected: () => sticky };
}

/** Gives an element a place in the tab order and, from its title, a name that is read out. */
function makeFocusable(element) {
  if (element.hasAttribute("tabindex") || element.matches("button, input, select, a")) return;
  element.setAttribute("tabindex", "-1");
  if (!element.hasAttribute("role")) element.setAttribute("role", "button");
  const title = element.querySelector(":scope > title")?.textContent;
  if (title && !element.hasAttribute("aria-label")) element.setAttribute("aria-label", title);
}

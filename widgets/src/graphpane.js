// The EinGraph in a frame: large ones begin at their left, readable, and are dragged; nodes can be found.

import { fit, panzoom } from "./panzoom.js";
import { button, element } from "./parts.js";

/** Text smaller than this part of its size cannot be read. */
const READABLE = 0.9;

/** The height of the pane in pixels, where the picture decides. */
const [LEAST, MOST] = [140, 360];

/** The view in which a picture is shown first: all of it if that can be read, else its left, in full size. */
export function firstView(picture, frame) {
  const whole = fit(picture, frame);
  if (whole.scale >= READABLE) return whole;
  const scale = Math.max(Math.min(frame.height / picture.height, 1), READABLE);
  return { x: 0, y: (frame.height - picture.height * scale) / 2, scale };
}

/** The view in which `box` (of the picture) is in the middle of the frame, unless it is in sight already. */
export function viewOf(box, view, frame) {
  const [left, top] = [box.x * view.scale + view.x, box.y * view.scale + view.y];
  const [right, bottom] = [left + box.width * view.scale, top + box.height * view.scale];
  if (left >= 0 && top >= 0 && right <= frame.width && bottom <= frame.height) return view;
  return {
    ...view,
    x: frame.width / 2 - (box.x + box.width / 2) * view.scale,
    y: frame.height / 2 - (box.y + box.height / 2) * view.scale,
  };
}

/** A pane with the graph; `show(svg)` puts it there, `reveal(id)` brings a node into sight. */
export function graphPane({ signal }) {
  const pane = element("div", "ein-graph-pane");
  const picture = element("div", "ein-graph-picture");
  const tools = element("div", "ein-graph-tools");
  pane.dataset.rove = "";
  const box = () => picture.firstElementChild?.viewBox.baseVal ?? { width: 1, height: 1, x: 0, y: 0 };
  const frame = () => ({ width: pane.clientWidth, height: pane.clientHeight });
  const mover = panzoom(pane, picture, { signal, size: box });
  tools.append(
    button("+", () => mover.zoom(1.25), { signal, label: "Zoom in (+)" }),
    button("−", () => mover.zoom(0.8), { signal, label: "Zoom out (-)" }),
    button("Fit", () => mover.fit(), { signal, label: "Show all of the graph (0)" }),
  );
  pane.append(picture, tools);
  let waiting = false;
  const place = () => {
    if (pane.clientWidth === 0) return;
    waiting = false;
    mover.set(firstView(box(), frame()));
  };
  const watcher = new ResizeObserver(() => waiting && place());
  watcher.observe(pane);
  signal.addEventListener("abort", () => watcher.disconnect());

  function show(svg) {
    picture.innerHTML = svg;
    const drawn = picture.firstElementChild;
    if (!drawn) return;
    drawn.style.cssText = "";
    const height = Math.min(Math.max(box().height * READABLE + 16, LEAST), MOST);
    pane.style.setProperty("--ein-graph-height", `${height}px`);
    waiting = true;
    place();
  }

  function reveal(id) {
    const node = picture.querySelector(`[data-node="${id}"]`);
    if (!node) return;
    const at = node.getBBox();
    const origin = box();
    const inside = { x: at.x - origin.x, y: at.y - origin.y, width: at.width, height: at.height };
    const next = viewOf(inside, mover.view(), frame());
    if (next !== mover.view()) mover.set(next);
  }
  return { pane, show, reveal };
}

// The names of lanes beside a picture that is panned and zoomed: they stay in sight.

import { element } from "./parts.js";

/** The lanes of a picture as {name, top, bottom}, in its own pixels. */
export function lanesIn(svg) {
  const corner = svg.viewBox.baseVal.y;
  return [...svg.querySelectorAll("[data-lane]")].map((lane) => {
    // As it was drawn: a picture that is not shown yet has no boxes.
    const [y, height] = ["y", "height"].map((name) => Number(lane.querySelector("rect").getAttribute(name)));
    return { name: lane.dataset.name, top: y - corner, bottom: y + height - corner };
  });
}

/** Where the name of each lane is in the frame, for those that are seen at all: {name, y}. */
export function placed(lanes, view, height, line = 16) {
  const found = [];
  let free = Number.NEGATIVE_INFINITY;
  for (const { name, top, bottom } of lanes) {
    const [from, to] = [top * view.scale + view.y, bottom * view.scale + view.y];
    if (to < 0 || from > height) continue;
    // In the middle of what is seen of the lane.
    const y = (Math.max(from, 0) + Math.min(to, height)) / 2;
    if (y - free < line) continue;
    free = y;
    found.push({ name, y });
  }
  return found;
}

/** Writes the names into `target` where the picture's own are out of sight. */
export function laneNames(target, lanes, view, height) {
  const hidden = view.x < -4;
  target.replaceChildren(
    ...(hidden ? placed(lanes, view, height) : []).map(({ name, y }) => {
      const made = element("span", "ein-tg-name", name);
      made.style.top = `${y}px`;
      return made;
    }),
  );
}

// The simulated run in lanes, a site each: kernels filled, what arrives as a thin bar below them.

import { colour, element } from "./parts.js";

const SVG = "http://www.w3.org/2000/svg";
/** Units of the picture that all of the time is wide. */
const WIDE = 1000;

/** The height of a lane in pixels when there are so many sites. */
export function laneHeight(sites) {
  return Math.max(Math.min(Math.floor(170 / sites), 20), 5);
}

function shape(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function bar([site, source, start, stop, keys, title], { wall, colours }, lane) {
  const moving = source !== null;
  const made = shape("rect", {
    x: (start / wall) * WIDE,
    y: site * (lane + 2) + (moving ? lane * 0.72 : 0),
    width: Math.max(((stop - start) / wall) * WIDE, 0.6),
    height: lane * (moving ? 0.28 : 0.68),
    "data-keys": keys,
  });
  made.style.fill = colour(colours[moving ? source : site]);
  if (title) {
    const words = shape("title", {});
    words.textContent = title;
    made.append(words);
  }
  return made;
}

/** Puts the run into `target`. */
export function showStrip(target, strip) {
  const lane = laneHeight(strip.sites);
  const height = strip.sites * (lane + 2);
  const svg = shape("svg", {
    viewBox: `0 0 ${WIDE} ${height}`,
    preserveAspectRatio: "none",
    height,
    role: "img",
    "aria-label": `simulated run of ${strip.wall_text} on ${strip.sites} sites`,
    class: "ein-strip-bars",
    "data-rove": "",
  });
  for (let site = 0; site < strip.sites; site++) {
    svg.append(shape("rect", { x: 0, y: site * (lane + 2), width: WIDE, height: lane, class: "ein-lane" }));
  }
  for (const one of strip.bars) svg.append(bar(one, strip, lane));
  const every = lane >= 13 ? 1 : Math.ceil(15 / (lane + 2));
  const names = element("div", "ein-strip-names");
  const busy = element("div", "ein-strip-names");
  for (const [column, text] of [
    [names, (site) => `site ${site}`],
    [busy, (site) => strip.busy[site]],
  ]) {
    column.style.height = `${height}px`;
    for (let site = 0; site < strip.sites; site += every) {
      const name = element("span", "", text(site));
      name.style.top = `${site * (lane + 2) + lane / 2}px`;
      if (column === names) name.dataset.keys = `site:${site}`;
      column.append(name);
    }
  }
  const axis = element("div", "ein-strip-axis");
  axis.append(
    element("span", "", "0"),
    element("span", "", `${strip.wall_text}, simulated`),
    element("span", "", "busy"),
  );
  target.replaceChildren(names, svg, busy, axis);
}

// The user's own text, in segments that light up; labels that are cut carry their number of parts.

import { element } from "./parts.js";

/** Puts `segments` (from Python) into `target`. */
export function showFormula(target, segments) {
  target.replaceChildren(
    ...segments.map((segment) => {
      const made = element("span", "", segment.text);
      if (segment.keys.length) made.dataset.keys = segment.keys.join(" ");
      else made.className = "ein-plain";
      if (segment.parts > 1) {
        made.className = "ein-cut";
        made.style.setProperty("--ein-cut", segment.colour);
        made.append(element("sub", "", String(segment.parts)));
        made.setAttribute("aria-label", `label ${segment.text}, cut into ${segment.parts} parts`);
      } else if (segment.keys.length) {
        made.setAttribute("aria-label", segment.text.trim());
      }
      return made;
    }),
  );
}

// Where the lanes of a timeline are, and which times its pixels are.

/** The heights of what is in a lane, for so many lanes: fewer pixels where there are more. */
export function laneSizes(lanes) {
  if (lanes <= 10) return { bars: 22, moves: 8, memory: 18, gap: 9 };
  if (lanes <= 24) return { bars: 15, moves: 5, memory: 9, gap: 5 };
  if (lanes <= 72) return { bars: 9, moves: 3, memory: 0, gap: 3 };
  return { bars: 4, moves: 2, memory: 0, gap: 1 };
}

/** Lanes from top to bottom: for every run a heading and a lane a site, as {run, site, top, sizes}. */
export function layout(runs, sites) {
  const sizes = laneSizes(runs * sites);
  const height = sizes.bars + sizes.moves + (sizes.memory ? sizes.memory + 1 : 0) + sizes.gap;
  const [lanes, headings] = [[], []];
  let top = 6;
  for (let run = 0; run < runs; run++) {
    headings.push({ run, top });
    top += 27;
    for (let site = 0; site < sites; site++) {
      lanes.push({ run, site, top, height });
      top += height;
    }
    top += 6;
  }
  return { lanes, headings, sizes, height: top };
}

/** Which lanes have a name: all, or every 5th or 10th where they are thin. */
export function isNamed(site, sizes, sites) {
  const height = sizes.bars + sizes.moves + sizes.memory;
  return height >= 14 || site % (sites <= 100 ? 5 : 10) === 0;
}

/** The window [from, to] zoomed by `factor` around the time `at`, within [0, end] and no narrower than 1 ns. */
export function zoomTime([from, to], factor, at, end) {
  const least = Math.max(end * 1e-6, 1e-9);
  const span = Math.min(Math.max((to - from) / factor, least), end * 1.02);
  const share = (at - from) / (to - from);
  return panTime([at - share * span, at + (1 - share) * span], 0, end);
}

/** The window moved by `dt`, not beyond the run. */
export function panTime([from, to], dt, end) {
  const span = to - from;
  const start = Math.min(Math.max(from + dt, 0), Math.max(end * 1.02 - span, 0));
  return [start, start + span];
}

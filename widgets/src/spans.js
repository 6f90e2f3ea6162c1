// The formula as the user wrote it, cut where spans begin and end, so that each of them can be lit.

/** The ranges of `text` that are indentation which all its lines have, and blank lines before the first one. */
export function margins(text) {
  const lines = [];
  let at = 0;
  for (const line of text.split("\n")) {
    lines.push([at, line]);
    at += line.length + 1;
  }
  const full = lines.filter(([, line]) => line.trim());
  const indent = Math.min(...full.map(([, line]) => line.length - line.trimStart().length));
  const first = full[0]?.[0] ?? 0;
  return lines.map(([start, line]) =>
    start < first ? [start, start + line.length + 1] : [start, start + Math.min(indent, line.length)],
  );
}

/**
 * Pieces of `text` as {text, spans}, without what `margins` says; `spans` are those [start, stop] that a piece
 * lies in, the shortest first.
 */
export function pieces(text, spans) {
  const dropped = margins(text).filter(([from, to]) => to > from);
  const cuts = new Set([0, text.length, ...spans.flat(), ...dropped.flat()]);
  const at = [...cuts].filter((cut) => cut >= 0 && cut <= text.length).sort((a, b) => a - b);
  const inside = (ranges, start, stop) => ranges.filter(([from, to]) => from <= start && stop <= to);
  return at
    .slice(0, -1)
    .map((start, i) => [start, at[i + 1]])
    .filter(([start, stop]) => !inside(dropped, start, stop).length)
    .map(([start, stop]) => ({
      text: text.slice(start, stop),
      spans: inside(spans, start, stop).sort((a, b) => a[1] - a[0] - (b[1] - b[0])),
    }));
}

/** A <pre> of the formula whose spans have keys. */
export function formula(text, spans) {
  const pre = document.createElement("pre");
  pre.className = "ein-mono ein-spans";
  for (const piece of pieces(text.trimEnd(), spans)) {
    if (!piece.spans.length) {
      pre.append(piece.text);
      continue;
    }
    const span = document.createElement("span");
    span.textContent = piece.text;
    span.dataset.keys = piece.spans.map(([from, to]) => `span:${from}-${to}`).join(" ");
    pre.append(span);
  }
  return pre;
}

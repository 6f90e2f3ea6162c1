// Times for readers, as Python's `amounts.seconds` writes them, and round marks for an axis.

const UNITS = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
];

/** `time` in seconds with three digits and a unit. */
export function seconds(time) {
  if (time <= 0) return "0 s";
  const [size, unit] = UNITS.find(([u]) => time >= u * 0.9995) ?? UNITS.at(-1);
  const value = time / size;
  const decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(decimals)} ${unit}`;
}

/** Round times from `from` to `to`, about `wanted` of them, as {at, text}; the last one has the unit. */
export function marks(from, to, wanted) {
  const span = to - from;
  if (!(span > 0)) return [];
  const rough = span / Math.max(wanted, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const [size, unit] = UNITS.find(([u]) => to >= u) ?? UNITS.at(-1);
  const decimals = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
  const found = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to * (1 + 1e-12); k++) {
    found.push({ at: k * step, text: ((k * step) / size).toFixed(decimals) });
  }
  if (found.length) found.at(-1).text += ` ${unit}`;
  return found;
}

// Sliders over many orders of magnitude: 1, 2 and 5 times each power of ten.

/** The stops from `least` to `most`, with `value` among them. */
export function stops(least, most, value) {
  const found = [];
  for (let e = Math.floor(Math.log10(least)); e <= Math.ceil(Math.log10(most)); e++) {
    for (const m of [1, 2, 5]) {
      const stop = Number(`${m}e${e}`);
      if (stop >= least && stop <= most) found.push(stop);
    }
  }
  if (Number.isFinite(value) && !found.includes(value)) found.push(value);
  return found.sort((a, b) => a - b);
}

/** `value` in three digits with a decimal prefix: 4 GB/s, 50 µs. */
export function withUnit(value, unit) {
  const prefixes = [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
    [1, ""],
    [1e-3, "m"],
    [1e-6, "µ"],
    [1e-9, "n"],
  ];
  if (value === 0) return `0 ${unit}`;
  const [size, prefix] = prefixes.find(([s]) => value >= s * 0.9995) ?? prefixes.at(-1);
  return `${Number((value / size).toPrecision(3))} ${prefix}${unit}`;
}

/** The next of `steps` above or below `value` (`by` is 1 or -1); `value` itself where there is none. */
export function nextStep(steps, value, by) {
  const rest = by > 0 ? steps.filter((s) => s > value) : steps.filter((s) => s < value).reverse();
  return rest[0] ?? value;
}

"""Numbers as a reader wants them: three digits and a unit.

>>> nbytes(1_210_000_000), seconds(0.0462), many(2, "task"), many(1, "reduction")
('1.21 GB', '46.2 ms', '2 tasks', '1 reduction')
"""

from __future__ import annotations

from collections.abc import Sequence

_BYTES = ((1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def digits(value: float) -> str:
    """Return `value`, below 1000, with three significant digits."""
    for decimals, below in ((2, 9.995), (1, 99.95)):
        if abs(value) < below:
            return f"{value:.{decimals}f}"
    return f"{value:.0f}"


def nbytes(count: float) -> str:
    """Return a number of bytes with a decimal unit; below 1000 it is exact."""
    for size, unit in _BYTES:
        if count >= size * 0.9995:
            return f"{digits(count / size)} {unit}"
    return f"{count:.0f} B"


def operations(count: float) -> str:
    """Return a number of scalar operations: ``1.07 Gflop``."""
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size * 0.9995:
            return f"{digits(count / size)} {prefix}flop"
    return f"{count:.0f} flop"


def seconds(time: float) -> str:
    """Return a time with a unit from nanoseconds to hours."""
    if time >= 7200:
        return f"{digits(time / 3600)} h"
    if time >= 120:
        return f"{digits(time / 60)} min"
    for size, unit in _SECONDS:
        if time >= size * 0.9995:
            return f"{digits(time / size)} {unit}"
    return "0 s" if time <= 0 else f"{digits(time * 1e9)} ns"


def count(n: int) -> str:
    """Return a whole number with its thousands parted."""
    return f"{n:,}"


def many(n: int, noun: str) -> str:
    """Return a number and its noun, in the plural where it needs one."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def share(part: float, whole: float) -> str:
    """Return `part` of `whole` as a percentage."""
    return f"{100 * part / whole:.0f}%" if whole else "0%"


def shape(extents: Sequence[int]) -> str:
    """Return extents as ``4096 × 4096``; of none, ``scalar``."""
    return " × ".join(map(str, extents)) or "scalar"


def ranges(numbers: Sequence[int]) -> str:
    """Return sorted whole numbers with runs contracted: ``0–3, 7``."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)

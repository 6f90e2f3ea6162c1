"""The numbers of an array as a reader writes them into squares: short, in one line each.

>>> cells(np.array([[1.0, -0.5], [np.inf, 1 / 3]]))
['1', '−0.5', '∞', '0.333']
"""

from __future__ import annotations

from math import isfinite, isnan

import numpy as np


def cells(array: np.ndarray) -> list[str]:
    """Return every element of `array` as text, the last dimension fastest."""
    return [cell(value) for value in np.asarray(array).reshape(-1)]


def cell(value: np.generic) -> str:
    """Return one element as text: three digits, no sign before a zero."""
    if value.dtype.kind == "c":
        real, imaginary = _real(float(value.real)), _real(float(value.imag))
        sign = "" if imaginary.startswith("−") else "+"
        return real if imaginary == "0" else f"{real}{sign}{imaginary}i"
    if value.dtype.kind in "bui":
        return str(int(value)).replace("-", "−")
    return _real(float(value))


def _real(x: float) -> str:
    if isnan(x):
        return "nan"
    size = abs(x)
    if not isfinite(x):
        text = "∞"
    elif size < 1e5 and size == int(size):
        text = str(int(size))
    elif 100 <= size < 1e5:
        text = f"{size:.0f}"
    elif 1e-3 <= size < 100:
        text = f"{size:.3g}"
    else:
        mantissa, _, power = f"{size:.1e}".partition("e")
        text = f"{mantissa.removesuffix('.0')}e{int(power)}"
    return f"−{text}" if x < 0 and text != "0" else text

"""The dtypes of the language and how they mix.

Contract: numpy's rules (NEP 50), with one reading of our own: what is not a tensor is *weak*.  A literal,
a label used as a value, ``extent(d)``, a Python scalar of the caller's scope, and any function of these
takes the width of the tensor it meets, as a Python scalar does: ``S[q] / sqrt(extent(d))`` stays float32.
A weak value that becomes a tensor of its own gets numpy's default width (int64, float64, complex128).

>>> promote([ScalarType(np.dtype("f4")), WEAK_INT])
ScalarType(dtype=dtype('float32'), weak=False)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import ml_dtypes
import numpy as np

from einsummable.errors import DtypeError

BF16 = np.dtype(ml_dtypes.bfloat16)
BOOL, I32, I64 = np.dtype(np.bool_), np.dtype(np.int32), np.dtype(np.int64)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
C64, C128 = np.dtype(np.complex64), np.dtype(np.complex128)

#: The dtypes that have a name in the language.  Others that numpy has (uint8, longdouble …) are
#: carried along by numpy's name; only numbers and booleans are tensors at all.
NAMED: dict[str, np.dtype] = {
    "f16": F16, "bf16": BF16, "f32": F32, "f64": F64, "c64": C64, "c128": C128,
    "i32": I32, "i64": I64, "bool": BOOL,
}  # fmt: skip
_NAME = {dtype: name for name, dtype in NAMED.items()}
#: The other numbers that numpy has, by its names: int8, uint64, longdouble …
UNNAMED: dict[str, np.dtype] = {
    dtype.name: dtype
    for dtype in map(np.dtype, np.typecodes["AllInteger"] + np.typecodes["AllFloat"])
    if dtype not in _NAME
}

#: Kinds of numbers, narrowest first; a weak value only ever raises the kind.
KINDS = "bifc"
_DEFAULT = {"b": BOOL, "i": I64, "f": F64, "c": C128}


@dataclass(frozen=True, slots=True)
class ScalarType:
    """The type of a scalar value: its dtype, and whether it is weak (see the module's contract)."""

    dtype: np.dtype
    weak: bool = False

    def __str__(self) -> str:
        return f"weak {kind(self.dtype)}" if self.weak else name(self.dtype)


WEAK_BOOL, WEAK_INT, WEAK_FLOAT, WEAK_COMPLEX = (ScalarType(_DEFAULT[k], weak=True) for k in KINDS)


def kind(dtype: np.dtype) -> str:
    """Return ``b``, ``i``, ``f`` or ``c``; raise `DtypeError` where a dtype is no number."""
    if dtype == BF16:
        return "f"
    found = "i" if dtype.kind == "u" else dtype.kind
    if found not in KINDS:
        raise DtypeError(
            f"dtype {dtype} is neither a number nor a boolean", notes=(f"known: {', '.join(NAMED)}",)
        )
    return found


def name(dtype: np.dtype) -> str:
    """Return the language's name of `dtype`, numpy's where the language has none."""
    return _NAME.get(dtype, dtype.name)


def parse(text: str) -> np.dtype:
    """Return the dtype called `text` (``f32``, or any name numpy knows, such as ``float32``)."""
    if text in NAMED:
        return NAMED[text]
    notes = (f"known: {', '.join(NAMED)}",)
    try:
        dtype = np.dtype(text)
    except TypeError as error:
        raise DtypeError(f"no dtype is called {text!r}", notes=notes) from error
    if dtype.kind not in "biufc":
        raise DtypeError(f"dtype {text!r} is neither a number nor a boolean", notes=notes)
    return dtype


def of_value(value: object) -> ScalarType:
    """Return the type of a scalar: weak for Python's own, strong for numpy's."""
    if isinstance(value, np.generic | np.ndarray):
        kind(value.dtype)
        return ScalarType(value.dtype)
    if isinstance(value, int) and not fits(value, I64):
        notes = (f"write it as a real number: {float(value):g}",) if abs(value) < 2**1023 else ()
        raise DtypeError(f"{_shortened(value)} does not fit i64, the widest whole number", notes=notes)
    for python, weak in ((bool, WEAK_BOOL), (int, WEAK_INT), (float, WEAK_FLOAT), (complex, WEAK_COMPLEX)):
        if isinstance(value, python):
            return weak
    raise DtypeError(f"a value of type {type(value).__name__} is neither a number nor a boolean")


def fits(value: int, dtype: np.dtype) -> bool:
    """Return whether `dtype`, of integers, holds `value`; a dtype of another kind takes any."""
    if dtype.kind not in "iu":
        return True
    return np.iinfo(dtype).min <= value <= np.iinfo(dtype).max


def no_fit(value: int, dtype: np.dtype) -> DtypeError:
    """Return the complaint that `dtype` does not hold the number `value` that it meets."""
    notes = (f"cast the {name(dtype)} first, as in i64(x)",)
    return DtypeError(f"{_shortened(value)} does not fit {name(dtype)}", notes=notes)


def _shortened(value: int) -> str:
    return str(value) if abs(value) < 10**40 else f"an integer of {value.bit_length()} bits"


def _promote_pair(a: np.dtype, b: np.dtype) -> np.dtype:
    try:
        return np.promote_types(a, b)
    except TypeError:  # bfloat16 beside float16 or an integer: the least that holds both, as for float16
        return F32 if kind(a) == kind(b) == "f" else F64


def promote(types: Iterable[ScalarType]) -> ScalarType:
    """Return the common type of `types` (at least one) by NEP 50."""
    types = tuple(types)
    weakest = max((KINDS.index(kind(t.dtype)) for t in types if t.weak), default=0)
    strong = [t.dtype for t in types if not t.weak]
    if not strong:
        return ScalarType(_DEFAULT[KINDS[weakest]], weak=True)
    common = reduce(_promote_pair, strong)
    have = KINDS.index(kind(common))
    if have >= weakest:
        return ScalarType(common)
    if KINDS[weakest] == "c" and KINDS[have] == "f":
        return ScalarType(complex_of(common))
    return ScalarType(_DEFAULT[KINDS[weakest]])


def complex_of(dtype: np.dtype) -> np.dtype:
    """Return the complex dtype whose parts are `dtype`, or the narrowest that holds them."""
    if kind(dtype) == "c":
        return dtype
    if dtype.char == "g":
        return np.dtype(np.clongdouble)
    return C64 if dtype in (F16, BF16, F32) else C128


def real_of(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the real part of a complex dtype; other dtypes are their own."""
    return np.empty(0, dtype).real.dtype if kind(dtype) == "c" else dtype


def inexact_of(type_: ScalarType) -> ScalarType:
    """Return the type of ``sqrt`` and its like: integers and booleans become float64 (weak stays weak)."""
    if kind(type_.dtype) in "fc":
        return type_
    return ScalarType(F64, type_.weak)


def accumulator(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which `dtype` is accumulated: float32 for the 16-bit floats."""
    return F32 if dtype in (F16, BF16) else dtype

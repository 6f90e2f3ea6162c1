"""What a caller gives a program: arrays, scalars, shapes.

Contract: an array is referred to, never copied or written to, unless its byte order is foreign; what is no
array of numbers is refused in words that name it.  Python's own data (lists, numbers) becomes an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from einsummable import dtypes
from einsummable.errors import DtypeError, ParseError, ShapeError
from einsummable.language.indices import InputSpec
from einsummable.language.syntax import MAX_EXTENT

#: Scalars of the caller's scope: read when a program runs.
_SCALARS = (bool, int, float, complex, np.generic)


@dataclass(frozen=True, slots=True)
class Given:
    """What is given by name: specs of inputs, scalars, the data there is of both, and what the rest is."""

    specs: dict[str, InputSpec] = field(default_factory=dict)
    scalars: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    rest: dict[str, str] = field(default_factory=dict)


def read_namespace(inputs: object) -> Mapping[str, Any]:
    """Return `inputs`, a mapping or None, as a mapping; raise `ParseError` where it is neither."""
    if inputs is None:
        return {}
    if not isinstance(inputs, Mapping):
        notes = ("an input that is called 'inputs' goes into such a mapping: {'inputs': …}",)
        raise ParseError(f"inputs are arrays and scalars by name, not {described(inputs)}", notes=notes)
    return inputs


def sort_out(namespace: Mapping[str, Any], keywords: Mapping[str, Any]) -> Given:
    """Tell arrays from scalars from shapes.

    Parameters
    ----------
    namespace
        May hold anything: what is neither array nor scalar is only described.
    keywords
        Arrays, what numpy makes arrays of, scalars, and tuples of ints, which are shapes of float32 inputs.

    Raises
    ------
    DtypeError, ShapeError
        A keyword is none of these.
    """
    given = Given()
    for name, value in namespace.items():
        if isinstance(value, _SCALARS):
            given.scalars[name] = given.data[name] = value
        elif _is_array(value):
            given.specs[name] = InputSpec(tuple(value.shape), _native(value.dtype))
            given.data[name] = value
        else:
            given.rest[name] = described(value)
    for name, value in keywords.items():
        if isinstance(value, _SCALARS):
            given.scalars[name] = given.data[name] = value
        elif isinstance(value, tuple) and all(isinstance(n, int | np.integer) for n in value):
            given.specs[name] = InputSpec(tuple(_extent(name, value, n) for n in value), dtypes.F32)
        else:
            array = as_array(name, value)
            given.specs[name] = InputSpec(tuple(array.shape), array.dtype)
            given.data[name] = array
    return given


def _extent(name: str, shape: tuple, n: Any) -> int:
    if isinstance(n, bool) or not 0 <= n <= MAX_EXTENT:
        raise ShapeError(f"the shape of {name} is {shape}, and an extent is a whole number from 0, not {n}")
    return int(n)


def _is_array(value: Any) -> bool:
    """Return whether `value` is an array of numbers, here or on engines."""
    dtype = getattr(value, "dtype", None)
    if not isinstance(dtype, np.dtype) or not isinstance(getattr(value, "shape", None), tuple):
        return False
    return (dtype == dtypes.BF16 or dtype.kind in "biufc") and not np.ma.is_masked(value)


def described(value: object) -> str:
    """Return what `value`, which is no array of numbers, is."""
    if np.ma.is_masked(value):
        return "an array with masked elements (fill them, as in x.filled(0))"
    if isinstance(getattr(value, "dtype", None), np.dtype):
        return f"an array of {value.dtype}"
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _native(dtype: np.dtype) -> np.dtype:
    return dtype.newbyteorder("=")


def _array(name: str, value: Any) -> np.ndarray:
    """Return `value` as an array of numbers, raise `ShapeError` or `DtypeError` where it is none."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        message = f"{name} is {described(value)} of which numpy makes no array"
        raise ShapeError(message, notes=(str(error),)) from error
    if not _is_array(array) or np.ma.is_masked(value):
        raise DtypeError(f"{name} is no array of numbers but {described(value)}")
    return array


def as_array(name: str, value: Any, dtype: np.dtype | None = None) -> Any:
    """Return `value` as something with a shape and a native dtype.

    Parameters
    ----------
    name
        What messages call it.
    value
        An array, a distributed tensor, or what numpy makes an array of.
    dtype
        What Python's own data is cast to, where that changes no kind.

    Raises
    ------
    DtypeError, ShapeError
        It is no array of numbers, or a number does not fit `dtype`.
    """
    if hasattr(value, "layout"):
        return value
    array = _array(name, value)
    if dtype is None or hasattr(value, "dtype"):
        return array.astype(_native(array.dtype), copy=False)
    if dtypes.KINDS.index(dtypes.kind(array.dtype)) > dtypes.KINDS.index(dtypes.kind(dtype)):
        return array
    try:
        return np.asarray(value, dtype)
    except OverflowError as error:
        raise DtypeError(f"{name} does not fit {dtypes.name(dtype)}: {error}") from error

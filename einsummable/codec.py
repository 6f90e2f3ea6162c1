"""JSON for the frozen dataclasses that programs are made of.

Contract: ``from_json(type(x), to_json(x)) == x`` for every IR; members of a union carry their class name.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar

import cattrs
import numpy as np
from cattrs.strategies import configure_tagged_union

from einsummable import dtypes
from einsummable.errors import ParseError, PlanError

T = TypeVar("T")
_UNIONS: list[Any] = []


def register_union(union: UnionType) -> UnionType:
    """Declare that the members of `union` are told apart by a ``type`` field in JSON; return it."""
    _UNIONS.append(union)
    _converter.cache_clear()
    return union


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter()
    converter.register_unstructure_hook(np.dtype, dtypes.name)
    converter.register_structure_hook(np.dtype, lambda text, _: dtypes.parse(text))
    for union in _UNIONS:
        configure_tagged_union(union, converter, tag_name="type")
    return converter


def to_json(value: object) -> str:
    """Return `value`, an IR of the package, as JSON text.

    Raises
    ------
    ParseError
        It is something else.

    Examples
    --------
    >>> to_json(dtypes.WEAK_INT)
    '{"dtype": "i64", "weak": true}'
    """
    try:
        return json.dumps(_converter().unstructure(value, unstructure_as=type(value)))
    except TypeError as error:
        name = type(value).__name__
        raise ParseError(f"{name} is no graph, plan, placement or task graph", notes=(str(error),)) from error


def from_json(cls: type[T], text: str) -> T:
    """Return the value of class `cls` that `to_json` wrote as `text`.

    Raises
    ------
    ParseError
        `text` is not what `to_json` writes for a `cls`.

    Examples
    --------
    >>> from_json(dtypes.ScalarType, '{"dtype": "f32", "weak": false}')
    ScalarType(dtype=dtype('float32'), weak=False)
    """
    try:
        return _converter().structure(json.loads(text), cls)
    except (ValueError, TypeError, KeyError, cattrs.BaseValidationError) as error:
        raise ParseError(f"the text is no {cls.__name__} in JSON", notes=(str(error),)) from error


def write(value: object, path: str | os.PathLike[str]) -> None:
    """Write `value`, an IR of the package, to the file `path` as JSON."""
    Path(path).write_text(to_json(value) + "\n", encoding="utf-8")


def read(cls: type[T], path: str | os.PathLike[str], what: str) -> T:
    """Return the value of class `cls` that `write` wrote to the file `path`; errors call it `what`.

    Raises
    ------
    PlanError
        There is no such file, or it holds no such value.
    """
    try:
        return from_json(cls, Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise PlanError(f"the {what} {os.fspath(path)!r} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, ParseError) as error:
        raise PlanError(f"the file {os.fspath(path)!r} holds no {what}", notes=(str(error),)) from error

"""JSON for the frozen dataclasses that programs are made of.

Contract: ``from_json(type(x), to_json(x)) == x`` for every IR; members of a union carry their class name.
"""

from __future__ import annotations

import json
from functools import cache
from types import UnionType
from typing import Any, TypeVar

import cattrs
import numpy as np
from cattrs.strategies import configure_tagged_union

from einsummable import dtypes

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
    """Return `value`, an IR of the package, as JSON text."""
    return json.dumps(_converter().unstructure(value, unstructure_as=type(value)))


def from_json(cls: type[T], text: str) -> T:
    """Return the value of class `cls` that `to_json` wrote as `text`."""
    return _converter().structure(json.loads(text), cls)

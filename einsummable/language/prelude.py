"""The macros that every program has, written in the language itself (``prelude.ein``).

>>> "softmax" in macro_names()
True
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from einsummable.language.parser import parse
from einsummable.language.syntax import MacroDef


@cache
def prelude() -> Mapping[str, MacroDef]:
    """Return the macros of the prelude by name."""
    program = parse(files("einsummable.language").joinpath("prelude.ein").read_text(encoding="utf-8"))
    return MappingProxyType({s.name: s for s in program.statements if isinstance(s, MacroDef)})


def macro_names() -> tuple[str, ...]:
    """Return the names of the prelude's macros."""
    return tuple(prelude())

"""What may be said about planning and running besides the inputs, and its refusals in words.

Contract: an option that is something else, an array for instance, was probably meant as an input of the same
name: the error says where such an input goes.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping

import numpy as np

from einsummable.arguments import described
from einsummable.errors import PlanError
from einsummable.planner.hardware import Hardware
from einsummable.planner.plan import Plan

#: What several names may be given as.
_NAMES = tuple | list | set | frozenset


def check_run_options(
    keep: object, donate: object, timeout: object, observers: object, progress: object
) -> None:
    """Raise `PlanError` where an option of `run` is something else, an input of that name perhaps."""
    number = timeout is None or isinstance(timeout, int | float)
    heard = isinstance(observers, tuple | list) and all(map(callable, observers))
    for what, value, right, wanted in (
        ("keep", keep, isinstance(keep, bool | _NAMES), "True, False or names of outputs"),
        ("donate", donate, isinstance(donate, _NAMES) or not donate, "names of inputs"),
        ("timeout", timeout, number, "a number of seconds, or None"),
        ("observers", observers, heard, "a list of functions of one event"),
        ("progress", progress, isinstance(progress, bool), "True or False"),
    ):
        if not right:
            notes = (f"an input that is called {what!r} goes into a mapping: run({{{what!r}: …}})",)
            raise PlanError(f"{what} must be {wanted}, not {described(value)}", notes=notes)


def positive(what: str, n: int) -> int:
    """Return the option `what`, a whole number from 1; raise `PlanError` where it is none."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        notes = ()
        if isinstance(n, np.ndarray | tuple):
            notes = (f"an input that is called {what!r} goes into a mapping: compile(…, {{{what!r}: …}})",)
        raise PlanError(f"{what} must be a whole number from 1, not {reprlib.repr(n)}", notes=notes)
    return int(n)


def check_plan_options(hardware: object, memory: object, pins: object, plan: object) -> None:
    """Raise `PlanError` where an option of `compile` is something else, an input of that name perhaps."""
    number = isinstance(memory, int | float | np.number | str) and not isinstance(memory, bool)
    for what, value, right, wanted in (
        ("hardware", hardware, isinstance(hardware, Hardware), "a Hardware"),
        ("memory", memory, number, "a number of bytes, or text like '2GB'"),
        ("pins", pins, isinstance(pins, Mapping), "a mapping of names to parts by label"),
        ("plan", plan, isinstance(plan, Plan | str | os.PathLike), "a Plan or the path of one"),
    ):
        if value is not None and not right:
            notes = (f"an input that is called {what!r} goes into a mapping: compile(…, {{{what!r}: …}})",)
            raise PlanError(f"{what} must be {wanted}, not {described(value)}", notes=notes)

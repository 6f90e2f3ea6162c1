"""Options that magics share, and what they mean: from the line after a magic to arguments of `compile`.

Contract: `planning` decorates a magic with the options of a plan; `plan_arguments` reads them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument

from einsummable.errors import UnknownNameError, nearest
from einsummable.planner import hardware as machines
from einsummable.planner.hardware import Hardware

_PLANNING = (
    argument("--sites", type=int, help="how many sites to plan for"),
    argument("-p", type=int, help="how many kernel calls to cut each node into (default: the sites)"),
    argument("--memory", metavar="SIZE", help="what a site may hold, as in 2GB; the rest goes to disk"),
    argument(
        "--objective",
        choices=["bytes", "time"],
        help="take the plan that moves the fewest bytes, or the one with the least simulated time "
        "(default: time where --hosts or --hardware say what to simulate, else bytes)",
    ),
    argument("--hosts", type=int, help="plan for sites on so many hosts, joined by 100 Gbit/s"),
    argument(
        "--hardware", metavar="NAME", help="plan for a Hardware of the notebook, as ein.calibrate measures it"
    ),
    argument(
        "--pin",
        action="append",
        default=[],
        metavar="CUT",
        help="cut a tensor so, as in H:b=2,h=4 (labels not named are not cut); may be given several times",
    ),
    argument("--plan-from", metavar="FILE", help="use the plan that save_plan wrote"),
)


def planning(function: Callable) -> Callable:
    """Give a magic the options of a plan."""
    for option in reversed(_PLANNING):
        function = option(function)
    return function


def plan_arguments(args: argparse.Namespace, namespace: Mapping[str, Any], sites: int) -> dict[str, Any]:
    """Return the arguments of `compile` that the options of `planning` stand for.

    Parameters
    ----------
    namespace
        The notebook's names.
    sites
        How many there are where the options do not say.

    Raises
    ------
    UsageError
        Options contradict each other, or a cut cannot be read.
    UnknownNameError
        There is no hardware of that name.
    """
    hardware = _hardware(args, namespace, args.sites or sites)
    if hardware is not None and args.objective == "bytes":
        raise UsageError("the fewest bytes are the same on any hardware: leave out one of the two")
    return {
        "sites": args.sites,
        "p": args.p,
        "memory": args.memory,
        "hardware": hardware,
        "pins": _pins(args.pin) or None,
        "plan": args.plan_from,
    }


def _hardware(args: argparse.Namespace, namespace: Mapping[str, Any], sites: int) -> Hardware | None:
    if args.hardware is not None:
        if args.hosts is not None:
            raise UsageError("--hardware says on which hosts sites are: leave out --hosts")
        found = namespace.get(args.hardware)
        if not isinstance(found, Hardware):
            known = [name for name, value in namespace.items() if isinstance(value, Hardware)]
            notes = nearest(args.hardware, known) or ("measure one with ein.calibrate(executor)",)
            raise UnknownNameError(f"{args.hardware!r} is no Hardware of this notebook", notes=notes)
        return found
    if args.hosts is not None and not 1 <= args.hosts <= sites:
        raise UsageError(f"{sites} sites cannot be on {args.hosts} hosts")
    if args.hosts is not None and args.hosts > 1:
        of = tuple(site * args.hosts // sites for site in range(sites))
        return replace(machines.cluster(args.hosts, 1), hosts=of)
    return machines.host(sites) if args.hosts is not None or args.objective == "time" else None


def _pins(texts: list[str]) -> dict[str, dict[str, int]]:
    pins: dict[str, dict[str, int]] = {}
    for text in texts:
        name, _, cuts = text.partition(":")
        parts = [cut.partition("=") for cut in cuts.split(",")]
        if not name or not all(label and n.isdecimal() for label, _, n in parts):
            raise UsageError(f"--pin takes a tensor and its cuts, as in H:b=2,h=4, not {text!r}")
        pins.setdefault(name, {}).update({label: int(n) for label, _, n in parts})
    return pins

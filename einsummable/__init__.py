"""Einsummable: write *what* to compute; the software decides *how*, shows it, and runs it.

>>> import numpy as np, einsummable as ein
>>> ein.compile("C[i,k] = A[i,j] * B[j,k]", A=np.eye(2), B=np.ones((2, 3)), sites=2).run()["C"].shape
(2, 3)

======================  ====================================================================
`compile`               a program's text and its inputs → `Compiled`: graph, plan, tasks, run
`einsum`                what ``numpy.einsum`` takes, at once
`tensor`, `run`         lazy arrays that numpy's own functions build programs of
`grad`                  gradients of lazy tensors; `differentiate` makes a graph that has them
`Trainer`               a loss and weights → weights that are better, a step at a time
`Cluster`, `connect`    engines to run on, started here or found running
`memmap`                a tensor in a file, of which every engine reads its own blocks
`calibrate`             measures what the sites can do → `Hardware`, for plans that take the least time
`to_json`, `from_json`  graphs, plans, placements and task graphs as text
======================  ====================================================================

In a notebook, ``%load_ext einsummable`` brings ``%%ein``, ``%ein_plan``, ``%ein_run``, ``%ein_explain`` and
``%ein_cluster``.  Every error on purpose is an `EinsummableError`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from einsummable.autodiff import differentiate
    from einsummable.calibration import calibrate
    from einsummable.codec import from_json, to_json
    from einsummable.errors import (
        CapacityError,
        DtypeError,
        EinsummableError,
        EngineError,
        ParseError,
        PlanError,
        ShapeError,
        TaskError,
        UnknownNameError,
    )
    from einsummable.graph import EinGraph
    from einsummable.mapped import memmap
    from einsummable.pipeline import (
        Compiled,
        Tensor,
        compile,  # noqa: A004 - always written qualified
        einsum,
        grad,
        run,
        tensor,
    )
    from einsummable.planner.hardware import Hardware
    from einsummable.planner.plan import Placement, Plan
    from einsummable.runtime.cluster import Cluster, connect
    from einsummable.taskgraph.tasks import TaskGraph
    from einsummable.training import Trainer

__version__ = "0.1.0"

#: Names are loaded when they are first used: an engine needs the runtime and the kernels, and neither the
#: language nor the planner nor the pictures.
_HOMES = {
    "autodiff": ["differentiate"],
    "calibration": ["calibrate"],
    "codec": ["from_json", "to_json"],
    "errors": [
        "CapacityError",
        "DtypeError",
        "EinsummableError",
        "EngineError",
        "ParseError",
        "PlanError",
        "ShapeError",
        "TaskError",
        "UnknownNameError",
    ],
    "graph": ["EinGraph"],
    "mapped": ["memmap"],
    # Lazy tensors, too: the pipeline tells them how to run.
    "pipeline": ["Compiled", "Tensor", "compile", "einsum", "grad", "run", "tensor"],
    "planner.hardware": ["Hardware"],
    "planner.plan": ["Placement", "Plan"],
    "runtime.cluster": ["Cluster", "connect"],
    "taskgraph.tasks": ["TaskGraph"],
    "training": ["Trainer"],
}
_HOME = {name: f"einsummable.{module}" for module, names in _HOMES.items() for name in names}

__all__ = [
    "CapacityError",
    "Cluster",
    "Compiled",
    "DtypeError",
    "EinGraph",
    "EinsummableError",
    "EngineError",
    "Hardware",
    "ParseError",
    "Placement",
    "Plan",
    "PlanError",
    "ShapeError",
    "TaskError",
    "TaskGraph",
    "Tensor",
    "Trainer",
    "UnknownNameError",
    "calibrate",
    "compile",
    "connect",
    "differentiate",
    "einsum",
    "from_json",
    "grad",
    "memmap",
    "run",
    "tensor",
    "to_json",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'einsummable' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def load_ipython_extension(ipython: Any) -> None:
    """Register the magics: what ``%load_ext einsummable`` calls."""
    from einsummable import magics

    magics.load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Take the magics back, and stop the cluster they started: what ``%unload_ext einsummable`` calls."""
    from einsummable import magics

    magics.unload(ipython)

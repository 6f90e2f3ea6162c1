"""Einsummable: write *what* to compute; the software decides *how*, shows it, and runs it.

>>> import numpy as np, einsummable as ein
>>> ein.compile("C[i,k] = A[i,j] * B[j,k]", A=np.eye(2), B=np.ones((2, 3)), sites=2).run()["C"].shape
(2, 3)

In a notebook, ``%load_ext einsummable`` brings the cell magic ``%%ein``.
"""

from typing import Any

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
from einsummable.pipeline import Compiled, compile, einsum, run  # noqa: A004 - always written qualified
from einsummable.runtime.cluster import Cluster, connect
from einsummable.tensor import Tensor, tensor

__version__ = "0.1.0"

__all__ = [
    "CapacityError",
    "Cluster",
    "Compiled",
    "DtypeError",
    "EinGraph",
    "EinsummableError",
    "EngineError",
    "ParseError",
    "PlanError",
    "ShapeError",
    "TaskError",
    "Tensor",
    "UnknownNameError",
    "compile",
    "connect",
    "einsum",
    "from_json",
    "run",
    "tensor",
    "to_json",
]


def load_ipython_extension(ipython: Any) -> None:
    """Register the magics: what ``%load_ext einsummable`` calls."""
    from einsummable import magics

    magics.load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Take the magics back, and stop the cluster they started: what ``%unload_ext einsummable`` calls."""
    from einsummable import magics

    magics.unload(ipython)

"""Lazy tensors that numpy's own functions take, and the programs they become."""

from einsummable.lazy import functions, rearrange, ufuncs
from einsummable.lazy.gradients import grad
from einsummable.lazy.handle import Tensor, graph_of, set_runner
from einsummable.lazy.inputs import tensor
from einsummable.lazy.ufuncs import elementwise

__all__ = [
    "Tensor",
    "elementwise",
    "functions",
    "grad",
    "graph_of",
    "rearrange",
    "set_runner",
    "tensor",
    "ufuncs",
]

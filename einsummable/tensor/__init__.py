"""Lazy tensors that numpy's own functions take, and the programs they become."""

from einsummable.tensor import functions, ufuncs
from einsummable.tensor.handle import Tensor, graph_of, set_runner
from einsummable.tensor.inputs import tensor
from einsummable.tensor.ufuncs import elementwise

__all__ = ["Tensor", "elementwise", "functions", "graph_of", "set_runner", "tensor", "ufuncs"]

"""`Tensor`: a lazy array that writes down what numpy would do.

Contract: a tensor has shape and dtype at once and values only when it is run.  Its expression is wrapped in
a view, so that transposing, and adding or dropping unit dimensions, make no node.  numpy's protocols land in
two tables that `ufuncs` and `functions` fill; what is in neither is refused with a list of what is, and
nothing is ever computed silently.  dtypes are numpy's: Python scalars are weak, numpy's own are not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from einsummable import dtypes
from einsummable.errors import DtypeError, PlanError
from einsummable.functions import aggregate_dtype
from einsummable.graph import EinGraph
from einsummable.lazy.expression import Expression, Labels, Loop, Regroup, Source, build, strong
from einsummable.lazy.indexing import index
from einsummable.scalar import COPY, ScalarBuilder, ScalarExpr, result_dtype

#: ``ufunc.__name__`` → (ufunc, method, inputs, keywords) → Tensor; filled by `ufuncs`.
UFUNCS: dict[str, Callable[..., Tensor]] = {}
#: numpy's function → ours; filled by `functions`.
FUNCTIONS: dict[Callable, Callable[..., Any]] = {}

_LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


def labels_of(rank: int) -> Labels:
    """Return labels for `rank` dimensions: i, j, k and so on."""
    return tuple(_LETTERS[d] if d < len(_LETTERS) else f"d{d}" for d in range(rank))


def _operator(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def method(self: Tensor, other: Any) -> Tensor:
        return ufunc(self, other)

    return method


def _reflected(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def method(self: Tensor, other: Any) -> Tensor:
        return ufunc(other, self)

    return method


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tensor:
    """A lazy array.

    Attributes
    ----------
    expression
        What it is computed by.
    axes
        For each dimension the dimension of the expression, each once, or None for one that is broadcast.
    shape
        Its extents.
    """

    expression: Expression
    axes: tuple[int | None, ...]
    shape: tuple[int, ...]

    # ------------------------------------------------------------------------------- what it is

    @classmethod
    def of(cls, expression: Expression) -> Tensor:
        """Return `expression` as a tensor, dimension for dimension."""
        return cls(expression, tuple(range(len(expression.shape))), expression.shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self.expression.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def __repr__(self) -> str:
        name = (
            f" {self.expression.name}" if isinstance(self.expression, Source) and self.expression.name else ""
        )
        return f"<Tensor{name} {list(self.shape)} {dtypes.name(self.dtype)}, not computed>"

    def __len__(self) -> int:
        if not self.shape:
            raise DtypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    # ----------------------------------------------------------------------- from it to a program

    def graph(self, name: str = "out") -> EinGraph:
        """Return the program whose only result, called `name`, is this tensor."""
        return graph_of({name: self})[0]

    def run(self, **options: Any) -> np.ndarray:
        """Compute this tensor and return its array.

        Parameters
        ----------
        **options
            For the runner that the pipeline has set: sites, cluster.
        """
        if not _RUNNER:
            raise PlanError("nothing here can run a tensor: import einsummable.pipeline")
        return _RUNNER[0](self, **options)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise DtypeError(
            "a lazy tensor has no values before it is run", notes=("write x.run() for its array",)
        )

    def __bool__(self) -> bool:
        raise DtypeError(
            "the truth of a lazy tensor is not known before it is run",
            notes=("write np.where(c, a, b) for a choice, x.run() for values",),
        )

    # --------------------------------------------------------------------------- numpy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        if ufunc.__name__ not in UFUNCS:
            raise unsupported(f"np.{ufunc.__name__}")
        return UFUNCS[ufunc.__name__](ufunc, method, inputs, keywords)

    def __array_function__(self, function: Callable, types: Any, args: tuple, keywords: dict) -> Any:
        if function not in FUNCTIONS:
            raise unsupported(f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1))
        return FUNCTIONS[function](*args, **keywords)

    __add__, __radd__ = _operator(np.add), _reflected(np.add)
    __sub__, __rsub__ = _operator(np.subtract), _reflected(np.subtract)
    __mul__, __rmul__ = _operator(np.multiply), _reflected(np.multiply)
    __truediv__, __rtruediv__ = _operator(np.true_divide), _reflected(np.true_divide)
    __rpow__ = _reflected(np.power)
    __matmul__, __rmatmul__ = _operator(np.matmul), _reflected(np.matmul)
    __and__, __rand__ = _operator(np.bitwise_and), _reflected(np.bitwise_and)
    __or__, __ror__ = _operator(np.bitwise_or), _reflected(np.bitwise_or)
    __xor__, __rxor__ = _operator(np.bitwise_xor), _reflected(np.bitwise_xor)
    __lt__, __le__, __gt__, __ge__ = map(_operator, (np.less, np.less_equal, np.greater, np.greater_equal))
    __eq__, __ne__ = _operator(np.equal), _operator(np.not_equal)
    __hash__ = object.__hash__  # comparisons make tensors, so identity is all there is to hash

    def __pow__(self, other: Any) -> Tensor:
        # As numpy does, for speed and for the last bit.
        square = type(other) is int or (type(other) is float and dtypes.kind(self.dtype) in "fc")
        return np.square(self) if square and other == 2 else np.power(self, other)

    def __neg__(self) -> Tensor:
        return np.negative(self)

    def __pos__(self) -> Tensor:
        return np.positive(self)

    def __abs__(self) -> Tensor:
        return np.absolute(self)

    def __invert__(self) -> Tensor:
        return np.invert(self)

    def __getitem__(self, key: Any) -> Tensor:
        items = key if isinstance(key, tuple) else (key,)
        if any(isinstance(item, Tensor | np.ndarray | list) for item in items):
            return FUNCTIONS[operator.getitem](self, key)
        return Tensor(*index(self.expression, self.axes, self.shape, key))

    # -------------------------------------------------------------------- the methods of an array

    @property
    def T(self) -> Tensor:  # noqa: N802 - numpy's name
        """The dimensions in reverse order."""
        return self.transposed(range(self.ndim)[::-1])

    @property
    def real(self) -> Tensor:
        """The real part."""
        return np.real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary part."""
        return np.imag(self)

    def astype(self, dtype: Any) -> Tensor:
        """Return the elements as another dtype."""
        wanted = dtypes.parse(dtype) if isinstance(dtype, str) else np.dtype(dtype)
        dtypes.kind(wanted)
        if wanted == self.dtype:
            return self
        labels = labels_of(self.ndim)
        b = ScalarBuilder()
        join = b.build(b.call(dtypes.name(wanted), b.arg(0)))
        return loop([self], [labels], labels, dict(zip(labels, self.shape, strict=True)), join)

    def reshape(self, *shape: Any) -> Tensor:
        """Return the same elements in the same order under another shape; -1 is what is left."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Tensor:
        """Return the dimensions in another order, by default the reverse."""
        if len(axes) == 1 and (axes[0] is None or np.iterable(axes[0])):
            axes = axes[0]
        return np.transpose(self, axes or None)

    def ravel(self) -> Tensor:
        """Return the elements in one dimension."""
        return np.ravel(self)

    def squeeze(self, axis: Any = None) -> Tensor:
        """Return it without its dimensions, or those of `axis`, of extent 1."""
        return np.squeeze(self, axis)

    def conj(self) -> Tensor:
        """Return the complex conjugate."""
        return np.conjugate(self)

    def dot(self, other: Any) -> Tensor:
        """Return ``np.dot(self, other)``."""
        return np.dot(self, other)

    def sum(self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
        """Return the sum over `axis`, by default over all."""
        return np.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
        """Return the product over `axis`, by default over all."""
        return np.prod(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
        """Return the mean over `axis`, by default over all."""
        return np.mean(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """Return the greatest element along `axis`, by default of all."""
        return np.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """Return the least element along `axis`, by default of all."""
        return np.min(self, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """Return whether any element along `axis`, by default of all, is true."""
        return np.any(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """Return whether every element along `axis`, by default of all, is true."""
        return np.all(self, axis=axis, keepdims=keepdims)

    # ------------------------------------------------------------------------------------ views

    def plain(self) -> Expression:
        """Return an expression with exactly the dimensions of this tensor."""
        if self.axes == tuple(range(len(self.expression.shape))):
            return self.expression
        axes = tuple(a for a in self.axes if a is not None)
        if axes == tuple(sorted(axes)) and prod(self.shape) == prod(self.expression.shape):
            return Regroup(self.expression, self.shape)
        out = labels_of(self.ndim)
        return loop([self], [out], out, dict(zip(out, self.shape, strict=True)), COPY).expression

    def read(self, labels: Labels, extents: Mapping[str, int]) -> tuple[Expression, Labels]:
        """Return what to read, with which labels, for this tensor to have `labels` in a loop of `extents`.

        A dimension of extent 1 broadcasts: it is dropped where its label is longer.
        """
        expression, found = self.expression, [""] * len(self.expression.shape)
        for axis, label in zip(self.axes, labels, strict=True):
            if axis is not None:
                found[axis] = label
        keep = [n == extents[label] for n, label in zip(expression.shape, found, strict=True)]
        if not all(keep):
            shape = tuple(n for n, kept in zip(expression.shape, keep, strict=True) if kept)
            expression = Regroup(expression, shape)
        return expression, tuple(label for label, kept in zip(found, keep, strict=True) if kept)

    def transposed(self, order: Sequence[int]) -> Tensor:
        """Return the dimensions in another order."""
        return Tensor(
            self.expression, tuple(self.axes[d] for d in order), tuple(self.shape[d] for d in order)
        )

    def reshaped(self, shape: tuple[int, ...]) -> Tensor:
        """Return the same elements in the same order under another shape of the same size."""
        if shape == self.shape:
            return self
        if self.axes.count(None) or self.axes != tuple(range(self.ndim)):
            source = self.plain()
            source = source.source if isinstance(source, Regroup) else source
        else:
            source = self.expression
        if source.shape == tuple(n for n in shape if n != 1):  # only unit dimensions are new
            axes = iter(range(len(source.shape)))
            return Tensor(source, tuple(None if n == 1 else next(axes) for n in shape), shape)
        return Tensor.of(source if source.shape == shape else Regroup(source, shape))


def unsupported(what: str) -> DtypeError:
    """Return the error for a function that lazy tensors do not have."""
    ufuncs = ", ".join(sorted(UFUNCS))
    functions = ", ".join(sorted({f.__name__ for f in FUNCTIONS}))
    return DtypeError(
        f"{what} of a lazy tensor is not supported, or not with these arguments",
        notes=(
            f"supported ufuncs: {ufuncs}",
            f"supported functions: {functions}",
            "or compute first: x.run()",
        ),
    )


def loop(
    tensors: Sequence[Tensor],
    labels: Sequence[Labels],
    out: Labels,
    extents: Mapping[str, int],
    join: ScalarExpr,
    aggregate: str | None = None,
) -> Tensor:
    """Return the einsummable ``[out] aggregate join(tensors)`` over a space of `extents`.

    Raises
    ------
    DtypeError
        The join or the aggregate has no meaning for these dtypes.
    """
    args = tuple(t.dtype for t in tensors)
    join = strong(join, args)
    dtype = result_dtype(join, args)
    if aggregate is not None:
        dtype = aggregate_dtype(aggregate, dtype)
    reads = [t.read(ls, extents) for t, ls in zip(tensors, labels, strict=True)]
    space = tuple((label, extents[label]) for label in dict.fromkeys((*out, *extents)))
    operands, read_labels = tuple(x for x, _ in reads), tuple(ls for _, ls in reads)
    return Tensor.of(Loop(operands, read_labels, tuple(out), space, join, aggregate, dtype))


def graph_of(tensors: Mapping[str, Tensor]) -> tuple[EinGraph, dict[str, np.ndarray]]:
    """Return the program that computes `tensors` under their names, and the arrays of its inputs.

    Raises
    ------
    ParseError
        Two different inputs have one name.
    """
    return build({name: t.plain() for name, t in tensors.items()})


_RUNNER: list[Callable[..., np.ndarray]] = []


def set_runner(run: Callable[..., np.ndarray]) -> None:
    """Say how ``x.run(**options)`` computes: the pipeline knows, this layer does not."""
    _RUNNER[:] = [run]

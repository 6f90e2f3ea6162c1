"""Where lazy tensors come from: arrays, and promises of arrays.

Contract: an array is referred to, never copied or written to, and read when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from einsummable import dtypes
from einsummable.arguments import as_array
from einsummable.errors import ShapeError
from einsummable.lazy.expression import Source
from einsummable.lazy.handle import Tensor


def as_tensor(value: Any) -> Tensor:
    """Return `value` as a tensor: an array becomes an input without a name."""
    return value if isinstance(value, Tensor) else tensor(value)


def tensor(
    data: Any = None,
    name: str | None = None,
    *,
    shape: Sequence[int] | None = None,
    dtype: Any = dtypes.F32,
) -> Tensor:
    """Return a lazy tensor: an array, or the promise of one.

    Parameters
    ----------
    data
        An array or what numpy makes one of; None for an input that is given when the program runs.
        It is never written to, and read when the program runs.
    name
        What the program calls it; needed without `data`.
    shape, dtype
        Of an input without `data`.

    Raises
    ------
    ShapeError
        Neither data nor name and shape are given.
    DtypeError
        The elements are no numbers.

    Examples
    --------
    >>> x = tensor(np.ones((2, 3), "f4"), "X")
    >>> print(np.exp(x).sum(axis=1).graph("Y"))
    %0 = input X [2, 3] f32
    %1 = [i] sum[j] exp(x)  of %0[i,j]  : [2] f32
    return Y = %1
    """
    if data is None:
        if shape is None or name is None:
            raise ShapeError("a tensor needs data, or a name and a shape")
        wanted = dtypes.parse(dtype) if isinstance(dtype, str) else np.dtype(dtype)
        dtypes.kind(wanted)
        return Tensor.of(Source(tuple(map(int, shape)), wanted, name))
    if isinstance(data, Tensor):
        return data
    array = as_array(name or "the tensor", data)
    return Tensor.of(Source(tuple(array.shape), array.dtype, name, array))

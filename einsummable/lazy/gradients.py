"""Gradients of lazy tensors, as lazy tensors.

Contract: `grad` builds the program of the loss, differentiates it, and hands back what was appended as
expressions over those that were there before.  So gradients can go on: into an update, another loss, or
another gradient; and running them together with the loss computes the common part once.
"""

from __future__ import annotations

from collections.abc import Sequence

from einsummable.autodiff import gradients
from einsummable.errors import DtypeError
from einsummable.lazy.expression import Appended, Expression, nodes_of
from einsummable.lazy.handle import Tensor


def grad(loss: Tensor, wrt: Tensor | Sequence[Tensor]) -> Tensor | list[Tensor]:
    """Return the gradient of `loss` with respect to a tensor, or to each of several.

    Parameters
    ----------
    loss
        A real scalar.
    wrt
        Tensors of floats or complex numbers: inputs, or what `loss` is made of.  Of a complex tensor the
        gradient is ``dL/dRe + i*dL/dIm``; of one that `loss` does not depend on it is 0.

    Returns
    -------
    Tensor or list of Tensor
        Of the shape and dtype of each of `wrt`.

    Raises
    ------
    ShapeError, DtypeError
        `loss` is no real scalar, or one of `wrt` is no tensor of floats or complex numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from einsummable.lazy import tensor
    >>> x = tensor(np.array([1.0, 2.0]), "x")
    >>> print(grad(np.sum(x**3), x).graph("dx"))
    %0 = input x [2] f64
    %1 = [i] 3*x**2  of %0[i]  : [2] f64
    return dx = %1
    """
    if isinstance(wrt, Tensor):
        return grad(loss, [wrt])[0]
    for x in (loss, *wrt):
        if not isinstance(x, Tensor):
            raise DtypeError(f"grad takes lazy tensors, not a {type(x).__name__}", notes=("see ein.tensor",))
    top = loss.plain()
    builder, ids = nodes_of([top, *(x.expression for x in wrt)])
    made = gradients(builder, ids[top], [ids[x.expression] for x in wrt])
    known: dict[int, Expression] = {i: expression for expression, i in ids.items()}
    for i in range(max(made, default=-1) + 1):
        if i not in known:
            node = builder[i]
            known[i] = Appended(tuple(known[j] for j in node.inputs), node)
    return [Tensor(known[i], x.axes, x.shape) for i, x in zip(made, wrt, strict=True)]

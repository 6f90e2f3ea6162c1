"""From text to results: the ladder as one object.

Contract: `compile` parses and elaborates at once, so that a wrong formula is an error here; the plan, the
placement and the TaskGraph are made when they are first asked for, and kept; `run` runs them.  Printing or
displaying a `Compiled` shows what is already there and computes nothing.  `compile` is long because its
docstring tells of every option; what it does is fifteen lines.

>>> net = compile("Y[b,h] = relu(sum[d] X[b,d] * W[d,h])", X=np.ones((4, 3)), W=np.ones((3, 2)), sites=2)
>>> net.run()["Y"].tolist()
[[3.0, 3.0], [3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from einsummable.arguments import described, read_namespace, sort_out
from einsummable.compiled import Compiled, mentioned
from einsummable.equation import Signature, bind
from einsummable.errors import ParseError
from einsummable.kernels.whole import Whole
from einsummable.language.elaborate import elaborate
from einsummable.language.parser import parse
from einsummable.lazy import Tensor, grad, graph_of, set_runner, tensor  # noqa: F401 - `tensor` is public here
from einsummable.options import check_plan_options, positive
from einsummable.planner.eindecomp import Pins
from einsummable.planner.hardware import Hardware
from einsummable.planner.plan import Plan
from einsummable.runtime.executor import Executor


def compile(  # noqa: A001 - in the sense of re.compile, always written qualified
    program: str | Tensor | Mapping[str, Tensor],
    /,
    inputs: Mapping[str, Any] | None = None,
    *,
    sites: int | None = None,
    cluster: Executor | None = None,
    p: int | None = None,
    hardware: Hardware | None = None,
    memory: float | str | None = None,
    pins: Pins | None = None,
    plan: Plan | str | os.PathLike[str] | None = None,
    **arrays_or_shapes: Any,
) -> Compiled:
    """Compile a program for inputs of given shapes.

    Parameters
    ----------
    program
        Text in the language, or lazy tensors (one, called ``out``, or several by name).
    inputs
        A namespace in which the names that the program does not define are looked up: arrays, distributed
        tensors, scalars.  What else it holds is ignored.
    sites
        How many sites to plan for: by default the engines of `cluster`, else the processors there are.
    cluster
        Where to run: a cluster, or None for threads of this process.
    p
        How many kernel calls to cut each node into; by default the number of sites.
    hardware
        What the sites are like.  If given, the plan is the one with the least simulated time there, else the
        one that moves the fewest bytes.
    memory
        Bytes that a site may hold, as a number or as text like ``"2GB"``, where that is less than `hardware`
        says.  The plan is one that fits, and runs keep to it: if none does, blocks go to disk for a while.
    pins
        Cuts that are given, by name of a tensor and label, as in ``{"H": {"b": 2, "h": 4}}``; the rest is
        planned around them.  A dimension of a pinned tensor that is not named is not cut.
    plan
        A plan to use instead of making one, or the file that `Compiled.save_plan` wrote it to.
    **arrays_or_shapes
        The same by keyword; here a tuple of ints is the shape of a float32 input whose array comes later,
        and a list is an array.

    Returns
    -------
    Compiled
        Its ``graph`` is made; ``plan``, ``placement`` and ``tasks`` are made when first asked for.

    Raises
    ------
    ParseError, UnknownNameError, ShapeError, DtypeError
        The program is wrong; the message shows where.
    PlanError
        `sites`, `p` or `hardware` cannot be, or `plan` is for another program.

    Asked for a plan, the result raises a `CapacityError` where none fits the memory, and a `PlanError` or an
    `UnknownNameError` where a pin cannot be.

    Examples
    --------
    >>> net = compile("P[q,k] = softmax[k](S[q,k] * scale)", S=np.zeros((2, 4)), scale=0.5, sites=2)
    >>> net.run()["P"].tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    >>> net.plan.p
    2
    """
    for what, n in (("sites", sites), ("p", p)):
        if n is not None:
            positive(what, n)
    check_plan_options(hardware, memory, pins, plan)
    namespace = read_namespace(inputs)
    if isinstance(program, str):
        given = sort_out(namespace, arrays_or_shapes)
        graph = elaborate(parse(program), given.specs, given.scalars, given.rest)
        data = mentioned(program, given.data)
    else:
        graph, data = graph_of(_lazy(program))
        data = data | namespace | arrays_or_shapes
    return Compiled(
        graph,
        data,
        sites=sites,
        cluster=cluster,
        p=p,
        hardware=hardware,
        memory=memory,
        pins=pins,
        plan=plan,
    )


def run(x: Tensor, *, sites: int | None = None, cluster: Executor | None = None) -> np.ndarray:
    """Compute a lazy tensor and return its array.

    >>> run(np.exp(tensor(np.zeros(3))) + 1, sites=2).tolist()
    [2.0, 2.0, 2.0]
    """
    return compile(x, sites=sites, cluster=cluster).run()["out"]


set_runner(run)


def einsum(
    *operands: Any,
    out: np.ndarray | None = None,
    optimize: Any = False,
    dtype: Any = None,
    order: str | None = "K",
    casting: str = "safe",
    sites: int | None = None,
    cluster: Executor | None = None,
) -> np.ndarray | np.generic:
    """Return what ``numpy.einsum`` returns for the same arguments, always in a fresh array.

    Parameters
    ----------
    *operands
        An equation and arrays, or pairs of an array and a list of labels.
    out, dtype, order, casting
        As in numpy.
    optimize
        A name that opt_einsum knows, or a path; whatever it is, two operands are contracted at a time.
    sites, cluster
        Where to run: without either in this thread at once, else as a planned program.

    Raises
    ------
    ParseError
        The equation is none, or an argument has no meaning; also a `ValueError`.
    ShapeError
        A label has two extents, neither of them 1; also a `ValueError`.
    DtypeError
        An operand is no number, or may not be cast; also a `TypeError`.

    Examples
    --------
    >>> float(einsum("ij,jk,ki->", np.eye(3), np.ones((3, 2)), np.ones((2, 3))))
    6.0
    """
    call = bind(operands, out=out, dtype=dtype, order=order, casting=casting, optimize=optimize)
    if sites is None and cluster is None:
        with np.errstate(all="ignore"):  # numpy's einsum does not warn either
            result = _whole(call.signature)(call.arrays)["out"]
    else:
        program = Compiled(call.signature.graph(), call.arrays, sites=sites, cluster=cluster)
        result = program.run()["out"]
    return call.finish(result)


@lru_cache(maxsize=512)
def _whole(signature: Signature) -> Whole:
    return Whole(signature.graph())


def _lazy(program: object) -> dict[str, Tensor]:
    if isinstance(program, Tensor):
        return {"out": program}
    if isinstance(program, Mapping):
        wrong = [value for value in program.values() if not isinstance(value, Tensor)]
        if not wrong:
            return dict(program)
        program = wrong[0]
    raise ParseError(
        f"a program is text, a lazy tensor or several by name, not {described(program)}",
        notes=("ein.tensor(x) makes an array lazy",) if isinstance(program, np.ndarray) else (),
    )

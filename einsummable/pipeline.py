"""From text to results: the ladder as one object.

Contract: `compile` parses and elaborates at once, so that a wrong formula is an error here; the plan, the
placement and the TaskGraph are made when they are first asked for, and kept; `run` runs them.  Printing or
displaying a `Compiled` shows what is already there and computes nothing.

>>> net = compile("Y[b,h] = relu(sum[d] X[b,d] * W[d,h])", X=np.ones((4, 3)), W=np.ones((3, 2)), sites=2)
>>> net.run()["Y"].tolist()
[[3.0, 3.0], [3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]
"""

from __future__ import annotations

import os
import re
import reprlib
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from einsummable import views
from einsummable.arguments import as_array, described, read_namespace, sort_out
from einsummable.display import Picture
from einsummable.equation import Signature, bind
from einsummable.errors import ParseError, PlanError, UnknownNameError, nearest
from einsummable.graph import EinGraph
from einsummable.kernels.whole import Whole
from einsummable.language.elaborate import InputSpec, elaborate
from einsummable.language.parser import parse
from einsummable.lazy import Tensor, graph_of, set_runner, tensor  # noqa: F401 - `tensor` is public here
from einsummable.planner import strategies
from einsummable.planner.eindecomp import plan as eindecomp
from einsummable.planner.explain import Explanation, explain
from einsummable.planner.placement import place
from einsummable.planner.plan import Layout, Placement, Plan
from einsummable.runtime.cluster import Cluster
from einsummable.runtime.events import RunRecord
from einsummable.runtime.executor import Executor
from einsummable.runtime.local import LocalExecutor
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.tasks import TaskGraph


def default_sites() -> int:
    """Return how many sites a program gets when nobody says: the processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Compiled:
    """A program with its inputs' shapes fixed: every rung of the ladder, each made once.

    Attributes
    ----------
    graph
        The EinGraph.
    sites, p
        How many sites there are, and how many kernel calls each node is to be cut into.
    plan, placement, tasks
        How every node is cut; where every block is; what happens on which site.
    last
        The record of the last run, or None.
    """

    def __init__(
        self,
        graph: EinGraph,
        data: Mapping[str, Any],
        *,
        sites: int | None = None,
        cluster: Executor | None = None,
        p: int | None = None,
    ) -> None:
        have = cluster.sites if cluster is not None else None
        self.sites = _positive("sites", sites if sites is not None else have or default_sites())
        if have is not None and self.sites > have:
            raise PlanError(f"{self.sites} sites are asked for, the cluster has {have} engines")
        self.p = _positive("p", p if p is not None else self.sites)
        self.graph = graph
        self.executor: Executor = cluster if cluster is not None else _local(self.sites)
        self.last: RunRecord | None = None
        self._data = dict(data)
        self._moved: dict[tuple, Compiled] = {}

    @property
    def cluster(self) -> Cluster | None:
        """The cluster it runs on; None where sites are threads of this process."""
        return self.executor if isinstance(self.executor, Cluster) else None

    @cached_property
    def layouts(self) -> dict[str, Layout]:
        """Where the inputs that already live on engines are."""
        known = ((name, getattr(self._data.get(name), "layout", None)) for name in self.graph.inputs)
        return {name: layout for name, layout in known if layout is not None}

    @cached_property
    def plan(self) -> Plan:
        """How every node is cut, by EinDecomp."""
        return eindecomp(self.graph, self.p, layouts=self.layouts)

    @cached_property
    def placement(self) -> Placement:
        """Where every kernel call and every block is."""
        return place(self.plan, self.sites, self.layouts)

    @cached_property
    def tasks(self) -> TaskGraph:
        """What happens on which site."""
        return lower(self.plan, self.placement, self.layouts)

    def explain(self) -> Explanation:
        """Return the plan in figures: totals, a row a node, and the named strategies on the same scale."""
        rivals = {}
        for plan in strategies.named_plans(self.graph, self.p):
            rivals[plan.strategy] = lower(plan, place(plan, self.sites, self.layouts), self.layouts)
        return explain(self.plan, self.placement, self.tasks, rivals)

    def run(
        self,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        keep: bool = False,
        timeout: float | None = None,
        **data: Any,
    ) -> dict[str, Any]:
        """Run the program and return its outputs by name.

        Parameters
        ----------
        inputs
            Arrays and scalars in place of those given to `compile`, with the same shapes and dtypes.
        keep
            On a cluster, leave the results on the engines and return distributed tensors.
        timeout
            Seconds after which the run is stopped with an `EngineError`.
        **data
            The same by keyword.

        Returns
        -------
        dict
            A fresh array, of no dimensions for a scalar, or a distributed tensor for each output.

        Raises
        ------
        UnknownNameError
            An input has no array, a scalar no value, or a name is neither.
        ShapeError, DtypeError
            An array or a scalar is not what the program was compiled for.
        EngineError
            A site failed, or the time was up.
        """
        _check_option("keep", keep, isinstance(keep, bool), "True or False")
        seconds = timeout is None or isinstance(timeout, int | float)
        _check_option("timeout", timeout, seconds, "a number of seconds, or None")
        data = {**read_namespace(inputs), **data}
        self._check_names(data, [*self.graph.inputs, *(p.name for p in self.graph.params)])
        given = self._data | data
        arrays = {}
        for name, node in self.graph.inputs.items():
            if name not in given:
                raise UnknownNameError(f"no array is given for the input {name!r}")
            arrays[name] = as_array(name, given[name], node.dtype)
        lowered = self._lowered_for(given)
        options = {"keep": True} if keep else {}
        scalars = {p.name: given[p.name] for p in self.graph.params if p.name in given}
        results = self.executor.run(lowered, arrays, scalars, timeout=timeout, **options)
        self.last = self.executor.last
        return results

    def put(self, **arrays: Any) -> None:
        """Leave inputs on the cluster's engines, cut and placed as the plan reads them: runs then move none.

        Raises
        ------
        PlanError
            The program was not compiled for a cluster.
        """
        if self.cluster is None:
            raise PlanError("put leaves arrays on engines, and this program was compiled for threads")
        self._check_names(arrays, self.graph.inputs)
        for name, array in arrays.items():
            layout = self._layout(name)
            self._data[name] = self.cluster.put(array, parts=layout.parts, sites=layout.sites)

    def _layout(self, name: str) -> Layout:
        """Return where the plan has the blocks of an input."""
        i = self.graph.nodes.index(self.graph.inputs[name])
        return Layout(self.plan.partitions[i].parts, self.placement.homes[i])

    def _lowered_for(self, given: Mapping[str, Any]) -> TaskGraph:
        """Return the TaskGraph that reads distributed tensors where they are, planned anew if they moved."""
        known = ((name, getattr(given[name], "layout", None)) for name in self.graph.inputs)
        layouts = {name: layout for name, layout in known if layout is not None}
        if all(self._layout(name) == layout for name, layout in layouts.items()):
            return self.tasks
        key = tuple(sorted(layouts.items(), key=lambda item: item[0]))
        if key not in self._moved:
            self._moved[key] = Compiled(self.graph, given, sites=self.sites, cluster=self.executor, p=self.p)
        return self._moved[key].tasks

    def _check_names(self, given: Mapping[str, Any], known: Iterable[str]) -> None:
        for name in given:
            if name not in known:
                raise UnknownNameError(
                    f"the program has no input called {name!r}", notes=nearest(name, known)
                )

    def __str__(self) -> str:
        parts = [str(self.graph)]
        if "plan" in vars(self):
            parts.append(str(self.plan))
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n}{list(node.shape)}" for n, node in self.graph.inputs.items())
        outputs = ", ".join(f"{n}{list(self.graph.nodes[o].shape)}" for n, o in self.graph.outputs)
        where = f"{self.sites} site{'' if self.sites == 1 else 's'}"
        return f"<Compiled {inputs or 'no inputs'} -> {outputs or 'nothing'}, {where}>"

    def renew(self, inputs: Mapping[str, Any]) -> Compiled:
        """Return this program compiled for what `inputs` are now, or itself, with its plan, where that fits.

        Shapes, dtypes, kinds of scalars and extents that scalars name may be other ones; a graph that no text
        made stays as it is.
        """
        if not self.graph.text:
            return self
        given = sort_out(self._data | dict(inputs), {})
        known = {name: InputSpec(node.shape, node.dtype) for name, node in self.graph.inputs.items()}
        graph = elaborate(parse(self.graph.text), known | given.specs, given.scalars, given.rest)
        if graph == self.graph:
            return self
        data = _mentioned(self.graph.text, given.data)
        return Compiled(graph, data, sites=self.sites, cluster=self.cluster, p=self.p)

    def replan(
        self, *, sites: int | None = None, cluster: Executor | None = None, p: int | None = None
    ) -> Compiled:
        """Return the same program with the same data for another number of sites, or to run elsewhere.

        Parameters
        ----------
        sites, cluster, p
            As for `compile`; without `cluster` it runs on threads of this process.
        """
        return Compiled(self.graph, self._data, sites=sites, cluster=cluster, p=p)

    def picture(self) -> Picture:
        """Return every tensor's blocks, coloured by site."""
        return Picture(views.plan_view(self.plan, self.placement))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        shown = [views.graph_view(self.graph)]
        if "placement" in vars(self):
            shown.append(views.plan_view(self.plan, self.placement))
        if self.last is not None:
            shown.append(views.timeline_view(self.last))
        return {"text/html": views.html(shown), "text/plain": str(self)}


def compile(  # noqa: A001 - in the sense of re.compile, always written qualified
    program: str | Tensor | Mapping[str, Tensor],
    /,
    inputs: Mapping[str, Any] | None = None,
    *,
    sites: int | None = None,
    cluster: Executor | None = None,
    p: int | None = None,
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
        `sites` or `p` cannot be.

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
            _positive(what, n)
    namespace = read_namespace(inputs)
    if not isinstance(program, str):
        graph, data = graph_of(_lazy(program))
        return Compiled(graph, data | namespace | arrays_or_shapes, sites=sites, cluster=cluster, p=p)
    given = sort_out(namespace, arrays_or_shapes)
    graph = elaborate(parse(program), given.specs, given.scalars, given.rest)
    return Compiled(graph, _mentioned(program, given.data), sites=sites, cluster=cluster, p=p)


def _mentioned(text: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a namespace a program mentions: it shall not keep the rest of a notebook alive."""
    words = set(re.findall(r"\w+", unicodedata.normalize("NFKC", text)))
    return {name: value for name, value in data.items() if name in words}


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


def _check_option(what: str, value: object, right: bool, wanted: str) -> None:
    if not right:
        notes = (f"an input that is called {what!r} goes into a mapping: run({{{what!r}: …}})",)
        raise PlanError(f"{what} must be {wanted}, not {described(value)}", notes=notes)


def _positive(what: str, n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        notes = ()
        if isinstance(n, np.ndarray | tuple):
            notes = (f"an input that is called {what!r} goes into a mapping: compile(…, {{{what!r}: …}})",)
        raise PlanError(f"{what} must be a whole number from 1, not {reprlib.repr(n)}", notes=notes)
    return int(n)


@lru_cache(maxsize=64)
def _local(sites: int) -> LocalExecutor:
    return LocalExecutor(sites)

"""A compiled program: planned for its inputs' shapes, and run on data.

Contract: `run` runs what `Planned` made, on threads of this process or on engines.  Printing or displaying a
`Compiled` shows what is already there and computes nothing.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from einsummable import progressbar, views
from einsummable.arguments import as_array, read_namespace, sort_out
from einsummable.errors import PlanError, UnknownNameError, nearest
from einsummable.graph import EinGraph
from einsummable.interactive import Interactive
from einsummable.language.elaborate import InputSpec, elaborate
from einsummable.language.parser import parse
from einsummable.options import check_plan_options, check_run_options, positive
from einsummable.planned import Planned
from einsummable.planner.eindecomp import Pins
from einsummable.planner.hardware import Hardware
from einsummable.planner.plan import Layout, Plan
from einsummable.runtime.cluster import Cluster
from einsummable.runtime.events import Observer, RunRecord, simulated
from einsummable.runtime.executor import Executor
from einsummable.runtime.local import LocalExecutor
from einsummable.taskgraph.tasks import TaskGraph
from einsummable.views.trace import trace


def default_sites() -> int:
    """Return how many sites a program gets when nobody says: the processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Compiled(Planned, Interactive):
    """A program with its inputs' shapes fixed: all of `Planned`, and runs.

    Attributes
    ----------
    last
        The record of the last run, or None.
    observers
        Who hears of every event of every run: a list of functions of one event.
    """

    def __init__(
        self,
        graph: EinGraph,
        data: Mapping[str, Any],
        *,
        sites: int | None = None,
        cluster: Executor | None = None,
        p: int | None = None,
        hardware: Hardware | None = None,
        memory: float | str | None = None,
        pins: Pins | None = None,
        plan: Plan | str | os.PathLike[str] | None = None,
    ) -> None:
        have = cluster.sites if cluster is not None else None
        check_plan_options(hardware, memory, pins, plan)
        if sites is None and have is None and hardware is not None:
            sites = hardware.sites
        sites = positive("sites", sites if sites is not None else have or default_sites())
        if have is not None and sites > have:
            raise PlanError(f"{sites} sites are asked for, the cluster has {have} engines")
        super().__init__(
            graph,
            cluster if cluster is not None else _local(sites),
            _layouts(graph, data),
            sites=sites,
            p=p,
            hardware=hardware,
            memory=memory,
            pins=pins,
            plan=plan,
        )
        self.last: RunRecord | None = None
        self.observers: list[Observer] = []
        self._data = dict(data)
        self._moved: dict[tuple, Compiled] = {}

    @property
    def cluster(self) -> Cluster | None:
        """The cluster it runs on; None where sites are threads of this process."""
        return self.executor if isinstance(self.executor, Cluster) else None

    @property
    def records(self) -> dict[str, RunRecord]:
        """The last run, where there was one, as "measured", and the one to expect as "simulated"."""
        found = {} if self.last is None else {"measured": self.last}
        return found | {"simulated": simulated(self.simulation)}

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the last run and the simulated one to a file that ui.perfetto.dev and Chrome open."""
        Path(path).write_text(json.dumps(trace(self.records)), encoding="utf-8")

    def run(
        self,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        keep: bool | Collection[str] = False,
        donate: Collection[str] = (),
        timeout: float | None = None,
        observers: Sequence[Observer] = (),
        progress: bool = True,
        **data: Any,
    ) -> dict[str, Any]:
        """Run the program and return its outputs by name.

        Parameters
        ----------
        inputs
            Arrays and scalars in place of those given to `compile`, with the same shapes and dtypes.
        keep
            On a cluster, leave the results, or those that are named, on the engines and return distributed
            tensors.
        donate
            Names of inputs that are given up, however the run ends: tensors on engines are freed, and results
            may take their memory, and that of arrays.
        timeout
            Seconds after which the run is stopped with an `EngineError`.
        observers
            Called with every event while it runs (see `runtime.events`), before those in ``self.observers``.
        progress
            Whether a terminal or a notebook shows how far the run is when it takes longer than a second.
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
        PlanError
            Results are to stay on engines, and there are none.
        ShapeError, DtypeError
            An array or a scalar is not what the program was compiled for.
        EngineError
            A site failed, or the time was up.
        """
        check_run_options(keep, donate, timeout, observers, progress)
        given = self._given(inputs, data)
        arrays, scalars = self._values(given)
        lowered = self._lowered_for(given)
        options = self._options(keep, donate)
        bar = progressbar.for_run() if progress else None
        heard_by = (*observers, *self.observers, *([bar] if bar is not None else []))
        results = self.executor.run(lowered, arrays, scalars, timeout=timeout, observers=heard_by, **options)
        self.last = self.executor.last
        return results

    def _options(self, keep: bool | Collection[str], donate: Collection[str]) -> dict[str, Any]:
        """Return what an executor is told of a run besides its data: only what is asked for."""
        options: dict[str, Any] = {}
        if not isinstance(keep, bool):
            self._check_outputs(keep)
        if keep:
            if self.cluster is None:
                raise PlanError("keep leaves results on engines, and this program was compiled for threads")
            options["keep"] = keep
        if donate:
            self._check_names(donate, self.graph.inputs)
            options["donate"] = tuple(donate)
        if self.budget is not None:
            options["memory"] = self.budget
        return options

    def values(
        self, inputs: Mapping[str, Any] | None = None, /, **data: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arrays and the scalars that `run` with the same arguments would read, by name."""
        return self._values(self._given(inputs, data))

    def _given(self, inputs: Mapping[str, Any] | None, data: Mapping[str, Any]) -> dict[str, Any]:
        data = {**read_namespace(inputs), **data}
        self._check_names(data, [*self.graph.inputs, *(p.name for p in self.graph.params)])
        return self._data | data

    def _values(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays = {}
        for name, node in self.graph.inputs.items():
            if name not in given:
                raise UnknownNameError(f"no array is given for the input {name!r}")
            arrays[name] = as_array(name, given[name], node.dtype)
        return arrays, {p.name: given[p.name] for p in self.graph.params if p.name in given}

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
            layout = self.layout(name)
            self._data[name] = self.cluster.put(array, parts=layout.parts, sites=layout.sites)

    def _lowered_for(self, given: Mapping[str, Any]) -> TaskGraph:
        """Return the TaskGraph that reads distributed tensors where they are, planned anew if they moved."""
        layouts = _layouts(self.graph, given)
        if all(self.layout(name) == layout for name, layout in layouts.items()):
            return self.tasks
        key = tuple(sorted(layouts.items(), key=lambda item: item[0]))
        if key not in self._moved:
            self._moved[key] = self._again(self.graph, given)
        return self._moved[key].tasks

    def _check_names(self, given: Iterable[str], known: Iterable[str]) -> None:
        for name in given:
            if name not in known:
                raise UnknownNameError(
                    f"the program has no input called {name!r}", notes=nearest(name, known)
                )

    def _check_outputs(self, names: Iterable[str]) -> None:
        known = [name for name, _ in self.graph.outputs]
        for name in names:
            if name not in known:
                raise UnknownNameError(
                    f"the program has no output called {name!r}", notes=nearest(name, known)
                )

    def __str__(self) -> str:
        parts = [str(self.graph)]
        if "choice" in vars(self):
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
        return self._again(graph, mentioned(self.graph.text, given.data))

    def _again(self, graph: EinGraph, data: Mapping[str, Any]) -> Compiled:
        """Return a program for the same sites, made by the same rules."""
        return Compiled(
            graph,
            data,
            sites=self.sites,
            cluster=self.executor,
            p=self.p,
            hardware=self.hardware,
            memory=self.memory,
            pins=self.pins,
            plan=self._saved.plan if self._saved is not None and graph is self.graph else None,
        )

    def replan(
        self,
        *,
        sites: int | None = None,
        cluster: Executor | None = None,
        p: int | None = None,
        hardware: Hardware | None = None,
        memory: float | str | None = None,
        pins: Pins | None = None,
        plan: Plan | str | os.PathLike[str] | None = None,
    ) -> Compiled:
        """Return the same program with the same data, planned anew or to run elsewhere.

        Parameters
        ----------
        sites, cluster, p, hardware, memory, pins, plan
            As for `compile`, and what is left out has its default there: without `cluster` it runs on threads
            of this process.
        """
        return Compiled(
            self.graph,
            self._data,
            sites=sites,
            cluster=cluster,
            p=p,
            hardware=hardware,
            memory=memory,
            pins=pins,
            plan=plan,
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        shown = [views.graph_view(self.plan.graph if "choice" in vars(self) else self.graph)]
        if "choice" in vars(self):
            shown.append(views.plan_view(self.plan, self.placement))
        if self.last is not None:
            shown.append(views.timeline_view(self.last))
        return {"text/html": views.html(shown), "text/plain": str(self)}


def _layouts(graph: EinGraph, data: Mapping[str, Any]) -> dict[str, Layout]:
    """Return where those inputs are that live on engines."""
    known = ((name, getattr(data.get(name), "layout", None)) for name in graph.inputs)
    return {name: layout for name, layout in known if layout is not None}


def mentioned(text: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a namespace a program mentions: it shall not keep the rest of a notebook alive."""
    words = set(re.findall(r"\w+", unicodedata.normalize("NFKC", text)))
    return {name: value for name, value in data.items() if name in words}


@lru_cache(maxsize=64)
def _local(sites: int) -> LocalExecutor:
    return LocalExecutor(sites)

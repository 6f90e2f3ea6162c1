"""Running TaskGraphs on the engines of an ipyparallel cluster.

Contract: a `Cluster` is an executor (see `executor`) whose sites are engines.  It ships each engine its whole
part of a TaskGraph once; after that a run sends an order of a few bytes, the engines exchange blocks among
themselves, and results come straight back or stay where they are.  ipyparallel is imported when a cluster is
started or connected to, not before.

    with Cluster(n=2, threads=1) as cluster:
        X = cluster.put(np.ones((1000, 1000)))
        results = cluster.run(taskgraph, {"X": X}, keep=True)
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

import numpy as np

from einsummable.errors import CapacityError, EngineError, PlanError
from einsummable.evaluate import check_inputs, read_params
from einsummable.nodes import Input
from einsummable.planner.plan import Layout
from einsummable.runtime import launch
from einsummable.runtime.drive import Drive
from einsummable.runtime.engine import SiteResult
from einsummable.runtime.engines import Engines, EngineTable
from einsummable.runtime.events import Audience, EventReader, Observer, RunEnded, RunRecord, RunStarted
from einsummable.runtime.executor import gather
from einsummable.runtime.orders import donations, numbers_of, sort_inputs, tensors_for
from einsummable.runtime.programs import Program, Programs
from einsummable.runtime.session import DistributedTensor, giving_up, split_evenly
from einsummable.runtime.usage import Usage, usage
from einsummable.runtime.wire import Order
from einsummable.taskgraph.allocate import parse_bytes
from einsummable.taskgraph.relayout import relayout
from einsummable.taskgraph.tasks import TaskGraph

_START_SECONDS = 60.0
_STEPS = 256  # what is left of a memory is counted in such parts of it


class Cluster:
    """Engines on this machine, started now and ended by `stop`, by the end of the ``with`` block, or with us.

    Parameters
    ----------
    n
        How many engines.
    threads
        How many BLAS threads each of them uses.
    timeout
        Seconds to wait for them to start.
    memory
        The bytes that the tensors on each engine and the blocks of a run may take there, as a number or as
        text like ``"2GB"``; by default as many as they need.  Blocks that do not fit go to disk for a while;
        what cannot be done so is refused.

    Attributes
    ----------
    client
        The ipyparallel client.
    last
        How the last run went.
    """

    def __init__(
        self,
        n: int = 2,
        threads: int = 1,
        *,
        timeout: float = _START_SECONDS,
        memory: float | str | None = None,
    ) -> None:
        _positive("n", n)
        _positive("threads", threads)
        self.memory = None if memory is None else parse_bytes(memory)
        launched = launch.launch(n, threads, timeout)
        self._attach(launched.client, threads, launched, own_client=True)

    def _attach(
        self, client: Any, threads: int, launched: launch.Launched | None, *, own_client: bool
    ) -> None:
        self.client, self.last = client, None
        self._launched, self._own_client = launched, own_client
        self._lock = threading.Lock()
        self._stopped = False
        atexit.register(self.stop)
        try:
            self._engines = Engines(client, sorted(client.ids), threads)
            self._programs = Programs(self._engines)
        except BaseException:
            self.stop()
            raise

    # ----------------------------------------------------------------------------------- engines

    @property
    def sites(self) -> int:
        """The number of sites, which is the number of engines."""
        return len(self._engines.info)

    n = sites

    def info(self) -> EngineTable:
        """Return what is known of each engine, measured on it."""
        return EngineTable(self._engines.info.values())

    def usage(self) -> tuple[Usage, ...]:
        """Return what each engine takes; in any thread, also while a program runs."""
        return usage(self._engines)

    def stop(self) -> None:
        """End the engines that we started; leave those that somebody else started as they are."""
        if self._stopped:
            return
        self._stopped = True
        atexit.unregister(self.stop)
        if hasattr(self, "_engines"):
            self._engines.close()
        if self._launched is not None:
            self._launched.stop()
        elif self._own_client:
            launch.close_client(self.client)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        if self._stopped:
            return "<Cluster, stopped>"
        hosts = len({engine.host for engine in self.info()})
        threads = max(engine.threads for engine in self.info())
        where = f"{hosts} host{'s' * (hosts > 1)}"
        return f"<Cluster of {self.sites} engines on {where}, {threads} BLAS threads each>"

    # ----------------------------------------------------------------------------------- tensors

    def put(
        self,
        array: Any = None,
        *,
        parts: Sequence[int] | None = None,
        sites: Sequence[int] | None = None,
        dtype: Any = None,
        **arrays: Any,
    ) -> DistributedTensor | dict[str, DistributedTensor]:
        """Leave an array on the engines; or several by keyword, answered by name.

        Parameters
        ----------
        array
            What numpy makes an array of.  Of what `memmap` maps, engines that see the file read their blocks;
            what has to move of a tensor of this cluster goes from engine to engine; all else is sent.
        parts
            How many parts each dimension is cut into; by default the longest, into one for each engine.
        sites
            The site of each block, the last dimension fastest; by default in turn.
        dtype
            Of the tensor, if not that of the array.

        Raises
        ------
        PlanError
            The array cannot be cut so.
        EngineError
            An engine is gone.
        """
        with self._lock:
            self._make_ready()
        if arrays:
            return {name: self._put(value, parts, sites, dtype) for name, value in arrays.items()}
        return self._put(array, parts, sites, dtype)

    def _put(self, array: Any, parts: Any = None, sites: Any = None, dtype: Any = None) -> DistributedTensor:
        there = isinstance(array, DistributedTensor) and array.is_on(self._engines)
        if not there or np.dtype(dtype or array.dtype) != array.dtype:
            array = np.asarray(array)
        layout = split_evenly(array.shape, self.sites)
        if parts is not None:
            blocks = int(np.prod(parts, dtype=np.int64))
            layout = Layout(tuple(parts), tuple(i % self.sites for i in range(blocks)))
        if sites is not None:
            layout = Layout(layout.parts, tuple(sites))
        layout.check(Input("the array", array.shape, array.dtype), self.sites)
        if isinstance(array, DistributedTensor):
            taskgraph = relayout(array.shape, array.dtype, array.layout, layout, self.sites)
            return self.run(taskgraph, {"x": array}, keep=True)["out"]
        tensor = DistributedTensor(self._engines, array.shape, dtype or array.dtype, layout)
        self._left()
        tensor.store(array)
        return tensor

    # -------------------------------------------------------------------------------------- runs

    def run(
        self,
        taskgraph: TaskGraph,
        arrays: Mapping[str, np.ndarray | DistributedTensor],
        params: Mapping[str, object] | None = None,
        *,
        observers: Sequence[Observer] = (),
        timeout: float | None = None,
        memory: int | None = None,
        keep: bool | Collection[str] = False,
        donate: Collection[str] = (),
    ) -> dict[str, Any]:
        """Run `taskgraph` and return its outputs by name.

        Parameters
        ----------
        arrays
            The inputs by name: arrays, or tensors of this cluster that lie as the TaskGraph reads them.
        params
            The scalars that the program reads when it runs.
        observers
            Called with every event, in this thread.
        timeout
            Seconds after which the run is given up.
        memory
            Bytes that each engine may hold during this run, where the cluster allows more.
        keep
            Leave the outputs, or those that are named, on the engines and return distributed tensors.
        donate
            Names of inputs that the caller gives up, however the run ends: their tensors are freed, and
            results may take their memory.

        Raises
        ------
        ShapeError, UnknownNameError, DtypeError, PlanError
            An input or a scalar is missing or does not fit.
        CapacityError
            A task needs more memory than there is.
        EngineError
            A kernel raised, an engine died or hangs, or the time was over.  The run has ended everywhere,
            and tensors on living engines are still there.
        """
        check_inputs(taskgraph.graph, arrays)
        scalars = read_params(taskgraph.graph, params or {})
        if taskgraph.sites > self.sites:
            wanted = f"the program is for {taskgraph.sites} sites"
            raise PlanError(f"{wanted}, the cluster has {self.sites} engines")
        with self._lock:
            self._make_ready()
            names = {out.name for out in taskgraph.outputs if keep is True or out.name in (keep or ())}
            kept = tensors_for(self._engines, taskgraph, names)
            there = [name for name, a in arrays.items() if isinstance(a, DistributedTensor)]
            program = self._programs.load(taskgraph, self._left(memory, taskgraph.sites), there, donate)
            inputs, stored, files = sort_inputs(self._engines, program, arrays)
            given_up, ended = donations(program, arrays, donate)
            each = zip(stored, numbers_of(taskgraph, kept), given_up, files, strict=True)
            orders = [Order(scalars, *it) for it in each]
            with giving_up(ended):
                results = self._drive(taskgraph, program, inputs, orders, observers, timeout)
        return self._outputs(taskgraph, results, names, kept)

    def _outputs(
        self,
        taskgraph: TaskGraph,
        results: list[SiteResult],
        names: set[str],
        kept: dict[str, DistributedTensor],
    ) -> dict[str, Any]:
        """Return what a run made: `kept` is there, of the rest `names` become tensors on engines."""
        if len(kept) == len(taskgraph.outputs):
            return kept
        whole = kept | gather(taskgraph, results, leave=kept)
        stay = names - kept.keys()
        return {
            o.name: self._put(whole[o.name]) if o.name in stay else whole[o.name] for o in taskgraph.outputs
        }

    def _drive(
        self,
        taskgraph: TaskGraph,
        program: Program,
        inputs: list[dict[int, np.ndarray]],
        orders: list[Order],
        observers: Sequence[Observer],
        timeout: float | None,
    ) -> list[SiteResult]:
        error = ""
        with self._engines.exchange() as exchange:
            drive = Drive(self._engines, exchange, taskgraph, program.parts)
            reader = EventReader(taskgraph, drive.logs, drive.began)
            audience = Audience(observers)

            def report() -> None:
                audience.read(reader)
                audience.progress(time.time() - drive.began, drive.working, drive.logs)

            try:
                audience.tell(RunStarted.of(taskgraph))
                drive.start(program.number, inputs, orders, ask=program.within)
                drive.collect(timeout, report if audience else None)
            except BaseException as failure:
                error = str(failure) or type(failure).__name__
                drive.abort()
                raise
            finally:
                wall = time.time() - drive.began
                self.last = RunRecord(taskgraph, tuple(drive.logs), drive.began, wall, error)
                audience.read(reader)
                audience.tell(RunEnded(wall, error))
        return drive.results

    def _left(self, memory: int | None = None, sites: int | None = None) -> list[int] | None:
        """Return the bytes that each site has for a run beside what it keeps; None if that is open."""
        memory = min((n for n in (memory, self.memory) if n is not None), default=None)
        if memory is None:
            return None
        kept = self._engines.kept_bytes()
        worst = max(range(len(kept)), key=kept.__getitem__)
        if kept[worst] > memory:
            raise CapacityError(
                f"the tensors on {self._engines.info[worst]} take {kept[worst]} bytes, {memory} are allowed",
                notes=("free tensors that are not needed any more, or allow more memory",),
            )
        # In steps, so that a little more or less does not make another plan.
        step = max(memory // _STEPS, 1)
        return [(memory - n) // step * step for n in kept[:sites]]

    def _check_running(self) -> None:
        if self._stopped:
            raise EngineError("the cluster was stopped")

    def _make_ready(self) -> None:
        """Replace engines that are gone, where they are ours to replace."""
        self._check_running()
        self._engines.look()
        lost = dict(self._engines.lost)
        if not lost or self._launched is None:
            return
        self._programs.clear()
        for site in lost:
            self._engines.replace(site, self._launched.replace(self._engines.info[site].pid, _START_SECONDS))


def _positive(what: str, n: int) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise PlanError(f"{what} must be a whole number from 1, not {n!r}")


def connect(
    client: Any = None,
    *,
    profile: str | None = None,
    cluster_file: str | None = None,
    n: int = 1,
    threads: int = 1,
    timeout: float = 10.0,
    memory: float | str | None = None,
) -> Cluster:
    """Use a cluster that somebody else started, with ``ipcluster start`` for instance, and will end.

    Parameters
    ----------
    client
        An ipyparallel client.
    profile, cluster_file
        Else the IPython profile under which the cluster runs (``default`` if nothing is given), or the path
        of a file that describes it: ``cluster-….json`` or ``ipcontroller-client.json``.
    n
        How many engines to wait for; all that are there by then are used.
    threads
        How many BLAS threads each engine uses from now on.
    timeout
        Seconds to wait for the controller, and for engines.
    memory
        As of `Cluster`.

    Raises
    ------
    EngineError
        There is no such cluster, it has too few engines, or they cannot reach each other.
    """
    _positive("n", n)
    _positive("threads", threads)
    limit = None if memory is None else parse_bytes(memory)
    own = client is None
    if own:
        client = launch.find(profile, cluster_file, timeout)
    try:
        launch.wait_for_engines(client, n, timeout)
    except BaseException:
        if own:
            launch.close_client(client)
        raise
    cluster = Cluster.__new__(Cluster)
    cluster.memory = limit
    cluster._attach(client, threads, None, own_client=own)
    return cluster

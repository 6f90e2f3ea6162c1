"""Measuring the sites there are: from an executor to a `Hardware`.

Contract: `calibrate` runs small programs, the same on all sites at once, and reads the times of their tasks
from the record of the run; it takes a few seconds.  Rates are of one site while all others work too, with
blocks that come from where blocks come from in a run: that is what a plan will meet.

A matrix product of n×n takes ``overhead + 2n³/rate`` with ``rate = flops · (n/(n + half))³``; other kernels
take as long as the slower of computing (a join that stays in registers) and touching memory (a map); a
message takes ``latency + gap + bytes/bandwidth``, of which ports are busy for all but the latency.  Each
figure is fitted to measurements of several sizes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import inf, log
from statistics import median

import numpy as np

from einsummable import codec, dtypes
from einsummable.builder import GraphBuilder
from einsummable.graph import EinGraph
from einsummable.nodes import whole
from einsummable.planner.hardware import Hardware, Link
from einsummable.runtime.cluster import Cluster
from einsummable.runtime.executor import Executor
from einsummable.scalar import ScalarBuilder
from einsummable.taskgraph.tasks import Apply, Move, Read, Slice, Task, TaskGraph
from einsummable.work import flops

#: Sizes of matrix products, numbers of elements of maps, and bytes of messages.
_PRODUCTS = (32, 64, 128, 256, 512, 1024)
_MAPS = (1 << 18, 1 << 20, 1 << 22)
_MESSAGES = (1 << 10, 1 << 20, 1 << 23)
#: Kinds of products, and functions of maps.
_KINDS = ("f32", "f64", "c64", "c128")
_FUNCTIONS = ("relu", "exp")
#: How often everything is measured.
_TURNS = 3
#: Seconds that the tasks of one run shall take, and the fewest and most tasks.
_RUN = 0.03
_FEWEST, _MOST = 6, 200
#: What a product and a map are expected to reach before anything is measured.
_GUESS_FLOPS, _GUESS_BYTES = 5e10, 5e9
#: Of the times of equal tasks the one that this share of them does not exceed: others interrupt, none help.
_QUANTILE = 0.1
#: Nobody measures a link faster than that: where only references pass, size does not matter.
_MOST_BANDWIDTH = 1e12


def calibrate(executor: Executor, name: str = "measured") -> Hardware:
    """Return what the sites of `executor` can do.

    Parameters
    ----------
    executor
        A `Cluster` or a `LocalExecutor`; nothing else should run on its sites meanwhile.
    name
        What the hardware is to be called.

    Raises
    ------
    EngineError
        A site failed.

    Examples
    --------
    >>> from einsummable.runtime.local import LocalExecutor
    >>> calibrate(LocalExecutor(2)).sites
    2
    """
    overhead = _overhead(executor)
    rates = _rates(executor, overhead)
    flops_of = {kind: rates[kind, 256] for kind in _KINDS}
    flops_of["f32"], half = _fitted(_PRODUCTS, [rates["f32", n] for n in _PRODUCTS])
    hosts = _hosts(executor)
    near, far = _links(executor, hosts)
    hardware = Hardware(
        name,
        hosts,
        flops_of,
        rates["join", 256],
        float(np.exp(np.mean([log(rates[name, n]) for name in _FUNCTIONS for n in _MAPS]))),
        _memory(hosts),
        near,
        far,
        overhead,
        half,
    )
    hardware.check()
    return hardware


def save(hardware: Hardware, path: str | os.PathLike[str]) -> None:
    """Write `hardware` to the file `path` as JSON."""
    codec.write(hardware, path)


def load(path: str | os.PathLike[str]) -> Hardware:
    """Return the hardware that `save` wrote to the file `path`.

    Raises
    ------
    PlanError
        There is no such file, or it describes no hardware.
    """
    hardware = codec.read(Hardware, path, "hardware")
    hardware.check()
    return hardware


# ------------------------------------------------------------------------------------- programs


def _repeated(graph: EinGraph, sites: int, times: int) -> TaskGraph:
    """Return a program in which every site makes the last node of `graph`, whole, so many times."""
    node, last = graph.nodes[-1], len(graph.nodes) - 1
    tasks: list[Task] = []
    for site in range(sites):
        first = len(tasks)
        for j, given in enumerate(graph.nodes[:last]):
            tasks.append(Read(site, given.name, whole(given.shape), given.shape, given.dtype, j))
        reads = tuple(first + j for j in node.inputs)
        ranges = whole([n for _, n in node.space])
        tasks += [Apply(site, reads, ranges, node.shape, node.dtype, last)] * times
    return TaskGraph(graph, sites, tuple(tasks))


def _run(executor: Executor, taskgraph: TaskGraph) -> list[list[tuple[int, float, float]]]:
    """Run `taskgraph` and return what each site ran, and when."""
    inputs = taskgraph.graph.inputs
    executor.run(taskgraph, {name: np.ones(node.shape, node.dtype) for name, node in inputs.items()})
    return [log.ran for log in executor.last.logs]


def _rate(executor: Executor, graph: EinGraph, amount: int, guess: float, overhead: float) -> float:
    """Return how much of an `amount` (about `guess`) a site does in a second of the last node of `graph`."""
    times = int(min(max(_RUN * guess / amount, _FEWEST), _MOST))
    taskgraph = _repeated(graph, executor.sites, times)
    ran = _run(executor, taskgraph)
    taken = [b - a for site in ran for t, a, b in site if isinstance(taskgraph.tasks[t], Apply)]
    seconds = float(np.quantile(taken, _QUANTILE))
    return amount / max(seconds - overhead / 2, seconds / 2)  # half of the overhead is the call's own


# --------------------------------------------------------------------------------------- kernels


def _map(n: int, *functions: str) -> EinGraph:
    """Return `functions` of a vector of `n` elements, one after the other in one join."""
    g, s = GraphBuilder(), ScalarBuilder()
    expression = s.arg(0)
    for name in functions:
        expression = s.call(name, expression)
    g.output("Y", g.einsummable("i", [(g.input("X", (n,)), "i")], s.build(expression)))
    return g.build()


def _overhead(executor: Executor) -> float:
    """Return what a task costs that computes next to nothing: the pace of many of them."""
    program = _repeated(_map(8, "neg"), executor.sites, _MOST)
    runs = [_run(executor, program) for _ in range(_TURNS)]
    return min((site[-1][2] - site[0][1]) / len(site) for ran in runs for site in ran)


def _product(n: int, dtype: np.dtype) -> EinGraph:
    g = GraphBuilder()
    a, b = g.input("A", (n, n), dtype), g.input("B", (n, n), dtype)
    g.output("C", g.contract("ik", (a, "ij"), (b, "jk")))
    return g.build()


def _distances(n: int) -> EinGraph:
    """Return squared distances of n and n points: a join with little memory to touch."""
    g, s = GraphBuilder(), ScalarBuilder()
    x, y = g.input("X", (n, 64)), g.input("Y", (n, 64))
    square = s.build(s.call("square", s.call("sub", s.arg(0), s.arg(1))))
    g.output("D", g.einsummable("ij", [(x, "ik"), (y, "jk")], square, "sum"))
    return g.build()


def _rates(executor: Executor, overhead: float) -> dict[tuple[str, int], float]:
    """Return by kernel and size what a site does in a second: operations, or bytes that a map touches.

    All are measured in turn several times, and the best counts: a busy moment does not hit all turns.
    """
    programs: dict[tuple[str, int], tuple[EinGraph, int, float]] = {}
    for kind in _KINDS:
        for n in _PRODUCTS if kind == "f32" else (256,):
            programs[kind, n] = _product(n, dtypes.parse(kind)), 2 * n**3, _GUESS_FLOPS
    graph = _distances(256)
    programs["join", 256] = graph, flops(graph.nodes[-1]), _GUESS_FLOPS
    for n in _MAPS:
        programs |= {(name, n): (_map(n, name), 8 * n, _GUESS_BYTES) for name in _FUNCTIONS}
    best = dict.fromkeys(programs, 0.0)
    for _ in range(_TURNS):
        for key, program in programs.items():
            best[key] = max(best[key], _rate(executor, *program, overhead))
    return best


def _fitted(sizes: Sequence[float], rates: Sequence[float]) -> tuple[float, float]:
    """Return `flops` and `half` so that ``flops · (n/(n + half))³`` is nearest to `rates`."""

    def misfit(half: float) -> tuple[float, float]:
        logs = [log(rate) - 3 * log(n / (n + half)) for n, rate in zip(sizes, rates, strict=True)]
        mean = float(np.average(logs, weights=sizes))
        return float(np.average((np.array(logs) - mean) ** 2, weights=sizes)), float(np.exp(mean))

    best = min(np.linspace(0.0, max(sizes) / 4, 257).tolist(), key=lambda half: misfit(half)[0])
    return misfit(best)[1], best


# ----------------------------------------------------------------------------------------- links


def _hosts(executor: Executor) -> tuple[int, ...]:
    """Return a number for the host of every site."""
    if not isinstance(executor, Cluster):
        return (0,) * executor.sites
    names = [engine.host for engine in executor.info()]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return tuple(numbers[name] for name in names)


def _memory(hosts: Sequence[int]) -> float:
    """Return the bytes of memory of this machine for each of the sites that share a machine."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):  # no POSIX system
        return inf
    return total / max(Counter(hosts).values())


def _links(executor: Executor, hosts: Sequence[int]) -> tuple[Link, Link]:
    """Return the link within a host and that between two; where there is only one kind, twice that."""
    pairs = list(combinations(range(len(hosts)), 2))
    near = next((pair for pair in pairs if hosts[pair[0]] == hosts[pair[1]]), None)
    far = next((pair for pair in pairs if hosts[pair[0]] != hosts[pair[1]]), None)
    measured = [None if pair is None else _link(executor, pair) for pair in (near, far)]
    known = next((link for link in measured if link is not None), Link(_MOST_BANDWIDTH, 0.0))
    return measured[0] or known, measured[1] or known


def _link(executor: Executor, pair: tuple[int, int]) -> Link:
    """Return what joins two sites: messages of several sizes thrown to and fro."""
    taken = [median(_throw(executor, pair, size) for _ in range(_TURNS)) for size in _MESSAGES]
    small = max(taken[0], 0.0)
    rates = [size / max(t - small, 1e-9) for size, t in zip(_MESSAGES[1:], taken[1:], strict=True)]
    gap = min(small, *(_pace(executor, pair) for _ in range(_TURNS)))
    return Link(min(float(np.exp(np.mean(np.log(rates)))), _MOST_BANDWIDTH), small - gap, gap)


def _pace(executor: Executor, pair: tuple[int, int]) -> float:
    """Return the time from one small message to the next, of many that are sent at once."""
    a, b = pair
    tasks: list[Task] = [Read(a, "X", whole((_MOST, 8)), (_MOST, 8), dtypes.F32, 0)]
    for k in range(_MOST):
        box = ((k, k + 1), (0, 8))
        tasks.append(Slice(a, (0,), box, (1, 8), dtypes.F32, 0))
        tasks.append(Move(b, (len(tasks) - 1,), (1, 8), dtypes.F32, 0))
        tasks.append(Slice(b, (len(tasks) - 1,), whole((1, 8)), (1, 8), dtypes.F32, 0))
    g = GraphBuilder()
    g.output("X", g.input("X", (_MOST, 8)))
    ran = _run(executor, TaskGraph(g.build(), executor.sites, tuple(tasks)))
    ends = [end for _, _, end in ran[b]]
    return max((max(ends) - min(ends)) / (_MOST - 1), 0.0)


def _throw(executor: Executor, pair: tuple[int, int], size: int) -> float:
    """Return how long a message of `size` bytes takes from site to site."""
    a, _ = pair
    graph = _map(size // 4, "neg")
    box = whole((size // 4,))
    times = _FEWEST * 2 if size > 1 << 16 else _MOST // 2
    tasks: list[Task] = [Read(a, "X", box, (size // 4,), dtypes.F32, 0)]
    tasks.append(Apply(a, (0,), box, (size // 4,), dtypes.F32, 1))
    for k in range(times):
        to = pair[(k + 1) % 2]
        tasks.append(Move(to, (len(tasks) - 1,), (size // 4,), dtypes.F32, 1))
        tasks.append(Slice(to, (len(tasks) - 1,), box, (size // 4,), dtypes.F32, 1))
    ran = _run(executor, TaskGraph(graph, executor.sites, tuple(tasks)))
    started = next(end for t, _, end in ran[a] if t == 1)
    ended = max(end for t, _, end in ran[a] if isinstance(tasks[t], Slice))
    return (ended - started) / times

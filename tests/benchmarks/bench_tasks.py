"""Tasks a second of the local executor: 10,000 small tasks, each with two dependencies.

Run ``python tests/benchmarks/bench_tasks.py [--tasks N]``.  Prints medians of interleaved repetitions, and
the time of the same numpy calls without any task graph as the scale.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from einsummable.builder import GraphBuilder
from einsummable.dtypes import F64
from einsummable.runtime.local import LocalExecutor
from einsummable.runtime.part import split
from einsummable.scalar import ScalarBuilder
from einsummable.taskgraph.tasks import Apply, Move, Output, Read, Task, TaskGraph


def lattice(tasks: int, sites: int, width: int = 50, n: int = 8) -> TaskGraph:
    """Return rows of sums of two neighbours in the row before; each site has an equal share of a row."""
    s = ScalarBuilder()
    join = s.build(s.call("add", s.arg(0), s.arg(1)))
    b = GraphBuilder()
    x, y = b.input("X", (n,), F64), b.input("Y", (n,), F64)
    b.output("Z", b.einsummable("i", [(x, "i"), (y, "i")], join))
    box = ((0, n),)
    site_of = [i * sites // width for i in range(width)]
    made: list[Task] = [Read(site, "X", box, (n,), F64, 0) for site in site_of]
    row = list(range(width))
    moved: dict[tuple[int, int], int] = {}

    def here(source: int, site: int) -> int:
        if made[source].site == site:
            return source
        if (source, site) not in moved:
            moved[source, site] = len(made)
            made.append(Move(site, (source,), (n,), F64, 2))
        return moved[source, site]

    for _ in range(tasks // width):
        below = row
        row = []
        for i in range(width):
            inputs = tuple(here(below[j], site_of[i]) for j in (i, (i + 1) % width))
            row.append(len(made))
            made.append(Apply(site_of[i], inputs, box, (n,), F64, 2))
    outputs = tuple(Output(f"Z{i}", (n,), F64, ((t, box),)) for i, t in enumerate(row))
    return TaskGraph(b.build(), sites, tuple(made), outputs)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    x = np.zeros(8)
    arrays = {"X": x, "Y": x}
    programs = {sites: lattice(args.tasks, sites) for sites in (1, 2)}
    local = LocalExecutor(2)
    times: dict[str, list[float]] = {}
    for _ in range(args.repeat):
        start = time.perf_counter()
        for _ in range(args.tasks):
            np.add(x, x)
        times.setdefault("numpy calls alone", []).append(time.perf_counter() - start)
        for sites, program in programs.items():
            start = time.perf_counter()
            split(program)
            times.setdefault(f"splitting for {sites} sites", []).append(time.perf_counter() - start)
            start = time.perf_counter()
            local.run(program, arrays)
            times.setdefault(f"local, {sites} sites", []).append(time.perf_counter() - start)
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(f"{name:24} {median * 1e3:8.1f} ms  {args.tasks / median:10,.0f} tasks/s")


if __name__ == "__main__":
    main()

"""Tasks a second, here and on engines: 10,000 small tasks, each with two dependencies.

einsummable bench tasks [--tasks 10000] [--repetitions 7]

Prints medians of interleaved repetitions, and the time of the same numpy calls without any task graph as the
scale.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import numpy as np

import einsummable as ein
from einsummable.builder import GraphBuilder
from einsummable.dtypes import F64
from einsummable.runtime.local import LocalExecutor
from einsummable.runtime.part import split
from einsummable.scalar import ScalarBuilder
from einsummable.taskgraph.tasks import Apply, Move, Output, Read, Task, TaskGraph

sys.path.insert(0, str(Path(__file__).parent))

from peers import interleaved


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


def rates(tasks: int, sites: int, repetitions: int) -> dict[str, list[float]]:
    """Return tasks a second, a figure a repetition: on engines, here, and without any task graph."""
    x = np.zeros(8)
    arrays = {"X": x, "Y": x}
    program, local = lattice(tasks, sites), LocalExecutor(sites)

    def calls_alone() -> None:
        for _ in range(tasks):
            np.add(x, x)

    with ein.Cluster(n=sites, threads=1) as cluster:
        times = interleaved(
            {
                "engines": lambda: cluster.run(program, arrays),
                "local": lambda: local.run(program, arrays),
                "splitting": lambda: split(program),
                "numpy calls alone": calls_alone,
            },
            repetitions,
        )
    return {name: [tasks / seconds for seconds in timing.seconds] for name, timing in times.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--sites", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=7)
    args = parser.parse_args()
    for name, figures in rates(args.tasks, args.sites, args.repetitions).items():
        least, middle, most = min(figures), statistics.median(figures), max(figures)
        print(f"{name:20} {middle:12,.0f} tasks/s ({least:,.0f} … {most:,.0f})")


if __name__ == "__main__":
    main()

"""The matrix chain within a quarter of the memory it would take: right, bounded, and how much slower.

einsummable bench memory [--size 4096] [--engines 2] [--p 64] [--share 4] [--repetitions 5]

Runs (A·B) + (C·(D·E)) on engines without a budget and with one of a `share`-th of what each site would take,
inputs and results at the driver, and the same on threads of this process.  Prints the growth of each engine's
resident memory during a run against its budget, and the time as a ratio to the run without one.  Exits with 1
if a result is wrong or an engine grows by more than its budget and a tenth.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from ipyparallel import interactive

import einsummable as ein
from einsummable.models import chain
from einsummable.taskgraph.allocate import allocate, least_budgets

sys.path.insert(0, str(Path(__file__).parent))

from peers import interleaved, table

ALLOWED = 1.1


@interactive
def resident(reset):
    """Return the most that this process has been since the last reset, and what it is now."""
    from pathlib import Path

    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return tuple(1024 * int(status[key].split()[0]) for key in ("VmHWM", "VmRSS"))


def growth(cluster, run):
    """Return by how many bytes each engine grows during `run`."""
    view = cluster.client[[engine.id for engine in cluster.info()]]
    before = view.apply_sync(resident, True)
    run()
    after = view.apply_sync(resident, False)
    return [peak - rss for (_, rss), (peak, _) in zip(before, after, strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--engines", type=int, default=2)
    parser.add_argument("--p", type=int, default=64)
    parser.add_argument("--share", type=int, default=4)
    parser.add_argument("--repetitions", type=int, default=5)
    args = parser.parse_args()
    arrays = chain.inputs(args.size)
    expected = chain.reference(**arrays)
    with ein.Cluster(n=args.engines, threads=1) as cluster:
        free = ein.compile(chain.TEXT, arrays, cluster=cluster, p=args.p)
        tasks = free.tasks
        needed = max(allocate(tasks).peaks)
        budget = max(needed // args.share, *least_budgets(tasks))
        plan = allocate(tasks, budget)
        print(
            f"chain of {args.size}, p = {args.p}, {args.engines} engines: a site would take "
            f"{needed / 1e6:.0f} MB, it may take {budget / 1e6:.0f} MB ({needed / budget:.1f} ×); planned: "
            f"{plan.written / 1e6:.0f} MB written, {plan.loaded / 1e6:.0f} MB loaded, of those inputs too"
        )

        def within():
            return cluster.run(tasks, arrays, memory=budget)

        # Libraries and the buffers of BLAS, which an engine loads once, are no blocks: a small run does that.
        ein.compile(chain.TEXT, chain.inputs(512), cluster=cluster, memory=budget).run()
        grown = growth(cluster, within)
        wrong = not np.allclose(within()["Z"], expected, rtol=1e-3, atol=1e-1)
        for site, n in enumerate(grown):
            print(f"  site {site}: grows by {n / 1e6:.0f} MB, {n / budget:.2f} × its budget")
        times = interleaved({"free": free.run, "within": within}, args.repetitions)
        local = ein.compile(chain.TEXT, arrays, sites=args.engines, p=args.p)
        limit = max(max(allocate(local.tasks, views=tuple(arrays)).peaks) // args.share, 1)
        limit = max(limit, *least_budgets(local.tasks, views=tuple(arrays)))
        executor = local.executor
        here = interleaved(
            {
                "free": local.run,
                "within": lambda: executor.run(local.tasks, arrays, memory=limit),
            },
            args.repetitions,
        )
    print(
        table(
            "time without a budget / time with it",
            {
                f"{args.engines} engines": (times["within"], {"without": times["free"]}),
                f"{args.engines} threads": (here["within"], {"without": here["free"]}),
            },
        )
    )
    too_much = max(grown) > ALLOWED * budget
    print("WRONG RESULT" if wrong else "the result is right", "GREW TOO MUCH" if too_much else "", sep="; ")
    sys.exit(int(wrong or too_much))


if __name__ == "__main__":
    main()

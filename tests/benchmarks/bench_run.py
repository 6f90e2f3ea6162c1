"""What must be reached: workloads against peers, as ratios, and rates; exit status 1 if one falls short.

einsummable bench run [--only WORD] [--sites 2] [--repetitions 7]

All use as many threads as there are sites.  Each is called once before, then in turn; medians of the ratios
of neighbours count, and their spread is printed.  First come the workloads on threads of this process, then
the chains on engines, small tasks a second, and blocks between processes.
"""

import argparse
import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import threadpoolctl

import einsummable as ein

sys.path.insert(0, str(Path(__file__).parent))

import bench_dataplane
import bench_tasks
import on_engines
from peers import compared, interleaved, reached
from workloads import WORKLOADS, Workload

CHAIN = 4096
TASKS = 10_000
#: Tasks a second.
ON_ENGINES, HERE = 20_000, 40_000


def main() -> int:
    """Print a line for each pair; return how the process is to end."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="the workloads whose name has this word in it")
    parser.add_argument("--sites", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=7)
    args = parser.parse_args()
    missing = sorted({p.package for w in WORKLOADS for p in w.peers if not installed(p.package)})
    for package in missing:
        print(f"{package} is not installed: its rows are left out")
    limit_threads(args.sites)
    print(f"{'':42} {'ours':>9}   {'peer':18} {'theirs':>9}  ratio (least … greatest), wanted")
    short = []
    for name, section in sections(args.sites, args.repetitions).items():
        if args.only in name:
            short += section()
    for line in short:
        print(f"falls short: {line}")
    return int(bool(short))


def sections(sites: int, repetitions: int) -> dict[str, Callable[[], list[str]]]:
    """Return by name what prints rows and returns those that fall short."""
    found = {w.name: partial(measure, w, sites, repetitions) for w in WORKLOADS}
    for skewed in (False, True):
        name = f"chain, {'skewed' if skewed else 'uniform'}, S = {CHAIN}, {sites} engines"
        found[name] = partial(on_engines.rows, CHAIN, skewed=skewed, engines=sites, repetitions=repetitions)
    found["small tasks"] = partial(small_tasks, sites, repetitions)
    found["data plane"] = partial(bench_dataplane.rows, repetitions)
    return found


def small_tasks(sites: int, repetitions: int) -> list[str]:
    """Print how many small tasks run in a second; return the rows that fall short."""
    rates = bench_tasks.rates(TASKS, sites, repetitions)
    wanted = {"engines": ON_ENGINES, "local": HERE}
    label = f"graph of {TASKS:,} small tasks, {sites} sites"
    short = []
    for name, least in wanted.items():
        short += reached(label, f"{name}, tasks/s", rates[name], least)
    return short


def installed(package: str) -> bool:
    """Return whether a peer can be asked."""
    return importlib.util.find_spec(package) is not None


def limit_threads(threads: int) -> None:
    """Give peers as many threads as there are sites; ours limits itself."""
    threadpoolctl.threadpool_limits(threads, user_api="blas")
    if installed("torch"):
        import torch

        torch.set_num_threads(threads)


def measure(workload: Workload, sites: int, repetitions: int) -> list[str]:
    """Print the rows of `workload`; return those that fall short."""
    arrays = workload.arrays()
    net = ein.compile(workload.text, sites=sites, **arrays)
    peers = [p for p in workload.peers if installed(p.package)]
    calls = {p.name: p.make(arrays) for p in peers}
    (ours,) = net.run().values()
    for name, call in calls.items():
        theirs = np.asarray(call())
        if not np.allclose(ours, theirs, rtol=1e-3, atol=workload.tolerance):
            worst = float(np.abs(ours - theirs).max())
            raise SystemExit(f"{workload.name}: {name} answers something else, by {worst:g}")
    del ours
    times = interleaved({"ours": net.run} | calls, repetitions)
    return compared(workload.name, times["ours"], [(p.name, times[p.name], p.at_least) for p in peers])


if __name__ == "__main__":
    sys.exit(main())

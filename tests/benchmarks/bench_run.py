"""What the local executor must reach: workloads against peers, as ratios; exit status 1 if one falls short.

einsummable bench run [--only WORD] [--sites 2] [--repetitions 7]

All use as many threads as there are sites.  Each is called once before, then in turn; medians of the ratios
of neighbours count, and their spread is printed.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

import numpy as np
import threadpoolctl

import einsummable as ein

sys.path.insert(0, str(Path(__file__).parent))

from peers import interleaved, ratio
from workloads import WORKLOADS, Workload


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
    for workload in WORKLOADS:
        if args.only in workload.name:
            short += measure(workload, args.sites, args.repetitions)
    for line in short:
        print(f"falls short: {line}")
    return int(bool(short))


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
    short = []
    for k, peer in enumerate(peers):
        middle, least, greatest = ratio(times[peer.name], times["ours"])
        label, mine = (workload.name, f"{1e3 * times['ours'].median:6.1f} ms") if not k else ("", "")
        print(
            f"{label:42} {mine:>9}   {peer.name:18} {1e3 * times[peer.name].median:6.1f} ms  "
            f"{middle:.2f} ({least:.2f} … {greatest:.2f}), {peer.at_least}"
            + ("" if middle >= peer.at_least else "  ← short"),
            flush=True,
        )
        if middle < peer.at_least:
            short.append(f"{workload.name} against {peer.name}: {middle:.2f}, wanted {peer.at_least}")
    return short


if __name__ == "__main__":
    sys.exit(main())

"""Simulated scaling on hosts of 64 sites: the matrix chain and LLaMA-7B's first token, EinDecomp and others.

einsummable bench scaling [--hosts 1 2 …] [--sites-per-host 64] [--programs chain skewed llama] [--save FILE]

Nothing is computed: runs are simulated, that of LLaMA for one of its 32 layers, which are alike and follow
each other.  ">" marks plans whose messages are too many to simulate: their time is at least that.  Exits with
1 where a named plan is faster than EinDecomp's, or might be.  A file that is saved to keeps what it has of
other programs and hosts; notebook 04 reads one.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import einsummable as ein
from einsummable.models import chain, llama
from einsummable.planner.hardware import cluster

LAYERS = llama.LLAMA_7B.layers
PROGRAMS = {
    "chain": (chain.TEXT, chain.shapes(40_000), 1),
    "skewed": (chain.TEXT, chain.shapes(40_000, skewed=True), 1),
    "llama": (llama.text(llama.Config(layers=1), scores=False), {}, LAYERS),
}


def main() -> int:
    """Print a table for each program; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--sites-per-host", type=int, default=64)
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=PROGRAMS)
    parser.add_argument("--save", type=Path, help="a JSON file of seconds by program, hosts and strategy")
    args = parser.parse_args()
    beaten = []
    for program in args.programs:
        text, shapes, times = PROGRAMS[program]
        for hosts in args.hosts:
            start = time.perf_counter()
            net = ein.compile(text, hardware=cluster(hosts, args.sites_per_host), **shapes)
            rows = net.explain().strategies
            told = [f"{row.name} {'> ' * row.at_least}{times * row.seconds:.4g} s" for row in rows]
            took = time.perf_counter() - start
            if args.save is not None:
                keep(args.save, program, hosts, {row.name: times * row.seconds for row in rows})
            print(
                f"{program} on {hosts} hosts: " + ", ".join(told) + f"  (planned in {took:.0f} s)", flush=True
            )
            worse = [row.name for row in rows[1:] if row.seconds < rows[0].seconds]
            beaten += [f"{program} on {hosts} hosts: {name}" for name in worse]
    print("MISSED: " + "; ".join(beaten) if beaten else "good: no named plan is faster")
    return int(bool(beaten))


def keep(path: Path, program: str, hosts: int, seconds: dict[str, float]) -> None:
    """Add a point to the file of results."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    points = found.setdefault(program, {}) | {str(hosts): {n: float(f"{s:.5g}") for n, s in seconds.items()}}
    found[program] = dict(sorted(points.items(), key=lambda point: int(point[0])))
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

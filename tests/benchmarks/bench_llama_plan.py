"""Planning LLaMA-7B, 4,096 tokens at once: seconds of one core for the plan, its placement and its tasks.

einsummable bench llama_plan [--layers 32] [--sites 64 128 1024]

The program is text in the language.  Asked for: plan and placement for 64 sites within 5 s and for 1,024
within 30 s; the TaskGraph for 128 sites within 30 s and 4 GB.  Seconds are of the processor, not of the wall:
what else the machine does plays no part.
"""

import argparse
import os
import resource
import sys
import time

# One core: the planner's numpy may not use more.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import einsummable as ein
from einsummable.models import llama
from einsummable.planner.eindecomp import plan
from einsummable.planner.placement import place
from einsummable.taskgraph.lower import lower

#: Seconds allowed for plan and placement, and for lowering; bytes allowed for all of it.
PLANNED, LOWERED, MEMORY = {64: 5.0, 1024: 30.0}, {128: 30.0}, 4e9


def timed(call):
    """Return the result of `call` and the seconds of the processor it took."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def shown(seconds, allowed):
    """Return seconds, and those allowed where somebody asked."""
    return f"{seconds:6.1f} s" + (f" of {allowed:.0f}" if allowed else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layers", type=int, default=llama.LLAMA_7B.layers)
    parser.add_argument("--sites", type=int, nargs="+", default=[64, 128, 1024])
    args = parser.parse_args()
    text = llama.text(llama.Config(layers=args.layers))
    graph, seconds = timed(lambda: ein.compile(text, sites=1).graph)
    print(f"LLaMA of {args.layers} layers: {len(graph.nodes)} nodes, read in {seconds:.1f} s")
    missed = 0
    for sites in args.sites:
        found, planning = timed(lambda n=sites: plan(graph, n))
        placement, placing = timed(lambda f=found, n=sites: place(f, n))
        allowed = PLANNED.get(sites)
        missed += allowed is not None and planning + placing > allowed
        line = f"{sites:5} sites: plan {planning:.1f} s, placement {placing:.1f} s, "
        line += f"together {shown(planning + placing, allowed)}"
        if sites in LOWERED:
            tasks, lowering = timed(lambda f=found, at=placement: lower(f, at))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            missed += lowering > LOWERED[sites] or peak > MEMORY
            line += f"; {len(tasks.tasks):,} tasks in {shown(lowering, LOWERED[sites])}, "
            line += f"{peak / 1e9:.1f} GB of {MEMORY / 1e9:.0f}; {tasks.bytes_moved / 1e9:.1f} GB would move"
        print(line, flush=True)
    print("good" if not missed else "MISSED")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()

"""Decoding: milliseconds a token and where they go, and how the planner splits a model next to Megatron.

einsummable bench decode [--engines 2] [--tokens 100] [--model FILE]

Without a file of llama2.c the model has random weights and the sizes of a small one.  Plans share the work
and move the fewest bytes; or they take the least simulated time, which for a small model may be that of one
site.  A token's time is that of one step as the caller sees it; *kernels* is what the busiest site computes,
*moves* what it waits for blocks of others, *overhead* all the rest: orders, results, scheduling, sampling.

The split of Megatron (Shoeybi et al., 2019) cuts heads and hidden units and sums twice a layer on every site:
on two sites each sum moves the activations twice.
"""

import argparse
import sys
import time
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import median

import numpy as np

import einsummable as ein
from einsummable.models import checkpoint, decoding, llama
from einsummable.models.checkpoint import Checkpoint
from einsummable.models.decoder import Decoder
from einsummable.planner.hardware import Hardware, host
from einsummable.runtime.cluster import Cluster
from einsummable.runtime.events import RunRecord


def random_model() -> Checkpoint:
    """Return a model of the sizes of stories260K."""
    config = llama.Config(layers=5, dim=64, hidden=172, heads=8, kv_heads=4, vocab=512, seq=512, tied=True)
    rng = np.random.default_rng(0)
    weights = {
        name: (rng.standard_normal([n for _, n in labels]) / labels[0][1] ** 0.5).astype(np.float32)
        for name, labels in decoding.shapes(config).items()
    }
    return Checkpoint(config, weights)


def parts(record: RunRecord) -> tuple[float, float]:
    """Return how long the busiest site computed, and how long it then waited for blocks of others."""
    found = []
    for log in record.logs:
        if not log.ran:  # a site that the plan leaves out
            continue
        busy = sum(end - begin for _, begin, end in log.ran)
        waited, free = 0.0, log.ran[0][1]
        arrivals = sorted(when for _, when in log.received)
        for _, begin, end in log.ran:
            # A site that waits for a block starts the next task when it has arrived.
            late = [when for when in arrivals if free < when <= begin]
            waited += late[-1] - free if late else 0.0
            free = end
        found.append((busy, waited))
    return max(found)


def decode(model: Checkpoint, engines: int, tokens: int, hardware: Hardware | None = None) -> None:
    """Print the parts of a token's time."""
    with Cluster(n=engines, threads=1) as cluster:
        decoder = Decoder(model.config, model.weights, cluster=cluster, hardware=hardware)
        steps = decoder.generate([[1]], tokens + 10)
        walls, kernels, moves = [], [], []
        for n in range(tokens + 10):
            start = time.perf_counter()
            next(steps)
            wall = time.perf_counter() - start
            if n >= 10:
                busy, waited = parts(decoder.net.last)
                walls.append(wall)
                kernels.append(busy)
                moves.append(waited)
        tasks = decoder.net.tasks
    whole, busy, waited = (1e3 * median(x) for x in (walls, kernels, moves))
    aim = "" if hardware is None else ", planned for time"
    print(
        f"{engines} engines{aim}: {whole:.2f} ms a token = kernels {busy:.2f} + moves {waited:.2f} "
        f"+ overhead {whole - busy - waited:.2f}; {len(tasks.tasks)} tasks, {tasks.bytes_moved} bytes a token"
    )


def split(name: str) -> int:
    """Print the bytes of our plan for 2 sites and those of Megatron's; return how many are more."""
    config = llama.MODELS[name]
    net = ein.compile(llama.text(config), sites=2)
    ours = net.tasks.bytes_moved
    megatron = config.layers * 2 * 2 * 4 * config.batch * config.seq * config.dim
    print(
        f"{name}, {config.seq} tokens, 2 sites: {ours / 1e9:.3f} GB; Megatron's split {megatron / 1e9:.3f} GB"
    )
    return max(0, ours - megatron)


def main() -> int:
    """Print both; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engines", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--model", type=Path, help="a .bin of llama2.c, or a folder with safetensors")
    parser.add_argument("--split", nargs="*", default=["llama-7b"], choices=list(llama.MODELS))
    args = parser.parse_args()
    model = checkpoint.load(args.model) if args.model else random_model()
    for engines in args.engines:
        decode(model, engines, args.tokens)
        if engines > 1:
            decode(model, engines, args.tokens, replace(host(engines), memory=inf))
    return int(sum(map(split, args.split)) > 0)


if __name__ == "__main__":
    sys.exit(main())

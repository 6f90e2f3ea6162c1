"""Blocks between two processes: through shared memory and over loopback TCP, against memcpy in the same run.

einsummable bench dataplane [--repetitions 7]

One process sends blocks, 100 MB of them, the other answers each with an empty frame; the peer copies the
same blocks within one process.  Prints GB/s as medians of interleaved repetitions, and what sending costs a
loop of matrix products that goes on meanwhile.  Exits with 1 if a target is missed.
"""

import argparse
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from einsummable.runtime.address import Address
from einsummable.runtime.transport import Mesh

SIZES = {"64 KB": 1 << 16, "1 MB": 1 << 20, "10 MB": 10 << 20, "100 MB": 100 << 20}
TOTAL = 100 << 20
TARGETS = ("1 MB", "10 MB", "100 MB")
SHARED_MEMORY, TCP = 0.5, 1.5

ANSWER = """
import pickle, sys, threading
from einsummable.runtime.transport import Mesh
done = threading.Event()
def take(peer, kind, run, tag, payload):
    assert payload[-1] == tag
    mesh.send(peer, kind, run, tag)
mesh = Mesh(1, b"k" * 32, take, lambda peer, reason: done.set())
sys.stdout.buffer.write(pickle.dumps(mesh.address))
sys.stdout.close()
done.wait()
mesh.close()
"""


class Route:
    """A connection to another process."""

    def __init__(self, tcp):
        self.answered = threading.Semaphore(0)
        self.mesh = Mesh(0, b"k" * 32, lambda *_: self.answered.release(), lambda *_: None)
        self.process = subprocess.Popen([sys.executable, "-c", ANSWER], stdout=subprocess.PIPE)
        with self.process.stdout as pipe:
            address = pickle.load(pipe)
        self.mesh.dial(1, Address("", "", address.hosts, address.port) if tcp else address)

    def send(self, blocks):
        """Send `blocks`, and wait for the answers."""
        for block in blocks:
            self.mesh.send(1, 0, 0, int(block[-1]), block)
        for _ in blocks:
            self.answered.acquire()

    def close(self):
        self.mesh.close()
        self.process.wait(10)


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def throughput(routes, repetitions):
    """Return GB/s by size and way, and how many targets were missed."""
    missed = 0
    print(f"{'block':8} {'memcpy':>8} {'shared memory':>22} {'tcp':>8}   GB/s")
    for name, size in SIZES.items():
        # As many blocks as no cache holds: the blocks of a program are others each time, too.
        blocks = [np.full(size, n, np.uint8) for n in (k % 200 for k in range(TOTAL // size))]
        warm = [np.zeros(size, np.uint8) for _ in blocks]

        def copy(blocks=blocks, warm=warm):
            for block, to in zip(blocks, warm, strict=True):
                to[...] = block

        calls = {"memcpy": copy}
        calls |= {
            way: (lambda route=route, blocks=blocks: route.send(blocks)) for way, route in routes.items()
        }
        seconds = {way: [] for way in calls}
        for way in calls:
            calls[way]()
        for _ in range(repetitions):
            for way, call in calls.items():
                seconds[way].append(timed(call))
        rate = {way: size * len(blocks) / median(s) / 1e9 for way, s in seconds.items()}
        ratio = median(m / s for m, s in zip(seconds["memcpy"], seconds["shared memory"], strict=True))
        shared = f"{rate['shared memory']:8.1f} = {ratio:4.2f} × memcpy"
        print(f"{name:8} {rate['memcpy']:8.1f} {shared} {rate['tcp']:8.1f}")
        if name in TARGETS:
            missed += (ratio < SHARED_MEMORY) + (rate["tcp"] < TCP)
    return missed


def overlap(route, repetitions, tile=1024, tiles=24):
    """Print what sending every result costs a loop of matrix products."""
    a, b = (np.ones((tile, tile), np.float32) for _ in range(2))
    outs = [np.empty((tile, tile), np.float32) for _ in range(tiles)]

    def work(send):
        for out in outs:
            np.matmul(a, b, out=out)
            if send:
                route.mesh.send(1, 0, 0, int(out.view(np.uint8).reshape(-1)[-1]), out)
        for _ in outs if send else ():
            route.answered.acquire()

    alone, both = [], []
    for _ in range(repetitions):
        alone.append(timed(lambda: work(False)))
        both.append(timed(lambda: work(True)))
    ratio = median(x / y for x, y in zip(both, alone, strict=True))
    size = outs[0].nbytes >> 20
    print(f"a matrix product for every block of {size} MB that is sent: ×{ratio:.2f} of the products alone")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=9)
    args = parser.parse_args()
    routes = {"shared memory": Route(tcp=False), "tcp": Route(tcp=True)}
    try:
        missed = throughput(routes, args.repetitions)
        overlap(routes["shared memory"], args.repetitions)
    finally:
        for route in routes.values():
            route.close()
    print(f"targets: shared memory ≥ {SHARED_MEMORY} × memcpy, tcp ≥ {TCP} GB/s: ", end="")
    print("met" if not missed else f"{missed} missed")
    sys.exit(int(missed > 0))


if __name__ == "__main__":
    main()

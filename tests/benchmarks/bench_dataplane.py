"""Blocks between two processes: through shared memory and over loopback TCP, against memcpy in the same run.

einsummable bench dataplane [--repetitions 7]

One process sends blocks, 100 MB of them, the other answers each with an empty frame; the peer copies the
same blocks within one process.  Prints GB/s as medians of interleaved repetitions, and what sending costs a
loop of matrix products that goes on meanwhile.  Exits with 1 if something falls short.
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

from einsummable.runtime.address import Address
from einsummable.runtime.transport import Mesh

sys.path.insert(0, str(Path(__file__).parent))

from peers import compared, interleaved, reached

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
    """Print rows for every size and way; return those that fall short."""
    short = []
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
        times = interleaved(calls, repetitions)
        label = f"blocks of {name} between processes"
        wanted = SHARED_MEMORY if name in TARGETS else 0
        short += compared(f"{label}, shared", times["shared memory"], [("memcpy", times["memcpy"], wanted)])
        rates = [size * len(blocks) / seconds / 1e9 for seconds in times["tcp"].seconds]
        short += reached(label, "tcp, GB/s", rates, TCP if name in TARGETS else 0)
    return short


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


def rows(repetitions):
    """Print all rows; return those that fall short."""
    routes = {"shared memory": Route(tcp=False), "tcp": Route(tcp=True)}
    try:
        short = throughput(routes, repetitions)
        overlap(routes["shared memory"], repetitions)
    finally:
        for route in routes.values():
            route.close()
    return short


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=9)
    args = parser.parse_args()
    short = rows(args.repetitions)
    for line in short:
        print(f"falls short: {line}")
    sys.exit(int(bool(short)))


if __name__ == "__main__":
    main()

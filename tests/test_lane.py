"""Blocks by MPI: the two ends of a socket find out whether it joins them, and what it carries arrives."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from ipyparallel import Cluster as Launcher
from ipyparallel import interactive
from test_engine import matmul

from einsummable.runtime.cluster import connect
from einsummable.runtime.lane import lane, meet

BIN = Path(sys.executable).parent

PAIR = """
import threading, time
import numpy as np
from mpi4py import MPI
from einsummable.runtime.address import Address
from einsummable.runtime.transport import Mesh

world = MPI.COMM_WORLD
me, other = world.rank, 1 - world.rank
SIZES = [0, 1, 1 << 15, (1 << 17) + 3, (1 << 20) - 1, 1 << 20, (3 << 20) + 5, 9 << 20]


class Site:
    def __init__(self):
        self.got, self.lost, self.all = [], threading.Event(), threading.Event()
        self.mesh = Mesh(me, b"k" * 32, self.take, lambda *_: self.lost.set())

    def take(self, peer, kind, run, tag, payload):
        self.got.append((kind, run, tag, payload.nbytes, bool((payload == tag).all())))
        if len(self.got) == len(SIZES):
            self.all.set()

    def talk(self):
        for n, size in enumerate(SIZES):
            self.mesh.send(other, 3, 7, n, np.full(size, n, np.uint8))
        assert self.all.wait(30)
        assert self.got == [(3, 7, n, size, True) for n, size in enumerate(SIZES)]


carried = 0
for _ in range(3):  # both ends are new each time, two meshes side by side
    sites = [Site(), Site()]
    theirs = world.sendrecv([s.mesh.address for s in sites], other)
    if me == 0:
        for site, address in zip(sites, theirs):
            site.mesh.dial(1, Address("", "", address.hosts, address.port))
    for site in sites:
        assert not site.mesh.wait_for([other], 20)
    threads = [threading.Thread(target=site.talk) for site in sites]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(site.all.is_set() for site in sites)
    world.sendrecv(None, other)
    if me == 0:
        sites[0].mesh.close()
    else:
        assert sites[0].lost.wait(20)
    world.sendrecv(None, other)
    for site in sites:
        site.mesh.close()
carried = sites[0].mesh.lane.carried
assert carried >= 3 * 2 * sum(size for size in SIZES if size >= 1 << 20), carried
left = [t.name for t in threading.enumerate() if t.name.startswith("mesh")]
assert not left, left
"""


@pytest.fixture
def mpiexec(monkeypatch):
    """Let `mpiexec` of this environment be found."""
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    return BIN / "mpiexec"


def both(one, other):
    """Call both at the same time and return what they answer."""
    found = {}
    threads = [
        threading.Thread(target=lambda k=k, f=f: found.update({k: f()})) for k, f in ((0, one), (1, other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found[0], found[1]


def test_a_process_that_mpiexec_did_not_start_has_no_lane():
    assert lane() is None


def test_without_mpi_two_ends_agree_that_there_is_none():
    one, other = socket.socketpair()
    with one, other:
        assert both(lambda: meet(one, None, 5), lambda: meet(other, None, 5)) == (None, None)
        one.sendall(b"what comes next")
        assert other.recv(100) == b"what comes next"


def test_an_end_that_says_nothing_is_not_waited_for_long():
    one, other = socket.socketpair()
    with one, other:
        began = time.monotonic()
        with pytest.raises(TimeoutError, match="timed out"):
            meet(one, None, 0.05)
        assert time.monotonic() - began < 5
        other.close()
        with pytest.raises(OSError, match=r"gone|reset|Broken pipe"):
            meet(one, None, 1.0)


class Deaf:
    """A lane to a world in which nobody answers."""

    rank, size = 0, 2

    class Nothing:
        def wait(self, timeout):
            return False

    def send(self, *_):
        return self.Nothing()

    receive = send


class DeafPeer(Deaf):
    rank = 1


def test_equal_numbers_in_two_worlds_are_no_way():
    one, other = socket.socketpair()
    with one, other:
        assert both(lambda: meet(one, Deaf(), 5), lambda: meet(other, DeafPeer(), 5)) == (None, None)


@pytest.mark.cluster
def test_large_blocks_of_one_world_go_by_mpi_and_all_arrive(mpiexec, tmp_path):
    program = tmp_path / "pair.py"
    program.write_text(PAIR)
    run = subprocess.run(
        [mpiexec, "-n", "2", sys.executable, program],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@interactive
def alone():
    """Let this engine believe that it is on a host of its own; return its rank."""
    from mpi4py import MPI

    from einsummable.runtime import address, service

    name = f"host {MPI.COMM_WORLD.rank}"
    address.machine = service.machine = lambda: name
    address._own_hosts = lambda: ("127.0.0.1",)
    return MPI.COMM_WORLD.rank


@interactive
def carried():
    """Return the bytes that went out of this engine by MPI."""
    from einsummable.runtime.lane import lane

    return lane().carried


@pytest.mark.cluster
def test_engines_under_mpi_on_two_hosts_send_blocks_by_mpi(mpiexec):
    taskgraph, rng = matmul(1000), np.random.default_rng(0)
    data = {name: rng.random((1000, 1000)) for name in "AB"}
    with Launcher(n=2, engines="mpi", log_level=40) as client:
        assert sorted(client[:].apply_sync(alone)) == [0, 1]
        with connect(client, n=2, timeout=60) as cluster:
            for _ in range(3):
                before = sum(client[:].apply_sync(carried))
                np.testing.assert_allclose(cluster.run(taskgraph, data)["Z"], data["A"] @ data["B"])
                assert sum(client[:].apply_sync(carried)) - before == taskgraph.bytes_moved == 8_000_000

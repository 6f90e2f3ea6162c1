"""Memory that blocks travel through: lent, given back, used again, and never two things at once."""

import gc
import os
import socket
import threading
import time

import numpy as np
import psutil
import pytest
from test_transport import echo, sites  # noqa: F401 - fixtures

from einsummable.runtime import pool as pools
from einsummable.runtime.address import Address
from einsummable.runtime.pool import Pool, swap

BIG = 1 << 20


def soon(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def taken(mesh):
    """Return what of the pool readers still have."""
    with mesh.pool._lock:
        mesh.pool._take_back()
        return len(mesh.pool._lent)


@pytest.fixture
def pair(sites):  # noqa: F811
    a, b = sites(0), sites(1)
    a.mesh.dial(1, b.mesh.address)
    b.mesh.wait_for([0], 5)
    return a, b


def test_what_is_lent_stays_as_it_is_until_nobody_looks_at_it(pair):
    a, b = pair
    for n in range(6):
        a.mesh.send(1, 0, 0, n, np.full(BIG, n, np.uint8))
    b.wait(lambda s: len(s.frames) == 6)
    kept = [frame[-1].view(np.int32).reshape(4, -1)[1:] for frame in b.frames]  # views of views
    b.frames.clear()
    gc.collect()
    assert taken(a.mesh) == 6
    assert all((block.view(np.uint8) == n).all() for n, block in enumerate(kept))
    with pytest.raises(ValueError, match="read-only"):
        kept[0][...] = 1
    del kept[3:]
    soon(lambda: taken(a.mesh) == 3)
    assert all((block.view(np.uint8) == n).all() for n, block in enumerate(kept))
    del kept
    soon(lambda: taken(a.mesh) == 0)


def test_the_same_bytes_are_used_again(pair):
    a, b = pair
    for n in range(50):
        a.mesh.send(1, 0, 0, 0, np.full(BIG, n, np.uint8))
        b.wait(lambda s: len(s.frames) == 1)
        assert (b.frames.pop()[-1] == n).all()
        soon(lambda: taken(a.mesh) == 0)
    assert a.mesh.pool._space.used == BIG


def test_a_discontiguous_array_goes_as_its_elements(pair):
    a, b = pair
    x = np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024)
    a.mesh.send(1, 0, 0, 0, x.T)
    b.wait(lambda s: len(s.frames) == 1)
    np.testing.assert_array_equal(b.frames[0][-1].view(np.float32).reshape(1024, 1024), x.T)


def test_a_full_pool_is_gone_round(sites, monkeypatch):  # noqa: F811
    monkeypatch.setattr(pools, "_MOST", 3 * BIG)
    a, b = sites(0), sites(1)
    a.mesh.dial(1, b.mesh.address)
    for n in range(8):
        a.mesh.send(1, 0, 0, n, np.full(BIG, n, np.uint8))
    b.wait(lambda s: len(s.frames) == 8)
    assert [frame[3] for frame in b.frames] == list(range(8))
    assert all((frame[-1] == frame[3]).all() for frame in b.frames)
    assert [frame[-1].flags.writeable for frame in b.frames] == [False] * 3 + [True] * 5


def test_without_shared_memory_blocks_go_through_the_socket(sites, monkeypatch):  # noqa: F811
    monkeypatch.delattr(os, "memfd_create")
    a = sites(0)
    monkeypatch.undo()
    b = sites(1)
    a.mesh.dial(1, b.mesh.address)
    b.mesh.wait_for([0], 5)
    for one, other in ((a, b), (b, a)):
        one.mesh.send(other.mesh.site, 0, 0, 0, np.ones(BIG, np.uint8))
        other.wait(lambda s: len(s.frames) == 1)
        assert other.frames[0][-1].all()
    assert a.mesh.pool.descriptor == -1
    assert not a.frames[0][-1].flags.writeable
    assert b.frames[0][-1].flags.writeable


def test_what_a_killed_reader_had_is_used_again(sites, echo):  # noqa: F811
    a = sites(0)
    process, address = echo()
    a.mesh.dial(1, address)
    a.mesh.send(1, 0, 0, 0, np.ones(BIG, np.uint8))
    a.wait(lambda s: len(s.frames) == 1)
    process.kill()
    a.wait(lambda s: s.lost)
    soon(lambda: taken(a.mesh) == 0)


def test_what_a_killed_sender_lent_stays(sites, echo):  # noqa: F811
    a = sites(0)
    process, address = echo()
    a.mesh.dial(1, address)
    a.mesh.send(1, 0, 0, 0, np.full(BIG, 7, np.uint8))
    a.wait(lambda s: len(s.frames) == 1)
    process.kill()
    process.wait()
    a.wait(lambda s: s.lost)
    assert (a.frames[0][-1] == 7).all()


def test_a_payload_goes_where_one_says_and_one_is_told_when_it_is_gone(sites):  # noqa: F811
    a, b = sites(0), sites(1)
    places = {7: np.zeros(BIG, np.uint8)}
    asked = []

    def place(peer, kind, run, tag, nbytes):
        asked.append((peer, kind, run, tag, nbytes))
        return places.get(tag)

    b.mesh.place = place
    a.mesh.dial(1, b.mesh.address)
    gone = threading.Event()
    a.mesh.send(1, 3, 4, 7, np.full(BIG, 9, np.uint8), pooled=False, gone=gone.set)
    a.mesh.send(1, 3, 4, 8, np.full(BIG, 5, np.uint8), pooled=False)
    assert gone.wait(20)
    b.wait(lambda s: len(s.frames) == 2)
    assert asked == [(0, 3, 4, 7, BIG), (0, 3, 4, 8, BIG)]
    assert (places[7] == 9).all()
    assert b.frames[0][-1] is places[7]
    assert (b.frames[1][-1] == 5).all()


def test_a_pool_has_no_name(pair):
    a, _ = pair
    assert a.mesh.pool.descriptor >= 0
    maps = [m.path for m in psutil.Process().memory_maps() if "einsummable" in m.path]
    assert maps
    assert all(path.startswith("/memfd:") for path in maps)


def test_a_peer_that_speaks_of_memory_that_is_not_there_is_let_go(pair):
    a, b = pair
    a.mesh.pool.put = lambda *_: 1 << 40
    a.mesh.send(1, 0, 0, 0, np.ones(BIG, np.uint8))
    b.wait(lambda s: s.lost)
    assert "memory that is not there" in b.lost[0][1]


def test_silence_instead_of_memory_has_an_end():
    one, other = socket.socketpair()
    with one, other:
        with pytest.raises(TimeoutError, match="timed out"):
            swap(one, -1, 0.05)
        other.close()
        with pytest.raises(OSError, match=r"gone|reset|Broken pipe"):
            swap(one, -1, 1.0)


def test_over_tcp_buffers_are_warm(sites):  # noqa: F811
    a, b = sites(0), sites(1)
    a.mesh.dial(1, Address("", "", b.mesh.address.hosts, b.mesh.address.port))
    seen = set()
    for n in range(20):
        a.mesh.send(1, 0, 0, 0, np.full(BIG, n, np.uint8))
        b.wait(lambda s: len(s.frames) == 1)
        payload = b.frames.pop()[-1]
        assert (payload == n).all()
        assert payload.flags.writeable
        seen.add(payload.ctypes.data)
        del payload
    assert len(seen) <= 2


def test_a_pool_that_is_closed_twice_is_closed():
    pool = Pool()
    assert pool.put(1, np.ones(10, np.uint8)) == 0
    pool.close()
    pool.close()
    assert pool.put(1, np.ones(10, np.uint8)) is None

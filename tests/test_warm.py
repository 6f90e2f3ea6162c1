"""Memory that is used again: never by two arrays at once, and no more of it than may be kept."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from einsummable.kernels import warm
from einsummable.kernels.warm import Buffers, empty

BIG = 1 << 20


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 1 << 18), min_size=1, max_size=20), st.data())
def test_buffers_never_share(sizes, data):
    buffers, held = Buffers(1 << 12), []
    for n in sizes:
        fresh = buffers.take(n)
        assert fresh.nbytes == n
        assert fresh.flags.writeable
        assert not any(np.shares_memory(fresh, other) for other in held)
        held.append(fresh)
        if data.draw(st.booleans()):
            held.pop(data.draw(st.integers(0, len(held) - 1)))
        del fresh


def test_memory_is_used_again_only_when_no_view_of_it_is_left():
    buffers = Buffers()
    first = buffers.take(BIG)
    part = first.view(np.float32).reshape(512, -1)[1:, ::2].T
    at = first.ctypes.data
    del first
    gc.collect()
    assert buffers.take(BIG).ctypes.data != at
    del part
    assert at in {x.ctypes.data for x in [buffers.take(BIG), buffers.take(BIG)]}


def test_arrays_begin_at_a_line_of_the_cache():
    held = [Buffers().take(BIG + n) for n in range(4)]
    assert {x.ctypes.data % 64 for x in held} == {0}


def test_buffers_keep_no_more_than_they_may_and_what_was_used_last(monkeypatch):
    monkeypatch.setattr(warm, "KEPT", 1 << 22)
    buffers = Buffers()
    old = [buffers.take(1 << 18) for _ in range(20)]
    new = [buffers.take(1 << 20) for _ in range(3)]
    owners = [[weakref.ref(a.base.obj) for a in arrays] for arrays in (old, new)]
    del old
    del new
    buffers.take(1 << 19)
    there = [[owner().nbytes for owner in some if owner() is not None] for some in owners]
    assert len(there[1]) == 3
    assert 0 < len(there[0]) < 5
    assert sum(map(sum, there)) <= 1 << 22


def test_within_a_budget_nothing_waits():
    buffers = Buffers()

    def owners(arrays):
        return [weakref.ref(a.base.obj) for a in arrays]

    before = [buffers.take(BIG)]
    there = owners(before)
    del before
    with buffers.frugal():
        assert there[0]() is None
        with buffers.frugal():
            meanwhile = [buffers.take(BIG) for _ in range(2)]
            there = owners(meanwhile)
            meanwhile.pop()
        buffers.take(BIG)
        assert [owner() is not None for owner in there] == [True, False]
    del meanwhile
    assert there[0]() is not None
    assert buffers.take(BIG).base.obj is there[0]()


@pytest.mark.parametrize("shape", [(), (0, 5), (3, 4), (1 << 17, 3), (300, 0, 300), (700, 700)])
@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.bool_, np.complex64])
def test_an_empty_array_is_like_numpys(shape, dtype):
    ours, theirs = empty(shape, np.dtype(dtype)), np.empty(shape, dtype)
    assert (ours.shape, ours.dtype, ours.strides) == (theirs.shape, theirs.dtype, theirs.strides)
    assert ours.flags.writeable
    ours[...] = 1


def test_many_threads_take_and_drop():
    buffers = Buffers()

    def work(k):
        for n in range(200):
            x = buffers.take(LARGE + 4096 * (n % 3))
            x[:] = k
            assert (x == k).all()

    LARGE = warm.LARGE
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))

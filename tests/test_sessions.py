"""Sessions: tensors that stay, runs that follow each other, and nothing that grows."""

import gc
import os
import time

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import einsummable as ein
from einsummable.errors import ShapeError
from einsummable.runtime import wire
from einsummable.runtime.cluster import Cluster
from einsummable.taskgraph.allocate import least_budgets

pytestmark = pytest.mark.cluster

STEP = "W2[i,j] = W[i,j] - lr * (sum[b] X[b,i] * X[b,j])"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(n=2, threads=1) as cluster:
        yield cluster


def compiled(cluster, n=32):
    rng = np.random.default_rng(0)
    arrays = {"X": rng.integers(-3, 4, (8, n)).astype(np.float32), "W": np.zeros((n, n), np.float32)}
    net = ein.compile(STEP, arrays, lr=1.0, cluster=cluster)
    net.put(**arrays)
    return net, arrays


@pytest.fixture
def sent(cluster, monkeypatch):
    """What the driver sends and receives, kinds of frames with bytes of payload."""
    seen = []
    real_send, real_frame = cluster._engines.mesh.send, cluster._engines.mesh.on_frame

    def send(peer, kind, run=0, tag=0, payload=b"", **options):
        seen.append((kind, payload.nbytes if hasattr(payload, "nbytes") else len(payload)))
        real_send(peer, kind, run, tag, payload, **options)

    def on_frame(peer, kind, run, tag, payload):
        seen.append((kind, payload.nbytes))
        real_frame(peer, kind, run, tag, payload)

    monkeypatch.setattr(cluster._engines.mesh, "send", send)
    monkeypatch.setattr(cluster._engines.mesh, "on_frame", on_frame)
    return seen


def test_weights_are_renewed_where_they_are(cluster, sent):
    net, arrays = compiled(cluster)
    w = net.run(keep=True)["W2"]
    tasks = net.tasks
    sent.clear()
    for step in range(2, 20):
        w = net.run(keep=True, W=w, lr=float(step))["W2"]
        assert cluster.last.taskgraph is tasks  # new scalars need no new plan
        moved = {tasks.graph.name_of(tasks.tasks[e.task].origin) for e in cluster.last.moves}
        assert moved <= {"X"}  # halves of the weights are renewed where they are
    assert not {wire.INPUT, wire.STORE, wire.RESULT} & {kind for kind, _ in sent}
    expected = -sum(range(1, 20)) * (arrays["X"].T @ arrays["X"])
    np.testing.assert_array_equal(w.fetch(), expected)


PARTS = st.one_of(st.integers(-9, 8), st.slices(9), st.just(...))


@settings(deadline=None, max_examples=60)
@given(st.lists(PARTS, max_size=4).map(tuple), st.sampled_from([(2, 2), (3, 1), (1, 1)]))
def test_a_part_is_what_numpy_says(cluster, part, parts):
    array = np.arange(81.0).reshape(9, 9)
    tensor = cluster.put(array, parts=parts)
    try:
        expected = array[part]
    except IndexError:
        with pytest.raises(ShapeError, match="has no part"):
            tensor[part]
    else:
        got = tensor[part]
        np.testing.assert_array_equal(got, expected)
        assert np.shape(got) == np.shape(expected)


def test_only_blocks_with_the_part_move(cluster, sent):
    array = np.arange(10_000.0).reshape(100, 100)
    tensor = cluster.put(array, parts=(10, 1))
    sent.clear()
    np.testing.assert_array_equal(tensor.fetch((slice(15, 25), 3)), array[15:25, 3])
    assert [n for kind, n in sent if kind == wire.RESULT] == [8000, 8000]
    whole = tensor.fetch()
    whole[...] = 0  # it is the caller's own
    np.testing.assert_array_equal(tensor.fetch(), array)


def state(cluster):
    """Descriptors and memory of driver and engines, and what is in /dev/shm."""
    processes = [psutil.Process(), *(psutil.Process(e.pid) for e in cluster.info())]
    memory = np.array([p.memory_info().rss for p in processes])
    return [p.num_fds() for p in processes], sorted(os.listdir("/dev/shm")), memory


@pytest.mark.slow
def test_a_thousand_runs_leak_nothing(cluster):
    net, arrays = compiled(cluster, n=256)
    rng = np.random.default_rng(1)
    far = rng.integers(-3, 4, (64, 4096)).astype(np.float32)  # a megabyte: it goes through shared memory
    wide = ein.compile("Y[a,b] = sum[k] A[a,k] * A[b,k]", A=far, cluster=cluster)
    least = 2 * max(least_budgets(wide.tasks)) + (1 << 20)  # beside the tensors that stay
    begun, turns = time.monotonic(), 0
    w, seen = net.run(keep=True)["W2"], []
    while turns < 1000 and time.monotonic() - begun < 100:
        w = net.run(keep=True, W=w, lr=float(turns % 3))["W2"]
        if turns % 10 == 0:
            wide.run(A=far)
            net.run(W=arrays["W"], lr=1.0)
            cluster.run(wide.tasks, {"A": far}, memory=least)
        turns += 1
        if turns in (300, 650, 1000):
            gc.collect()
            seen.append(state(cluster))
    assert turns == 1000
    files, shared, memory = zip(*seen, strict=True)
    assert files[0] == files[1] == files[2]
    assert shared[0] == shared[1] == shared[2]
    # 350 runs that each forgot one block of W would be 45 MB.
    assert (memory[2] - memory[1]).max() < 8 << 20

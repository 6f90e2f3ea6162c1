"""Maps write over blocks that nobody reads after them, and over no others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same
from test_engine import assert_computed, programs, run_in_turn

import einsummable as ein
from einsummable.kernels import blocks, compiled, machine
from einsummable.runtime.engine import load
from einsummable.runtime.part import split
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.tasks import Apply, evaluate

pytestmark = pytest.mark.skipif(not machine.available(), reason="llvmlite is not installed")


@pytest.fixture(autouse=True)
def _all_compiled(monkeypatch):
    monkeypatch.setattr(compiled, "SMALL", 1)
    blocks.prepare.cache_clear()
    yield
    blocks.prepare.cache_clear()


def overwriting(taskgraph):
    """Return the names of the maps that write over a block, and how many do."""
    graph, found = taskgraph.graph, []
    for part in split(taskgraph):
        for task, position in zip(part.tasks, part.overwrites, strict=True):
            if isinstance(task, Apply) and position >= 0:
                found.append(graph.name_of(task.origin))
    return sorted(found)


def lowered(text, **arrays):
    net = ein.compile(text, sites=1, **arrays)
    return lower(net.plan, net.placement)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("H[i,j] = sum[k] A[i,k]*B[k,j]\nY[i,j] = abs(H[i,j]) + A[i,j]\noutput Y", ["Y"]),
        ("H[i,j] = sum[k] A[i,k]*B[k,j]\nY[i,j] = abs(H[i,j])\nZ[i,j] = H[i,j] + 1\noutput Y, Z", []),
        ("H[i,j] = sum[k] A[i,k]*B[k,j]\nY[i,j] = abs(H[i,j])\noutput H, Y", []),
        ("H[i,j] = sum[k] A[i,k]*B[k,j]\nY[j,i] = abs(H[i,j])\noutput Y", []),
        ("H[i,j] = sum[k] A[i,k]*B[k,j]\nY[i,j] = H[i,j] - H[j,i]\noutput Y", []),
        ("H[i,j] = sum[k] A[i,k]*B[k,j]\nY[i,j] = H[i,j] < 0\noutput Y", []),
        ("Y[i,j] = abs(A[i,j]) + B[i,j]", []),
    ],
    ids=["dies", "read again", "a result", "turned", "both ways", "another dtype", "inputs"],
)
def test_what_is_written_over(text, names):
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(-4, 5, (20, 20)).astype(np.float32) for name in "AB"}
    taskgraph = lowered(text, **arrays)
    assert overwriting(taskgraph) == names
    before = {name: x.copy() for name, x in arrays.items()}
    assert_same(run_in_turn(taskgraph, arrays, {}), evaluate(taskgraph, arrays))
    for name, x in arrays.items():
        np.testing.assert_array_equal(x, before[name])


def test_the_result_has_the_memory_of_what_it_was_made_of():
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(-4, 5, (20, 20)).astype(np.float32) for name in "AB"}
    taskgraph = lowered("H[i,j] = sum[k] A[i,k]*B[k,j]\nY[i,j] = abs(H[i,j])\noutput Y", **arrays)
    (part,) = split(taskgraph)
    i = next(i for i, n in enumerate(part.overwrites) if n >= 0)
    kernel, at = load(part).steps[i]
    block = arrays["A"].copy()
    assert kernel([block], at, {}) is block
    np.testing.assert_array_equal(block, np.abs(arrays["A"]))
    block = arrays["A"].copy()
    block.flags.writeable = False  # it is lent
    assert kernel([block], at, {}) is not block
    np.testing.assert_array_equal(block, arrays["A"])


@settings(deadline=None, max_examples=60)
@given(programs(), st.integers(0, 9), st.booleans())
def test_random_programs_compute_the_same(taskgraph, seed, as_bytes):
    assert_computed(taskgraph, seed, as_bytes)

"""Fusion: the same results with fewer tasks, tile by tile, and nothing computed that a mask hides."""

from dataclasses import replace
from queue import SimpleQueue

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same, data_for
from test_engine import programs

import einsummable as ein
from einsummable import codec
from einsummable.errors import TaskError
from einsummable.kernels import blocks, chain, compiled, masks, schedule, sharing
from einsummable.runtime.engine import load, run_site
from einsummable.runtime.local import LocalExecutor
from einsummable.runtime.part import split, take
from einsummable.taskgraph.allocate import allocate, least_budgets
from einsummable.taskgraph.check import check
from einsummable.taskgraph.fuse import fuse
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.tasks import Apply, Fused, Step, TaskGraph, evaluate

ATTENTION = """
S[b,h,q,k] = where(k <= q, sum[d] Q[b,q,h,d] * K[b,k,h,d] / sqrt(extent(d)), -inf)
P[b,h,q,k] = softmax[k](S[b,h,q,k])
O[b,q,h,d] = P[b,h,q,k] * V[b,k,h,d]
"""


@pytest.fixture
def small_tiles(monkeypatch):
    """Cut as if the cache held a few numbers only."""
    monkeypatch.setattr(sharing, "TILE_BYTES", 128)
    monkeypatch.setattr(sharing, "ROWS", 2)
    monkeypatch.setattr(masks, "STEP", 2)
    chain.chain.cache_clear()
    yield
    chain.chain.cache_clear()


@pytest.fixture
def all_compiled(monkeypatch):
    """Make loops of what is far too small for them, products of tiles as well."""
    monkeypatch.setattr(compiled, "SMALL", 1)
    for cached in (compiled.product_of_tiles, blocks.prepare, chain.chain):
        cached.cache_clear()
    yield
    for cached in (compiled.product_of_tiles, blocks.prepare, chain.chain):
        cached.cache_clear()


def lowered(text, sites=1, **shapes):
    net = ein.compile(text, sites=sites, **shapes)
    return lower(net.plan, net.placement)


def kinds(taskgraph):
    return [type(task).__name__ for task in taskgraph.tasks]


@settings(deadline=None, max_examples=80)
@given(programs(), st.integers(0, 9))
def test_fusing_changes_no_result(taskgraph, seed):
    arrays, params = data_for(taskgraph.graph, seed)
    fused = fuse(taskgraph)
    check(fused)
    want = evaluate(taskgraph, arrays, params)
    assert_same(evaluate(fused, arrays, params), want)
    assert_same(LocalExecutor(fused.sites).run(fused, arrays, params), want)
    assert codec.from_json(TaskGraph, codec.to_json(fused)) == fused
    assert "taskgraph of" in str(fused)


def test_fusing_changes_no_result_with_small_tiles(small_tiles):
    test_fusing_changes_no_result()


@settings(deadline=None, max_examples=50)
@given(programs(), st.integers(0, 9))
def test_fused_tasks_keep_to_a_budget_and_change_no_result(taskgraph, seed):
    arrays, params = data_for(taskgraph.graph, seed)
    fused, views = fuse(taskgraph), tuple(taskgraph.graph.inputs)
    want = evaluate(taskgraph, arrays, params)
    least = max(least_budgets(fused, views=views))
    for budget in sorted({least, max(least, *allocate(fused, views=views).peaks)}):
        executor = LocalExecutor(fused.sites, memory=budget)
        for _ in range(2):  # the second run finds what the first one left
            assert_same(executor.run(fused, arrays, params), want)


@pytest.mark.parametrize("share", [0, 1])
def test_attention_within_a_budget(share, small_tiles):
    arrays = attention_arrays()
    net = ein.compile(ATTENTION, sites=2, p=6, **arrays)
    fused = fuse(lower(net.plan, net.placement))
    assert sum(isinstance(t, Fused) for t in fused.tasks) > 2
    views = tuple(fused.graph.inputs)
    least, most = max(least_budgets(fused, views=views)), max(allocate(fused, views=views).peaks)
    got = LocalExecutor(2, memory=most if share else least).run(fused, arrays)["O"]
    np.testing.assert_allclose(got, evaluate(fused, arrays)["O"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "shapes", "steps"),
    [
        (ATTENTION, dict.fromkeys("QKV", (2, 9, 3, 4)), 7),
        ("Y[i,k] = softmax[k](X[i,k])", {"X": (9, 7)}, 4),
        ("D[i,j] = sum[k] (X[i,k]-T[j,k])**2\nn[i] = min[j] D[i,j]", {"X": (9, 4), "T": (8, 4)}, 2),
        ("H[b,h] = relu(sum[d] X[b,d]*W[d,h])\nY[b,o] = H[b,h]*V[h,o]",
         {"X": (9, 4), "W": (4, 5), "V": (5, 3)}, 3),
    ],
    ids=["attention", "softmax", "neighbours", "layers"],
)  # fmt: skip
def test_a_chain_that_shares_a_label_is_one_task(text, shapes, steps):
    fused = fuse(lowered(text, **shapes))
    (task,) = [t for t in fused.tasks if isinstance(t, Fused)]
    assert len(task.steps) == steps
    assert task.origin == task.steps[-1].origin
    assert "Apply" not in kinds(fused)


def test_what_others_read_stays_apart():
    taskgraph = lowered("H[i] = exp(X[i])\nY[i] = H[i] * 2\noutput H, Y", X=(6,))
    assert kinds(fuse(taskgraph)) == kinds(taskgraph)
    through = lowered("C[i,k] = A[i,j] * B[j,k]\nD[k,i] = C[k,j] * C[i,j]", A=(3, 4), B=(4, 3))
    assert "Fused" not in kinds(fuse(through))


def test_large_products_stay_apart_but_take_their_maps():
    shapes = {"X": (2048, 512), "W": (512, 4096), "V": (4096, 512)}
    fused = fuse(lowered("H[b,h] = relu(sum[d] X[b,d]*W[d,h])\nY[b,o] = H[b,h]*V[h,o]", **shapes))
    (task,) = [t for t in fused.tasks if isinstance(t, Fused)]
    assert [step.origin for step in task.steps] == [3, 4]
    assert kinds(fused).count("Apply") == 1


def attention_arrays(dtype=np.float32):
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal((2, 11, 3, 4)).astype(dtype) for name in "QKV"}


def run_both(text, arrays):
    net = ein.compile(text, sites=1, **arrays)
    taskgraph = lower(net.plan, net.placement)
    fused = fuse(taskgraph)
    assert len(fused.tasks) < len(taskgraph.tasks)
    (got,) = LocalExecutor(1).run(fused, arrays).values()
    (want,) = evaluate(taskgraph, arrays).values()
    return got, want


@pytest.mark.parametrize(
    "condition",
    ["k <= q", "k < q", "q >= k", "(k <= q) * (k > q - 4)", "k - q <= 2", "k < 0", "k >= q", "2*k <= q + 3"],
)
def test_a_mask_hides_what_it_hides_and_no_more(condition, small_tiles):
    got, want = run_both(ATTENTION.replace("k <= q", condition), attention_arrays())
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("condition", ["k <= q", "(k <= q) * (k > q - 4)", "k >= q"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("extents", [(2, 11, 3, 4), (1, 150, 2, 20)])
def test_tiles_of_compiled_products(condition, dtype, extents, small_tiles, all_compiled):
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(extents).astype(dtype) for name in "QKV"}
    got, want = run_both(ATTENTION.replace("k <= q", condition), arrays)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("Y[i,k] = softmax[k](X[i,k])", {"X": (19, 37)}),
        ("Y[i,k] = rmsnorm[k](X[i,k])", {"X": (19, 37)}),
        ("D[i,j] = sum[k] (X[i,k]-T[j,k])**2\nn[i] = min[j] D[i,j]", {"X": (190, 2), "T": (60, 2)}),
        ("H[b,h] = relu(sum[d] X[b,d]*W[d,h])\nY[b,o] = H[b,h]*V[h,o]",
         {"X": (190, 4), "W": (4, 50), "V": (50, 2)}),
    ],
    ids=["softmax", "rmsnorm", "neighbours", "layers"],
)  # fmt: skip
def test_tiles_of_compiled_loops(text, shapes, small_tiles, all_compiled):
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    got, want = run_both(text, arrays)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_a_run_chooses_no_kernel(monkeypatch, small_tiles):
    arrays = attention_arrays()
    (part,) = split(fuse(lowered(ATTENTION, **{name: x.shape for name, x in arrays.items()})))
    program = load(part)
    for name in ("prepare", "product_of_tiles"):
        monkeypatch.setattr(schedule, name, lambda *_: pytest.fail("a kernel is chosen while others wait"))
    result = run_site(program, inputs=take(part, arrays), params={}, send=pytest.fail, inbox=SimpleQueue())
    (got,) = result.blocks.values()
    want = evaluate(lowered(ATTENTION, **{name: x.shape for name, x in arrays.items()}), arrays)["O"]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["Q", "K", "V"])
@pytest.mark.parametrize("at", [0, 5, 10])
def test_what_is_not_finite_comes_out_as_if_nothing_were_spared(value, name, at, small_tiles):
    arrays = attention_arrays()
    arrays[name][1, at, 2, 1] = value
    got, want = run_both(ATTENTION, arrays)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("hidden", ["-inf", "0", "-5", "nan", "q*1.0", "-inf + 0*k"])
def test_hidden_values_that_are_no_identity_count(hidden, small_tiles):
    text = ATTENTION.replace("-inf", hidden)
    got, want = run_both(text, attention_arrays())
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("out", "last"),
    [
        ("b,h,q,k", "P[b,h,q,k]"),
        ("b,q,k", "sum[h] P[b,h,q,k]"),
        ("b,h,q", "max[k] P[b,h,q,k]"),
        ("b,h,q", "sum[k] (P[b,h,q,k] + 1)"),
        ("b,h,q", "sum[k] P[b,h,q,k] * k"),
    ],
)
def test_results_that_show_the_hidden_part(out, last, small_tiles):
    text = "\n".join([*ATTENTION.strip().splitlines()[:2], f"Z[{out}] = {last}", "output Z"])
    arrays = {name: x for name, x in attention_arrays().items() if name != "V"}
    got, want = run_both(text, arrays)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_half_of_causal_attention_is_not_computed(monkeypatch):
    work = []
    prepare = schedule.prepare

    def counted(call, shape):
        kernel = prepare(call, shape)

        def counting(*args):
            work.append(np.prod(shape) if call.node.is_contraction else 0)
            return kernel(*args)

        return counting

    monkeypatch.setattr(schedule, "prepare", counted)
    monkeypatch.setattr(schedule, "product_of_tiles", lambda *_: None)
    chain.chain.cache_clear()
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((1, 2048, 1, 8)).astype("f4") for name in "QKV"}
    got, _ = run_both(ATTENTION, arrays)
    chain.chain.cache_clear()
    assert got.shape == (1, 2048, 1, 8)
    assert sum(work) < 0.6 * 2 * 2048 * 2048 * 8


@pytest.mark.parametrize(
    ("condition", "ranges", "answer"),
    [
        ("k <= q", {"k": (0, 4), "q": (3, 9)}, True),
        ("k <= q", {"k": (0, 5), "q": (3, 9)}, None),
        ("k <= q", {"k": (9, 12), "q": (3, 9)}, False),
        ("k == q", {"k": (2, 3), "q": (2, 3)}, True),
        ("k != q", {"k": (0, 3), "q": (3, 5)}, True),
        ("minimum(k, 3) > q", {"k": (5, 9), "q": (0, 3)}, True),
        ("-k < 0*q", {"k": (1, 9), "q": (0, 3)}, True),
        ("sin(k) <= q", {"k": (0, 1), "q": (3, 9)}, None),
    ],
)
def test_conditions_are_decided_for_whole_ranges(condition, ranges, answer):
    graph = ein.compile(f"Z[k,q] = where({condition}, X[k,q], 0)", X=(12, 12)).graph
    join = graph.nodes[-1].join
    assert masks.decide(join, join.ops[-1].args[0], ranges) is answer


def broken(fused, **change):
    i = next(i for i, t in enumerate(fused.tasks) if isinstance(t, Fused))
    task = replace(fused.tasks[i], **change)
    return TaskGraph(fused.graph, fused.sites, (*fused.tasks[:i], task, *fused.tasks[i + 1 :]), fused.outputs)


def test_check_names_what_is_wrong_with_a_fused_task():
    fused = fuse(lowered("Y[i,k] = softmax[k](X[i,k])", X=(9, 7)))
    (task,) = [t for t in fused.tasks if isinstance(t, Fused)]
    first, *rest = task.steps
    cases = [
        ({"steps": ()}, "does not end in a kernel call of its own node"),
        ({"steps": task.steps[:-1]}, "does not end in a kernel call of its own node"),
        ({"steps": (Step(0, first.ranges, ()), *rest)}, "its step 0 is no kernel call of %0"),
        ({"steps": (Step(99, first.ranges, ()), *rest)}, "its step 0 belongs to %99, which does not exist"),
        ({"steps": (Step(first.origin, first.ranges, (1,)), *rest)}, "step 0 reads 1, which does not come"),
        ({"steps": (Step(first.origin, ((0, 3), (0, 7)), (0,)), *rest)}, "input 0 of step 0 has shape"),
        ({"shape": (3, 7)}, r"has shape \(3, 7\), what it makes has \(9, 7\)"),
    ]
    for change, message in cases:
        with pytest.raises(TaskError, match=message):
            check(broken(fused, **change))


def test_fused_tasks_run_on_every_site():
    arrays = attention_arrays()
    net = ein.compile(ATTENTION, sites=3, p=3, **arrays)
    fused = fuse(lower(net.plan, net.placement))
    assert sum(isinstance(t, Fused) for t in fused.tasks) == 3
    assert not any(isinstance(t, Apply) for t in fused.tasks)
    got = LocalExecutor(3).run(fused, arrays)["O"]
    np.testing.assert_allclose(got, evaluate(fused, arrays)["O"], rtol=1e-5, atol=1e-6)

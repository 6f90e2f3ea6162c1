"""One-hot sums: every term is added in one place, as a loop over all places would have it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import einsummable as ein
from einsummable.dtypes import BF16, BOOL, C128, F16, F32, F64, I32, I64, kind
from einsummable.evaluate import evaluate
from einsummable.kernels.blocks import Call, prepare
from einsummable.kernels.fused import fused
from einsummable.kernels.scatter_add import FEW, ScatterAdd, add_rows
from einsummable.nodes import Einsummable
from einsummable.taskgraph.tasks import Fused
from einsummable.work import flops

#: Sums, and the labels of what they read.
SUMS = [
    ("Z[r,d] = sum[t] where(i[t] == r, g[t,d], 0)", {"i": "t", "g": "td"}),
    ("Z[d,r] = sum[t] where(r == i[t], g[d,t], 0)", {"i": "t", "g": "dt"}),
    ("Z[r] = sum[t,u] where(i[u,t] == r, g[t,u] * (t + 1), 0)", {"i": "ut", "g": "tu"}),
    ("Z[b,r,d] = sum[t] where(i[b,t] == r, g[b,t,d] * h[b,d], 0)", {"i": "bt", "g": "btd", "h": "bd"}),
    ("Z[r,d,s] = sum[t] where(i[t] == r, where(s == j[t], g[t,d], 0), 0)", {"i": "t", "j": "t", "g": "td"}),
    ("Z[s,r] = sum[t,u] where(i[t] == r, where(j[u] == s, g[t,u], 0), 0)", {"i": "t", "j": "u", "g": "tu"}),
    ("Z[r] = sum[t] where(i[t] == r, 2.5, 0)", {"i": "t"}),
    ("Z[r] = sum[t] where(i[t] == r, t, 0)", {"i": "t"}),
]


def graph_of(text, reads, extent, dtype=F64, index=I64):
    declared = [
        f"input {name}[{','.join(f'{x}={extent[x]}' for x in labels)}] {index if name in 'ij' else dtype}"
        for name, labels in reads.items()
    ]
    fixed = "; ".join(f"extent {label} = {n}" for label, n in extent.items() if f"{label}" in text)
    names = {
        F64: "f64",
        F32: "f32",
        F16: "f16",
        BF16: "bf16",
        C128: "c128",
        BOOL: "bool",
        I64: "i64",
        I32: "i32",
    }
    lines = "\n".join(declared)
    for d, name in names.items():
        lines = lines.replace(f"] {d}", f"] {name}")
    return ein.compile(f"{fixed}\n{lines}\n{text}", sites=1).graph


def arrays_for(graph, rows, seed):
    """Indices, some of which are no row, and few different ones; small whole numbers."""
    rng, found = np.random.default_rng(seed), {}
    for name, node in graph.inputs.items():
        low, high = (-1, rows + 1) if name in "ij" else (0, 2) if node.dtype == BOOL else (-4, 5)
        found[name] = np.asarray(rng.integers(low, high, node.shape)).astype(node.dtype)
    return found


@settings(max_examples=80)
@given(
    st.sampled_from(SUMS),
    st.fixed_dictionaries(
        {x: st.integers(0 if x in "td" else 1, 4) for x in "rsdbu"} | {"t": st.integers(0, 30)}
    ),
    st.sampled_from([F64, F32, C128, I64, BOOL, F16, BF16]),
    st.sampled_from([I64, I32]),
    st.integers(0, 99),
    st.data(),
)
def test_it_is_what_a_loop_over_all_rows_makes(case, extent, dtype, index, seed, data):
    graph = graph_of(*case, extent, dtype, index)
    node, arrays = graph.nodes[-1], arrays_for(graph, max(extent["r"], extent["s"]), seed)
    assert isinstance(node, Einsummable)
    assert node.one_hot
    ranges = tuple(
        sorted((data.draw(st.integers(0, n)), data.draw(st.integers(0, n)))) for _, n in node.space
    )
    shape, at = tuple(b - a for a, b in ranges), tuple(a for a, _ in ranges)
    call = Call.of(graph, node)
    blocks = [
        arrays[graph.nodes[j].name][tuple(slice(*r) for r in node.in_box(k, ranges))]
        for k, j in enumerate(node.inputs)
    ]
    kernel = prepare(call, shape)
    assert isinstance(kernel, ScatterAdd)
    got, want = kernel(blocks, at, {}), fused(node, call.args, (), shape)(blocks, at, {})
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)
    out = np.empty(want.shape[::-1], want.dtype).T
    assert kernel(blocks, at, {}, out) is out
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("times", [1, 2, FEW, FEW + 1, 200])
def test_terms_that_come_together_are_all_added(times):
    rng = np.random.default_rng(0)
    to = rng.permutation(np.repeat([5, 0, 3], [times, 1, 2]))
    value, terms = rng.standard_normal((len(to) + 3, 4)), rng.permutation(len(to) + 3)[: len(to)]
    sums, want = np.zeros((6, 4)), np.zeros((6, 4))
    add_rows(sums, to, value, terms)
    np.add.at(want, to, value[terms])
    np.testing.assert_allclose(sums, want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "text",
    [
        "Z[r,d] = sum[t] where(E[r,t] == r, g[t,d], 0)",  # compared along the row itself
        "Z[r,d] = sum[t] where(i[t] == r, g[t,d] * E[r,d], 0)",  # a value that depends on the row
        "Z[r,d] = sum[t] where(i[t] == r, g[t,d] * r, 0)",
        "Z[r,d] = sum[t] where(i[t] == r, g[t,d], 1)",
        "Z[r,d] = sum[t] where(i[t] <= r, g[t,d], 0)",
        "Z[r,d] = max[t] where(i[t] == r, g[t,d], 0)",
        "Z[t,d] = sum[r] where(i[t] == r, E[r,d], 0)",
    ],
)
def test_other_sums_go_through_all_rows(text):
    shapes = {"i": np.zeros(5, int), "g": (5, 4), "E": (4, 4) if "E[r,d]" in text else (4, 5)}
    given_ = {n: x for n, x in shapes.items() if f"{n}[" in text}
    graph = ein.compile("extent r = 4\n" + text, sites=1, **given_).graph
    assert not graph.nodes[-1].one_hot


def test_the_gradient_of_a_table_is_one_pass():
    rng = np.random.default_rng(0)
    arrays = {
        "E": rng.standard_normal((50, 6)),
        "tok": rng.integers(0, 50, 40),
        "G": rng.standard_normal((40, 6)),
    }
    text = "H[t,d] = E[tok[t],d]\nL = sum[t,d] tanh(H[t,d]) * G[t,d]\ndE = grad L wrt E"
    want = np.zeros((50, 6))
    taken = arrays["E"][arrays["tok"]]
    np.add.at(want, arrays["tok"], arrays["G"] * (1 - np.tanh(taken) ** 2))
    for sites in (1, 2, 3, 5):
        net = ein.compile(text, arrays, sites=sites)
        node = net.graph.nodes[dict(net.graph.outputs)["dE"]]
        assert isinstance(prepare(Call.of(net.graph, node), (50, 6, 40)), ScatterAdd)
        assert flops(node) < 3 * 40 * 6 + 1
        for task in net.tasks.tasks:
            if isinstance(task, Fused):
                assert not any(net.graph.nodes[step.origin].one_hot for step in task.steps)
        np.testing.assert_allclose(net.run()["dE"], want, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(evaluate(net.graph, arrays)["dE"], want, rtol=1e-10, atol=1e-12)


def test_an_index_of_floats_is_compared_as_it_is():
    i, g = np.array([0.0, 0.5, 1.0, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])
    net = ein.compile("extent r = 2\nZ[r] = sum[t] where(i[t] == r, g[t], 0)", i=i, g=g, sites=1)
    assert kind(net.graph.inputs["i"].dtype) == "f"
    assert net.run()["Z"].tolist() == [1.0, 7.0]

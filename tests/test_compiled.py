"""Compiled loops against the graph's oracle: joins, aggregates, dtypes, strides, nan and infinities."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same, data_for, graphs
from test_kernels import has_meaning, run_by_kernels, strided

from einsummable.builder import GraphBuilder
from einsummable.dtypes import BOOL, F32, F64, I32
from einsummable.evaluate import evaluate
from einsummable.functions import FUNCTIONS
from einsummable.kernels import compiled, machine
from einsummable.kernels.blocks import prepare
from einsummable.nodes import Einsummable
from einsummable.scalar import ScalarBuilder

pytestmark = pytest.mark.skipif(not machine.available(), reason="llvmlite is not installed")


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EINSUMMABLE_CACHE", str(tmp_path_factory.mktemp("kernels")))
        patch.setattr(compiled, "SMALL", 1)
        prepare.cache_clear()
        yield
    prepare.cache_clear()


def loops(call, shape):
    """Return the compiled loops of `call` where there are any."""
    if not isinstance(call.node, Einsummable):
        return prepare(call, shape)
    return compiled.compiled(call.node, call.args, call.params, shape) or prepare(call, shape)


@settings(deadline=None, max_examples=40)
@given(graphs(max_nodes=2), st.integers(0, 4), st.integers(0, 9))
def test_random_programs_equal_the_oracle(graph, how, seed):
    arrays, params = data_for(graph, seed)
    assert_same(run_by_kernels(graph, arrays, params, loops, how), evaluate(graph, arrays, params))


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(graphs(max_nodes=4), st.integers(0, 4), st.integers(0, 9))
def test_many_random_programs_equal_the_oracle(graph, how, seed):
    arrays, params = data_for(graph, seed)
    assert_same(run_by_kernels(graph, arrays, params, loops, how), evaluate(graph, arrays, params))


def one(join, labels, shapes, out, aggregate=None, dtype=F32):
    b = GraphBuilder()
    ids = [b.input(f"X{k}", shape, dtype) for k, shape in enumerate(shapes)]
    b.output("Z", b.einsummable(out, list(zip(ids, labels, strict=True)), join, aggregate))
    return b.build()


def special(rng, shape, dtype):
    """Return values among which every special one stands."""
    if dtype == BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    values = rng.integers(-4, 5, shape).astype(dtype)
    if dtype in (F32, F64):
        values = values / 2
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40, 3e38, -120.0, 100.0], dtype)
        at = rng.random(shape) < 0.1
        values[at] = rng.choice(odd, at.sum())
    return values.astype(dtype)


COMPILED = ["add", "sub", "mul", "div", "neg", "lt", "le", "gt", "ge", "eq", "ne", "exp", "sqrt", "rsqrt",
            "square", "abs", "sign", "relu", "sigmoid", "silu", "floor", "where", "minimum", "maximum",
            "isnan", "f32", "f64", "bool"]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in COMPILED for dtype in (F32, F64, I32, BOOL) if has_meaning(name, dtype)],
)
def test_every_function_with_nan_and_infinities(name, dtype):
    row = FUNCTIONS[name]
    s = ScalarBuilder()
    join = s.build(s.call(name, *(s.arg(k) for k in range(row.arity))))
    graph = one(join, ["ij"] * row.arity, [(5, 37)] * row.arity, "ij", dtype=dtype)
    rng = np.random.default_rng(5)
    arrays = {name: special(rng, (5, 37), dtype) for name in graph.inputs}
    got, want = run_by_kernels(graph, arrays, {}, loops)["Z"], evaluate(graph, arrays)["Z"]
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=2e-7 if want.dtype == F32 else 1e-15, atol=1e-44)


@pytest.mark.parametrize("dtype", [F32, I32, BOOL], ids=str)
@pytest.mark.parametrize("aggregate", ["sum", "prod", "max", "min", "any", "all"])
@pytest.mark.parametrize("out", ["ik", "ki", "k", ""])
def test_every_aggregate_along_every_label(out, aggregate, dtype):
    size = {"i": 9, "j": 70, "k": 33}
    s = ScalarBuilder()
    join = s.build(s.call("mul" if dtype == BOOL else "add", s.arg(0), s.arg(1)))
    shapes = [[size[x] for x in ls] for ls in ("ij", "jk")]
    graph = one(join, ["ij", "jk"], shapes, out, aggregate, dtype)
    rng = np.random.default_rng(1)
    arrays = {name: special(rng, n.shape, dtype) for name, n in graph.inputs.items()}
    if aggregate in ("sum", "prod"):
        arrays = {name: np.nan_to_num(x, posinf=1, neginf=-1).clip(-1, 1) for name, x in arrays.items()}
        arrays = {name: x.astype(dtype) for name, x in arrays.items()}
    for how in (0, 2):
        got = run_by_kernels(graph, arrays, {}, loops, how)["Z"]
        want = evaluate(graph, arrays)["Z"]
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def squares():
    s = ScalarBuilder()
    return s.build(s.call("pow", s.call("sub", s.arg(0), s.arg(1)), s.const(2)))


def test_long_sums_are_made_in_parts_and_stay_exact_enough():
    graph = one(squares(), ["ki", "kj"], [(30000, 5), (30000, 70)], "ij", "sum")
    rng = np.random.default_rng(0)
    arrays = {name: rng.random(n.shape, np.float32) for name, n in graph.inputs.items()}
    got = run_by_kernels(graph, arrays, {}, loops)["Z"]
    x, y = (arrays[name].astype(np.float64) for name in ("X0", "X1"))
    want = (x**2).sum(0)[:, None] + (y**2).sum(0) - 2 * x.T @ y
    np.testing.assert_allclose(got, want, rtol=2e-6)


@pytest.mark.parametrize("how", range(5))
def test_what_rows_share_is_copied_side_by_side(how):
    graph = one(squares(), ["ik", "jk"], [(130, 19), (83, 19)], "ij", "sum")
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(-9, 9, n.shape).astype(np.float32) for name, n in graph.inputs.items()}
    got = run_by_kernels(graph, arrays, {}, loops, how)["Z"]
    np.testing.assert_array_equal(got, evaluate(graph, arrays)["Z"])


@pytest.mark.parametrize("how", range(5))
def test_a_result_goes_where_it_is_wanted(how):
    graph = one(squares(), ["ik", "jk"], [(12, 6), (23, 6)], "ij", "sum")
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(-9, 9, n.shape).astype(np.float32) for name, n in graph.inputs.items()}
    out = strided(np.zeros((12, 23), np.float32), how)

    def into(call, shape):
        return lambda blocks, at, params: loops(call, shape)(blocks, at, params, out)

    assert run_by_kernels(graph, arrays, {}, into)["Z"] is out
    np.testing.assert_array_equal(out, evaluate(graph, arrays)["Z"])


def test_code_is_kept_on_disk_and_bad_files_are_not_run(tmp_path, monkeypatch):
    monkeypatch.setenv("EINSUMMABLE_CACHE", str(tmp_path / "cache"))
    text = 'define void @kernel(ptr %t) {\n store i64 7, ptr %t\n ret void\n}\n; "a test"\n'
    machine._loaded.cache_clear()

    def answer():
        table = np.zeros(1, np.int64)
        machine.function(text).call(table.ctypes.data)
        return table[0]

    assert answer() == 7
    (file,) = (tmp_path / "cache").iterdir()
    machine._loaded.cache_clear()
    monkeypatch.setattr(machine, "_compile", lambda _: pytest.fail("compiled a second time"))
    assert answer() == 7
    monkeypatch.undo()
    monkeypatch.setenv("EINSUMMABLE_CACHE", str(tmp_path / "cache"))
    good = file.read_bytes()
    file.write_bytes(good[:-5])
    machine._loaded.cache_clear()
    assert answer() == 7
    assert file.read_bytes() == good
    file.chmod(0o666)
    assert machine._read(file) is None


def test_a_cache_that_cannot_be_written_does_no_harm(monkeypatch):
    monkeypatch.setenv("EINSUMMABLE_CACHE", "/proc/nowhere")
    text = "define void @kernel(ptr %t) {\n store i64 8, ptr %t\n ret void\n}\n"
    table = np.zeros(1, np.int64)
    machine.function(text).call(table.ctypes.data)
    assert table[0] == 8


def test_without_the_compiler_all_is_as_before():
    code = (
        "import sys; sys.modules['llvmlite'] = None\n"
        "import numpy as np, einsummable as ein\n"
        "x = np.random.default_rng(0).random((300, 64), 'f4')\n"
        "d = ein.compile('D[i,j] = sum[k] (X[i,k] - X[j,k])**2', X=x, sites=2).run()['D']\n"
        "np.testing.assert_allclose(d, ((x[:, None] - x) ** 2).sum(-1), rtol=1e-4, atol=1e-4)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))


@pytest.mark.parametrize("fn", ["add", "sub", "mul"])
@pytest.mark.parametrize("aggregate", ["max", "min"])
@pytest.mark.parametrize("odd", [[], [np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [3e38, 3e38]])
def test_nan_is_seen_where_the_swift_loops_would_not(fn, aggregate, odd):
    s = ScalarBuilder()
    graph = one(s.build(s.call(fn, s.arg(0), s.arg(1))), ["ij", "jk"], [(40, 70), (70, 50)], "ik", aggregate)
    rng = np.random.default_rng(3)
    for where in ("X0", "X1", "both"):
        arrays = {name: rng.standard_normal(n.shape, np.float32) for name, n in graph.inputs.items()}
        for name, x in arrays.items():
            if where in (name, "both"):
                x[[5, 9][: len(odd)], [7, 7][: len(odd)]] = odd
        got = run_by_kernels(graph, arrays, {}, loops)["Z"]
        np.testing.assert_array_equal(got, evaluate(graph, arrays)["Z"])

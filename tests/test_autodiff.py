"""Gradients: every rule against central differences, by hand, in golden text, on many sites."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import data_for, graphs

import einsummable as ein
from einsummable import dtypes
from einsummable.autodiff import differentiate
from einsummable.autodiff.derivatives import RULES
from einsummable.builder import GraphBuilder, check
from einsummable.dtypes import BF16, BOOL, C128, F16, F32, F64, I64, ScalarType, kind
from einsummable.errors import DtypeError, ShapeError, UnknownNameError
from einsummable.evaluate import evaluate
from einsummable.functions import FUNCTIONS
from einsummable.language.elaborate import InputSpec, elaborate
from einsummable.language.parser import parse
from einsummable.models import llama
from einsummable.nodes import Einsummable, Position
from einsummable.pipeline import Compiled
from einsummable.scalar import ScalarBuilder
from einsummable.work import flops

EXTENT = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 1}


def program(text, scalars=None, **given):
    """Return the graph of `text` for inputs that are shapes (of f64) or arrays."""
    specs = {
        name: InputSpec(x, F64) if isinstance(x, tuple) else InputSpec(x.shape, x.dtype)
        for name, x in given.items()
    }
    return elaborate(parse(text), specs, scalars)


def run(text, scalars=None, **arrays):
    arrays = {name: np.asarray(x) for name, x in arrays.items()}
    return evaluate(program(text, scalars, **arrays), arrays, scalars)


def noise(rng, shape, dtype=F64):
    x = rng.normal(size=shape)
    return np.asarray(x + 1j * rng.normal(size=shape) if kind(dtype) == "c" else x).astype(dtype)


def slope(graph, arrays, params, name, along, of="L"):
    """Return the derivative of `of` as `name` moves along `along`, by central differences."""
    h = 1e-6
    ends = [
        evaluate(graph, arrays | {name: arrays[name] + s * h * along}, params)[of].item() for s in (1, -1)
    ]
    return (ends[0] - ends[1]) / (2 * h)


def inner(g, along):
    return np.sum(np.conj(g) * along).real


def assert_gradients(graph, arrays, params=None, names=None, seed=0, of="L"):
    """Hold the gradients of every input of floats to central differences along a random direction."""
    rng = np.random.default_rng(seed)
    names = [n for n, x in arrays.items() if kind(x.dtype) in "fc"] if names is None else names
    both = differentiate(graph, of, names)
    check(both)
    results = list(evaluate(both, arrays, params).values())
    for name, g in zip(names, results[-len(names) :], strict=True):
        x = arrays[name]
        assert (g.shape, g.dtype) == (x.shape, x.dtype)
        along = noise(rng, x.shape, x.dtype)
        want = slope(graph, arrays, params, name, along, of)
        assert inner(g, along) == pytest.approx(want, rel=2e-5, abs=2e-5), name
    return both


# ------------------------------------------------------------------------------ scalar functions

CORNERS = {"sign", "floor", "isnan", "lt", "le", "gt", "ge", "eq", "ne", "where"}


def meaningful(fn, dtype):
    try:
        _, type_ = FUNCTIONS[fn].rule(fn, [ScalarType(dtype)] * FUNCTIONS[fn].arity)
    except DtypeError:
        return False
    return kind(type_.dtype) in "fc" and type_.dtype not in (F16, BF16, F32, dtypes.C64)


def test_every_function_has_a_rule_for_every_argument():
    assert {fn: len(rules) for fn, rules in RULES.items()} == {fn: f.arity for fn, f in FUNCTIONS.items()}


@pytest.mark.parametrize(
    ("fn", "dtype"), [(fn, dtype) for fn in FUNCTIONS for dtype in (F64, C128) if meaningful(fn, dtype)]
)
def test_every_rule_is_the_slope(fn, dtype):
    arity, b, s = FUNCTIONS[fn].arity, GraphBuilder(), ScalarBuilder()
    rng = np.random.default_rng(3)
    arrays = {f"x{k}": noise(rng, 7, dtype) for k in range(arity)}
    if fn in ("log", "sqrt", "rsqrt", "pow") and dtype == F64:
        arrays["x0"] = np.abs(arrays["x0"]) + 0.1
    ids = [b.input(name, (7,), dtype) for name in arrays]
    i = b.einsummable("i", [(i, "i") for i in ids], s.build(s.call(fn, *map(s.arg, range(arity)))))
    s = ScalarBuilder()  # a real number that depends on the real and on the imaginary part
    x = s.arg(0)
    turned = s.call("real", s.call("mul", x, s.const(1 - 2j))) if kind(b[i].dtype) == "c" else x
    weighed = s.build(s.call("mul", turned, s.call("sin", s.call("add", s.label("i"), s.const(1)))))
    b.output("L", b.einsummable("", [(i, "i")], weighed, "sum"))
    if fn == "stop_gradient":
        got = evaluate(differentiate(b.build(), "L", ["x0"]), arrays)
        np.testing.assert_array_equal(got["dx0"], 0)
    else:
        assert_gradients(b.build(), arrays)


CORNER = [
    ("log(x)", 4.0, 0.25),
    ("relu(x)", 0.0, 0.0),
    ("relu(x)", 2.0, 1.0),
    ("abs(x)", 0.0, 0.0),
    ("sign(x)", 3.0, 0.0),
    ("floor(x)", 2.5, 0.0),
    ("max(x, 0)", 0.5, 1.0),
    ("max(x, 0)", -0.5, 0.0),
    ("max(x, 0)", 0.0, 0.5),
    ("min(x, 0)", 0.0, 0.5),
    ("max(x, x)", 3.0, 1.0),
    ("x**2", 3.0, 6.0),
    ("x**3", 2.0, 12.0),
    ("x**0", 0.0, 0.0),
    ("x**1", 0.0, 1.0),
    ("x**x", 1.0, 1.0),
    ("2**x", 3.0, 8 * math.log(2)),
    ("x**0.5", 4.0, 0.25),
    ("x * stop_gradient(x)", 3.0, 3.0),
    ("where(x > 1, sqrt(x - 1), 0)", 1.0, 0.0),
    ("where(x > 0, x*log(x), 0)", 0.0, 0.0),
    ("f64(f32(x)) * 2", 1.0, 2.0),
    ("i64(x) * x", 2.0, 2.0),
    ("(x > 1) * x", 2.0, 1.0),
    ("real(complex(x, 2*x) * complex(x, -x))", 3.0, 18.0),
]


@pytest.mark.parametrize(("formula", "x", "slope"), CORNER, ids=[f"{f} at {x}" for f, x, _ in CORNER])
def test_by_hand(formula, x, slope):
    got = run(f"L = {formula}\ndx = grad L wrt x", x=x)
    assert got["dx"] == pytest.approx(slope, rel=1e-12)
    assert got["dx"].dtype == F64


# ------------------------------------------------------------------------------------- by hand


def test_ties_of_an_aggregate_are_shared_evenly():
    x = np.array([[1.0, 3, 3, 2], [5, 5, 5, 5]])
    got = run("L = sum[i] (i + 1) * max[j] x[i,j]\ndx = grad L wrt x", x=x)
    np.testing.assert_array_equal(got["dx"], [[0, 0.5, 0.5, 0], [0.5, 0.5, 0.5, 0.5]])
    got = run("L = min[i,j] x[i,j]\ndx = grad L wrt x", x=x)
    np.testing.assert_array_equal(got["dx"], [[1, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("x", "want"),
    [
        ([2.0, 3, 4], [12, 8, 6]),
        ([0.0, 3, 4], [12, 0, 0]),
        ([0.0, 3, 0], [0, 0, 0]),
        ([-1.0, 2, 2], [4, -2, -2]),
    ],
)
def test_a_product_with_zeros(x, want):
    got = run("L = prod[i] x[i]\ndx = grad L wrt x", x=x)
    np.testing.assert_array_equal(got["dx"], want)


@pytest.mark.parametrize("zeros", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 11])
def test_second_and_third_derivatives_of_a_product_with_zeros(n, zeros):
    x, v = np.arange(n) - 2.5, np.arange(n) + 1.0
    x[:zeros] = 0
    lines = ["L = prod[i] x[i]", "dx = grad L wrt x", "M = v[i]*dx[i]", "Hv = grad M wrt x", "N = v[i]*Hv[i]"]
    got = run("\n".join([*lines, "d3 = grad N wrt x", "output dx, Hv, d3"]), x=x, v=v)

    def without(*left_out):
        twice = len(set(left_out)) < len(left_out)
        return 0 if twice else np.prod([x[k] for k in range(n) if k not in left_out])

    each = range(n)
    np.testing.assert_allclose(got["dx"], [without(i) for i in each])
    np.testing.assert_allclose(got["Hv"], [sum(v[j] * without(i, j) for j in each) for i in each])
    third = [sum(v[j] * v[k] * without(i, j, k) for j in each for k in each) for i in each]
    np.testing.assert_allclose(got["d3"], third)


def test_second_derivatives_of_a_product_over_several_labels_are_slopes():
    rng = np.random.default_rng(0)
    for dtype in (F64, C128):
        x = noise(rng, (2, 3, 3), dtype)
        x[0, 1, 2] = x[1, 0, 0] = x[1, 2, 1] = 0
        made = program("L = sum[b] (b + 1) * abs(prod[i,j] x[b,i,j] - 0.5)**2", x=x)
        builder = GraphBuilder.resume(differentiate(made, "L", ["x"]))
        (i,) = (o for n, o in builder.build().outputs if n == "dx")
        s, labels = ScalarBuilder(), ["b", "i", "j"]
        part = s.call("real", s.call("mul", s.arg(0), s.const(1 - 0.5j))) if dtype == C128 else s.arg(0)
        weighed = s.build(s.call("mul", part, s.call("cos", s.call("add", s.label("i"), s.label("j")))))
        builder.output("M", builder.einsummable("", [(i, labels)], weighed, "sum"))
        assert_gradients(builder.build(), {"x": x}, of="M")


def test_the_gradient_of_a_product_takes_a_few_steps_a_factor():
    made = differentiate(program("L = prod[i] x[i]", x=(1000,)), "L", ["x"])
    assert sum(map(flops, made.nodes)) < 20 * 1000


def test_a_broadcast_a_mean_a_trace():
    x, A = np.arange(3.0), np.arange(9.0).reshape(3, 3)
    got = run("extent j = 4\nY[i,j] = x[i]\nL = sum[i,j] (j + 1) * Y[i,j]\ndx = grad L wrt x", x=x)
    np.testing.assert_array_equal(got["dx"], [10, 10, 10])
    np.testing.assert_allclose(run("L = mean[i](x[i])\ndx = grad L wrt x", x=x)["dx"], 1 / 3)
    got = run("t = A[i,i]\nL = t*t\ndA = grad L wrt A", A=A)
    np.testing.assert_array_equal(got["dA"], 24 * np.eye(3))


def test_softmax_times_v():
    rng = np.random.default_rng(0)
    S, V, T = (noise(rng, shape) for shape in ((3, 4), (4, 5), (3, 5)))
    text = "P[q,k] = softmax[k](S[q,k])\nO[q,d] = P[q,k]*V[k,d]\nL = O[q,d]*T[q,d]\ndS, dV = grad L wrt S, V"
    got = run(text, S=S, V=V, T=T)
    e = np.exp(S)
    P = e / e.sum(1, keepdims=True)
    dP = T @ V.T
    np.testing.assert_allclose(got["dV"], P.T @ T)
    np.testing.assert_allclose(got["dS"], P * (dP - (P * dP).sum(1, keepdims=True)))


def test_what_the_loss_does_not_depend_on_gets_zeros():
    got = run(
        "L = x[i]*x[i]\ndx, dw, dz = grad L wrt x, w, z", x=np.ones(3), w=np.ones((2, 2), F32), z=1 + 2j
    )
    np.testing.assert_array_equal(got["dw"], np.zeros((2, 2), F32))
    assert (got["dw"].dtype, got["dz"].dtype, got["dz"]) == (F32, C128, 0)
    got = run("L = sum[i] i64(x[i])*2.0\ndx = grad L wrt x", x=np.ones(3))
    np.testing.assert_array_equal(got["dx"], np.zeros(3))


def test_the_gradient_of_a_complex_tensor_points_uphill():
    z = np.array([3 + 4j, 1j])
    got = run("L = sum[i] abs(z[i])**2\ndz = grad L wrt z", z=z)
    np.testing.assert_allclose(got["dz"], 2 * z)
    got = run("L = sum[i] (real(z[i])*2 - imag(z[i]))\ndz = grad L wrt z", z=z)
    np.testing.assert_array_equal(got["dz"], [2 - 1j, 2 - 1j])


def test_intermediate_tensors_and_several_gradients():
    x = np.array([1.0, 2, 3])
    text = """
        H[i] = x[i]**2
        L = sum[i] H[i]**3
        M = sum[i] x[i]*dH[i]
        dH, dx = grad L wrt H, x
        dM = grad M wrt x
    """
    got = run(text, x=x)
    assert list(got) == ["L", "M", "dx", "dM"]
    np.testing.assert_allclose(got["dx"], 6 * x**5)
    np.testing.assert_allclose(got["M"], np.sum(3 * x**5))
    np.testing.assert_allclose(got["dM"], 15 * x**4)


def test_gradients_are_used_by_other_lines():
    text = "L = (w[i]*x[i])**2\ndw = grad L wrt w\nW[i] = w[i] - lr*dw[i]\noutput W, L, dw"
    text = text.replace("(w[i]*x[i])**2", "(sum[i] w[i]*x[i])**2")
    w, x = np.array([1.0, 2]), np.array([3.0, 4])
    got = run(text, {"lr": 0.1}, w=w, x=x)
    assert list(got) == ["W", "L", "dw"]
    np.testing.assert_allclose(got["W"], w - 0.1 * 22 * x)


def test_the_hessian_of_a_cubic():
    text = "L = sum[i] x[i]**3 + x[0]*x[1]*x[2]\ndx = grad L wrt x\nM = sum[i] v[i]*dx[i]\nHv = grad M wrt x"
    x, v = np.array([1.0, 2, 3]), np.array([5.0, 7, 11])
    hessian = np.diag(6 * x) + np.array([[0, 3, 2], [3, 0, 1], [2, 1, 0]])
    np.testing.assert_allclose(run(text, x=x, v=v)["Hv"], hessian @ v)


def test_rows_of_a_table_sum_what_was_taken_of_them():
    text = "L = sum[t,d] (t + 1) * E[tok[t],d]\ndE = grad L wrt E"
    got = run(text, E=np.ones((4, 2)), tok=np.array([1, 3, 1]))
    np.testing.assert_array_equal(got["dE"], np.repeat([[0.0], [4], [0], [2]], 2, axis=1))


def test_parts_are_put_back_among_zeros():
    x = np.arange(6.0)
    for index, want in (
        ("p+2", [0, 0, 1, 2, 3, 0]),
        ("2*p", [1, 0, 2, 0, 3, 0]),
        ("2*p+1", [0, 1, 0, 2, 0, 3]),
    ):
        got = run(f"extent p = 3\nL = sum[p] (p + 1) * x[{index}]\ndx = grad L wrt x", x=x)
        np.testing.assert_array_equal(got["dx"], want)
    got = run("L = x[@n] + 2*x[0]\ndx = grad L wrt x", {"n": 4}, x=x)
    np.testing.assert_array_equal(got["dx"], [2, 0, 0, 0, 1, 0])
    got = run("L = x[@n] + 2*x[-1]\ndx = grad L wrt x", {"n": -2}, x=x)
    np.testing.assert_array_equal(got["dx"], [0, 0, 0, 0, 1, 2])


@pytest.mark.parametrize("dtype", [F16, BF16])
def test_sixteen_bit_floats_are_summed_in_float32(dtype):
    x = np.ones(4096, dtype)
    got = run("extent i = 4096\nL = f32(sum[i] s*x[i])\nds = grad L wrt s", x=x, s=np.ones((), dtype))
    assert (got["ds"], got["ds"].dtype) == (4096, dtype)
    # Readers of one tensor: 1 + 2**-9 is 1 in bfloat16, four times that are not.
    text = "L = f32(s) + f32(s)*x[0] + f32(s)*x[1] + f32(s)*x[2] + f32(s)*x[3]\nds = grad L wrt s"
    got = run(text, x=np.full(4, 2.0**-9, F32), s=np.ones((), dtype))
    assert got["ds"] == dtype.type(1 + 2**-7)


@pytest.mark.parametrize(("dtype", "error"), [(F32, 1e-5), (F16, 1e-2), (BF16, 5e-2)])
def test_two_layers_in_narrow_floats(dtype, error):
    rng = np.random.default_rng(0)
    wide = {name: noise(rng, shape) / 2 for name, shape in MLP_SHAPES.items()}
    narrow = {name: x.astype(dtype) for name, x in wide.items()}
    got = ein.compile(MLP, narrow, sites=2).run()
    want = run(MLP, **{name: x.astype(F64) for name, x in narrow.items()})
    for name in ("dW", "dV"):
        assert got[name].dtype == dtype
        scale = np.abs(want[name]).max()
        np.testing.assert_allclose(got[name].astype(F64), want[name], atol=error * scale)


# ------------------------------------------------------------------------------------- refused

REFUSED = {
    "no-scalar": "L[i] = x[i]*x[i]\ndx = grad L wrt x",
    "complex": "L = x[i]*z[i]\ndx = grad L wrt x",
    "integer": "L = n[i]*n[i]\ndx = grad L wrt x",
    "by-integers": "L = x[i]*n[i]\ndx, dn = grad L wrt x, n",
    "by-booleans": "L = sum[i] where(c[i], x[i], 0)\ndc = grad L wrt c",
    "by-a-scalar-of-the-caller": "L = lr*x[i]\nd = grad L wrt lr",
    "unknown": "Loss = x[i]*x[i]\ndx = grad Los wrt x",
    "by-unknown": "weight[i] = 2*x[i]; L = weight[i]*x[i]\ndw = grad L wrt wieght",
    "more-names": "L = x[i]*x[i]\ndx, dy = grad L wrt x",
    "fewer-names": "L = sum[i] abs(x[i]*z[i])\ndx = grad L wrt x, z",
    "twice": "L = x[i]*x[i]\nL = grad L wrt x",
    "cycle": "L = x[i]*M[i]\nM[i] = 2*dx[i]\ndx = grad L wrt x",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_refused(text, golden):
    given = {"x": np.ones(3), "z": np.ones(3) + 1j, "n": np.ones(3, I64), "c": np.ones(3, BOOL)}
    with pytest.raises(ein.EinsummableError, match=r"\n\d \| .*\n  \| +\^") as caught:
        program(text, {"lr": 0.5}, **given)
    golden(f"{type(caught.value).__name__}: {caught.value}")


def test_a_graph_is_differentiated_by_names_and_ids():
    made = program("H[i] = x[i]**2\nL = sum[i] H[i]*H[i]", x=(3,))
    got = evaluate(differentiate(made, "L", ["x", "H", 0]), {"x": np.arange(3.0)})
    np.testing.assert_array_equal(got["dH"], [0, 2, 8])
    np.testing.assert_array_equal(got["dx"], [0, 4, 32])
    np.testing.assert_array_equal(got["dx'"], got["dx"])
    with pytest.raises(UnknownNameError, match="nothing defines 'h'"):
        differentiate(made, "L", ["h"])
    with pytest.raises(UnknownNameError, match="no node %9: the graph has 3"):
        differentiate(made, "L", [9])
    with pytest.raises(ShapeError, match="grad needs a scalar, but this has 1 dimension"):
        differentiate(made, "H", ["x"])


# -------------------------------------------------------------------------------- lazy tensors


def test_gradients_of_lazy_tensors():
    rng = np.random.default_rng(0)
    arrays = {"x": noise(rng, (6, 4)), "w": noise(rng, (4, 3)), "b": noise(rng, (3,))}
    x, w, b = (ein.tensor(a, name) for name, a in arrays.items())
    y = np.tanh(x @ w + b)
    loss = np.sum(y[1:] ** 2) + np.sum(w.T[0])
    dw, db, dy = ein.grad(loss, [w, b, y])
    assert (dw.shape, db.shape, dy.shape) == ((4, 3), (3,), (6, 3))
    net = ein.compile({"L": loss, "dw": dw, "db": db, "dy": dy}, sites=2)
    got = net.run()
    Y = np.tanh(arrays["x"] @ arrays["w"] + arrays["b"])
    g = 2 * Y * (np.arange(6) > 0)[:, None]
    np.testing.assert_allclose(got["dy"], g)
    np.testing.assert_allclose(got["db"], (g * (1 - Y**2)).sum(0))
    np.testing.assert_allclose(got["dw"], arrays["x"].T @ (g * (1 - Y**2)) + np.eye(3)[0])
    assert sum(n.is_contraction for n in net.graph.nodes if isinstance(n, Einsummable)) == 2  # x @ w is one


def test_a_gradient_of_a_gradient_of_lazy_tensors():
    x = ein.tensor(np.array([1.0, 2, 3]), "x")
    dx = ein.grad(np.sum(x**3), x)
    np.testing.assert_allclose(ein.grad(np.sum(dx * dx), x).run(), 36 * np.array([1.0, 2, 3]) ** 3)
    np.testing.assert_array_equal(ein.grad(np.sum(x.T * 2), x.T).run(), [2, 2, 2])
    with pytest.raises(DtypeError, match="grad takes lazy tensors, not a ndarray"):
        ein.grad(np.sum(x), [np.ones(3)])
    with pytest.raises(ShapeError, match="grad needs a scalar, but this has 1 dimension"):
        ein.grad(x, x)


# ------------------------------------------------------------------------------------ the graphs

MLP = """
    H[b,h] = relu(sum[d] X[b,d] * W[d,h])
    Y[b,o] = H[b,h] * V[h,o]
    L = sum[b,o] (Y[b,o] - T[b,o])**2 / extent(b)
    dW, dV = grad L wrt W, V
"""
ATTENTION = """
    Q[b,t,h,d] = X[b,t,m] * WQ[m,(h d)]
    K[b,t,h,d] = X[b,t,m] * WK[m,(h d)]
    V[b,t,h,d] = X[b,t,m] * WV[m,(h d)]
    S[b,h,q,k] = where(k <= q, sum[d] Q[b,q,h,d] * K[b,k,h,d] / sqrt(extent(d)), -inf)
    P[b,h,q,k] = softmax[k](S[b,h,q,k])
    O[b,q,(h d)] = P[b,h,q,k] * V[b,k,h,d]
    L = O[b,q,m] * T[b,q,m]
    dWQ, dWK, dWV, dX = grad L wrt WQ, WK, WV, X
"""
ATTENTION_SHAPES = {"X": (2, 5, 8), "WQ": (8, 8), "WK": (8, 8), "WV": (8, 8), "T": (2, 5, 8)}
MLP_SHAPES = {"X": (8, 5), "W": (5, 7), "V": (7, 3), "T": (8, 3)}


@pytest.mark.parametrize("sites", [1, 2, 3, 4, 5])
def test_a_layer_of_llama_on_sites(sites):
    config = llama.Config(layers=1, dim=16, heads=4, kv_heads=2, hidden=24, vocab=11, seq=6, dtype="f64")
    weights = [name for name in llama.shapes(config) if name != "X0"]
    text = llama.text(config).replace(
        "output scores", "L = -sum[b,v] logsoftmax[v](scores[b,v]) * target[b,v]"
    )
    names = ", ".join(f"d{w}" for w in weights)
    text += f"input target[b=1, v=11] f64\n{names} = grad L wrt {', '.join(weights)}"
    arrays = llama.inputs(config) | {"target": np.eye(11)[3:4]}
    net = ein.compile(text, arrays, sites=sites)
    got, want = net.run(), evaluate(net.graph, arrays)
    assert len(got) == 1 + len(weights)
    for name, x in want.items():
        np.testing.assert_allclose(got[name], x, rtol=1e-9, atol=1e-9, err_msg=name)
    rng = np.random.default_rng(sites)
    for name in rng.choice(weights, 3, replace=False):
        along = noise(rng, arrays[name].shape)
        assert inner(got[f"d{name}"], along) == pytest.approx(
            slope(net.graph, arrays, {}, name, along), abs=1e-6
        )


def test_graph_of_a_matrix_product(golden):
    golden(program("Z[i,k] = X[i,j]*Y[j,k]\nL = Z[i,k]*T[i,k]\ndX, dY = grad L wrt X, Y",
                   X=(2, 3), Y=(3, 4), T=(2, 4)))  # fmt: skip


def test_graph_of_two_layers(golden):
    golden(program(MLP, **MLP_SHAPES))


def test_graph_of_softmax_times_v(golden):
    text = "P[q,k] = softmax[k](S[q,k])\nO[q,d] = P[q,k]*V[k,d]\nL = O[q,d]*T[q,d]\ndS, dV = grad L wrt S, V"
    golden(program(text, S=(3, 4), V=(4, 5), T=(3, 5)))


def test_graph_of_attention(golden):
    golden(program("extent h = 4\n" + ATTENTION, **ATTENTION_SHAPES))


def test_contractions_stay_contractions():
    made = program("extent h = 4\n" + ATTENTION, **ATTENTION_SHAPES)
    products = [n for n in made.nodes if isinstance(n, Einsummable) and n.is_contraction]
    # 3 projections, scores and values forward; two of each backward; the loss is a product, too
    assert len(products) == 5 + 10 + 1


def test_what_two_inputs_need_is_computed_once():
    text = "H[b,h] = tanh((sum[d] X[b,d]*W[d,h]) + c[h])\nL = sum[b,h] H[b,h]**3\ndW, dc = grad L wrt W, c"
    made = program(text, X=(4, 3), W=(3, 2), c=(2,))
    joins = [node.join.format(["x", "y"]) for node in made.nodes if isinstance(node, Einsummable)]
    assert sum("square" in join for join in joins) == 1
    (i,) = (o for name, o in made.outputs if name == "dc")
    assert str(made.nodes[i]).startswith("[h] sum[b] x ")


def test_nothing_is_multiplied_by_one_or_added_to_zero():
    text = "\n".join(
        ["Y0[i] = x[i] + 1"] + [f"Y{k + 1}[i] = Y{k}[i]*1 + (x[i] - Y{k}[i])" for k in range(4)]
        + ["L = sum[i] Y4[i]", "dx = grad L wrt x"]
    )  # fmt: skip
    made = program(text, x=(3,))
    backward = str(made).split("sum[i]")[1]
    assert "1*" not in backward
    assert "*1" not in backward
    assert "+ 0" not in backward
    np.testing.assert_array_equal(evaluate(made, {"x": np.ones(3)})["dx"], 1)


def test_a_long_network_has_six_products_a_layer():
    layers = 120
    b = GraphBuilder()
    x = b.input("X", (4, 8))
    s = ScalarBuilder()
    silu, add = s.build(s.call("silu", s.arg(0))), ScalarBuilder()
    add = add.build(add.call("add", add.arg(0), add.arg(1)))
    names = []
    for k in range(layers):
        names += [f"W{k}", f"V{k}"]
        w, v = b.input(f"W{k}", (8, 16)), b.input(f"V{k}", (16, 8))
        h = b.contract("bh", (x, "bd"), (w, "dh"))
        h = b.einsummable("bh", [(h, "bh")], silu)
        y = b.contract("bd", (h, "bh"), (v, "hd"))
        x = b.einsummable("bd", [(y, "bd"), (x, "bd")], add)
    s = ScalarBuilder()
    b.output("L", b.einsummable("", [(x, "bd")], s.build(s.call("square", s.arg(0))), "sum"))
    both = differentiate(b.build(), "L", names)
    kinds = [n.is_contraction for n in both.nodes if isinstance(n, Einsummable)]
    assert sum(kinds) == layers * 6 - 1  # the first layer's input needs no gradient
    assert len(both.nodes) <= 1 + layers * 13 + 3


# ------------------------------------------------------------------------------ random programs

SMOOTH = ["mul", "div", "square", "sqrt", "log", "tanh", "sin", "sigmoid", "silu", "gelu", "erf"]
COMPLEX = ["add", "sub", "mul", "conj", "square", "abs", "real", "imag", "div", "sign", "complex"]
OTHER = ["where", "maximum", "minimum", "abs", "relu", "neg", "param", "stop", "pow", "cast"]


class Growing:
    """A program that grows by random nodes whose values stay small."""

    def __init__(self, draw):
        self.draw, self.b, self.nodes, self.inputs, self.params = draw, GraphBuilder(), [], [], {}

    def choose(self, options):
        return self.draw(st.sampled_from(list(options)))

    def labels(self, i):
        """Draw labels for the dimensions of node `i`, new ones for extents that no label has."""
        found = []
        for n in self.b[i].shape:
            known = [label for label, m in EXTENT.items() if m == n]
            found.append(self.choose(known) if known else f"n{n}")
        return tuple(found)

    def extents(self, labels):
        return {label: EXTENT.get(label) or int(label[1:]) for label in labels}

    def input(self):
        labels = self.draw(st.lists(st.sampled_from("abcde"), max_size=3))
        name = f"X{len(self.inputs)}"
        self.inputs.append(name)
        dtype = self.choose([F64, F64, C128])
        self.nodes.append(self.b.input(name, [EXTENT[x] for x in labels], dtype))

    def call(self, s, fn, pool, labels):
        """Return a function of some of `pool`, kept where it is smooth and of moderate size."""
        (x, complex_x), (y, complex_y) = (self.choose(pool) for _ in range(2))
        either = complex_x or complex_y
        one = s.const(1.5)
        match fn:
            case "add" | "sub" | "mul":
                return s.call(fn, x, y), either
            case "div":
                return s.call("div", x, s.call("add", one, s.call("square", s.call("abs", y)))), complex_x
            case "sqrt" | "log":
                return s.call(fn, s.call("add", one, s.call("square", s.call("abs", x)))), False
            case "tanh" | "sin" | "square" | "conj" | "neg" if not complex_x or fn not in ("tanh", "sin"):
                return s.call(fn, x), complex_x
            case "abs" | "real" | "imag":
                return s.call(fn, x), False
            case "sign" if complex_x:
                return s.call(fn, x), True
            case "complex" if not either:
                return s.call(fn, x, y), True
            case "where" if labels:
                condition = s.call("le", s.label(self.choose(labels)), s.const(1))
                return s.call(fn, condition, x, self.choose([y, s.const(0)])), either
            case "maximum" | "minimum" if not either:
                return s.call(fn, x, y), False
            case "param":
                self.params["lr"] = 0.75
                self.b.param("lr", dtypes.WEAK_FLOAT)
                return s.call("mul", s.param("lr"), x), complex_x
            case "stop":
                return s.call(
                    "mul", x, s.call("sin", s.call("stop_gradient", s.call("real", one)))
                ), complex_x
            case "pow" if not either:
                return s.call("pow", s.call("add", one, s.call("abs", x)), s.call("sin", y)), False
            case "cast":
                return s.call("c128", x), True
            case "sigmoid" | "silu" | "gelu" | "erf" | "relu" if not complex_x:
                return s.call(fn, x), False
        return x, complex_x

    def einsummable(self):
        s, operands = ScalarBuilder(), []
        for _ in range(self.choose([1, 2, 2, 3])):
            i = self.choose(self.nodes)
            operands.append((i, self.labels(i)))
        used = list(dict.fromkeys(label for _, ls in operands for label in ls))
        if self.draw(st.integers(0, 5)) == 0:
            used = list(dict.fromkeys([*used, self.choose("abcde")]))
        pool = [(s.arg(k), kind(self.b[i].dtype) == "c") for k, (i, _) in enumerate(operands)]
        result, complex_ = pool[0]
        for x, complex_x in pool[1:]:
            result, complex_ = s.call(self.choose(["mul", "mul", "add"]), result, x), complex_ or complex_x
        pool.append((result, complex_))
        for _ in range(self.choose([0, 0, 1, 2, 3])):
            pool.append(self.call(s, self.choose(COMPLEX + SMOOTH + OTHER), pool, used))
        result, complex_ = pool[-1]
        out, aggregate = list(self.draw(st.permutations(used))), None
        if out and self.choose([True, True, False]):
            out = out[: self.draw(st.integers(0, len(out) - 1))]
            aggregate = self.choose(["sum", "sum", "sum", "prod"] + ([] if complex_ else ["max", "min"]))
        # Kept small: what is larger than 1 grows slowly, so that slopes can be told from rounding.
        if complex_:
            result = s.call("div", result, s.call("add", s.const(1.0), s.call("abs", result)))
        elif self.choose([True, False, True]):
            result = s.call("sin", result)
        extents = self.extents(used)
        self.nodes.append(self.b.einsummable(out, operands, s.build(result), aggregate, extents=extents))

    def reshape(self):
        i = self.choose(self.nodes)
        n = len(self.b[i].shape)
        groups = [n] if n and self.choose([True, False]) else [1] * max(n - 2, 0) + [min(n, 2)] * (n > 0)
        space = tuple((f"t{k}", m) for k, m in enumerate(self.b[i].shape))
        self.nodes.append(self.b.reshape(i, space, [1] * n, groups))

    def select(self):
        i = self.choose(self.nodes)
        positions, space = [], []
        for d, n in enumerate(self.b[i].shape):
            form = self.choose(["whole", "one", "param", "part", "back"])
            if form == "one":
                positions.append(Position(start=self.draw(st.integers(0, n - 1))))
            elif form == "param":
                name = f"i{len(self.params)}"
                self.params[name] = self.draw(st.integers(0, n - 1))
                self.b.param(name, dtypes.WEAK_INT)
                positions.append(Position(param=name))
            else:
                start = 0 if form == "whole" else self.draw(st.integers(0, n - 1))
                step = 1 if form == "whole" else self.choose([1, 2, 3]) * (-1 if form == "back" else 1)
                most = start // -step + 1 if step < 0 else -(-(n - start) // step)
                most = 1 + start // -step if step < 0 else most
                positions.append(Position(f"s{d}", start, step))
                space.append((f"s{d}", n if form == "whole" else self.draw(st.integers(1, most))))
        self.nodes.append(self.b.select(i, positions, tuple(space)))

    def concat(self):
        i = self.choose(self.nodes)
        shape = self.b[i].shape
        if not shape:
            return
        axis = self.draw(st.integers(0, len(shape) - 1))

        def fits(j):
            other = self.b[j].shape
            alike = self.b[j].dtype == self.b[i].dtype and len(other) == len(shape)
            return alike and other[:axis] + other[axis + 1 :] == shape[:axis] + shape[axis + 1 :]

        rest = [j for j in self.nodes if fits(j)]
        others = [self.choose(rest) for _ in range(self.choose([1, 2]))]
        self.nodes.append(self.b.concat([i, *others], [f"d{d}" for d in range(len(shape))], axis))

    def gather(self):
        i = self.choose(self.nodes)
        shape = self.b[i].shape
        if not shape:
            return
        labels = [f"k{d}" for d in range(len(shape))]
        row = self.draw(st.integers(0, len(shape) - 1))
        s = ScalarBuilder()
        n = s.call("mul", s.label("t"), s.const(self.choose([1, 2])))
        tok = s.build(s.call("i64", s.call("where", s.call("lt", n, s.const(shape[row])), n, s.const(0))))
        tok = self.b.einsummable("t", [], tok, extents={"t": self.choose([1, 3, 6])})
        out = [label for d, label in enumerate(labels) if d != row]
        out.insert(self.draw(st.integers(0, len(out))), "t")
        self.nodes.append(self.b.gather(out, (i, labels), {labels[row]: (tok, ("t",))}))

    def finish(self):
        """Return the graph, its loss a sum of all that nothing reads, each element weighed differently."""
        read = {j for i in self.nodes for j in self.b[i].inputs}
        terms = []
        for i in dict.fromkeys(self.nodes):
            if i in read and i != self.nodes[-1]:
                continue
            s, labels = ScalarBuilder(), [f"w{d}" for d in range(len(self.b[i].shape))]
            total = s.const(1.0)
            for n, label in enumerate(labels):
                total = s.call("add", total, s.call("mul", s.const(n + 0.7), s.label(label)))
            x = s.arg(0)
            if kind(self.b[i].dtype) == "c":
                x = s.call("real", s.call("mul", x, s.const(1 - 0.5j)))
            join = s.build(s.call("mul", x, s.call("cos", total)))
            terms.append(self.b.einsummable("", [(i, labels)], join, "sum" if labels else None))
        while len(terms) > 1:
            s = ScalarBuilder()
            pair = [(terms.pop(), ""), (terms.pop(), "")]
            terms.append(self.b.einsummable("", pair, s.build(s.call("add", s.arg(0), s.arg(1)))))
        self.b.output("L", terms[0])
        return self.b.build()


@st.composite
def losses(draw, max_nodes=5):
    """Draw a graph with a loss L, arrays for its inputs and values for its scalars."""
    growing = Growing(draw)
    for _ in range(draw(st.integers(1, 3))):
        growing.input()
    kinds = [growing.einsummable] * 5 + [growing.reshape, growing.select, growing.concat, growing.gather]
    for _ in range(draw(st.integers(1, max_nodes))):
        growing.choose(kinds)()
        if math.prod(growing.b[growing.nodes[-1]].shape) > 400:
            growing.nodes.pop()
    graph = growing.finish()
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = {name: noise(rng, node.shape, node.dtype) for name, node in graph.inputs.items()}
    return graph, arrays, growing.params


@settings(max_examples=100)
@given(losses(max_nodes=4))
def test_random_programs(loss):
    assert_gradients(*loss)


@pytest.mark.slow
@settings(max_examples=400)
@given(losses())
def test_more_random_programs(loss):
    assert_gradients(*loss)


@settings(max_examples=80)
@given(graphs())
def test_whatever_there_is_can_be_differentiated(graph):
    """Integers, booleans, jumps, narrow floats, empty tensors: shapes and dtypes come out right."""
    builder, terms = GraphBuilder.resume(graph), []
    for _, o in graph.outputs:
        labels, s = [f"l{d}" for d in range(len(builder[o].shape))], ScalarBuilder()
        join = s.build(s.call("f64", s.call("real", s.arg(0))))
        terms.append((builder.einsummable("", [(o, labels)], join, "sum" if labels else None), ""))
    s = ScalarBuilder()
    total = s.arg(0)
    for k in range(1, len(terms)):
        total = s.call("add", total, s.arg(k))
    builder.output("L", builder.einsummable("", terms, s.build(total)))
    wrt = [name for name, node in graph.inputs.items() if kind(node.dtype) in "fc"]
    made = differentiate(builder.build(), "L", wrt)
    check(made)
    results = list(evaluate(made, *data_for(made)).values())
    for name, g in zip(wrt, results[len(results) - len(wrt) :], strict=True):
        assert (g.shape, g.dtype) == (graph.inputs[name].shape, graph.inputs[name].dtype)


def test_gradients_are_linear():
    rng = np.random.default_rng(0)
    A, x = noise(rng, (4, 4)), noise(rng, 4)
    text = "L = sum[i] tanh(A[i,j]*x[j])\nM = sum[i] cos(x[i])*x[i]\nN = 2*L - 3*M\n"
    text = text.replace("tanh(A[i,j]*x[j])", "tanh(sum[j] A[i,j]*x[j])")
    got = run(text + "dL = grad L wrt x\ndM = grad M wrt x\ndN = grad N wrt x", A=A, x=x)
    np.testing.assert_allclose(got["dN"], 2 * got["dL"] - 3 * got["dM"], rtol=1e-12)


@pytest.mark.slow
@settings(max_examples=100)
@given(losses(max_nodes=3))
def test_gradients_of_gradients(loss):
    graph, arrays, params = loss
    name = next(iter(arrays))
    builder = GraphBuilder.resume(differentiate(graph, "L", [name]))
    (i,) = (o for n, o in builder.build().outputs if n == f"d{name}")
    labels, s = [f"d{d}" for d in range(arrays[name].ndim)], ScalarBuilder()
    x = s.call("real", s.call("mul", s.arg(0), s.const(1 + 0.5j))) if arrays[name].dtype == C128 else s.arg(0)
    weighed = s.build(
        s.call("mul", s.call("sin", x), s.call("cos", s.label("d0")) if labels else s.const(2.0))
    )
    builder.output("M", builder.einsummable("", [(i, labels)], weighed, "sum" if labels else None))
    assert_gradients(builder.build(), arrays, params, of="M")


@settings(max_examples=40)
@given(losses(max_nodes=4), st.integers(1, 5))
def test_gradients_on_sites_equal_the_oracle(loss, sites):
    graph, arrays, params = loss
    both = differentiate(graph, "L", list(arrays))
    got, want = Compiled(both, arrays | params, sites=sites).run(), evaluate(both, arrays, params)
    for name, x in want.items():
        np.testing.assert_allclose(got[name], x, rtol=1e-9, atol=1e-9, err_msg=name)

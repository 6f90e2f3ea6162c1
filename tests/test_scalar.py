"""Scalar expressions: every function against numpy in every dtype, the printer, the builder."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from einsummable import dtypes, functions, scalar
from einsummable.dtypes import BF16, BOOL, C64, C128, F16, F32, F64, I32, I64, NAMED, ScalarType, kind
from einsummable.errors import DtypeError
from einsummable.functions import AGGREGATES, FUNCTIONS
from einsummable.scalar import Arg, Call, ScalarBuilder, ScalarExpr

#: What each function means for Python's bool, int, float and complex: written without numpy.
MEANING = {
    "add": lambda a, b: a or b if isinstance(a, bool) else a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a and b if isinstance(a, bool) else a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "neg": lambda a: -a,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "square": lambda a: a if isinstance(a, bool) else a * a,
    "abs": lambda a: abs(a) if not isinstance(a, bool) else a,
    "sign": lambda a: a / abs(a) if isinstance(a, complex) and a else (a.real > 0) - (a.real < 0),
    "relu": lambda a: max(a, type(a)(0)),
    "sigmoid": lambda a: 1 / (1 + math.exp(-a)),
    "silu": lambda a: a / (1 + math.exp(-a)),
    "gelu": lambda a: a * (1 + math.erf(a / math.sqrt(2))) / 2,
    "erf": math.erf,
    "floor": math.floor,
    "where": lambda c, a, b: a if c else b,
    "minimum": min,
    "maximum": max,
    "isnan": lambda a: a != a,
    "conj": lambda a: a if isinstance(a, bool) else a.conjugate(),
    "real": lambda a: a if isinstance(a, bool) else a.real,
    "imag": lambda a: type(a)(0) if isinstance(a, bool) else a.imag,
    "complex": complex,
    "stop_gradient": lambda a: a,
    "rsqrt": lambda a: a**-0.5,
} | {name: lambda a, d=dtype: d.type(a).item() for name, dtype in NAMED.items() if dtype != BF16}
CMATH = ["exp", "log", "sqrt", "tanh", "sin", "cos"]  # both in math and in cmath
EPS = {F16: 4e-3, BF16: 3e-2, F32: 1e-5, C64: 1e-5}
SAMPLE = {"b": [True, False], "i": [1, 2, 3], "f": [0.5, 1.0, 2.0, -1.5], "c": [1 + 1j, 2.0, -1j, 0.5 - 2j]}


def expression(fn):
    b = ScalarBuilder()
    return b.build(b.call(fn, *(b.arg(k) for k in range(FUNCTIONS[fn].arity))))


def meaning(fn, values):
    if fn in CMATH:
        import cmath

        return getattr(cmath if isinstance(values[0], complex) else math, fn)(*values)
    return MEANING[fn](*values)


def run(fn, arrays):
    expr, args = expression(fn), tuple(a.dtype for a in arrays)
    types = scalar.infer(expr, args)
    with np.errstate(all="ignore"):
        result = scalar.evaluate(expr, arrays, {}, {}, types)
    assert result.dtype == types[-1].type.dtype
    return result


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("fn", [fn for fn in FUNCTIONS if fn not in dtypes.UNNAMED and fn != "bf16"])
def test_functions_mean_what_python_and_numpy_say(fn, name):
    dtype, arity = NAMED[name], FUNCTIONS[fn].arity
    sample = SAMPLE[kind(dtype)]
    if fn in ("log", "sqrt", "rsqrt", "pow") and kind(dtype) == "f":
        sample = [abs(x) for x in sample]
    if fn in ("log", "rsqrt", "div", "pow") and dtype == BOOL:
        sample = [True]
    columns = [[sample[(i + k) % len(sample)] for i in range(len(sample))] for k in range(arity)]
    try:
        result = run(fn, [np.array(c, dtype) for c in columns])
    except DtypeError:
        assert fn in REFUSED[kind(dtype)]
        return
    assert fn not in REFUSED[kind(dtype)]
    expected = [meaning(fn, values) for values in zip(*columns, strict=True)]
    error = max(EPS.get(dtype, 1e-12), EPS.get(result.dtype, 0))
    np.testing.assert_allclose(result.astype(C128), np.array(expected, C128), rtol=error, atol=error)


ORDERED = {"lt", "le", "gt", "ge", "minimum", "maximum", "relu", "floor", "complex"}
REAL_ONLY = {"sigmoid", "silu", "gelu", "erf", "f16", "f32", "f64", "i32", "i64"}
#: By kind of dtype, the functions that have no meaning there.
REFUSED = {"b": {"sub", "neg", "sign", "pow"}, "i": set(), "f": set(), "c": ORDERED | REAL_ONLY}


@pytest.mark.parametrize("name", [n for n, d in NAMED.items() if d != BF16])
@pytest.mark.parametrize("fn", [fn for fn, row in FUNCTIONS.items() if isinstance(row.numpy, np.ufunc)])
def test_results_have_numpys_dtype(fn, name):
    dtype = NAMED[name]
    if fn in REFUSED[kind(dtype)]:
        return
    if dtype == BOOL and kind(run(fn, [np.ones(1, BOOL)] * FUNCTIONS[fn].arity).dtype) != "b":
        return  # numpy answers float16 for functions of booleans, we float64 as for integers
    if dtype == BOOL and fn in ("square", "conj"):
        return  # numpy answers int8
    arrays = [np.ones(1, dtype)] * FUNCTIONS[fn].arity
    assert run(fn, arrays).dtype == FUNCTIONS[fn].numpy(*arrays).dtype


def test_roots_of_integers_and_booleans_are_f64():
    for dtype in (BOOL, I32, I64):
        assert run("sqrt", [np.ones(1, dtype)]).dtype == F64
        assert run("div", [np.ones(1, dtype)] * 2).dtype == F64


@pytest.mark.parametrize(("a", "b"), [(F32, I64), (BOOL, F16), (C64, F64), (I32, I64), (F16, BF16)])
def test_operands_are_cast_to_their_common_dtype(a, b):
    types = scalar.infer(expression("mul"), (a, b))
    common = dtypes.promote([ScalarType(a), ScalarType(b)]).dtype
    assert types[-1].operands == (common, common)
    assert scalar.result_dtype(expression("mul"), (a, b)) == common


def test_a_condition_does_not_widen_what_it_chooses():
    assert scalar.result_dtype(expression("where"), (C128, F32, F32)) == F32


def test_labels_and_literals_do_not_widen_a_tensor():
    b = ScalarBuilder()
    expr = b.build(b.call("mul", b.arg(0), b.call("sqrt", b.call("add", b.label("k"), b.const(0.5)))))
    assert scalar.result_dtype(expr, (F32,)) == F32
    assert scalar.result_dtype(expr, (C64,)) == C64
    assert scalar.result_dtype(expr, (I32,)) == F64


def test_labels_constants_and_parameters_evaluate():
    b = ScalarBuilder()
    expr = b.build(b.call("add", b.call("mul", b.label("k"), b.const(2)), b.param("lr")))
    params = (("lr", ScalarType(F32)),)
    types = scalar.infer(expr, (), params)
    result = scalar.evaluate(expr, [], {"k": np.arange(3)}, {"lr": np.float32(0.5)}, types)
    assert result.dtype == F32
    assert result.tolist() == [0.5, 2.5, 4.5]


def test_extremes_do_not_warn():
    assert run("sigmoid", [np.array([-1e9, 1e9], F32)]).tolist() == [0.0, 1.0]
    assert run("relu", [np.array([-1, 2], I32)]).tolist() == [0, 2]


# -------------------------------------------------------------------------------- aggregates

IDENTITY_SAMPLES = {"b": [True, False], "i": [-3, 0, 5], "f": [-3.0, 0.0, 2.5], "c": [1 + 1j, -2j]}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_identities_change_nothing(aggregate, name):
    dtype, row = NAMED[name], AGGREGATES[aggregate]
    if row.ordered and kind(dtype) == "c":
        with pytest.raises(DtypeError, match=f"{aggregate} of complex numbers has no meaning"):
            functions.aggregate_dtype(aggregate, dtype)
        return
    result = functions.aggregate_dtype(aggregate, dtype)
    values = np.array(IDENTITY_SAMPLES[kind(dtype)], dtype).astype(result)
    identity = np.array(row.identity(result)).astype(result)
    np.testing.assert_array_equal(row.ufunc(values, identity).astype(result), values)


def test_dtypes_of_aggregates():
    assert functions.aggregate_dtype("sum", BOOL) == functions.aggregate_dtype("prod", BOOL) == I64
    assert functions.aggregate_dtype("any", F32) == functions.aggregate_dtype("all", C64) == BOOL
    assert functions.aggregate_dtype("max", BOOL) == BOOL
    assert functions.aggregate_dtype("sum", F16) == F16


# -------------------------------------------------------------------- builder and printer


def test_equal_operations_are_appended_once():
    b = ScalarBuilder()
    x = b.call("exp", b.arg(0))
    assert b.call("exp", b.arg(0)) == x
    assert b.build(b.call("mul", x, x)).ops == (Arg(0), Call("exp", (0,)), Call("mul", (1, 1)))


def test_build_keeps_only_what_the_result_needs():
    b = ScalarBuilder()
    b.call("exp", b.arg(1))
    assert b.build(b.call("neg", b.arg(0))).ops == (Arg(0), Call("neg", (0,)))


def test_inline_replaces_inputs():
    b = ScalarBuilder()
    inner = expression("sub")
    assert b.build(b.inline(inner, [b.arg(1), b.const(2)])).format(["x", "y"]) == "y - 2"


@pytest.mark.parametrize("value", [1, 1.0, -0.0, True, 2j, float("inf"), 1e300])
def test_literals_keep_value_and_type(value):
    b = ScalarBuilder()
    (op,) = b.build(b.const(value)).ops
    assert type(op.value) is type(value)
    assert repr(op.value) == repr(value)


def test_negative_literals_are_folded():
    b = ScalarBuilder()
    assert b.build(b.call("neg", b.const(3))).format([]) == "-3"


def test_nan_equals_itself_as_a_literal():
    b = ScalarBuilder()
    assert b.const(float("nan")) == b.const(float("nan"))


def test_factors_of_plain_products_only():
    b = ScalarBuilder()
    x, y, z = (b.arg(k) for k in range(3))
    product = b.call("mul", b.call("mul", x, y), z)
    assert b.build(product).factors() == (0, 1, 2)
    assert b.build(b.call("mul", x, x)).factors() is None
    assert b.build(b.call("mul", b.call("add", x, y), z)).factors() is None


def test_what_an_expression_reads():
    b = ScalarBuilder()
    expr = b.build(b.call("where", b.call("le", b.label("k"), b.param("n")), b.arg(0), b.const(0)))
    assert (expr.labels, expr.params, expr.is_copy) == ({"k"}, {"n"}, False)
    assert scalar.COPY.is_copy


@st.composite
def arithmetic(draw):
    """Draw an expression of integers that Python's own parser can read back."""
    b = ScalarBuilder()
    pool = [b.arg(0), b.arg(1), b.const(3)]
    for _ in range(draw(st.integers(1, 8))):
        fn = draw(st.sampled_from(["add", "sub", "mul", "neg", "lt", "eq", "minimum"]))
        pool.append(b.call(fn, *(draw(st.sampled_from(pool)) for _ in range(FUNCTIONS[fn].arity))))
    return b.build(pool[-1])


def by_hand(expr, args):
    done = []
    for op in expr.ops:
        match op:
            case Arg(index):
                done.append(args[index])
            case Call(fn, operands):
                done.append(MEANING[fn](*(done[a] for a in operands)))
            case _:
                done.append(op.value)
    return done[-1]


@given(arithmetic(), st.integers(-3, 3), st.integers(-3, 3))
def test_the_printer_brackets_what_must_be(expr, x, y):
    # bool is an int in Python, but `MEANING` tells them apart; a printed program does not.
    text = expr.format(["x", "y"])
    numbers = by_hand(ScalarExpr(expr.ops), (x, y))
    if not any(isinstance(op, Call) and op.fn in ("lt", "eq") for op in expr.ops[:-1]):
        assert eval(text, {"x": x, "y": y, "minimum": min}) == numbers
    compile(text, "", "eval")


def test_a_cast_to_bf16_rounds():
    result = run("bf16", [np.array([1.5, 1.001], F32)])
    assert (result.dtype, result.tolist()) == (BF16, [1.5, 1.0])
    with pytest.raises(DtypeError, match="would drop its imaginary part"):
        run("bf16", [np.ones(1, C64)])

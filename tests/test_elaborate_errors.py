"""What elaboration refuses: one golden message for each mistake, with carets."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from einsummable.builder import check
from einsummable.dtypes import C128, F64, I64
from einsummable.errors import EinsummableError
from einsummable.language.elaborate import InputSpec, elaborate
from einsummable.language.parser import parse

SHAPES = {
    "A": (3, 4),
    "B": (4, 5),
    "C": (5, 3),
    "S": (3, 3),
    "x": (3,),
    "y": (4,),
    "G": (3, 8),
    "P": (64, 512),
    "Q": (256, 128),
}
INPUTS = {name: InputSpec(shape, F64) for name, shape in SHAPES.items()}
INPUTS |= {"N": InputSpec((3, 4), I64), "Z": InputSpec((3, 4), C128), "b": InputSpec((3,), np.dtype("u1"))}
SCALARS = {"lr": 0.5, "n": 2, "big": np.float64(3), "huge": 10**30}
NESTED = "".join(f"def f{n}(a) = {'-' * 40}f{n + 1}(a)\n" for n in range(5)) + "def f5(a) = a\nR = f0(lr)"

WRONG = {
    # labels and extents
    "two-extents": "H[b,h] = relu(sum[d] P[b,d] * Q[d,h])",
    "three-extents": "R[k] = A[k,0] + B[0,k] + C[k,0]*y[k]",
    "two-extents-in-one-tensor": "R[i] = A[i,i]",
    "several-labels-of-two-extents": "R[i,j] = A[i,j] + B[i,j]",
    "two-extents-by-statement": "extent d = 8\nR[d] = 2*x[d]",
    "two-extents-through-lines": "Q[i] = A[i,j]*y[j]\nR[i] = Q[i] + y[i]",
    "two-extents-in-a-macro": "R[i] = dot[j](A[i,j], x[j])\ndef dot[k](a, b) = sum[k] a*b",
    "unbound-in-call": "R[i] = exp(A[i,j])",
    "unbound-in-call-of-product": "R[i,k] = relu(A[i,j]*B[j,k])",
    "unbound-in-comparison": "R[i] = A[i,j] > 0",
    "unbound-in-power": "R[i] = x[i] + A[i,j]**2",
    "unbound-in-macro-call": "R[i] = softmax[j](A[i,j])",
    "unbound-beside-a-macro-that-binds": "R[i] = mean[j](S[i,j]) * exp(S[i,j])",
    "unbound-in-macro": "def f(a) = a * x[j]\nR[i] = f(x[i])",
    "aggregate-lacks-label": "R[i] = sum[k] A[i,j]*y[j]",
    "aggregate-lacks-label-in-macro": "R[i] = mean[k](A[i,j])",
    "extent-unknown-broadcast": "R[i,j] = x[i]",
    "extent-unknown-label-value": "R = sum[k] k",
    "extent-unknown-in-group": "R[m,h] = G[m,(h d)]",
    "left-label-twice": "R[i,i] = A[i,j]",
    "group-product": "extent h = 3\nR[m,h,d] = G[m,(h d)]",
    "group-product-of-known": "R[m,i,j] = G[m,(i j)] * A[i,j]",
    "input-against-extent": "extent h = 2\ninput V[h=3]\nR = V[h]",
    # indices
    "too-many-indices": "R[i] = A[i,j,k]",
    "too-few-indices": "R[i] = A[i]",
    "tensor-without-labels": "R[i,j] = A * 2",
    "index-out-of-range": "R[i] = A[i,4]",
    "negative-index-out-of-range": "R[i] = A[i,-5]",
    "scalar-index-not-whole": "R[i] = A[i,@lr]",
    "scalar-index-unknown": "R[i] = A[i,@nn]",
    "scalar-with-index": "R[i] = lr[i]",
    # names
    "unknown-tensor": "Query[i] = x[i]\nR[i] = Qery[i] + x[i]",
    "unknown-tensors": "R[i] = Key[i] + Vales[i] + Key[i]",
    "unknown-scalar": "R[i] = lrr * x[i]",
    "label-that-is-only-a-value": "extent k = 4\nR = k*k",
    "unknown-function": "R[i] = sofmax[i](x[i])",
    "unknown-function-of-tensor": "R[i] = A(i, 0)",
    "macro-without-arguments": "R[i] = softmax[i]",
    "function-without-arguments": "R[i] = x[i] * exp",
    "extent-of-no-label": "R[i] = x[i] / extent(j)",
    "extent-of-expression": "R[i] = x[i] / extent(i + 1)",
    "extent-of-unknown-name": "extent h = m\nR[h] = 1",
    "extent-not-whole": "extent h = lr\nR[h] = 1",
    "extent-too-large": "extent h = huge\nR[h] = 1",
    "redefinition": "R[i] = x[i]\nQ[i] = 2*x[i]\nR[i] = Q[i]",
    "redefinition-of-input": "input V[i=3]\nV[i] = x[i]",
    "redefinition-of-extent": "extent h = 2\nextent h = 3\nR[h] = 1",
    "macro-shadows-function": "def exp(x) = x\nR[i] = exp(x[i])",
    "macro-shadows-prelude": "def softmax[k](x) = x\nR[i] = softmax[i](x[i])",
    "macro-parameter-twice": "def f(a, a) = a\nR[i] = f(x[i], 1)",
    "cycle-of-one": "R[i] = R[i] + x[i]",
    "cycle-of-two": "P1[i] = x[i]\nQ1[i] = R[i] + P1[i]\nR[i] = 2*Q1[i]",
    "cycle-of-three-through-macro": "def f(a) = a * U\nU = V\nV = W1\nW1 = f(lr)",
    "macro-recursion": "def f(a) = g(a)\ndef g(a) = f(a)\nR[i] = f(x[i])",
    "macros-nested-too-deeply": NESTED,
    "output-unknown": "Result[i] = x[i]\noutput Resul",
    "output-of-input": "R[i] = x[i]\noutput R, x",
    # calls
    "too-many-arguments": "R[i] = exp(x[i], 2)",
    "too-few-arguments": "R[i] = where(x[i] > 0, 1)",
    "max-of-one": "R[i] = max(x[i])",
    "labels-for-a-function": "R[i] = exp[i](x[i])",
    "no-labels-for-a-macro": "R[i,j] = softmax(A[i,j])",
    "arguments-of-a-macro": "R[i,j] = softmax[j](A[i,j], 2)",
    # dtypes
    "complex-in-max": "R[i] = max[j] Z[i,j]",
    "complex-in-maximum": "R[i,j] = max(Z[i,j], 0)",
    "complex-in-comparison": "R[i,j] = Z[i,j] < A[i,j]",
    "complex-to-real": "R[i,j] = f32(Z[i,j])",
    "complex-in-macro": "R[i] = argmax[j](Z[i,j])",
    "difference-of-booleans": "R[i] = (x[i] > 0) - (x[i] > 1)",
    "negated-boolean": "R[i] = -(x[i] > 0)",
    "unknown-dtype": "input V[i=3] float7\nR = V[i]",
    "unknown-dtype-of-text": "input V[i=3] str\nR = V[i]",
    "literal-beyond-its-dtype": "R[i] = b[i] + b[i]*300",
    "negative-literal-in-a-macro": "def f(a) = max(a, -1)\nR[i] = f(b[i])",
    "literal-beyond-every-dtype": "R[i] = x[i]*99999999999999999999",
    "scalar-beyond-every-dtype": "R[i] = x[i]*huge",
    "complex-operand-that-stood-before": "R[i] = abs(Z[i,0]) + max(Z[i,0], 0)",
    "whole-number-to-a-negative-power": "R[i,j] = N[i,j]**-1",
    # inputs
    "input-extent-unknown": "input V[i=3, j]\nR[i] = V[i,j]",
    # shifts and strides
    "shift-out-of-range": "R[j] = y[j] * A[0,j+1]",
    "shift-before-the-first": "R[j] = y[j-1]",
    "shift-beyond-the-last": "R[j] = y[j+4]",
    "stride-out-of-range": "extent p = 3\nR[p] = A[0,2*p+1]",
    "stride-of-nothing": "R[p] = A[0,0*p+1]",
    "extent-unknown-of-shifts": "R[j] = y[j+1] - y[2*j]",
    # gather
    "gather-by-no-whole-number": "R[i,k] = B[x[i],k]",
    "gather-by-a-tensor-as-a-scalar": "R[k] = B[@N,k]",
    "gather-of-two-extents": "R[i,k] = B[N[i,k],k]",
    "gather-with-too-few-indices": "R[i,k] = B[N[i],k]",
    "gather-unknown": "R[i,k] = B[M[i,0],k]",
    # concatenation
    "concat-of-two-extents": "R[i,j] = concat[i](A[i,j], B[i,j])",
    "concat-against-another-extent": "R[i] = concat[i](x[i], y[i]) * x[i]",
    "concat-lacks-label": "R[i,j] = concat[i](A[i,j], y[j])",
    "concat-without-label": "R[i,j] = concat(A[i,j], A[i,j])",
    "concat-unbound": "R[j] = concat[i](A[i,j], A[i,j])",
    "concat-extent-unknown": "R[i] = concat[i](x[i], i)",
    "concat-of-parameters": "def both[t](a, b) = concat[t](a, b)\nR[i] = both[i](x[i], x[i])",
    "grad-of-no-scalar": "L[i] = x[i]*x[i]\ndx = grad L wrt x",
    "grad-of-unknown": "Loss = x[i]*x[i]\ndx = grad Los wrt x",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_wrong(text, golden):
    with pytest.raises(EinsummableError, match=r"\n\d \| .*\n  \| +\^") as caught:
        elaborate(parse(text), INPUTS, SCALARS)
    golden(f"{type(caught.value).__name__}: {caught.value}")


RIGHT = [
    "R[i] = relu(A[i,j]*y[j]) + x[i]**2",
    "extent h = n; R[m,(d h)] = G[m,(h d)] * lr",
    "def f[k](a, b) = max[k] a*b; R[i] = f[j](A[i,j], -1)",
    "R[i,k] = softmax[k](S[i,k]) * where(k <= i, N[i,0], A[@n,1])",
    "R[i,k] = B[N[i,j+1],2*k+1] + concat[k](B[j,k], S[i,k])",
    "input V[a=2, b] c64; extent b = 3; Q[a] = conj(V[a,b]); output Q",
    "L = x[i]*Z[i,j]; D = grad L wrt x, Z",
]
WORDS = re.findall(
    r"\S+",
    "R A Z N i j k n lr sum max f softmax extent input output def grad wrt"
    " [ ] ( ) , = == < + - * / ** ; 0 2 1.5 @",
)


@settings(max_examples=300)
@given(st.data())
def test_no_text_makes_anything_but_a_graph_or_an_error_that_shows_where(data):
    tokens = re.findall(r"\w+|\*\*|<=|\S", data.draw(st.sampled_from(RIGHT)))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(tokens) - 1))
        tokens[at : at + data.draw(st.integers(0, 1))] = data.draw(
            st.lists(st.sampled_from(WORDS), max_size=1)
        )
    try:
        made = elaborate(parse(" ".join(tokens)), INPUTS, SCALARS)
    except EinsummableError as error:
        assert error.spans, error  # noqa: PT017 - which errors come is not known, only that they point somewhere
    else:
        check(made)

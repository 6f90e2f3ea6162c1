"""Elaboration: the graph computes what numpy computes, and what means nothing is refused with carets."""

import numpy as np
import pytest

from einsummable.evaluate import evaluate
from einsummable.language.elaborate import InputSpec, elaborate
from einsummable.language.parser import parse
from einsummable.nodes import Einsummable, Reshape

rng = np.random.default_rng(0)
A, B, C = rng.normal(size=(3, 4)), rng.normal(size=(4, 5)), rng.normal(size=(5, 3))
S, x, y = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=4)
T = rng.normal(size=(2, 3, 4))
G = rng.normal(size=(3, 8))
N = rng.integers(-3, 4, (3, 4))
Z = A + 1j * rng.normal(size=(3, 4))
W = B + 1j * rng.normal(size=(4, 5))
E, C2 = rng.normal(size=(3, 5)), rng.normal(size=(2, 4))
tok, twice, pos = np.array([2, 0, 1, 1]), np.array([[0, 2], [1, 1]], np.int32), np.int64(2)
ARRAYS = {"E": E, "C2": C2, "tok": tok, "twice": twice, "pos": np.asarray(pos)}
ARRAYS |= {"A": A, "B": B, "C": C, "S": S, "x": x, "y": y, "T": T, "G": G, "N": N, "Z": Z, "W": W}
SCALARS = {"lr": 0.5, "n": 2, "big": np.float64(3)}


def built(text, scalars=SCALARS, **arrays):
    specs = {name: InputSpec(np.shape(a), np.asarray(a).dtype) for name, a in (ARRAYS | arrays).items()}
    return elaborate(parse(text), specs, scalars)


def value(text, scalars=SCALARS, **arrays):
    """Return what the last line of `text` makes."""
    made = built(text, scalars, **arrays)
    data = {name: np.asarray((ARRAYS | arrays)[name]) for name in made.inputs}
    return evaluate(made, data, scalars)[made.outputs[-1][0]]


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


i3, i4 = np.arange(3), np.arange(4)

MEANING = {
    # maps, broadcasts, diagonals
    "R[i,j] = exp(A[i,j]) + 1": lambda: np.exp(A) + 1,
    "R[j,i] = A[i,j]": lambda: A.T,
    "R[i,j] = A[i,j]": lambda: A,
    # shifts and strides
    "R[i,j] = A[i,j+1]": lambda: A[:, 1:],
    "extent j = 2; R[i,j] = A[i,j+1]": lambda: A[:, 1:3],
    "extent j = 3; R[j] = y[j+1] - y[j+0]": lambda: np.diff(y),
    "R[p] = y[2*p]": lambda: y[::2],
    "R[p] = y[2*p+1] * x[p+1]": lambda: y[1::2] * x[1:],
    "R[i] = A[i,i+1]": lambda: A[i3, i3 + 1],
    "R[i,k] = A[i,j+1]*B[j+1,k]": lambda: A[:, 1:] @ B[1:],
    # gather
    "R[t,d] = E[tok[t],d]": lambda: E[tok],
    "R[d,t] = E[tok[t],d]": lambda: E[tok].T,
    "R[d] = E[tok[t],d]": lambda: E[tok].sum(0),
    "R[t] = sum[d] exp(E[tok[t],d])": lambda: np.exp(E[tok]).sum(1),
    "R[s,t,d] = E[twice[s,t],d]": lambda: E[twice],
    "R[t] = E[tok[t],t+1]": lambda: E[tok, i4 + 1],
    "R[t] = S[tok[t],tok[t]]": lambda: S[tok, tok],
    "R[t,u] = S[tok[t],tok[u]]": lambda: S[np.ix_(tok, tok)],
    "R[t] = E[tok[t],3]": lambda: E[tok, 3],
    "R[t,d] = E[tok[t],2*d] + 1": lambda: E[tok][:, ::2] + 1,
    "R[d] = E[@pos,d]": lambda: E[2],
    "R[t,d] = E[tok[tok[t]],d]": lambda: E[tok[tok]],
    "R[t,d] = E[tok[t+1],d]": lambda: E[tok[1:]],
    # concatenation
    "R[i,j] = concat[i](A[i,j], C2[i,j])": lambda: np.concatenate([A, C2]),
    "R[j,i] = concat[i](A[i,j], C2[i,j])": lambda: np.concatenate([A, C2]).T,
    "R[i,j] = concat[j](A[i,j], N[i,j], S[i,j])": lambda: np.concatenate([A, N, S], 1),
    "R[i,j] = concat[i](A[i,j], 2*C2[i,j]+1, A[i,j])*y[j]": lambda: np.concatenate([A, 2 * C2 + 1, A]) * y,
    "R[j] = sum[i] concat[i](A[i,j], C2[i,j])": lambda: np.concatenate([A, C2]).sum(0),
    "R[k] = concat[k](x[k], concat[k](y[k], x[k+1]))": lambda: np.concatenate([x, y, x[1:]]),
    "R[k] = concat[k](x[k], sum[i] A[i,k])": lambda: np.concatenate([x, A.sum(0)]),
    "R[i] = concat[i](x[i])": lambda: x,
    "extent k = 9; R[k] = concat[k](x[k], 1.5*k)": lambda: np.concatenate([x, 1.5 * np.arange(6)]),
    "R[k] = concat[k](x[k], y[k]) + concat[k](x[k], y[k])": lambda: 2 * np.concatenate([x, y]),
    "extent z = 2; R[z,k] = concat[k](x[k], y[k])": lambda: np.stack([np.concatenate([x, y])] * 2),
    "def two[t](a) = concat[t](A[t,0], C2[t,0]) * a; R[t] = two[t](t)": lambda: np.concatenate(
        [A[:, 0], C2[:, 0]]
    )
    * np.arange(5),
    "R[i,j] = A[i,j] * x[i] + y[j]": lambda: A * x[:, None] + y,
    "extent j = 6; R[j,i] = x[i]": lambda: np.broadcast_to(x, (6, 3)),
    "extent j = n; R[j] = 1.5": lambda: np.full(2, 1.5),
    "extent j = 2; R[i,j] = sum[k] A[i,k]": lambda: np.stack([A.sum(1)] * 2, 1),
    "R[i] = S[i,i]": lambda: np.diag(S),
    "R = S[i,i]": lambda: np.trace(S),
    "R[i] = -A[i,2]**2": lambda: -(A[:, 2] ** 2),
    "R[i,j] = S[i,j]**2**2 / 2 / 4": lambda: S**4 / 8,
    "R[i,j] = A[i,j] - (A[i,j] - 1) - 1": lambda: A - (A - 1) - 1,
    # aggregates and Einstein's convention
    "R[i,k] = A[i,j] * B[j,k]": lambda: A @ B,
    "R[i,k] = sum[j] A[i,j] * B[j,k]": lambda: A @ B,
    "R[i] = A[i,j]*y[j] + x[i]": lambda: A @ y + x,
    "R[i] = sum[j] A[i,j]*y[j] + x[i]": lambda: A @ y + x,
    "R[i] = x[i] - A[i,j]*y[j]": lambda: x - A @ y,
    "R = A[i,j]": A.sum,
    "R = (x[i] + 1)": lambda: x.sum() + 1,
    "R = (x[i] + 1)*2": lambda: (x + 1).sum() * 2,
    "R[i] = A[i,j]": lambda: A.sum(1),
    "R[i] = -A[i,j]*y[j]": lambda: -(A @ y),
    "R[i] = exp(S[i,j])*x[j]": lambda: np.exp(S) @ x,
    "R[i] = (sum[k] S[i,k]) * S[i,k]": lambda: S.sum(1) * S.sum(1),
    "R[i] = sum[k] A[i,k]*B[k,j]": lambda: (A @ B).sum(1),
    "R[i] = max[k] A[i,k]*B[k,j]": lambda: (A[:, :, None] * B).max(1).sum(1),
    "R[i] = A[i,j]/y[j]": lambda: (A / y).sum(1),
    "R[i,j] = min[k] A[i,k] + S[i,j]": lambda: A.min(1)[:, None] + S,
    "R[i] = max[k] (A[i,k] - y[k])": lambda: (A - y).max(1),
    "R = prod[i] x[i] / 2": (x / 2).prod,
    "R[i] = max[k] min[j] T[i,j,k]": lambda: T.min(1).max(1),
    "R[i] = any[j] (A[i,j] > 1) * (y[j] > 0)": lambda: ((A > 1) & (y > 0)).any(1),
    "R = all[i] (x[i] < 5)": (x < 5).all,
    "R[i] = sum[j] A[i,j] > 0": lambda: A.sum(1) > 0,
    "R[i] = sum[j] (A[i,j] > 0)": lambda: (A > 0).sum(1),
    # scalars, constants, labels as values
    "R[i] = lr * x[i]": lambda: 0.5 * x,
    "R[i,k] = 2*lr*A[i,j]*B[j,k]/big": lambda: A @ B / 3,
    "R[i] = x[i] * pi + where(x[i] < 0, inf, -inf)": lambda: x * np.pi + np.where(x < 0, np.inf, -np.inf),
    "R[i] = where(isnan(nan*x[i]), 1, 0)": lambda: np.ones(3, int),
    "R[i] = 1j * x[i]": lambda: 1j * x,
    "R[i,j] = where(j <= i, A[i,j], 0)": lambda: np.tril(A),
    "R[i] = i * x[i]": lambda: i3 * x,
    "R[i] = x[i] * extent(i)": lambda: x * 3,
    "extent q = 7; R[i] = x[i] * extent(q)": lambda: x * 7,
    "R[p] = sum[t] x[t] * exp(-t*p); extent p = 4": lambda: np.exp(-np.outer(i4, i3)) @ x,
    "R[p] = x[t]*cos(2*pi*t*p/extent(t)); extent p = 4": lambda: np.cos(np.outer(i4, i3) * 2 * np.pi / 3) @ x,
    # index forms
    "R[i] = A[i,-1]": lambda: A[:, -1],
    "R[i] = A[i,@n]": lambda: A[:, 2],
    "R = A[1,@n] + A[0,0]": lambda: A[1, 2] + A[0, 0],
    "extent h = 2; R[h,m,d] = G[m,(h d)]": lambda: G.reshape(3, 2, 4).transpose(1, 0, 2),
    "extent d = 2; R[m,(d h)] = G[m,(h d)]": lambda: G.reshape(3, 4, 2).transpose(0, 2, 1).reshape(3, 8),
    "R[(i j)] = A[i,j]": A.ravel,
    "R[(j i)] = A[i,j]": A.T.ravel,
    "R[m,h] = G[m,(h d)] * y[d]": lambda: G.reshape(3, 2, 4) @ y,
    "extent h = 2; R[d] = y[d] + G[@n,(h d)]": lambda: y + G[2].reshape(2, 4).sum(0),
    "R[j] = T[0,i,j] * G[i,(j h)]": lambda: (T[0][:, :, None] * G.reshape(3, 4, 2)).sum((0, 2)),
    "R[i] = T[0,i,j]*y[j]": lambda: T[0] @ y,
    "R[i] = x[(i)]": lambda: x,
    "R[i,j] = Q[(i j),i]; Q[(i j),k] = S[i,j]*x[k]": lambda: S * x[:, None],
    "extent h = 2; R[m,d] = G[m,(h d)]": lambda: G.reshape(3, 2, 4).sum(1),
    "R[i,j] = T[1,i,j]": lambda: T[1],
    # functions
    "R[i] = max(x[i], 0) + min(x[i], 0)": lambda: x,
    "R[i] = maximum(x[i], S[i,0])": lambda: np.maximum(x, S[:, 0]),
    "R[i] = f32(x[i])": lambda: x.astype("f4"),
    "R[i] = i32(floor(x[i]))": lambda: np.floor(x).astype("i4"),
    "R[i,j] = real(Z[i,j]) + imag(Z[i,j])": lambda: Z.real + Z.imag,
    "R[i,k] = conj(Z[i,j])*W[j,k]": lambda: Z.conj() @ W,
    "R[i] = complex(x[i], 1)": lambda: x + 1j,
    "R[i] = abs(complex(x[i], 1))": lambda: np.abs(x + 1j),
    # macros
    "R[i,j] = softmax[j](A[i,j])": lambda: softmax(A),
    "R[i,j] = logsoftmax[j](A[i,j])": lambda: np.log(softmax(A)),
    "R[i] = logsumexp[j](A[i,j])": lambda: np.log(np.exp(A).sum(1)),
    "R[i] = logsumexp[j](where(j < 0, A[i,j], -inf))": lambda: np.full(3, -np.inf),
    "R[i] = mean[j](A[i,j])": lambda: A.mean(1),
    "R[i] = var[j](A[i,j])": lambda: A.var(1),
    "R[i,j] = rmsnorm[j](A[i,j])": lambda: A / np.sqrt((A**2).mean(1, keepdims=True) + 1e-5),
    "R[i,j] = layernorm[j](A[i,j])": lambda: (A - A.mean(1, keepdims=True))
    / np.sqrt(A.var(1, keepdims=True) + 1e-5),
    "R[i] = argmax[j](A[i,j])": lambda: A.argmax(1),
    "R[i] = argmax[j](where(j == 2, nan, A[i,j]))": lambda: np.full(3, 2),
    "R[i] = mean[j](S[i,j]) * S[i,j]": lambda: S.mean(1) * S.sum(1),
    "R[q,d] = softmax[k](A[q,k]) * B[k,d]": lambda: softmax(A) @ B,
    "def sq(x) = x*x; R[i] = sq(x[i] + 1)": lambda: (x + 1) ** 2,
    "def dot[k](a, b) = sum[k] a*b; R[i,j] = dot[k](S[i,k], S[j,k])": lambda: S @ S.T,
    "def by(a) = a*lr; R[i] = by(x[i])": lambda: x / 2,
    "def row[k](a) = a * x[k]; R[i] = sum[j] row[j](S[i,j])": lambda: S @ x,
    # a label or a parameter of a macro captures nothing of its caller
    "def f(a) = sum[i] a * x[i]; R[i] = f(x[i])": lambda: x * x.sum(),
    "def f(a) = sum[i] a * x[i]; R[i] = f(sum[j] S[i,j]) + i": lambda: S.sum(1) * x.sum() + i3,
    "def g(lr) = lr + 1; R[i] = g(x[i]) * lr": lambda: (x + 1) * 0.5,
    "def lrs(a) = a * lr; R[lr] = lrs(x[lr])": lambda: x / 2,
    # products of many
    "R[i,l] = A[i,j]*B[j,k]*C[k,l]": lambda: A @ B @ C,
    "R = A[i,j]*B[j,k]*C[k,i]": lambda: np.trace(A @ B @ C),
    "R[i] = A[i,j]*B[j,k]": lambda: A @ B.sum(1),
    "R[i] = x[i]*A[i,j]*y[j]*2": lambda: x * (A @ y) * 2,
    "R = x[i]*x[i]*x[i]": (x**3).sum,
    "R[i] = exp(A[i,j])*B[j,k]*C[k,i]": lambda: np.einsum("ij,jk,ki->i", np.exp(A), B, C),
    "R[i,l] = A[i,j]*B[j,k]/C[k,l]": lambda: A @ B @ (1 / C),
    "R[i,l] = N[i,j]*B[j,k]*C[k,l]": lambda: N @ B @ C,
    "R[i,l] = j*A[i,j]*B[j,k]*C[k,l]*(k<2)": lambda: (A * i4) @ (B * (np.arange(5) < 2)) @ C,
    "R[i,l] = -A[i,j]*conj(W[j,k])*C[k,l]": lambda: -A @ W.conj() @ C,
    "R = sum[i,j] (x[i] > 0)*(A[i,j] > 0)*(y[j] > 0)": ((x > 0)[:, None] & (A > 0) & (y > 0)).sum,
    "R[i,k] = relu(A[i,j])*B[j,k]": lambda: np.maximum(A, 0) @ B,
    "R[i,k] = (A[i,j] > 0)*B[j,k]": lambda: (A > 0) @ B,
    "R[i,k] = conj(Z[i,j])*B[j,k]": lambda: Z.conj() @ B,
    "R[i,k] = exp(-i*j)*B[j,k]; extent i = 3": lambda: np.exp(-np.outer(i3, i4)) @ B,
    # order of lines, rank 0
    "R[i] = Q[i] + L; Q[i] = 2*x[i]; L = sum[j] y[j]; output R": lambda: 2 * x + y.sum(),
    "m = max[i] x[i]; R[i] = exp(x[i] - m)": lambda: np.exp(x - x.max()),
}  # fmt: skip


@pytest.mark.parametrize("text", MEANING)
def test_a_program_means_what_numpy_says(text):
    expected = np.asarray(MEANING[text]())
    with np.errstate(all="ignore"):
        actual = value(text)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


# ---- what the graph looks like ----


def nodes(made, kind=Einsummable):
    return [node for node in made.nodes if isinstance(node, kind)]


def shapes(dtype="f4", **shapes):
    return {name: InputSpec(shape, np.dtype(dtype)) for name, shape in shapes.items()}


NEAREST = """
D[i,j]  = sum[k] (X[i,k] - T[j,k])**2
near[i] = min[j] D[i,j]
pred[i] = max[j] where(D[i,j] == near[i], y[j], -1)
"""
LAYERS = """
H[b,h] = relu(sum[d] X[b,d] * W[d,h])
Y[b,o] = H[b,h] * V[h,o]                      # repeated label h: summed, as Einstein wrote it
"""
ATTENTION = """
extent h = 4
Q[b,t,h,d] = X[b,t,m] * WQ[m,(h d)]
K[b,t,h,d] = X[b,t,m] * WK[m,(h d)]
V[b,t,h,d] = X[b,t,m] * WV[m,(h d)]
S[b,h,q,k] = where(k <= q, sum[d] Q[b,q,h,d] * K[b,k,h,d] / sqrt(extent(d)), -inf)
P[b,h,q,k] = softmax[k](S[b,h,q,k])
O[b,q,(h d)] = P[b,h,q,k] * V[b,k,h,d]
"""


def test_graph_of_nearest_neighbours(golden):
    golden(elaborate(parse(NEAREST), shapes(X=(5, 3), T=(6, 3)) | shapes("i8", y=(6,))))


def test_graph_of_two_layers(golden):
    golden(elaborate(parse(LAYERS), shapes(X=(5, 3), W=(3, 7), V=(7, 2))))


def test_graph_of_attention(golden):
    golden(elaborate(parse(ATTENTION), shapes(X=(2, 5, 6), WQ=(6, 8), WK=(6, 8), WV=(6, 8))))


def test_graph_of_a_matrix_chain(golden):
    golden(
        elaborate(
            parse("R[i,m] = A[i,j]*B[j,k]*C[k,l]*D[l,m]"), shapes(A=(9, 2), B=(2, 8), C=(8, 3), D=(3, 7))
        )
    )


def test_attention_with_numpy():
    draw = np.random.default_rng(1)
    arrays = {
        n: draw.normal(size=s) for n, s in {"X": (2, 5, 6), "WQ": (6, 8), "WK": (6, 8), "WV": (6, 8)}.items()
    }
    made = elaborate(parse(ATTENTION), {n: InputSpec(a.shape, a.dtype) for n, a in arrays.items()})
    q, k, v = (
        (arrays["X"] @ arrays[w]).reshape(2, 5, 4, 2).transpose(0, 2, 1, 3) for w in ("WQ", "WK", "WV")
    )
    s = np.where(np.tril(np.ones((5, 5), bool)), q @ k.swapaxes(-1, -2) / np.sqrt(2), -np.inf)
    expected = (softmax(s) @ v).transpose(0, 2, 1, 3).reshape(2, 5, 8)
    np.testing.assert_allclose(evaluate(made, arrays)["O"], expected, rtol=1e-12)


def test_nearest_neighbours_with_numpy():
    draw = np.random.default_rng(1)
    arrays = {"X": draw.normal(size=(5, 3)), "T": draw.normal(size=(6, 3)), "y": np.arange(6)}
    made = elaborate(parse(NEAREST), {n: InputSpec(a.shape, a.dtype) for n, a in arrays.items()})
    distance = ((arrays["X"][:, None] - arrays["T"]) ** 2).sum(-1)
    np.testing.assert_array_equal(evaluate(made, arrays)["pred"], distance.argmin(1))


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("R[i,k] = A[i,j]*B[j,k]", ("i", "k")),
        ("R[k,i] = A[i,j]*B[j,k]", ("k", "i")),
        ("R[i] = exp(S[i,j])*x[j]", ("i",)),
        ("R[i] = -A[i,j]", ("i",)),
    ],
)
def test_a_line_that_is_one_implied_sum_is_one_einsummable(text, out):
    (node,) = nodes(built(text))
    assert (node.aggregate, node.out) == ("sum", out)


def test_products_of_many_become_plain_contractions():
    made = built("R[i,l] = exp(A[i,j])*2*B[j,k]*C[k,l]/lr")
    assert sum(node.is_contraction for node in nodes(made)) == 2
    assert all(len(node.space) < 4 for node in nodes(made))


@pytest.mark.parametrize("text", ["R[i,k] = relu(A[i,j])*B[j,k]", "R[i,k] = (A[i,j] + N[i,j])*B[j,k]"])
def test_an_expression_in_a_matrix_product_is_computed_once(text):
    first, last = nodes(built(text))
    assert first.out == ("i", "j")
    assert last.is_contraction


def test_a_product_that_no_order_makes_cheaper_stays_one():
    (node,) = nodes(built("R = x[i]*x[i]*S[i,i]"))
    assert node.join.format(["u", "v"]) == "u*u*v"


def test_what_only_one_factor_sums_is_summed_first():
    made = built("R[i] = A[i,j]*S[i,k]")
    assert [len(node.space) for node in nodes(made)] == [2, 2, 1]


def test_a_factor_without_labels_joins_the_expression_around_the_sum():
    first, last = nodes(built("R[i,k] = tanh(sum[j] A[i,j]*B[j,k]/sqrt(extent(j)))"))
    assert first.is_contraction
    assert last.join.format(["x"]) == "tanh(x/sqrt(4))"


@pytest.mark.parametrize(("n", "scaled"), [(2, "W"), (50, "R")])
def test_a_factor_without_labels_goes_where_there_is_least_to_scale(n, scaled):
    made = elaborate(
        parse("R[i,k] = lr*V[i,j]*W[j,k]"), shapes(V=(60, n), W=(n, 50 if n == 2 else 2)), {"lr": 0.1}
    )
    (scale,) = [node for node in nodes(made) if not node.is_contraction]
    assert scale.join.format(["x"]) == "lr*x"
    assert (made.nodes[scale.inputs[0]] == made.inputs.get(scaled)) == (scaled == "W")


def test_equal_parts_are_computed_once():
    made = built("R[i,j] = softmax[j](A[i,j])\nQ[i,j] = softmax[j](A[i,j]) + 1\nL[i] = logsumexp[j](A[i,j])")
    joins = [(node.aggregate, node.join.format(["x", "y"])) for node in nodes(made)]
    assert joins.count(("max", "stop_gradient(x)")) == 1
    assert joins.count((None, "exp(x - y)")) == 1
    assert joins.count(("sum", "x")) == 1


def test_a_dear_part_of_weak_type_keeps_the_dtype_of_what_it_meets():
    made = elaborate(parse("R[i] = x[i]*exp(-i) / sum[i] x[i]*exp(-i)"), shapes(x=(3,)))
    assert made.nodes[-1].dtype == np.float32


def test_scalars_are_read_when_the_program_runs():
    made = built("R[i] = lr*x[i] + A[i,@n]")
    assert {p.name: str(p.type) for p in made.params} == {"lr": "weak f", "n": "weak i"}
    data = {"x": x, "A": A}
    np.testing.assert_allclose(evaluate(made, data, {"lr": 3, "n": 1})["R"], 3 * x + A[:, 1])


def test_what_a_program_does_not_read_is_not_there():
    made = built("R[i] = x[i]")
    assert list(made.inputs) == ["x"]
    assert made.params == ()


def test_inputs_stand_in_the_order_of_the_text():
    assert list(built("R[i] = A[i,j]*y[j]; Q[i] = x[i] + y[0]").inputs) == ["A", "y", "x"]


def test_outputs_are_what_no_line_reads_in_the_order_of_the_text():
    text = "L[i] = Q[i]; P[i] = x[i]; Q[i] = P[i]; M = x[0]"
    assert [name for name, _ in built(text).outputs] == ["L", "M"]
    assert [name for name, _ in built(text + "; output Q, P; output P, L").outputs] == ["Q", "P", "L"]


def test_declared_inputs_need_no_array():
    text = "extent d = n; input X[b=5, d] bool; input V[(b d)=10]; input c f64; R[b] = c*X[b,d]*V[(b d)]"
    made = elaborate(parse(text), {}, SCALARS)
    assert {name: (i.shape, str(i.dtype)) for name, i in made.inputs.items()} == {
        "c": ((), "float64"),
        "X": ((5, 2), "bool"),
        "V": ((10,), "float32"),
    }


def test_an_array_completes_a_declaration():
    made = elaborate(parse("input X[b=5, d]; R[b,d] = X[b,d]"), shapes("f8", X=(7, 3)))
    assert (made.inputs["X"].shape, made.inputs["X"].dtype) == ((5, 3), np.float64)


def test_a_line_hides_the_callers_array_of_its_name():
    made = built("A[i] = 2*x[i]; R[i] = A[i]")
    assert list(made.inputs) == ["x"]


def test_origins_point_at_the_formula():
    text = "Q[i,k] = A[i,j]*B[j,k]\nR[i,(k l)] = softmax[k](Q[i,k]) * x[l]"
    made = built(text)
    origins = [
        (n.origin.name, n.origin.macro, text[n.origin.span.start : n.origin.span.stop]) for n in made.nodes
    ]
    line = "R[i,(k l)] = softmax[k](Q[i,k]) * x[l]"
    assert origins == [
        ("A", "", "A"),
        ("B", "", "B"),
        ("x", "", "x"),
        ("Q", "", "Q[i,k] = A[i,j]*B[j,k]"),
        ("R", "softmax", "softmax[k](Q[i,k])"),
        ("R", "softmax", "softmax[k](Q[i,k])"),
        ("R", "softmax", "softmax[k](Q[i,k])"),
        ("R", "", line),
        ("R", "", line),
    ]


def test_a_label_of_a_macro_gets_a_name_that_its_line_does_not_use():
    made = built("def f(a) = sum[i] a*x[i]; R[i] = f(x[i])")
    assert [node.space for node in nodes(made)] == [(("i2", 3),), (("i", 3),)]


def test_groups_and_positions_become_nodes_of_their_own():
    made = built("extent h = 2; R[(d h)] = G[0,(h d)]")
    assert [str(node) for node in made.nodes[1:]] == [
        "[(h d)] select  of %0[0,(h d)]",
        "[h,d] reshape  of %1[(h d)]",
        "[d,h] x  of %2[h,d]",
        "[(d h)] reshape  of %3[d,h]",
    ]
    assert len(nodes(made, Reshape)) == 2


def test_a_diagonal_of_a_group_and_a_position():
    cube = np.arange(2 * 6 * 2 * 3).reshape(2, 6, 2, 3)
    actual = value("R[i,j] = E[i,(i j),i,1]", E=cube)
    np.testing.assert_array_equal(actual, [[cube[i, i * 3 + j, i, 1] for j in range(3)] for i in range(2)])


def test_empty_extents():
    actual = value("R[i,k] = E[i,j]*F[j,k]*B[k,l]", E=np.zeros((3, 0)), F=np.zeros((0, 4)))
    np.testing.assert_array_equal(actual, np.zeros((3, 4)))


def test_more_than_52_labels():
    terms = " + ".join(f"sum[l{n}] Y[l{n}]*Y[l{n}]" for n in range(60))
    np.testing.assert_allclose(value(f"R = {terms}", Y=y), 60 * (y @ y))


def test_a_sum_of_two_thousand_terms():
    np.testing.assert_allclose(value("R[i] = " + " + ".join(f"x[i]*{n}" for n in range(2000))), x * 1999000)


def test_macros_may_call_macros_and_share_what_is_equal():
    text = "def f(a) = g(a) + g(a)\ndef g(a) = exp(a) * exp(a)\nR[i] = f(f(x[i]))"
    (node,) = nodes(built(text))
    assert [op.fn for op in node.join.ops if hasattr(op, "fn")].count("exp") == 2


@pytest.mark.parametrize("dtype", ["f4", "c16", "i8", "?"])
def test_dtypes_do_not_depend_on_how_a_product_is_contracted(dtype):
    made = elaborate(
        parse("R[i,l] = A[i,j]*B[j,k]*C[k,l]"), shapes(dtype, A=(2, 3), B=(3, 4)) | shapes(C=(4, 5))
    )
    expected = np.result_type(np.dtype(dtype), np.float32)
    assert made.nodes[-1].dtype == expected

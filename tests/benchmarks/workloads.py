"""The workloads of ``bench run``: programs, their inputs, and the same computed by others.

Contract: a `Workload` has a program in the language, float32 inputs, and `peers`: by name, a function of the
inputs that answers a callable and how many times faster we must be.  A peer whose package is not installed
is left out by who asks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from einsummable.models import chain

Arrays = Mapping[str, np.ndarray]
#: Makes the call that is timed; data is converted and functions are compiled before.
Maker = Callable[[Arrays], Callable[[], object]]


@dataclass(frozen=True)
class Peer:
    """Another way to compute a workload, the package it needs, and the ratio that we must reach."""

    name: str
    package: str
    make: Maker
    at_least: float


@dataclass(frozen=True)
class Workload:
    """A program, the shapes of its inputs, and peers."""

    name: str
    text: str
    shapes: Mapping[str, tuple[int, ...]]
    peers: tuple[Peer, ...]
    tolerance: float = 1e-3

    def arrays(self) -> dict[str, np.ndarray]:
        """Return standard normal inputs."""
        rng = np.random.default_rng(0)
        return {name: rng.standard_normal(shape, np.float32) for name, shape in self.shapes.items()}


def in_numpy(function: Callable[..., np.ndarray]) -> Maker:
    """Return what calls `function` on the arrays."""
    return lambda arrays: lambda: function(**arrays)


def in_torch(function: Callable[..., object]) -> Maker:
    """Return what calls ``function(torch, **tensors)`` without gradients."""

    def make(arrays: Arrays) -> Callable[[], object]:
        import torch

        tensors = {name: torch.from_numpy(x) for name, x in arrays.items()}

        def call() -> object:
            with torch.inference_mode():
                return function(torch, **tensors)

        return call

    return make


def in_jax(function: Callable[..., object]) -> Maker:
    """Return what calls ``function(jax.numpy, **arrays)`` compiled, and waits for it."""

    def make(arrays: Arrays) -> Callable[[], object]:
        import jax

        compiled = jax.jit(lambda **given: function(jax.numpy, **given))
        there = {name: jax.device_put(x) for name, x in arrays.items()}
        return lambda: compiled(**there).block_until_ready()

    return make


# --------------------------------------------------------------------------------------- attention


def numpy_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return causal attention by matmul, as numpy users write it."""
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (Q, K, V))
    scores = q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(Q.shape[-1]))
    scores = np.where(np.tri(Q.shape[1], dtype=bool), scores, np.float32(-np.inf))
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    result = (scores / scores.sum(-1, keepdims=True)) @ v
    return np.ascontiguousarray(result.transpose(0, 2, 1, 3)).reshape(*Q.shape[:2], -1)


def torch_attention(torch: object, Q: object, K: object, V: object) -> object:
    """Return the same formula in torch."""
    q, k, v = (x.transpose(1, 2) for x in (Q, K, V))
    scores = q @ k.transpose(-1, -2) / Q.shape[-1] ** 0.5
    hidden = torch.ones(Q.shape[1], Q.shape[1], dtype=torch.bool).triu(1)
    return (scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v).transpose(1, 2).flatten(2)


def fused_attention(torch: object, Q: object, K: object, V: object) -> object:
    """Return torch's own kernel of it."""
    q, k, v = (x.transpose(1, 2) for x in (Q, K, V))
    made = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return made.transpose(1, 2).flatten(2)


# ------------------------------------------------------------------------------------------ layers


def numpy_layers(X: np.ndarray, W1: np.ndarray, W2: np.ndarray, W3: np.ndarray) -> np.ndarray:
    """Return three layers with relu between them."""
    return np.maximum(np.maximum(X @ W1, 0) @ W2, 0) @ W3


def torch_layers(_torch: object, X: object, W1: object, W2: object, W3: object) -> object:
    """Return the same in torch."""
    return ((X @ W1).relu() @ W2).relu() @ W3


# ----------------------------------------------------------------------------- maps and reductions


def numpy_softmax(X: np.ndarray) -> np.ndarray:
    """Return the softmax of rows with as few temporaries as numpy allows."""
    made = np.exp(X - X.max(1, keepdims=True))
    made /= made.sum(1, keepdims=True)
    return made


def jax_softmax(jnp: object, X: object) -> object:
    """Return the same in jax."""
    made = jnp.exp(X - X.max(1, keepdims=True))
    return made / made.sum(1, keepdims=True)


def numpy_rmsnorm(X: np.ndarray) -> np.ndarray:
    """Return rows over their root mean square."""
    return X * (1 / np.sqrt(np.square(X).mean(1, keepdims=True) + np.float32(1e-5)))


def jax_rmsnorm(jnp: object, X: object) -> object:
    """Return the same in jax."""
    return X / jnp.sqrt(jnp.square(X).mean(1, keepdims=True) + 1e-5)


def numpy_silu(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return silu(X)·Y."""
    return X / (1 + np.exp(-X)) * Y


def jax_silu(jnp: object, X: object, Y: object) -> object:
    """Return the same in jax."""
    return X / (1 + jnp.exp(-X)) * Y


# ------------------------------------------------------------------------------------ other joins


def numpy_neighbours(X: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Return the least squared distances by a matrix product, which rounds away the smallest of them."""
    products = X @ T.T
    products *= -2
    products += np.square(T).sum(1)
    return products.min(1) + np.square(X).sum(1)


def torch_neighbours(torch: object, X: object, T: object) -> object:
    """Return the least distances in torch; squaring them is free."""
    return torch.cdist(X, T).min(1).values.square()


def rank_one(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the (min, +) product by steps that numpy does in place."""
    best = A[:, 0, None] + B[0]
    room = np.empty_like(best)
    for j in range(1, A.shape[1]):
        np.minimum(best, np.add(A[:, j, None], B[j], out=room), out=best)
    return best


def broadcast(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the (min, +) product row by row, each by broadcasting."""
    return np.stack([(a[:, None] + B).min(0) for a in A])


def jax_chain(_jnp: object, A: object, B: object, C: object, D: object, E: object) -> object:
    """Return the chain in jax."""
    return A @ B + C @ (D @ E)


def chains(size: int, *, skewed: bool) -> Workload:
    """Return the matrix chain."""
    shapes = {name: x.shape for name, x in chain.inputs(size, skewed=skewed).items()}
    return Workload(
        f"chain, {'skewed' if skewed else 'uniform'}, S = {size}",
        chain.TEXT,
        shapes,
        (
            Peer("numpy", "numpy", in_numpy(chain.reference), 1.0),
            Peer("jax", "jax", in_jax(jax_chain), 1.1),
        ),
        tolerance=2.0,  # sums of thousands of products of normal numbers, twice
    )


ATTENTION = """\
S[b,h,q,k] = where(k <= q, sum[d] Q[b,q,h,d] * K[b,k,h,d] / sqrt(extent(d)), -inf)
P[b,h,q,k] = softmax[k](S[b,h,q,k])
O[b,q,(h d)] = P[b,h,q,k] * V[b,k,h,d]
"""
LAYERS = """\
H[b,h] = relu(sum[d] X[b,d] * W1[d,h])
G[b,g] = relu(sum[h] H[b,h] * W2[h,g])
Y[b,o] = G[b,g] * W3[g,o]
"""
WORKLOADS = (
    chains(4096, skewed=False),
    chains(4096, skewed=True),
    Workload(
        "causal attention, b 2, h 16, s 1024, d 64",
        ATTENTION,
        dict.fromkeys("QKV", (2, 1024, 16, 64)),
        (
            Peer("numpy", "numpy", in_numpy(numpy_attention), 3.0),
            Peer("torch", "torch", in_torch(torch_attention), 3.0),
            Peer("torch, fused", "torch", in_torch(fused_attention), 0.6),
        ),
    ),
    Workload(
        "layers 1024-4096-4096-1024, batch 1024",
        LAYERS,
        {"X": (1024, 1024), "W1": (1024, 4096), "W2": (4096, 4096), "W3": (4096, 1024)},
        (
            Peer("numpy", "numpy", in_numpy(numpy_layers), 1.0),
            Peer("torch", "torch", in_torch(torch_layers), 1.0),
        ),
        tolerance=10.0,  # of numbers around 1e4
    ),
    Workload(
        "softmax 8192×8192",
        "Y[i,k] = softmax[k](X[i,k])",
        {"X": (8192, 8192)},
        (
            Peer("numpy", "numpy", in_numpy(numpy_softmax), 2.0),
            Peer("jax", "jax", in_jax(jax_softmax), 0.9),
        ),
    ),
    Workload(
        "rmsnorm 8192×8192",
        "Y[i,k] = rmsnorm[k](X[i,k])",
        {"X": (8192, 8192)},
        (
            Peer("numpy", "numpy", in_numpy(numpy_rmsnorm), 2.0),
            Peer("jax", "jax", in_jax(jax_rmsnorm), 0.9),
        ),
    ),
    Workload(
        "silu(x)·y 8192×8192",
        "Z[i,k] = silu(X[i,k]) * Y[i,k]",
        {"X": (8192, 8192), "Y": (8192, 8192)},
        (
            Peer("numpy", "numpy", in_numpy(numpy_silu), 2.0),
            Peer("jax", "jax", in_jax(jax_silu), 0.9),
        ),
    ),
    Workload(
        "nearest of 4000×4000×64",
        "D[i,j] = sum[k] (X[i,k] - T[j,k])**2\nnear[i] = min[j] D[i,j]",
        {"X": (4000, 64), "T": (4000, 64)},
        (
            Peer("numpy, GEMM", "numpy", in_numpy(numpy_neighbours), 1.5),
            Peer("torch.cdist", "torch", in_torch(torch_neighbours), 0.9),
        ),
        tolerance=1e-2,
    ),
    Workload(
        "min-plus 1024³",
        "C[i,k] = min[j] (A[i,j] + B[j,k])",
        {"A": (1024, 1024), "B": (1024, 1024)},
        (
            Peer("numpy, rank one", "numpy", in_numpy(rank_one), 10.0),
            Peer("numpy, broadcast", "numpy", in_numpy(broadcast), 10.0),
        ),
    ),
)

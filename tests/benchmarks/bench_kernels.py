"""Kernels against numpy, one thread: ratios above 1 mean that the kernel is faster.

Run ``python tests/benchmarks/bench_kernels.py [NAME …]``.  Each kernel and its peer run in turn, 7 times
after a first time that does not count; medians of the ratios, and their spread, are printed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from einsummable.builder import GraphBuilder
from einsummable.kernels.blocks import Call, prepare
from einsummable.kernels.compiled import product_of_tiles
from einsummable.nodes import Einsummable
from einsummable.scalar import PRODUCT, ScalarBuilder, ScalarExpr

rng = np.random.default_rng(0)


def join(build: Callable[[ScalarBuilder], int]) -> ScalarExpr:
    """Return the expression that `build` ends in."""
    s = ScalarBuilder()
    return s.build(build(s))


def kernel(
    out: str, reads: list[tuple[np.ndarray, str]], expr: ScalarExpr, aggregate: str | None = None
) -> Callable[[], np.ndarray]:
    """Return a call of the kernel of one einsummable on whole arrays."""
    b = GraphBuilder()
    operands = [(b.input(f"X{k}", x.shape, x.dtype), labels) for k, (x, labels) in enumerate(reads)]
    b.output("Z", b.einsummable(out, operands, expr, aggregate))
    graph = b.build()
    node = graph.nodes[-1]
    if not isinstance(node, Einsummable):
        raise TypeError(f"{node} is no einsummable")
    shape = tuple(n for _, n in node.space)
    made = prepare(Call.of(graph, node), shape)
    blocks, at = [x for x, _ in reads], (0,) * len(shape)
    return lambda: made(blocks, at, {})


def contraction(equation: str, **extents: int) -> tuple[Callable, Callable]:
    """Return kernel and peer of a contraction."""
    inputs, out = equation.split("->")
    arrays = [rng.random([extents[x] for x in ls], "f4") for ls in inputs.split(",")]
    reads = list(zip(arrays, inputs.split(","), strict=True))
    return kernel(out, reads, PRODUCT, "sum"), lambda: np.einsum(equation, *arrays, optimize=True)


def tile(equation: str, **extents: int) -> tuple[Callable, Callable]:
    """Return one of many tiles of a product that share the second factor, and GEMM in the same memory."""
    inputs, out = equation.split("->")
    left, right = inputs.split(",")
    x, y = (rng.random([extents[label] for label in ls], "f4") for ls in (left, right))
    b = GraphBuilder()
    operands = [(b.input(name, a.shape, a.dtype), ls) for name, a, ls in (("X", x, left), ("Y", y, right))]
    b.output("Z", b.einsummable(out, operands, PRODUCT, "sum"))
    node = b.build().nodes[-1]
    shape = tuple(n for _, n in node.space)
    made = product_of_tiles(node, (x.dtype, y.dtype), shape, (1,))
    room = np.empty([extents[label] for label in out], "f4")
    y_matrix = y if right[0] in left else y.T

    def peer() -> np.ndarray:
        return np.matmul(x, y_matrix, out=room)

    if made is None:  # with short vectors it is GEMM
        return peer, peer
    lasting = made.prepared(1, y)
    return lambda: made([x, lasting], (0,) * len(shape), {}, room), peer


def silu_times() -> tuple[Callable, Callable]:
    """``silu(x)·y``."""
    x, y = rng.standard_normal((2, 2048, 2048)).astype("f4")
    expr = join(lambda s: s.call("mul", s.call("silu", s.arg(0)), s.arg(1)))
    return kernel("ij", [(x, "ij"), (y, "ij")], expr), lambda: x / (1 + np.exp(-x)) * y


def softmax_numerator() -> tuple[Callable, Callable]:
    """``exp(x - m)``, the map of softmax."""
    x = rng.standard_normal((2048, 2048)).astype("f4")
    m = x.max(1)
    expr = join(lambda s: s.call("exp", s.call("sub", s.arg(0), s.arg(1))))
    return kernel("ik", [(x, "ik"), (m, "i")], expr), lambda: np.exp(x - m[:, None])


def softmax_denominator() -> tuple[Callable, Callable]:
    """``sum[k] exp(x - m)``, a map and a reduction in one."""
    x = rng.standard_normal((2048, 2048)).astype("f4")
    m = x.max(1)
    expr = join(lambda s: s.call("exp", s.call("sub", s.arg(0), s.arg(1))))
    return kernel("i", [(x, "ik"), (m, "i")], expr, "sum"), lambda: np.exp(x - m[:, None]).sum(1)


def causal_mask() -> tuple[Callable, Callable]:
    """``where(k <= q, s / 8, -inf)``."""
    s0 = rng.standard_normal((16, 512, 512)).astype("f4")
    q = np.arange(512)
    expr = join(
        lambda s: s.call(
            "where",
            s.call("le", s.label("k"), s.label("q")),
            s.call("div", s.arg(0), s.const(8.0)),
            s.const(-float("inf")),
        )
    )
    minus = np.float32(-np.inf)
    return kernel("hqk", [(s0, "hqk")], expr), lambda: np.where(q <= q[:, None], s0 / np.float32(8), minus)


def nearest_neighbours() -> tuple[Callable, Callable]:
    """Squared distances of the digits' size."""
    x, t = rng.random((450, 64), "f4"), rng.random((1347, 64), "f4")
    expr = join(lambda s: s.call("pow", s.call("sub", s.arg(0), s.arg(1)), s.const(2)))
    return kernel("ij", [(x, "ik"), (t, "jk")], expr, "sum"), lambda: ((x[:, None] - t) ** 2).sum(-1)


def min_plus() -> tuple[Callable, Callable]:
    """The (min, +) product against numpy's best, a loop of rank-one steps."""
    a, b = rng.random((2, 512, 512), "f4")

    def peer() -> np.ndarray:
        best, room = np.full((512, 512), np.inf, "f4"), np.empty((512, 512), "f4")
        for j in range(512):
            np.minimum(best, np.add(a[:, j, None], b[j], out=room), out=best)
        return best

    return kernel(
        "ik", [(a, "ij"), (b, "jk")], join(lambda s: s.call("add", s.arg(0), s.arg(1))), "min"
    ), peer


def small(name: str) -> tuple[Callable, Callable]:
    """The overhead of a call on tiny blocks."""
    x, y = rng.random((2, 8, 8), "f4")
    if name == "matmul":
        return kernel("ik", [(x, "ij"), (y, "jk")], PRODUCT, "sum"), lambda: x @ y
    expr = join(lambda s: s.call("exp", s.call("sub", s.arg(0), s.arg(1))))
    return kernel("ij", [(x, "ij"), (y, "ij")], expr), lambda: np.exp(x - y)


CASES: dict[str, Callable[[], tuple[Callable, Callable]]] = {
    "ij,jk->ik 1024": lambda: contraction("ij,jk->ik", i=1024, j=1024, k=1024),
    "ij,kj->ki 1024": lambda: contraction("ij,kj->ki", i=1024, j=1024, k=1024),
    "bij,bjk->bik 32×256": lambda: contraction("bij,bjk->bik", b=32, i=256, j=256, k=256),
    "bhqd,bhkd->bhqk": lambda: contraction("bhqd,bhkd->bhqk", b=2, h=16, q=256, k=256, d=64),
    "bqhd,bkhd->bhqk": lambda: contraction("bqhd,bkhd->bhqk", b=2, h=16, q=256, k=256, d=64),
    "bhqk,bkhd->bqhd": lambda: contraction("bhqk,bkhd->bqhd", b=2, h=16, q=256, k=256, d=64),
    "btm,mhd->bthd": lambda: contraction("btm,mhd->bthd", b=2, t=256, m=512, h=8, d=64),
    "ijk,jkl->il": lambda: contraction("ijk,jkl->il", i=256, j=64, k=64, l=256),
    "tile qd,kd->qk 256": lambda: tile("qd,kd->qk", q=256, k=640, d=64),
    "tile qk,kd->qd 256": lambda: tile("qk,kd->qd", q=256, k=640, d=64),
    "ij,j->i 4096": lambda: contraction("ij,j->i", i=4096, j=4096),
    "exp(x - m)": softmax_numerator,
    "sum exp(x - m)": softmax_denominator,
    "silu(x) y": silu_times,
    "causal mask": causal_mask,
    "kNN 450×1347×64": nearest_neighbours,
    "min-plus 512³": min_plus,
    "8×8 matmul": lambda: small("matmul"),
    "8×8 exp(x - y)": lambda: small("map"),
}


def seconds(call: Callable[[], np.ndarray], times: int) -> float:
    """Return the processor's time for one of `times` calls, which what else is running does not count to."""
    start = time.thread_time()
    for _ in range(times):
        call()
    return (time.thread_time() - start) / times


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of cases; all if none")
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    print(f"{'case':22}{'kernel':>12}{'numpy':>12}{'ratio':>8}   spread")
    for name, make in CASES.items():
        if args.names and not any(part in name for part in args.names):
            continue
        ours, peer = make()
        np.testing.assert_allclose(ours(), peer(), rtol=1e-3)
        times = max(1, int(2e-3 / seconds(ours, 1)))
        with threadpool_limits(1), np.errstate(all="ignore"):
            pairs = [(seconds(ours, times), seconds(peer, times)) for _ in range(args.repeat)]
        ratios = sorted(b / a for a, b in pairs)
        a, b = (statistics.median(column) * 1e6 for column in zip(*pairs, strict=True))
        spread = f"{ratios[0]:.2f}–{ratios[-1]:.2f}"
        print(f"{name:22}{a:10.1f}µs{b:10.1f}µs{statistics.median(ratios):8.2f}   {spread}")


if __name__ == "__main__":
    main()

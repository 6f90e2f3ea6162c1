"""Packed arrays: every element stands where the loops look for it, and products of tiles find them there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_kernels import strided

from einsummable.builder import GraphBuilder
from einsummable.dtypes import F32, F64
from einsummable.kernels import compiled, machine
from einsummable.kernels.compiled import product_of_tiles
from einsummable.kernels.panels import Panels, pack
from einsummable.scalar import PRODUCT, ScalarBuilder

needs_compiler = pytest.mark.skipif(not machine.available(), reason="llvmlite is not installed")


def element(panels, at):
    """Return what loops load for the indices `at`: the lanes of a step are neighbours."""
    v, item = panels.vector, panels.packed.itemsize
    step, lane = divmod(at[v], panels.lanes)
    first = [step * panels.lanes if d == v else a for d, a in enumerate(at)]
    offset = panels.address - panels.packed.ctypes.data + lane * item
    offset += sum(a * b for a, b in zip(first, panels.strides, strict=True))
    return panels.packed.reshape(-1)[offset // item]


@settings(deadline=None, max_examples=60)
@given(
    st.data(),
    st.permutations("abk").map("".join),
    st.sampled_from(["", "a", "b", "ab", "ba"]),
    st.sampled_from([1, 2, 4, 7]),
    st.integers(0, 4),
)
def test_every_element_stands_where_the_loops_look(data, labels, inner, lanes, how):
    shape = tuple(data.draw(st.sampled_from([1, 2, 3, 4, 9])) for _ in labels)
    x = strided(np.arange(np.prod(shape), dtype=F32).reshape(shape), how)
    panels = pack(x, labels, "k", inner, lanes)
    for at in np.ndindex(shape):
        assert element(panels, at) == x[at]
    starts = [data.draw(st.integers(0, n - 1)) for n in shape]
    part = panels[(*[slice(a, None) for a in starts], ...)]
    want = x[tuple(slice(a, None) for a in starts)]
    if starts[labels.index("k")] % lanes:
        np.testing.assert_array_equal(part, want)
    else:
        assert isinstance(part, Panels)
        np.testing.assert_array_equal(part.source, want)
        for at in np.ndindex(want.shape):
            assert element(part, at) == want[at]


def test_rows_that_share_a_place_in_the_cache_are_packed_too():
    x = np.arange(70 * 3 * 1024, dtype=F32).reshape(70, 3, 1024)[:, 1, :5]
    panels = pack(x, "kd", "k", "d", 32)
    for at in np.ndindex(x.shape):
        assert element(panels, at) == x[at]


def product(left, right, out, extent, dtype, *, squares=False):
    s = ScalarBuilder()
    difference = s.call("sub", s.arg(0), s.arg(1))
    join = s.build(s.call("mul", difference, difference)) if squares else PRODUCT
    b = GraphBuilder()
    ids = [b.input(name, [extent[x] for x in ls], dtype) for name, ls in (("X", left), ("Y", right))]
    b.output("Z", b.einsummable(out, list(zip(ids, (left, right), strict=True)), join, "sum"))
    return b.build().nodes[-1]


@needs_compiler
@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([1, 2, 3, 4, 5, 8, 9, 66]),
    st.sampled_from([2, 15, 16, 17, 64, 65, 80, 129]),
    st.sampled_from([1, 2, 33, 1100]),
    st.sampled_from(["ij", "ji"]),
    st.booleans(),
    st.sampled_from([F32, F64]),
    st.integers(0, 4),
)
def test_rows_and_vectors_of_every_extent(i, j, k, out, squares, dtype, how):
    extent = {"i": i, "j": j, "k": k}
    node = product("ik", "jk", out, extent, dtype, squares=squares)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "SMALL", 1)
        kernel = compiled.compiled(node, (dtype, dtype), (), tuple(n for _, n in node.space))
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, (n, k)).astype(dtype) for n in (i, j))
    want = ((x[:, None] - y) ** 2).sum(-1) if squares else x @ y.T
    want = want if out == "ij" else want.T
    blocks = [strided(x, how), strided(y, how)]
    np.testing.assert_array_equal(kernel(blocks, (0, 0, 0), {}), want)
    laid_out = [kernel.prepared(n, block) for n, block in enumerate(blocks)]
    np.testing.assert_array_equal(kernel(laid_out, (0, 0, 0), {}), want)


@needs_compiler
def test_panels_made_for_other_loops_are_read_as_what_they_stand_for(monkeypatch):
    monkeypatch.setattr(compiled, "SMALL", 1)
    extent = {"i": 70, "j": 90, "k": 12}
    node = product("ik", "jk", "ij", extent, F32)
    kernel = compiled.compiled(node, (F32, F32), (), (70, 90, 12))
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, (n, 12)).astype(F32) for n in (70, 90))
    for vector, lanes in (("j", 2 * kernel.nest.lanes), ("k", kernel.nest.lanes)):
        other = pack(y, "jk", vector, "jk".replace(vector, ""), lanes)
        np.testing.assert_array_equal(kernel([x, other], (0, 0, 0), {}), x @ y.T)


@needs_compiler
@pytest.mark.skipif(
    machine.available() and machine.processor().vector_bytes < 64, reason="GEMM is better with short vectors"
)
def test_products_of_tiles_are_loops_where_what_they_share_is_packed_once():
    node = product("ik", "jk", "ij", {"i": 128, "j": 256, "k": 64}, F32)
    assert product_of_tiles(node, (F32, F32), (128, 256, 64), (1,)) is not None
    assert product_of_tiles(node, (F32, F32), (128, 256, 64), (0,)) is None
    assert product_of_tiles(node, (F32, F32), (128, 256, 64), ()) is None
    wide = product("ik", "jk", "ij", {"i": 128, "j": 4096, "k": 4096}, F32)
    assert product_of_tiles(wide, (F32, F32), (128, 4096, 4096), (1,)) is None

"""`einsummable.einsum`: eager, in this thread or over sites, equal to numpy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opt_einsum.testing import build_views

import einsummable as ein
from einsummable import pipeline

EQUATIONS = pytest.importorskip("opt_einsum.tests.test_contract", reason="a wheel without its tests").tests


@pytest.mark.parametrize("equation", dict.fromkeys(EQUATIONS))
def test_the_equations_of_opt_einsum(equation):
    views = build_views(equation)
    want = np.einsum(equation, *views)
    got = ein.einsum(equation, *views)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk,kl->il", [(5, 7), (7, 3), (3, 4)]),
        ("...ij,...j", [(2, 1, 3, 3), (2, 4, 3)]),
        ("t...i,ti->t...", [(10, 2), (1, 2)]),
        ("iij->ji", [(3, 3, 5)]),
        ("ij,jk->ik", [(3, 0), (0, 4)]),
        (",i->i", [(), (5,)]),
        ("i,i", [(5,), (5,)]),
        ("ij->", [(5, 3)]),
    ],
)
@pytest.mark.parametrize("sites", [1, 2, 3])
def test_over_sites(equation, shapes, sites):
    arrays = [np.random.default_rng(0).normal(size=shape) for shape in shapes]
    want = np.einsum(equation, *arrays)
    got = ein.einsum(equation, *arrays, sites=sites)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(got, want, rtol=1e-10)


@settings(max_examples=40)
@given(st.data())
def test_dtypes_over_sites(data):
    x = (
        np.arange(12)
        .reshape(3, 4)
        .astype(data.draw(st.sampled_from(["i1", "u2", "f2", "f4", "c16", "?", "g"])))
    )
    equation = data.draw(st.sampled_from(["ij,kj->ik", "ij,ij->", "ij->j", "ij->ji"]))
    args = [x] * (equation.count(",") + 1)
    got, want = ein.einsum(equation, *args, sites=data.draw(st.integers(1, 4))), np.einsum(equation, *args)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_a_second_call_prepares_nothing():
    a, b = np.ones((3, 4)), np.ones((4, 5))
    ein.einsum("pq,qr", a, b)
    before = pipeline._whole.cache_info()
    ein.einsum("pq,qr", 2 * a, b)
    after = pipeline._whole.cache_info()
    assert (after.hits, after.misses) == (before.hits + 1, before.misses)
    ein.einsum("pq,qr", a.astype("f4"), b)
    assert pipeline._whole.cache_info().misses == before.misses + 1


def test_results_are_fresh_and_inputs_are_left_alone():
    a = np.arange(6.0).reshape(2, 3)
    a.flags.writeable = False
    for equation in ("ij", "ji", "ij->ij"):
        got = ein.einsum(equation, a)
        assert not np.shares_memory(got, a)
        assert got.flags.writeable
    assert not np.shares_memory(ein.einsum("ij->ij", a, sites=1), a)


def test_no_warning_where_numpy_gives_none():
    with np.errstate(all="raise"):
        assert np.isnan(ein.einsum("i,i", [np.inf, -np.inf], [1.0, 1.0]))


def test_a_lazy_tensor_is_refused():
    with pytest.raises(ein.DtypeError, match="no values before it is run"):
        ein.einsum("ij->i", ein.tensor(np.ones((2, 2))))


def test_lazy_tensors_run_over_sites():
    x, w = np.random.default_rng(1).normal(size=(2, 6, 5)), np.ones((5, 4))
    y = np.maximum(ein.tensor(x[0], "X") @ ein.tensor(w, "W"), 0).sum(axis=0)
    np.testing.assert_allclose(y.run(sites=2), np.maximum(x[0] @ w, 0).sum(axis=0))

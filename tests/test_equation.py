"""numpy.einsum's arguments: read, refused with the label's name, and turned into graphs that equal numpy."""

import numpy as np
import opt_einsum
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opt_einsum.testing import build_views, rand_equation

from einsummable import dtypes
from einsummable.contract import contraction_path
from einsummable.equation import bind, parse
from einsummable.errors import DtypeError, ParseError, PlanError, ShapeError
from einsummable.evaluate import evaluate
from einsummable.nodes import Einsummable

EQUATIONS = pytest.importorskip("opt_einsum.tests.test_contract", reason="a wheel without its tests").tests
ONES = np.ones


def einsum(*args, **keywords):
    call = bind(args, **keywords)
    return call.finish(evaluate(call.signature.graph(), call.arrays)["out"])


def same_as_numpy(*args, **keywords):
    ours, theirs = einsum(*args, **keywords), np.einsum(*args, **keywords)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-5 if ours.dtype.itemsize < 8 else 1e-10)
    return ours


# -------------------------------------------------------------------------------- right answers


@pytest.mark.parametrize("equation", dict.fromkeys(EQUATIONS))
def test_the_equations_of_opt_einsum(equation):
    same_as_numpy(equation, *build_views(equation))


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_of_opt_einsum(seed):
    equation, shapes = rand_equation(5, 3, n_out=2, d_max=4, seed=seed, global_dim=seed % 2 == 1)
    same_as_numpy(equation, *(np.random.default_rng(seed).random(shape) for shape in shapes))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("t...i,ti->t...", [(10, 2), (1, 2)]),
        ("...ij,...j", [(2, 1, 3, 3), (2, 4, 3)]),
        ("ijij->", [(2, 3, 2, 3)]),
        ("iij->ij", [(3, 3, 2)]),
        ("i...->...", [(3, 2, 4)]),
        ("...,...", [(3, 1), (2, 1, 4)]),
        ("ij,jk->ik", [(3, 0), (0, 4)]),
        ("ij,jk->ik", [(0, 2), (2, 4)]),
        ("ij->", [(0, 2)]),
        ("i,i", [(3,), (1,)]),
        ("i,i", [(0,), (1,)]),
        ("ij,jk", [(2, 1), (3, 4)]),
        (",", [(), ()]),
        ("", [()]),
        ("cacc,bcb->", [(1, 1, 1, 1), (1, 4, 1)]),
        (" i j , j k -> i k ", [(2, 3), (3, 2)]),
        ("ba", [(2, 3)]),
        ("Ab,bA", [(2, 3), (3, 2)]),
        ("i,j,k->kij", [(2,), (3,), (4,)]),
        ("i->...i", [(2,)]),
    ],
)
def test_cases_of_public_reports(equation, shapes):
    rng = np.random.default_rng(0)
    same_as_numpy(equation, *(rng.random(shape) for shape in shapes))


def test_an_ellipsis_that_the_result_lacks_is_summed_whatever_optimize_says():
    x = np.arange(24).reshape(2, 3, 4)
    for optimize in (False, True):
        assert einsum("i...->i", x, optimize=optimize).tolist() == x.sum((1, 2)).tolist()
    assert einsum("i...->i", x[:, 0, 0]).tolist() == x[:, 0, 0].tolist()


def test_empty_products_are_zeros():
    assert einsum("ij,jk->ik", ONES((3, 0)), ONES((0, 4))).tolist() == np.zeros((3, 4)).tolist()


def test_labels_beyond_numpys_52():
    x = np.arange(6.0).reshape(2, 3)
    assert einsum(x, [70, 1000], x, [70, 52], [1000, 52]).tolist() == (x.T @ x).tolist()
    assert einsum(x, [1000, 70]).tolist() == x.T.tolist()
    chain = [part for k in range(60) for part in (np.eye(2), [k, k + 1])]
    assert einsum(*chain, [0, 60]).tolist() == np.eye(2).tolist()
    assert einsum("é本,本é", x, x.T) == np.sum(x * x)


@pytest.mark.parametrize("dtype", [*np.typecodes["AllInteger"], *np.typecodes["AllFloat"], "?", ">f4", ">i8"])
def test_every_dtype_of_numpy(dtype):
    x = (np.arange(6).reshape(2, 3) % 3).astype(dtype)
    for args in (("ij,kj->ik", x, x), ("ij->j", x), ("ij,ij,ij->", x, x, x), ("i,ij", x[:, 0], x)):
        ours, theirs = einsum(*args), np.einsum(*args)
        assert ours.dtype == theirs.dtype.newbyteorder("=")
        np.testing.assert_array_equal(ours, theirs)


def test_bfloat16_is_a_dtype_too():
    x = np.arange(6).reshape(2, 3).astype(dtypes.BF16)
    got = einsum("ij,kj->ik", x, x)
    assert got.dtype == dtypes.BF16
    assert got.astype("f4").tolist() == [[5, 14], [14, 50]]


def test_operands_are_cast_before_they_are_multiplied():
    small = np.full(3, 100, np.int8)
    assert same_as_numpy("i,i,i->", small, small, np.ones(3, np.int32)) == 30000


def test_sums_of_booleans_are_or():
    x = np.array([[True, True], [False, False]])
    assert einsum("ij->i", x).tolist() == [True, False]
    assert einsum("ij,jk->ik", x, x).tolist() == [[True, True], [False, False]]


@given(st.data())
def test_any_equation_over_unit_dimensions_diagonals_and_ellipses(data):
    labels = "abcd"
    extent = {label: data.draw(st.sampled_from([0, 1, 2, 3])) for label in labels}
    broad = data.draw(st.lists(st.sampled_from([1, 2]), max_size=2))
    terms, arrays = [], []
    for _ in range(data.draw(st.integers(1, 4))):
        term = data.draw(st.text(labels, max_size=3))
        unit = {label: data.draw(st.booleans()) for label in sorted(set(term))}
        shape = [1 if unit[label] else extent[label] for label in term]
        if data.draw(st.booleans()):
            inner = broad[data.draw(st.integers(0, len(broad))) :]
            at = data.draw(st.integers(0, len(term)))
            term = f"{term[:at]}...{term[at:]}"
            shape[at:at] = [data.draw(st.sampled_from([1, n])) for n in inner]
        terms.append(term)
        arrays.append(data.draw(st.integers(0, 3)) + np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5)
    equation = ",".join(terms)
    if data.draw(st.booleans()):
        known = sorted(set("".join(terms)) - {"."})
        out = "".join(data.draw(st.permutations(known))[: data.draw(st.integers(0, len(known)))])
        equation += f"->...{out}"
    np.testing.assert_array_equal(einsum(equation, *arrays), np.einsum(equation, *arrays))


@given(st.permutations(["ab", "bc", "cd", "de"]), st.sampled_from(["greedy", "optimal", True, False, "dp"]))
def test_any_order_of_contraction(terms, optimize):
    views = [np.arange(4).reshape(2, 2) + k for k, _ in enumerate(terms)]
    equation = ",".join(terms) + "->ae"
    assert einsum(equation, *views, optimize=optimize).tolist() == np.einsum(equation, *views).tolist()


def test_a_given_path_is_followed():
    views = build_views("cab,cdd->ab")
    for path in (["einsum_path", (1,), (0, 1)], [(0, 1)], [(0,), (0,), (0, 1)]):
        got = einsum("cab,cdd->ab", *views, optimize=path)
        np.testing.assert_allclose(got, np.einsum("cab,cdd->ab", *views))
    call = bind(("ij,jk,kl", ONES((2, 9)), ONES((9, 9)), ONES((9, 3))), optimize=[(1, 2), (0, 1)])
    graph = call.signature.graph()
    assert [str(n) for n in graph.nodes if isinstance(n, Einsummable)] == [
        "[j,l] sum[k] x*y  of %1[j,k], %2[k,l]",
        "[i,l] sum[j] x*y  of %0[i,j], %3[j,l]",
    ]


# -------------------------------------------------------------------------------------- the graph


def test_the_graph_of_a_chain(golden):
    a, b, c = ONES((2, 30), "f4"), ONES((30, 40), "f4"), ONES((40, 5), "f4")
    golden(bind(("ij,jk,kl->il", a, b, c)).signature.graph())


def test_the_graph_of_unit_dimensions_and_mixed_dtypes(golden):
    golden(bind(("ij,jk->ik", ONES((2, 1), "i4"), ONES((3, 4), "f4"))).signature.graph())


def test_contractions_are_pairwise():
    terms = "ab,bc,cd,de,ef,fa"
    graph = bind((terms, *build_views(terms, dict.fromkeys("abcdef", 4)))).signature.graph()
    assert all(len(n.inputs) <= 2 for n in graph.nodes)
    assert sum(n.is_contraction for n in graph.nodes if isinstance(n, Einsummable)) == 5


def test_equal_calls_have_equal_signatures():
    one, two = (bind(("ij,jk", ONES((2, 3)), ONES((3, n)))).signature for n in (4, 4))
    assert one == two
    assert hash(one) == hash(two)
    assert one != bind(("ij,jk", ONES((2, 3)), ONES((3, 5)))).signature


def test_more_operands_than_letters_have_names():
    names = bind([x for k in range(30) for x in (ONES(1), [k])]).signature.names
    assert len(set(names)) == 30


# ---------------------------------------------------------------------------- out, dtype, casting


def test_out_and_dtype_and_order():
    x = np.arange(6).reshape(2, 3)
    out = np.empty((3,), "f8")
    assert einsum("ij->j", x, out=out) is out
    assert out.tolist() == [3, 5, 7]
    assert einsum("ij->j", x, dtype="f4", casting="unsafe").dtype == np.float32
    assert einsum("ij->ij", x, order="F").flags.f_contiguous
    assert einsum("ij->ij", np.asfortranarray(x), order="a").flags.f_contiguous
    assert not np.shares_memory(einsum("ij->ij", x), x)


def test_an_object_array_is_a_number_only_with_a_dtype():
    x = np.arange(3, dtype=object)
    assert einsum("i->", x, dtype="f8", casting="unsafe") == 3.0
    with pytest.raises(DtypeError, match="neither a number nor a boolean"):
        einsum("i->", x)


# --------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        (("ij,i->", ONES((5, 1)), ONES(2)), ShapeError, "label 'i' is 5 in operand 0 but 2 in operand 1"),
        (("ii", ONES((2, 3))), ShapeError, "label 'i' is 2 in operand 0 and 3 in the same operand"),
        (("...i,...i", ONES((2, 3)), ONES((4, 3))), ShapeError, "a dimension under the ellipsis is 2"),
        (("ij", ONES(3)), ShapeError, "operand 0 has 1 dimensions, but its subscripts name 2"),
        (("i", ONES((3, 3))), ShapeError, "operand 0 has 2 dimensions, but its subscripts name 1"),
        (("...ij", ONES(3)), ShapeError, "operand 0 has 1 dimensions"),
        (("i,j", ONES(3)), ParseError, "of 2 operands, 1 are given"),
        (("i->j", ONES(3)), ParseError, "label 'j' of the result is in no operand"),
        (("ij->ii", ONES((3, 3))), ParseError, "label 'i' stands twice in the result"),
        (("i->j->", ONES(3)), ParseError, "one '->'"),
        (("i%", ONES((3, 3))), ParseError, "'%' is no label"),
        (("i..", ONES((3, 3))), ParseError, "dots stand only"),
        (("...i...", ONES((3, 3))), ParseError, "dots stand only"),
        ((), ParseError, "needs an equation"),
        ((ONES(3),), ParseError, "needs an equation"),
        ((ONES(3), 0), DtypeError, "int is no list of labels"),
        ((ONES(3), [1.5]), DtypeError, "not 1.5"),
        ((ONES(3), [True]), DtypeError, "not True"),
        ((ONES(3), [-1]), ParseError, "from 0, not -1"),
        ((ONES(3), [0], [1]), ParseError, "label 1 of the result is in no operand"),
        ((ONES(3), [0], [0, 0]), ParseError, "stands twice"),
        ((ONES(3), [..., 0, ...]), ParseError, "has one Ellipsis"),
        (("i", ["a", "b"]), DtypeError, "neither a number nor a boolean"),
    ],
)
def test_refusals(args, error, message):
    with pytest.raises(error, match=message):
        einsum(*args)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"order": "W"}, ParseError, "order is one of"),
        ({"casting": "blah"}, ParseError, "casting is one of"),
        ({"dtype": "blah"}, DtypeError, "no dtype is called"),
        ({"dtype": "f4"}, DtypeError, "operand 0 is f64, which casting='safe' does not turn into f32"),
        ({"out": "x"}, DtypeError, "out must be an array"),
        ({"out": np.empty(2)}, ShapeError, "out has shape"),
        ({"out": np.empty(3, "f4")}, DtypeError, "the result is f64"),
        ({"optimize": "blah"}, ParseError, "no way to order contractions"),
        ({"optimize": 7}, ParseError, "a name or a path"),
        ({"optimize": [(0, 3)]}, PlanError, "does not name some of 3 operands"),
        ({"optimize": [(0, 1)]}, PlanError, "leaves 2 operands of 3"),
        ({"bad": 1}, TypeError, "bad"),
    ],
)
def test_refused_keywords(keywords, error, message):
    with pytest.raises(error, match=message):
        einsum("i,i,i->i", ONES(3), ONES(3), ONES(3), **keywords)


def test_a_mismatch_is_underlined(golden):
    with pytest.raises(ShapeError, match="label 'j'") as caught:
        einsum("ij, jk, kl -> il", ONES((2, 3)), ONES((4, 5)), ONES((5, 6)))
    golden(caught.value)


def test_a_wrong_character_is_underlined(golden):
    with pytest.raises(ParseError, match="no label") as caught:
        parse("ij,j&->i", 2)
    golden(caught.value)


def test_the_path_is_that_of_opt_einsum():
    terms, extents = ("ij", "jk", "kl"), {"i": 2, "j": 30, "k": 40, "l": 5}
    shapes = [tuple(extents[c] for c in term) for term in terms]
    theirs, _ = opt_einsum.contract_path("ij,jk,kl->il", *shapes, shapes=True)
    assert contraction_path(terms, "il", extents) == tuple(theirs)

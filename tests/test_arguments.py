"""What a caller may give a program, and what is refused in words that name it."""

import numpy as np
import pytest

import einsummable as ein
from einsummable import dtypes
from einsummable.arguments import as_array, sort_out
from einsummable.errors import DtypeError, ParseError, PlanError, ShapeError, UnknownNameError

TWICE = "Z[i] = 2 * x[i]"


def test_a_namespace_is_sorted_out():
    shown = np.ma.masked_array([1.0, 2.0], mask=[0, 1])
    given = sort_out({"x": np.ones(3, ">f4"), "n": 3, "f": len, "m": shown}, {"s": (2, 3), "v": [1, 2]})
    assert set(given.specs) == {"x", "s", "v"}
    assert (given.specs["x"].dtype, given.specs["s"].dtype) == (dtypes.F32, dtypes.F32)
    assert given.scalars == {"n": 3}
    assert set(given.data) == {"x", "n", "v"}
    assert set(given.rest) == {"f", "m"}


def test_arrays_are_referred_to():
    x = np.ones(3)
    assert as_array("x", x) is x
    assert sort_out({"x": x}, {}).data["x"] is x


@pytest.mark.parametrize("sites", [1, 2, 3])
@pytest.mark.parametrize(
    "x",
    [
        np.arange(6, dtype=">i4"), np.arange(12.0)[::-2], [1, 2, 3], (1.5, 2.5),
        np.asfortranarray(np.ones(4)),
        np.ma.masked_array([1.0, 2.0]), np.float32([1]), range(4),
    ],
    ids=repr,
)  # fmt: skip
def test_what_numpy_makes_an_array_of_native_bytes(x, sites):
    out = ein.compile(TWICE, x=x, sites=sites).run()["Z"]
    expected = 2 * np.asarray(x)
    assert out.dtype == expected.dtype.newbyteorder("=")
    assert out.dtype.isnative
    np.testing.assert_array_equal(out, expected)


def test_a_foreign_byte_order_is_the_same_dtype():
    net = ein.compile(TWICE, x=np.arange(3, dtype="i4"), sites=2)
    assert net.run(x=np.arange(3, dtype=">i4"))["Z"].tolist() == [0, 2, 4]


def test_a_result_shares_no_memory_with_an_input():
    x = np.arange(6.0).reshape(2, 3)
    x.flags.writeable = False
    for text in ("Z[i,j] = x[i,j]", "Z[(i j)] = x[i,j]", "Z[j] = x[1,j]", "Z[j,i] = x[i,j]"):
        z = ein.compile(text, x=x, sites=1).run()["Z"]
        assert z.flags.writeable
        assert not np.shares_memory(x, z)


def test_arrays_are_read_when_the_program_runs():
    x = np.ones(2)
    net = ein.compile(TWICE, x=x, sites=2)
    x[:] = 5
    assert net.run()["Z"].tolist() == [10.0, 10.0]


def test_plain_data_takes_the_dtype_of_the_program_where_its_kind_allows():
    net = ein.compile(TWICE, x=(3,), sites=2)
    assert net.run(x=[1, 2, 3])["Z"].dtype == np.float32
    with pytest.raises(DtypeError, match="x is c128, the program was compiled for f32"):
        net.run(x=[1j, 2, 3])
    with pytest.raises(DtypeError, match="x is f64, the program was compiled for i64"):
        ein.compile(TWICE, x=[1, 2]).run(x=[1.5, 2])
    with pytest.raises(DtypeError, match="x does not fit i32"):
        ein.compile(TWICE, x=np.ones(1, "i4")).run(x=[2**40])


NAMES = {"keep": np.ones(2), "sites": np.arange(2.0), "timeout": 3.0}


def test_inputs_that_are_called_like_options_go_into_a_mapping():
    text = "Z[i] = keep[i] * sites[i] * timeout"
    net = ein.compile(text, NAMES)
    assert net.run()["Z"].tolist() == [0.0, 3.0]
    assert net.run({"keep": np.full(2, 2.0), "timeout": 1.0})["Z"].tolist() == [0.0, 2.0]
    with pytest.raises(
        PlanError, match=r"keep must be True, False or names of outputs, not an array.*\nnote: .*mapping"
    ):
        net.run(keep=np.ones(2))
    with pytest.raises(PlanError, match="timeout must be a number of seconds"):
        net.run(timeout="1")
    with pytest.raises(PlanError, match=r"sites must be a whole number from 1, not array.*\nnote: .*mapping"):
        ein.compile(text, sites=np.ones(2))
    with pytest.raises(ParseError, match="inputs are arrays and scalars by name, not an array of float64"):
        ein.compile("Z[i] = inputs[i]", inputs=np.ones(2))
    assert ein.compile("Z[i] = program[i]", program=np.ones(2)).run()["Z"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1, 2], "x is a list"),
        ("abc", "x is a str"),
        (None, "x is None"),
        (np.array(["a"]), "x is an array of <U1"),
        (np.zeros(2, [("a", "f4")]), r"x is an array of \[\('a', '<f4'\)\]"),
        (np.ma.masked_array([1.0, 2.0], mask=[0, 1]), "x is an array with masked elements"),
    ],
)
def test_what_is_no_array_in_a_namespace_is_named(value, words):
    with pytest.raises(UnknownNameError, match=rf"nothing defines 'x'\n1 \| .*\n.*\nnote: {words}"):
        ein.compile(TWICE, {"x": value})


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ([[1], [2, 3]], ShapeError, "x is a list of which numpy makes no array"),
        (["a"], DtypeError, "x is no array of numbers but a list"),
        (None, DtypeError, "x is no array of numbers but None"),
        (np.zeros(2, "M8[s]"), DtypeError, r"x is no array of numbers but an array of datetime64\[s\]"),
        (np.ma.masked_array([1.0, 2.0], mask=[0, 1]), DtypeError, "masked elements"),
        ((-3,), ShapeError, "an extent is a whole number from 0, not -3"),
        ((True,), ShapeError, "an extent is a whole number from 0, not True"),
        ((2**63,), ShapeError, "an extent is a whole number from 0"),
    ],
)
def test_what_is_no_array_by_keyword_is_refused(value, error, words):
    with pytest.raises(error, match=words):
        ein.compile(TWICE, x=value)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (3, "not an int"),
        (None, "not None"),
        (["Z = 1"], "not a list"),
        ({"a": 3}, "not an int"),
        (np.ones(2), r"not an array of float64\nnote: ein\.tensor"),
    ],
)
def test_what_is_no_program(program, words):
    with pytest.raises(ParseError, match="a program is text, a lazy tensor or several by name, " + words):
        ein.compile(program)


def test_what_a_program_does_not_mention_is_not_kept_alive():
    net = ein.compile(TWICE, {"x": np.ones(2), "other": np.ones(10), "n": 3})
    assert set(net._data) == {"x"}


class TestRenew:
    """A program follows the caller's scope as it is now."""

    def test_what_still_fits_keeps_its_plan(self):
        net = ein.compile("Z[i] = x[i] * a", {"x": np.ones(3), "a": 1})
        assert net.renew({"x": np.zeros(3), "a": 5}) is net

    @pytest.mark.parametrize(
        ("now", "expected"),
        [
            ({"a": 0.5}, np.full(3, 0.5)),
            ({"x": np.ones(4)}, np.ones(4)),
            ({"x": np.ones(3, "f4")}, np.ones(3, "f4")),
            ({"x": np.ones(3, "c8"), "a": 2j}, np.full(3, 2j, "c8")),
        ],
    )
    def test_other_shapes_dtypes_and_kinds(self, now, expected):
        net = ein.compile("Z[i] = x[i] * a", {"x": np.ones(3), "a": 1}, sites=2, p=4).renew(now)
        assert (net.sites, net.p) == (2, 4)
        out = net.run()["Z"]
        assert out.dtype == expected.dtype
        np.testing.assert_array_equal(out, expected)

    def test_an_extent_that_a_scalar_names(self):
        net = ein.compile("extent k = n\nZ[k] = 1", {"n": 2})
        assert net.renew({"n": 3}).run()["Z"].shape == (3,)

    def test_shapes_without_arrays_stay(self):
        net = ein.compile(TWICE + " * a", x=(3,), a=1)
        assert net.renew({"a": 0.5}).graph.inputs["x"].shape == (3,)

    def test_a_graph_without_text_stays(self):
        net = ein.compile(ein.tensor(np.ones(3), "x") + 1)
        assert net.renew({"x": np.ones(4)}) is net

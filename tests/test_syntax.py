"""The syntax tree and its way back to text: `parse` undoes `unparse`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from einsummable.errors import Span
from einsummable.language.parser import parse
from einsummable.language.syntax import (
    RESERVED,
    Add,
    Aggregate,
    Call,
    Compare,
    Define,
    Dim,
    ExtentDecl,
    GatherIndex,
    GradDecl,
    Group,
    InputDecl,
    IntIndex,
    Label,
    MacroDef,
    Mul,
    Name,
    Neg,
    Number,
    OutputDecl,
    Pow,
    Program,
    Ref,
    ScalarIndex,
    Shift,
    Stride,
    children,
    unparse,
    walk,
)

words = st.one_of(
    st.sampled_from(
        ["i", "j", "k", "X", "W2", "_a", "exp", "softmax", "α", "größe", "模型", "inputs", "maximum"]
    ),
    st.from_regex(r"[a-z]\w{0,3}", fullmatch=True).filter(str.isascii),
).filter(lambda w: w not in RESERVED)
labels = words.map(Label)
label_tuples = st.lists(labels, min_size=1, max_size=3).map(tuple)
groups = label_tuples.map(Group)
naturals = st.integers(0, 10**6)
indices = st.deferred(
    lambda: st.one_of(
        labels,
        groups,
        st.integers(-9, 9).map(IntIndex),
        words.map(ScalarIndex),
        st.builds(Shift, labels, st.integers(-5, 5).filter(bool)),
        st.builds(Stride, labels, naturals, st.integers(-5, 5)),
        refs.map(GatherIndex),
    )
)
refs = st.builds(Ref, words, st.lists(indices, min_size=1, max_size=3).map(tuple))
numbers = st.sampled_from(["0", "1", "1_000", "2.5", ".5", "3.", "1e-3", "1E+6", "1j", "0.5j", "007"]).map(
    Number
)
leaves = st.one_of(numbers, refs, words.map(Name), st.sampled_from(["inf", "nan", "pi"]).map(Name))


def many(symbols, parts):
    """Return (operators, operands) of a flat sum or product."""
    tails = st.lists(st.tuples(st.sampled_from(symbols), parts), min_size=1, max_size=3)
    return st.tuples(parts, tails).map(
        lambda t: ((symbols[0], *(o for o, _ in t[1])), (t[0], *(x for _, x in t[1])))
    )


def compound(parts):
    return st.one_of(
        st.builds(Neg, parts),
        many("+-", parts).map(lambda t: Add(*t)),
        many("*/", parts).map(lambda t: Mul(*t)),
        st.builds(Pow, parts, parts),
        st.builds(Compare, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), parts, parts),
        st.builds(Aggregate, st.sampled_from(["sum", "prod", "max", "min"]), label_tuples, parts),
        st.builds(
            Call, words, st.just(()) | label_tuples, st.lists(parts, min_size=1, max_size=3).map(tuple)
        ),
        st.builds(Call, st.sampled_from(["max", "min", "extent"]), st.just(()), st.tuples(parts, parts)),
    )


exprs = st.recursive(leaves, compound, max_leaves=12)
names = words.map(Name)
name_tuples = st.lists(names, min_size=1, max_size=3).map(tuple)
extents = naturals | names
dims = st.builds(Dim, labels | groups, st.none() | extents)
statements = st.one_of(
    st.builds(Define, words, st.lists(labels | groups, max_size=3).map(tuple), exprs),
    st.builds(
        InputDecl, words, st.lists(dims, max_size=3).map(tuple), st.none() | st.sampled_from(["f32", "bool"])
    ),
    st.builds(ExtentDecl, labels, extents),
    st.builds(OutputDecl, name_tuples),
    st.builds(MacroDef, words, st.lists(labels, max_size=2).map(tuple), name_tuples, exprs),
    st.builds(GradDecl, name_tuples, names, name_tuples),
)
programs = st.lists(statements, max_size=4).map(lambda s: Program(tuple(s)))


@settings(max_examples=200)
@given(programs)
def test_parse_undoes_unparse(program):
    assert parse(unparse(program)) == program


@given(exprs)
def test_walk_meets_every_node_once_outer_first(expr):
    def count(e):
        return 1 + sum(map(count, children(e)))

    met = list(walk(expr))
    assert met[0] is expr
    assert len(met) == count(expr)


@pytest.mark.parametrize(
    "text",
    [
        "-a**-b",
        "(-a)**b",
        "(a**b)**c",
        "a**b**c",
        "a - (b - c)",
        "a / (b * c)",
        "(sum[k] a) * b",
        "a * sum[k] b * c",
        "-sum[k] a * b",
        "(-sum[k] a) * b",
        "sum[k] (a + b)",
        "(a < b) * (b < c)",
        "--a",
        "-(a * b)",
        "f((a < b), c)",
    ],
)
def test_brackets_that_are_needed_are_kept_and_others_go(text):
    assert unparse(parse(f"Z = ({text})")) == f"Z = {text.replace('((a < b)', '(a < b')}"


def test_equality_ignores_where_a_node_stands():
    assert Label("i", span=Span(3, 4)) == Label("i")
    assert hash(Label("i", span=Span(3, 4))) == hash(Label("i"))


def test_numbers_differ_where_their_text_does():
    assert Number("1") != Number("1.0")
    assert [type(Number(t).value) for t in ("1_0", "1.", "1e3", "2j")] == [int, float, float, complex]

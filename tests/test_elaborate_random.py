"""Random programs mean what a naive interpreter of the syntax tree says."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from einsummable.evaluate import evaluate
from einsummable.language import syntax
from einsummable.language.einstein import labels_in
from einsummable.language.elaborate import InputSpec, elaborate
from einsummable.language.parser import parse
from einsummable.language.prelude import prelude
from einsummable.language.syntax import (
    Add,
    Aggregate,
    Call,
    Compare,
    Define,
    GatherIndex,
    Label,
    Mul,
    Name,
    Neg,
    Number,
    Pow,
    Program,
    Ref,
    Shift,
    Stride,
)

rng = np.random.default_rng(0)
EXTENT = {"a": 2, "b": 3, "c": 2, "d": 1, "e": 4}
LABELS = ["", "a", "ab", "bc", "cd", "bb", "e", "abc", "be"]
DATA = {
    labels.upper() or "NIL": rng.integers(-2, 3, [EXTENT[label] for label in labels]).astype(float)
    for labels in LABELS
}
DATA["E"] = DATA["E"].astype(int)
INDEX = np.array([1, 0, 1])
UFUNC = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "<": np.less, "==": np.equal}
REDUCE = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
FUNCTION = {"relu": lambda v: np.maximum(v, 0), "abs": np.abs, "square": np.square, "tanh": np.tanh,
            "stop_gradient": np.positive}  # fmt: skip
GRID = {label: np.arange(n).reshape([n if o == label else 1 for o in EXTENT]) for label, n in EXTENT.items()}


class Naive:
    """Evaluates an expression as an array with one dimension for each label of `EXTENT`."""

    def __init__(self, tensors):
        self.tensors = tensors

    def line(self, define):
        parts = (
            zip(define.expr.signs, define.expr.terms, strict=True) if isinstance(define.expr, Add) else None
        )
        left = [label.name for label in define.dims]
        total = 0
        for sign, term in parts or [("+", define.expr)]:
            implied = [label for label in outside(term) if label not in left]
            v = self.reduce("sum", implied, self.value(term, {}, {}))
            total = total + v if sign == "+" else total - v
        total = self.spread(left, total)
        return np.moveaxis(total, [list(EXTENT).index(x) for x in left], range(len(left))).reshape(
            [EXTENT[x] for x in left]
        )

    def spread(self, labels, v):
        shape = [EXTENT[x] if x in labels else n for x, n in zip(EXTENT, np.shape(v) or [1] * 5, strict=True)]
        return np.broadcast_to(v, shape)

    def reduce(self, kind, labels, v):
        axes = tuple(list(EXTENT).index(x) for x in labels)
        return REDUCE[kind](self.spread(labels, v), axis=axes, keepdims=True) if axes else v

    def index(self, i):
        match i:
            case Label(name):
                return GRID[name]
            case Shift(label, offset):
                return GRID[label.name] + offset
            case Stride(label, step, offset):
                return GRID[label.name] * step + offset
            case GatherIndex(Ref(_, (inner,))):
                return INDEX[self.index(inner)]

    def value(self, e, labels, params):
        def real(label):
            return labels.get(label, label)

        match e:
            case Name("NIL"):
                return self.tensors["NIL"].reshape([1] * 5)
            case Number():
                return np.asarray(e.value).reshape([1] * 5)
            case Name(name):
                return params[name] if name in params else GRID[real(name)]
            case Ref(name, indices):
                return self.tensors[name][tuple(self.index(i) for i in indices)]
            case Neg(v):
                return -self.value(v, labels, params)
            case Pow(v, Number(text)):
                return self.value(v, labels, params) ** int(text)
            case Compare(op, v, w):
                return UFUNC[op](self.value(v, labels, params), self.value(w, labels, params))
            case Add(ops, parts) | Mul(ops, parts):
                v = self.value(parts[0], labels, params)
                for op, part in zip(ops[1:], parts[1:], strict=True):
                    v = UFUNC[op](v, self.value(part, labels, params))
                return v
            case Aggregate(kind, own, body):
                return self.reduce(kind, [real(x.name) for x in own], self.value(body, labels, params))
            case Call("concat", _, args):
                return np.concatenate([self.tensors[part.name] for part in args]).reshape(GRID["e"].shape)
            case Call("extent", _, (Name(name),)):
                return EXTENT[real(name)]
            case Call("where", _, args):
                return np.where(*(self.value(a, labels, params) for a in args))
            case Call("max", _, (v, w)):
                return np.maximum(self.value(v, labels, params), self.value(w, labels, params))
            case Call(fn, own, args) if fn in prelude():
                macro = prelude()[fn]
                inner = {p.name: real(x.name) for p, x in zip(macro.labels, own, strict=True)}
                given = {
                    p.name: self.value(x, labels, params) for p, x in zip(macro.params, args, strict=True)
                }
                return self.value(macro.body, inner, given)
            case Call("exp" | "isnan" | "rsqrt" as fn, _, (v,)):
                v = self.value(v, labels, params)
                return 1 / np.sqrt(v) if fn == "rsqrt" else getattr(np, fn)(v)
            case Call(fn, _, (v,)):
                return FUNCTION[fn](self.value(v, labels, params))


def free(e, inside_calls=True):
    """Return the free labels of `e`, or those that occur outside every call, comparison and power."""
    match e:
        case Ref(_, indices):
            return {label.name for label in labels_in(indices)}
        case Name(name) if name in EXTENT:
            return {name}
        case Aggregate(_, own, body):
            return free(body, inside_calls) - {x.name for x in own}
        case Call(fn, own) if fn in ("mean", "argmax"):
            found = free(e.args[0]) if inside_calls else set()
            return found - {x.name for x in own}
        case Call() | Compare() | Pow() if not inside_calls:
            return set()
        case Call("extent"):
            return set()
        case Call("concat", own):
            return {own[0].name}
    return set().union(*(free(part, inside_calls) for part in syntax.children(e)), set())


def outside(e):
    return sorted(free(e, inside_calls=False))


refs = st.sampled_from(
    [Ref(n, tuple(Label(x) for x in n.lower())) for n in DATA if n != "NIL"] + [Name("NIL")]
)
a, b, c, e = map(Label, "abce")
rearranged = st.sampled_from(
    [
        Ref("E", (Shift(a, 2),)),
        Ref("E", (Stride(c, 2, 1),)),
        Ref("BE", (b, Shift(b, 1))),
        Ref("AB", (GatherIndex(Ref("IDX", (b,))), b)),
        Ref("BB", (GatherIndex(Ref("IDX", (Shift(a, 1),))), GatherIndex(Ref("IDX", (b,))))),
        Ref("BC", (b, GatherIndex(Ref("IDX", (b,))))),
        Call("concat", (e,), (Ref("A", (e,)), Ref("A", (e,)))),
        Aggregate("max", (e,), Call("concat", (e,), (Ref("A", (e,)), Ref("A", (e,))))),
    ]
)
# A bare name is a label only where an index of its line is called so.
label_values = st.sampled_from(
    [
        Mul(("*", "*"), (Ref(n, tuple(map(Label, n.lower()))), Name(n.lower()[0])))
        for n in ("A", "AB", "E", "BB")
    ]
)
leaves = st.one_of(refs, refs, refs, rearranged, st.sampled_from([Number("2"), Number("1")]), label_values)


def exact_parts(parts):
    """Return expressions over `parts` whose values are integers, so that any order of summing is exact."""

    def labelled(make):
        return parts.flatmap(lambda e: make(e) if free(e) else st.just(e))

    def some(e):
        return st.lists(st.sampled_from(sorted(free(e))), min_size=1, max_size=2, unique=True).map(
            lambda names: tuple(map(Label, names))
        )

    def flat(cls, symbols):
        return st.tuples(
            parts, st.lists(st.tuples(st.sampled_from(symbols), parts), min_size=1, max_size=2)
        ).map(lambda t: cls((symbols[0], *(o for o, _ in t[1])), (t[0], *(x for _, x in t[1]))))

    return st.one_of(
        flat(Add, "+-"),
        flat(Mul, "*"),
        flat(Mul, "*"),
        parts.map(Neg),
        parts.map(lambda e: Pow(e, Number("2"))),
        st.builds(lambda fn, e: Call(fn, (), (e,)), st.sampled_from(["relu", "abs", "square"]), parts),
        st.builds(lambda v, w: Call("max", (), (v, w)), parts, parts),
        st.builds(
            lambda op, v, w, t, f: Call("where", (), (Compare(op, v, w), t, f)),
            st.sampled_from(["<", "=="]),
            parts,
            parts,
            parts,
            parts,
        ),
        labelled(
            lambda e: st.builds(Aggregate, st.sampled_from(["sum", "sum", "max", "min"]), some(e), st.just(e))
        ),
        labelled(lambda e: some(e).map(lambda own: Call("argmax", own[:1], (e,)))),
        labelled(
            lambda e: some(e).map(lambda own: Mul(("*", "*"), (e, Call("extent", (), (Name(own[0].name),)))))
        ),
    )


exact = st.recursive(leaves, exact_parts, max_leaves=7)


def rounded_over(e):
    """Return expressions of `e` whose values are rounded."""
    kinds = [st.just(Call("tanh", (), (e,)))]
    if free(e):
        label = st.sampled_from(sorted(free(e))).map(lambda name: (Label(name),))
        kinds.append(st.builds(Call, st.sampled_from(["softmax", "mean"]), label, st.just((e,))))
    return st.one_of(kinds)


rounded = exact.flatmap(rounded_over)
terms = st.one_of(
    exact,
    rounded,
    st.builds(lambda v, w: Mul(("*", "*"), (v, w)), rounded, exact),
    st.lists(refs | rounded, min_size=3, max_size=4).map(lambda f: Mul("*" * len(f), tuple(f))),
    st.builds(lambda v, w: Mul(("*", "*", "/"), (v, w, Number("4"))), refs, refs),
)


@st.composite
def lines(draw, name):
    parts = draw(st.lists(terms, min_size=1, max_size=2))
    signs = tuple(draw(st.sampled_from("+-")) for _ in parts)
    expr = Add(("+", *signs[1:]), tuple(parts)) if len(parts) > 1 else parts[0]
    summands = expr.terms if isinstance(expr, Add) else (expr,)  # a lone sum is its terms too
    needed = set().union(*(free(t) - set(outside(t)) for t in summands))
    kept = [x for x in EXTENT if x in needed or draw(st.booleans())]
    return Define(name, tuple(map(Label, draw(st.permutations(kept)))), expr)


@settings(max_examples=250)
@given(st.tuples(lines("R1"), lines("R2")))
def test_random_programs_mean_what_a_naive_interpreter_says(program):
    extents = tuple(syntax.ExtentDecl(Label(label), n) for label, n in EXTENT.items())
    text = syntax.unparse(Program(extents + program))
    made = elaborate(
        parse(text), {n: InputSpec(a.shape, a.dtype) for n, a in (DATA | {"IDX": INDEX}).items()}
    )
    with np.errstate(all="ignore"):
        actual = evaluate(made, {n: (DATA | {"IDX": INDEX})[n] for n in made.inputs})
        for define in program:
            expected = Naive(DATA).line(define)
            scale = max(1, np.max(np.abs(expected), initial=0))
            np.testing.assert_allclose(
                actual[define.name], expected, rtol=1e-9, atol=1e-9 * scale, err_msg=text
            )

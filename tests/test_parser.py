"""The parser: what a text means, and what is said about a text that means nothing."""

import subprocess
import sys

import pytest

from einsummable.errors import ParseError, Span
from einsummable.language.parser import MAX_DEPTH, parse
from einsummable.language.syntax import (
    Add,
    Aggregate,
    Call,
    Compare,
    Define,
    ExtentDecl,
    GatherIndex,
    GradDecl,
    Group,
    IntIndex,
    Label,
    Mul,
    Name,
    Neg,
    Number,
    Pow,
    Ref,
    ScalarIndex,
    Shift,
    Stride,
    walk,
)

a, b, c = Name("a"), Name("b"), Name("c")
k = (Label("k"),)


def expr(text):
    (line,) = parse(f"Z = {text}").statements
    return line.expr


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b*c", Add(("+", "+"), (a, Mul(("*", "*"), (b, c))))),
        ("a < b + c", Compare("<", a, Add(("+", "+"), (b, c)))),
        ("sum[k] a*b + c", Add(("+", "+"), (Aggregate("sum", k, Mul(("*", "*"), (a, b))), c))),
        ("a / sum[k] b*c", Mul(("*", "/"), (a, Aggregate("sum", k, Mul(("*", "*"), (b, c)))))),
        ("max[k] min[k] a", Aggregate("max", k, Aggregate("min", k, a))),
        ("-a*b", Mul(("*", "*"), (Neg(a), b))),
        ("-a**b", Neg(Pow(a, b))),
        ("a**-b", Pow(a, Neg(b))),
        ("a**b**c", Pow(a, Pow(b, c))),
        ("a - b - c", Add(("+", "-", "-"), (a, b, c))),
        ("(a + b) + c", Add(("+", "+"), (Add(("+", "+"), (a, b)), c))),
        ("max(a, b)", Call("max", (), (a, b))),
        ("maximum(a, b)", Call("maximum", (), (a, b))),
        ("softmax[k](a)", Call("softmax", k, (a,))),
        ("sum[k](a)*b", Aggregate("sum", k, Mul(("*", "*"), (a, b)))),
        ("-inf", Neg(Name("inf"))),
        ("1e-3j", Number("1e-3j")),
        ("extent(d)", Call("extent", (), (Name("d"),))),
    ],
)
def test_precedence(text, tree):
    assert expr(text) == tree


def test_index_forms():
    p, h, d, t = map(Label, "phdt")
    assert expr("X[p, 0, -1, @n, (h d), p+3, p-3, 2*p, 2*p+1, tok[t]]").indices == (
        p,
        IntIndex(0),
        IntIndex(-1),
        ScalarIndex("n"),
        Group((h, d)),
        Shift(p, 3),
        Shift(p, -3),
        Stride(p, 2),
        Stride(p, 2, 1),
        GatherIndex(Ref("tok", (t,))),
    )


def test_statements_end_with_the_line_or_a_semicolon_and_go_on_inside_brackets():
    program = parse(
        """
        # a comment
        extent h = 8; extent d = n   # another
        Z[i] = (a
                + b);

        dW = grad L wrt W
        """
    )
    assert program.statements == (
        ExtentDecl(Label("h"), 8),
        ExtentDecl(Label("d"), Name("n")),
        Define("Z", (Label("i"),), Add(("+", "+"), (a, b))),
        GradDecl((Name("dW"),), Name("L"), (Name("W"),)),
    )


def test_an_empty_text_is_an_empty_program():
    assert parse("").statements == parse(" # nothing\n\n;").statements == ()


def test_every_node_knows_the_text_it_comes_from():
    text = "Z[i,(h d)] = -exp(x*2) + sum[k] A[i,k]**2 / softmax[k](y < (1 + b))"
    (line,) = parse(text).statements

    def words(span: Span):
        return text[span.start : span.stop]

    assert words(line.name_span) == "Z"
    assert [words(d.span) for d in line.dims] == ["i", "(h d)"]
    assert [words(e.span) for e in walk(line.expr)] == [
        "-exp(x*2) + sum[k] A[i,k]**2 / softmax[k](y < (1 + b))",
        "-exp(x*2)",
        "exp(x*2)",
        "x*2",
        "x",
        "2",
        "sum[k] A[i,k]**2 / softmax[k](y < (1 + b))",
        "A[i,k]**2 / softmax[k](y < (1 + b))",
        "A[i,k]**2",
        "A[i,k]",
        "2",
        "softmax[k](y < (1 + b))",
        "y < (1 + b)",
        "y",
        "(1 + b)",
        "1",
        "b",
    ]


def test_a_name_is_normalised_as_python_does():
    micro, mu = "\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}"
    assert expr(micro) == Name(mu)


def test_a_long_sum_is_one_flat_node():
    assert len(expr(" + ".join(f"x{n}*2" for n in range(2000))).terms) == 2000


def test_importing_the_parser_does_not_build_it():
    code = "from einsummable.language import parser; raise SystemExit(parser._grammar.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


WRONG = {
    "bracket-not-closed": "X[i] = 2*A[i]\nY[b,o] = H[b,h * V[h,o]",
    "bracket-not-closed-swallows-the-next-line": "X[i] = relu(sum[k] A[i,k]\nY[i] = X[i]  # )",
    "two-brackets-not-closed": "Y = f(g(x",
    "bracket-closed-by-another": "Y[i] = relu(A[i)]",
    "bracket-closes-nothing": "Y[i] = A[i]) + 2",
    "equals-missing": "Z[i,k] A[i,k]",
    "equals-missing-at-the-end": "Z[i,k]  # = 3",
    "equals-missing-bare-expression": "A[i,j]*x[j]",
    "equals-missing-in-extent": "extent h 8",
    "equals-twice": "Z[i] = A[i] = 2",
    "augmented-assignment": "Z[i] += A[i]",
    "sum-without-labels": "Z = sum A[i]",
    "sum-called": "Z = 2*sum(A[i])",
    "max-alone": "Z = max",
    "aggregate-after-power": "Z = 2**sum[k] x[k]",
    "comparisons-chain": "Z[i] = a[i] < b[i] <= c[i]",
    "reserved-tensor": "input[i] = A[i]",
    "reserved-scalar": "def = 2",
    "reserved-aggregate": "sum[i] = A[i]",
    "reserved-label": "Z[pi] = A[pi]",
    "reserved-in-expression": "Z = 2 * wrt",
    "reserved-macro": "def max[k](x) = 3",
    "operator-missing": "Z[i] = 2 A[i]",
    "operator-missing-macro-without-brackets": "Z[i] = mean[k] X[i,k]",
    "operator-missing-function-without-brackets": "Z[i] = exp A[i]",
    "python-if": "Z = a if b else c",
    "python-and": "Z = a and b",
    "python-not": "Z = not a",
    "python-lambda": "f = lambda x: x",
    "python-matmul": "Z[i] = A[i,j] @ b[j]",
    "ellipsis": "Z[i] = A[...,i]",
    "backslash": "Z = a + \\\n b",
    "no-break-space": "Z = a\u00a0+ b",
    "extent-too-large": "extent h = 99999999999999999999",
    "floor-division": "Z = a // b",
    "power-with-caret": "Z = x^2",
    "times-sign": "Z = A × B",
    "colon-index": "Z[i] = A[:,i]",
    "attribute": "Z = A.T",
    "string": 'Z = "A"',
    "line-ends-early": "Z[i] = A[i] +   # more\n  B[i]",
    "line-ends-at-the-end": "Z[i] =",
    "empty-brackets": "Z = A[]",
    "empty-call": "Z = f()",
    "index-missing": "Z = A[i,]",
    "index-not-whole": "Z = A[1.5]",
    "index-on-the-left": "Z[i,0] = A[i]",
    "index-of-macro": "Z = softmax[0](x)",
    "extent-not-whole": "extent h = 8.5",
    "extent-missing": "input X[b=] f32",
    "grad-without-wrt": "dW, dV = grad L",
    "grad-missing": "dW, dV = L",
    "macro-without-parameters": "def f[k] = 2",
    "output-of-nothing": "output",
    "operand-missing": "Z = (a + )",
    "statement-missing": "Z = a\n* b",
    "nested-too-deep": f"Z = {'-' * MAX_DEPTH}x",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_wrong(text, golden):
    with pytest.raises(ParseError, match=r"\n\d \| .*\n  \| +\^") as caught:
        parse(text)
    golden(caught.value)

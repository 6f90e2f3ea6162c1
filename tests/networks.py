"""Networks as graphs, for tests and benchmarks of the planner: built by hand, without the language."""

from einsummable.builder import GraphBuilder
from einsummable.nodes import Position
from einsummable.scalar import COPY, ScalarBuilder


def expression(fn, *args):
    """Return the scalar expression ``fn(args)`` of inputs."""
    s = ScalarBuilder()
    return s.build(s.call(fn, *map(s.arg, args)))


RELU, EXP, SQUARE, RSQRT, SILU = (expression(fn, 0) for fn in ("relu", "exp", "square", "rsqrt", "silu"))
ADD, SUB, MUL, DIV = (expression(fn, 0, 1) for fn in ("add", "sub", "mul", "div"))


def matmul(i, j, k):
    g = GraphBuilder()
    a, b = g.input("A", (i, j)), g.input("B", (j, k))
    g.output("C", g.contract("ik", (a, "ij"), (b, "jk")))
    return g.build()


def chain(a, b, c, d, e):
    """(A·B) + (C·(D·E)) of matrices with these shapes."""
    g = GraphBuilder()
    A, B, C, D, E = (g.input(n, s) for n, s in zip("ABCDE", (a, b, c, d, e), strict=True))
    ab, de = (g.contract("ik", (x, "ij"), (y, "jk")) for x, y in ((A, B), (D, E)))
    cde = g.contract("ik", (C, "ij"), (de, "jk"))
    g.output("Y", g.einsummable("ij", [(ab, "ij"), (cde, "ij")], ADD))
    return g.build()


def ffnn(b=64, d=32, h=128, o=16):
    """Two layers: ``relu(X·W)·V``."""
    g = GraphBuilder()
    x, w, v = g.input("X", (b, d)), g.input("W", (d, h)), g.input("V", (h, o))
    a = g.contract("bh", (x, "bd"), (w, "dh"))
    a = g.einsummable("bh", [(a, "bh")], RELU)
    g.output("Y", g.contract("bo", (a, "bh"), (v, "ho")))
    return g.build()


def ffnn_step(b=64, d=32, h=128, o=16):
    """The same with the squared error to T and the derivatives with respect to both weights."""
    g = GraphBuilder()
    x, w, v, t = g.input("X", (b, d)), g.input("W", (d, h)), g.input("V", (h, o)), g.input("T", (b, o))
    a = g.contract("bh", (x, "bd"), (w, "dh"))
    r = g.einsummable("bh", [(a, "bh")], RELU)
    y = g.contract("bo", (r, "bh"), (v, "ho"))
    e = g.einsummable("bo", [(y, "bo"), (t, "bo")], SUB)
    g.output("L", g.einsummable("", [(e, "bo")], SQUARE, "sum"))
    g.output("dV", g.contract("ho", (r, "bh"), (e, "bo")))
    dr = g.contract("bh", (e, "bo"), (v, "ho"))
    s = ScalarBuilder()
    step = s.build(s.call("where", s.call("gt", s.arg(0), s.const(0)), s.arg(1), s.const(0)))
    da = g.einsummable("bh", [(a, "bh"), (dr, "bh")], step)
    g.output("dW", g.contract("dh", (x, "bd"), (da, "bh")))
    return g.build()


def softmax(g, x, labels):
    """Append a softmax over the last of `labels`."""
    rest = labels[:-1]
    top = g.einsummable(rest, [(x, labels)], COPY, "max")
    e = g.einsummable(labels, [(x, labels), (top, rest)], SUB)
    e = g.einsummable(labels, [(e, labels)], EXP)
    total = g.einsummable(rest, [(e, labels)], COPY, "sum")
    return g.einsummable(labels, [(e, labels), (total, rest)], DIV)


def attention(b=2, t=32, h=4, d=8):
    """``softmax(Q·K)·V`` of three inputs."""
    g = GraphBuilder()
    q, k, v = (g.input(n, (b, h, t, d)) for n in "QKV")
    s = g.contract("bhqk", (q, "bhqd"), (k, "bhkd"))
    g.output("O", g.contract("bhqd", (softmax(g, s, "bhqk"), "bhqk"), (v, "bhkd")))
    return g.build()


def multi_head(b=1, t=16, m=8, h=4, d=2):
    """Attention with projections of one input, heads as dimensions of the weights."""
    g = GraphBuilder()
    x = g.input("X", (b, t, m))
    q, k, v = (g.contract("bthd", (x, "btm"), (g.input(w, (m, h, d)), "mhd")) for w in ("WQ", "WK", "WV"))
    s = g.contract("bhqk", (q, "bqhd"), (k, "bkhd"))
    o = g.contract("bqhd", (softmax(g, s, "bhqk"), "bhqk"), (v, "bkhd"))
    g.output("Y", g.contract("bqm", (o, "bqhd"), (g.input("WO", (h, d, m)), "hdm")))
    return g.build()


# ------------------------------------------------------------------------------------- LLaMA


def llama(layers=1, b=1, t=64, heads=4, d=8, hidden=96):
    """A decoder as LLaMA has it: RMS norms, rotary positions, causal attention, gated feed-forward."""
    g, m = GraphBuilder(), heads * d
    x = g.input("X", (b, t, m))
    turn = _angles(g, t, d // 2)
    for n in range(layers):
        x = _llama_layer(g, f"{n}", x, turn, (b, t, heads, d, m, hidden))
    g.output("Y", _rms_norm(g, x, g.input("norm", (m,))))
    return g.build()


def _llama_layer(g, n, x, turn, sizes):
    b, t, heads, d, m, hidden = sizes
    z = _rms_norm(g, x, g.input(f"norm1.{n}", (m,)))
    q, k, v = (g.contract("btm", (z, "btj"), (g.input(f"{w}.{n}", (m, m)), "jm")) for w in ("WQ", "WK", "WV"))
    space = (("b", b), ("t", t), ("h", heads), ("d", d))
    q, k, v = (g.reshape(y, space, (1, 1, 2), (1, 1, 1, 1)) for y in (q, k, v))
    q, k = _rotate(g, q, turn, sizes), _rotate(g, k, turn, sizes)
    s = g.contract("bhqk", (q, "bqhd"), (k, "bkhd"))
    e = ScalarBuilder()
    masked = e.call("where", e.call("le", e.label("k"), e.label("q")), e.arg(0), e.const(float("-inf")))
    s = g.einsummable("bhqk", [(s, "bhqk")], e.build(masked))
    o = g.contract("bqhd", (softmax(g, s, "bhqk"), "bhqk"), (v, "bkhd"))
    o = g.reshape(o, (("b", b), ("q", t), ("h", heads), ("d", d)), (1, 1, 1, 1), (1, 1, 2))
    o = g.contract("btm", (o, "btj"), (g.input(f"WO.{n}", (m, m)), "jm"))
    x = g.einsummable("btm", [(x, "btm"), (o, "btm")], ADD)
    z = _rms_norm(g, x, g.input(f"norm2.{n}", (m,)))
    up, gate = (g.contract("bth", (z, "btm"), (g.input(f"{w}.{n}", (m, hidden)), "mh")) for w in ("W1", "W3"))
    up = g.einsummable("bth", [(up, "bth")], SILU)
    up = g.einsummable("bth", [(up, "bth"), (gate, "bth")], MUL)
    down = g.contract("btm", (up, "bth"), (g.input(f"W2.{n}", (hidden, m)), "hm"))
    return g.einsummable("btm", [(x, "btm"), (down, "btm")], ADD)


def _rms_norm(g, x, weight):
    square = g.einsummable("btm", [(x, "btm")], SQUARE)
    total = g.einsummable("bt", [(square, "btm")], COPY, "sum")
    scale = g.einsummable("bt", [(total, "bt")], RSQRT)
    z = g.einsummable("btm", [(x, "btm"), (scale, "bt")], MUL)
    return g.einsummable("btm", [(z, "btm"), (weight, "m")], MUL)


def _angles(g, t, pairs):
    """Return cosine and sine of every position and pair, which all layers read."""
    found = []
    for fn in ("cos", "sin"):
        s = ScalarBuilder()
        e = s.call(fn, s.call("mul", s.label("t"), s.call("exp", s.call("neg", s.label("p")))))
        found.append(g.einsummable("tp", [], s.build(e), extents={"t": t, "p": pairs}))
    return found


def _rotate(g, x, turn, sizes):
    b, t, heads, d, _, _ = sizes
    space = (("b", b), ("t", t), ("h", heads), ("p", d // 2))
    whole = (Position("b"), Position("t"), Position("h"))
    even, odd = (g.select(x, (*whole, Position("p", start, 2)), space) for start in (0, 1))
    cos, sin = turn
    products = [g.einsummable("bthp", [(a, "bthp"), (c, "tp")], MUL) for a in (even, odd) for c in (cos, sin)]
    first = g.einsummable("bthp", [(products[0], "bthp"), (products[3], "bthp")], SUB)
    second = g.einsummable("bthp", [(products[1], "bthp"), (products[2], "bthp")], ADD)
    e = ScalarBuilder()
    pick = e.build(e.call("where", e.call("eq", e.label("r"), e.const(0)), e.arg(0), e.arg(1)))
    both = g.einsummable("bthpr", [(first, "bthp"), (second, "bthp")], pick, extents={"r": 2})
    return g.reshape(both, (*space, ("r", 2)), (1, 1, 1, 1, 1), (1, 1, 1, 2))


#: Small enough to be planned, lowered and simulated in every test that needs several.
SMALL = {
    "matmul": matmul(512, 512, 512),
    "chain": chain((256, 32), (32, 256), (256, 32), (32, 2048), (2048, 256)),
    "ffnn": ffnn(64, 1024, 1024, 256),
    "ffnn_step": ffnn_step(256, 128, 512, 64),
    "attention": attention(2, 256, 4, 64),
    "multi_head": multi_head(1, 256, 128, 4, 32),
}

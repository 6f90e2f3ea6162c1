"""Small programs that pictures are tested on, built by hand so that no other layer is in between."""

from math import prod

from einsummable.builder import GraphBuilder
from einsummable.dtypes import I64
from einsummable.nodes import Origin
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Placement, Plan, out_parts
from einsummable.scalar import COPY, ScalarBuilder


def expr(build):
    """Return a scalar expression; `build` gets the builder."""
    b = ScalarBuilder()
    return b.build(build(b))


SUM = expr(lambda b: b.call("add", b.arg(0), b.arg(1)))


def line(name, macro=""):
    return Origin(name=name, macro=macro)


def chain(s=8):
    """(A·B)+(C·(D·E))"""
    g = GraphBuilder()
    a, b, c, d, e = (g.input(name, (s, s)) for name in "ABCDE")
    ab = g.contract("ik", (a, "ij"), (b, "jk"), origin=line("Z"))
    de = g.contract("ik", (d, "ij"), (e, "jk"), origin=line("Z"))
    cde = g.contract("ik", (c, "ij"), (de, "jk"), origin=line("Z"))
    g.output("Z", g.einsummable("ik", [(ab, "ik"), (cde, "ik")], SUM, origin=line("Z")))
    return g.build()


def knn(train=15, test=6, k=4):
    """Nearest neighbours: a join that is no product, aggregates that are no sum."""
    g = GraphBuilder()
    x, t, y = g.input("X", (test, k)), g.input("T", (train, k)), g.input("y", (train,), I64)
    distance = expr(lambda b: b.call("square", b.call("sub", b.arg(0), b.arg(1))))
    d = g.einsummable("ij", [(x, "ik"), (t, "jk")], distance, "sum", origin=line("D"))
    near = g.einsummable("i", [(d, "ij")], COPY, "min", origin=line("near"))
    vote = expr(lambda b: b.call("where", b.call("eq", b.arg(0), b.arg(1)), b.arg(2), b.const(-1)))
    pred = g.einsummable("i", [(d, "ij"), (near, "i"), (y, "j")], vote, "max", origin=line("pred"))
    g.output("pred", pred)
    return g.build()


def attention(b=2, t=6, h=2, d=4):
    """Causal attention: groups of dimensions, labels as values, a macro of four nodes."""
    g = GraphBuilder()
    x = g.input("X", (b, t, h * d))
    heads = {}
    for name in "QKV":
        w = g.input(f"W{name}", (h * d, h * d))
        made = g.contract(("b", "t", "e"), (x, "btm"), (w, "me"), origin=line(name))
        atoms = (("b", b), ("t", t), ("h", h), ("d", d))
        heads[name] = g.reshape(made, atoms, (1, 1, 2), (1, 1, 1, 1), origin=line(name))
    s = g.contract("bhqk", (heads["Q"], "bqhd"), (heads["K"], "bkhd"), origin=line("S"))
    causal = expr(
        lambda e: e.call("where", e.call("le", e.label("k"), e.label("q")), e.arg(0), e.const(float("-inf")))
    )
    s = g.einsummable("bhqk", [(s, "bhqk")], causal, origin=line("S"))
    softmax = line("P", "softmax")
    top = g.einsummable("bhq", [(s, "bhqk")], COPY, "max", origin=softmax)
    shifted = expr(lambda e: e.call("exp", e.call("sub", e.arg(0), e.arg(1))))
    e = g.einsummable("bhqk", [(s, "bhqk"), (top, "bhq")], shifted, origin=softmax)
    total = g.einsummable("bhq", [(e, "bhqk")], COPY, "sum", origin=softmax)
    ratio = expr(lambda e: e.call("div", e.arg(0), e.arg(1)))
    p = g.einsummable("bhqk", [(e, "bhqk"), (total, "bhq")], ratio, origin=softmax)
    g.output("O", g.contract("bqhd", (p, "bhqk"), (heads["V"], "bkhd"), origin=line("O")))
    return g.build()


GRAPHS = {"chain": chain, "knn": knn, "attention": attention}


def matmul_plan(s=8, i=2, k=2, j=2):
    """A matmul cut along all three labels."""
    g = GraphBuilder()
    a, b = g.input("A", (s, s)), g.input("B", (s, s))
    g.output("Z", g.contract("ik", (a, "ij"), (b, "jk"), origin=line("Z")))
    cuts = (
        Partition(("d0", "d1"), (i, j)),
        Partition(("d0", "d1"), (j, k)),
        Partition(("i", "k", "j"), (i, k, j)),
    )
    return Plan(g.build(), cuts, i * k * j, "by hand")


def everywhere(graph, p):
    """Cut every label that may be cut into `p` parts, as far as its extent goes."""
    cuts = []
    for node in graph.nodes:
        labels = tuple(label for label, _ in node.space)
        parts = tuple(min(p, max(n, 1)) if label in node.cuttable else 1 for label, n in node.space)
        cuts.append(Partition(labels, parts))
    return Plan(graph, tuple(cuts), p, "by hand")


def in_turn(plan, sites):
    """Place calls and blocks on the sites one after the other."""
    calls, homes = [], []
    for node, partition in zip(plan.graph.nodes, plan.partitions, strict=True):
        calls.append(tuple(k % sites for k in range(partition.blocks)))
        homes.append(tuple(k % sites for k in range(prod(out_parts(node, partition)))))
    return Placement(sites, tuple(calls), tuple(homes))

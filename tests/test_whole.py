"""A program run at once by its kernels equals the oracle."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same, data_for, graphs

from einsummable.builder import GraphBuilder
from einsummable.evaluate import evaluate
from einsummable.kernels.whole import Whole
from einsummable.nodes import Position
from einsummable.scalar import COPY


def test_selections_reshapes_and_shared_values():
    g = GraphBuilder()
    x = g.input("X", (4, 6))
    rows = g.select(x, [Position("i", 1, 2), Position("j")], (("i", 2), ("j", 6)))
    flat = g.reshape(rows, (("i", 2), ("j", 6)), (1, 1), (2,))
    g.output("S", g.contract((), (rows, "ij"), (rows, "ij")))
    g.output("F", g.einsummable(("k",), [(flat, ("k",))], COPY))
    g.output("R", rows)
    array = np.arange(24, dtype="f4").reshape(4, 6)
    got = Whole(g.build())({"X": array})
    assert got["S"] == (array[1::2] ** 2).sum()
    assert got["F"].tolist() == got["R"].ravel().tolist() == array[1::2].ravel().tolist()


@settings(max_examples=60)
@given(st.data())
def test_random_programs(draws):
    graph = draws.draw(graphs())
    if graph.params:
        return
    arrays, _ = data_for(graph, draws.draw(st.integers(0, 99)))
    with np.errstate(all="ignore"):
        assert_same(Whole(graph)(arrays), evaluate(graph, arrays))

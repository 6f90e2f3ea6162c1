"""JSON: what is read back equals what was written, for every IR of the package."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs, layouts, plans

from einsummable import dtypes
from einsummable.codec import from_json, to_json
from einsummable.dtypes import NAMED, ScalarType
from einsummable.errors import ParseError
from einsummable.graph import EinGraph
from einsummable.nodes import Input, Origin
from einsummable.planner.plan import Layout, Plan
from einsummable.scalar import Const, ScalarBuilder, ScalarExpr


@settings(max_examples=40)
@given(graphs(max_nodes=5))
def test_graphs(graph):
    assert from_json(EinGraph, to_json(graph)) == graph


@settings(max_examples=30)
@given(graphs(max_nodes=2), st.data())
def test_plans_and_layouts(graph, data):
    plan = data.draw(plans(graph, 4))
    assert from_json(Plan, to_json(plan)) == plan
    for layout in data.draw(layouts(graph, 3)).values():
        assert from_json(Layout, to_json(layout)) == layout


@pytest.mark.parametrize("dtype", [*NAMED.values(), np.dtype("u1"), np.dtype("g")])
def test_dtypes(dtype):
    node = Input("X", (2,), dtype)
    assert from_json(Input, to_json(node)).dtype == dtype


def test_dtypes_are_written_by_the_languages_names():
    assert json.loads(to_json(Input("X", (2,), NAMED["bf16"])))["dtype"] == "bf16"


@pytest.mark.parametrize("value", [1, 1.0, True, -0.0, float("nan"), float("inf"), 1 - 2j])
def test_literals_keep_value_and_type(value):
    b = ScalarBuilder()
    expr = b.build(b.call("add", b.arg(0), b.const(value)))
    back = from_json(ScalarExpr, to_json(expr))
    assert back == expr
    (constant,) = (op for op in back.ops if isinstance(op, Const))
    assert repr(constant.value) == repr(value)


def test_json_is_strict_json():
    b = ScalarBuilder()
    text = to_json(b.build(b.call("minimum", b.arg(0), b.const(float("inf")))))
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_origins_come_along():
    from einsummable.errors import Span

    node = Input("X", (2,), dtypes.F32, Origin(Span(3, 9), "X", "softmax"))
    assert from_json(Input, to_json(node)).origin == node.origin


def test_weak_types_stay_weak():
    assert from_json(ScalarType, to_json(dtypes.WEAK_INT)) == dtypes.WEAK_INT


@pytest.mark.parametrize("text", ["{", "3", "{}", '{"nodes": 3, "outputs": []}'])
def test_other_text_is_refused(text):
    with pytest.raises(ParseError, match="the text is no EinGraph in JSON"):
        from_json(EinGraph, text)


def test_other_values_are_refused():
    with pytest.raises(ParseError, match="ndarray is no graph, plan, placement or task graph"):
        to_json(np.ones(2))

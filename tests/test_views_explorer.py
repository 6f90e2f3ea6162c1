"""The plan explorer as data: formulas in segments, strategies, blocks, the simulated run."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from sample_graphs import GRAPHS

from einsummable.exploring import YOURS, answers, edited
from einsummable.language.elaborate import InputSpec, elaborate
from einsummable.language.parser import parse
from einsummable.planner.hardware import host
from einsummable.setting import Setting
from einsummable.views import explorer, formulas, html, links, text

ATTENTION = """\
S[h,q,k] = where(k <= q, sum[d] Q[h,q,d] * K[h,k,d] / sqrt(extent(d)), -inf)   # scores
P[h,q,k] = softmax[k](S[h,q,k])
O[q,(h d)] = P[h,q,k] * V[h,k,d]
"""
MLP = "H[b,h] = relu(sum[d] X[b,d] * W[d,h])\nY[b,o] = H[b,h] * V[h,o]"


def program(source, **shapes):
    specs = {name: InputSpec(shape, np.dtype("f4")) for name, shape in shapes.items()}
    return elaborate(parse(source), specs, {}, {})


def attention():
    return program(ATTENTION, Q=(4, 16, 8), K=(4, 16, 8), V=(4, 16, 8))


def mlp():
    return program(MLP, X=(64, 512), W=(512, 256), V=(256, 10))


def answer_to(graph, **figures):
    setting = Setting(**{"sites": 4, **figures})
    return list(answers(graph, setting, host(setting.sites)))[-1]


def test_explorer_view_of_two_layers(golden):
    graph = mlp()
    view = explorer.explorer_view(graph, answer_to(graph))
    assert "simulated" in view.pop("caption")
    for strategy in view["strategies"]:  # how long it would take is the simulator's own business
        assert strategy.pop("seconds") > 0
        assert strategy["text"].pop("seconds").endswith("s")
    golden(json.dumps(view, indent=1, ensure_ascii=False))


@pytest.mark.parametrize("make", [mlp, attention, *GRAPHS.values()], ids=["mlp", "attention", *GRAPHS])
def test_a_view_is_json_and_speaks_of_what_there_is(make):
    graph = make()
    answer = answer_to(graph, sites=3)
    view = explorer.explorer_view(graph, answer)
    assert json.loads(json.dumps(view)) == view
    assert [node["id"] for node in view["nodes"]] == list(range(len(graph.nodes)))
    for node, cuts in zip(view["nodes"], answer.plan.partitions, strict=True):
        assert tuple(label["parts"] for label in node["labels"]) == cuts.parts
        assert all(label["parts"] in label["steps"] for label in node["labels"])
        assert all((label["colour"] is None) == (label["parts"] == 1) for label in node["labels"])
    known = explorer.explorer_links(answer)
    for segment in view["formula"]:
        assert all(key.startswith(("span:", "label:", "node:")) for key in segment["keys"])
        assert all(key in known for key in segment["keys"])
    if graph.text:
        assert "".join(segment["text"] for segment in view["formula"]) == graph.text


def test_labels_of_a_formula_belong_to_the_innermost_node_and_say_their_parts():
    graph = attention()
    plan = answer_to(graph).plan
    found = formulas.formula(plan)
    by_key = {s["keys"][0]: s for s in found if s["keys"] and s["keys"][0].startswith("label:")}
    scores = next(i for i, n in enumerate(graph.nodes) if "d" in dict(n.space) and len(n.inputs) == 2)
    assert by_key[links.label_key(scores, "d")]["text"] == "d"
    for key, segment in by_key.items():
        _, node, label = key.split(":")
        assert segment["parts"] == plan.partitions[int(node)][label]
    comment = [s for s in found if "# scores" in s["text"]]
    assert [s["keys"] for s in comment] == [[]]


def test_a_dimension_has_one_colour_wherever_it_is_cut():
    graph = attention()
    colours = formulas.cut_colours(answer_to(graph).plan)
    assert colours
    plan = answer_to(graph).plan
    assert set(colours) == {
        (i, label)
        for i, cuts in enumerate(plan.partitions)
        for label, n in zip(cuts.labels, cuts.parts, strict=True)
        if n > 1
    }
    output = len(graph.nodes) - 1
    heads = [colours[i, "h"] for i, _ in colours if (i, "h") in colours]
    assert len(set(heads)) == 1
    assert graph.nodes[output].space


def test_programs_without_text_are_listed_node_by_node():
    graph = GRAPHS["chain"]()
    lines = formulas.formula(answer_to(graph).plan)
    assert len(lines) == sum(bool(node.inputs) for node in graph.nodes)
    assert all(line["keys"][0].startswith("node:") for line in lines)


def test_cards_are_svg_and_carry_every_block():
    graph = attention()
    answer = answer_to(graph, sites=5)
    cards = explorer.explorer_cards(answer)
    assert set(cards) == set(map(str, range(len(graph.nodes))))
    known = explorer.explorer_links(answer)
    for card in cards.values():
        keys = [e.get("data-keys", "").split() for e in ET.fromstring(card).iter()]
        blocks = {k for some in keys for k in some if k.startswith("block:")}
        assert blocks
        assert blocks <= set(known)


def test_a_block_is_linked_with_the_tasks_that_make_it():
    graph = mlp()
    answer = answer_to(graph)
    tasks = answer.rows[0].choice.tasks.tasks
    known = explorer.explorer_links(answer)
    blocks = [key for key in known if key.startswith("block:H:")]
    assert len(blocks) >= 4
    for block in blocks:
        made_by = [int(k.removeprefix("task:")) for k in known[block] if k.startswith("task:")]
        assert made_by
        assert all(block in known[links.task_key(t)] for t in made_by)
        assert {"node:4", links.tensor_key("H")} & {*known[block]} or "node:4" in known[block]
    assert all(links.node_key(task.origin) in known[links.task_key(t)] for t, task in enumerate(tasks))


def test_the_run_is_told_in_bars_and_above_a_number_of_tasks_in_fewer(monkeypatch):
    graph = attention()
    answer = answer_to(graph)
    run = answer.rows[0].choice.simulation
    strip = explorer.explorer_strip(answer)
    assert strip["wall"] == run.makespan
    lasting = [t for t, (a, b) in enumerate(zip(run.starts, run.ends, strict=True)) if b > a]
    assert [bar[4].split()[0] for bar in strip["bars"]] == [links.task_key(t) for t in lasting]
    monkeypatch.setattr(explorer, "MOST_TASKS", 10)
    few = explorer.explorer_strip(answer)
    assert not few["each"]
    assert len(few["bars"]) < len(strip["bars"])
    assert {bar[0] for bar in few["bars"]} == set(range(4))
    assert not any(key.startswith("task:") for key in explorer.explorer_links(answer))


def test_kernel_calls_are_drawn_where_two_labels_are_cut():
    graph = program("C[i,k] = A[i,j] * B[j,k]", A=(64, 64), B=(64, 64))
    answer = answer_to(graph, sites=8)
    assert "cutting j makes 2 partial sums" in explorer.explorer_join(answer, 2)
    assert explorer.explorer_join(answer, 0) == ""
    assert explorer.explorer_join(answer_to(graph, sites=1), 2) == ""


def test_what_is_shown_may_be_another_strategy_or_the_cut_by_hand():
    graph = mlp()
    answer = answer_to(graph)
    assert explorer.explorer_view(graph, answer, "data parallel")["shown"] == "data parallel"
    setting = edited(answer.setting, answer.plan, "Y", {"o": 5})
    by = list(answers(graph, setting, host(4)))[-1]
    view = explorer.explorer_view(graph, by)
    assert view["shown"] == YOURS
    assert [node["name"] for node in view["nodes"] if node["edited"]] == ["Y"]
    assert {label["label"]: label["parts"] for label in view["nodes"][-1]["labels"]}["o"] == 5


def test_without_a_browser_there_are_graph_blocks_costs_and_run():
    shown = explorer.still_views(answer_to(mlp()))
    assert [view["kind"] for view in shown] == ["graph", "plan", "costs", "timeline"]
    assert html(shown).count("<svg") == 4
    assert "EinDecomp" in text(shown[2])
    assert "single site" not in text(shown[2])  # it shares nothing out


def test_the_node_of_a_key():
    known = {"tensor:H": ["node:4"], "span:0-3": ["node:2", "node:3"], "site:1": []}
    keys = ("node:7", "label:5:b", "tensor:H", "span:0-3", "site:1", "")
    assert [explorer.node_of(key, known) for key in keys] == [7, 5, 4, 2, None, None]

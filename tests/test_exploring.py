"""What a plan explorer answers: the planner's own figures, for any setting."""

import json
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import attention, chain, ffnn, matmul
from strategies import graphs, plans

import einsummable as ein
from einsummable.errors import CapacityError, PlanError, UnknownNameError
from einsummable.exploring import BEST, YOURS, Explored, answers, by_hand, edited, parts_of, pinned
from einsummable.planner import bounds, cost
from einsummable.planner.hardware import host
from einsummable.planner.plan import Layout
from einsummable.setting import Setting, python

MLP = "H[b,h] = relu(sum[d] X[b,d] * W[d,h]); Y[b,o] = H[b,h] * V[h,o]"
SHAPES = {"X": (64, 512), "W": (512, 256), "V": (256, 10)}


def last(graph, setting, base=None, **more):
    return list(answers(graph, setting, base or host(setting.sites), **more))[-1]


def mlp(**options):
    return ein.compile(MLP, **SHAPES, **options)


@pytest.mark.parametrize("sites", [1, 3, 8])
def test_the_plan_is_that_of_replan_and_rivals_are_those_of_explain(sites):
    net = mlp(sites=sites)
    answer = last(net.graph, Setting(sites))
    assert answer.plan == net.plan
    assert answer.rows[0].choice.placement == net.placement
    assert answer.rows[0].seconds == net.simulation.makespan
    explained = {s.name: s for s in net.explain().strategies}
    for row in answer.rows[1:]:
        assert (row.moved, row.balance) == (explained[row.name].moved, explained[row.name].balance)
        assert (row.seconds, row.peak) == (explained[row.name].seconds, explained[row.name].peak)
    assert answer.bound == bounds.moved(net.graph, sites)


@pytest.mark.parametrize("hosts", [1, 2])
def test_the_plan_for_time_is_that_of_the_same_hardware(hosts):
    setting = Setting(4, hosts, bandwidth=1e8, latency=1e-4, objective="time", memory=1e9)
    net = mlp(hardware=setting.hardware(host(4)))
    answer = last(net.graph, setting)
    assert answer.plan.partitions == net.plan.partitions
    assert answer.rows[0].seconds == net.simulation.makespan


def test_an_answer_grows_and_ends_with_every_figure():
    given = list(answers(attention(), Setting(4), host(4)))
    known = [sum(row.choice is not None for row in answer.rows) for answer in given]
    assert known == sorted(set(known))
    assert [answer.done for answer in given] == [False] * (len(given) - 1) + [True]
    assert known[-1] == len(given[-1].rows)
    assert len({tuple((r.name, r.cost) for r in answer.rows) for answer in given}) == 1


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_parts_add_up_to_the_planners_cost(data):
    graph = data.draw(graphs(max_nodes=5))
    plan = data.draw(plans(graph, 6))
    whole = cost.moved_bytes(graph, plan.partitions)
    assert sum(parts_of(plan)) == pytest.approx(whole)
    assert min(parts_of(plan)) >= -1e-6 * max(whole, 1)


def test_a_cut_by_hand_costs_what_the_planner_says():
    graph = ffnn()
    plan = last(graph, Setting(4)).plan
    name = graph.name_of(len(graph.nodes) - 1)
    setting = edited(Setting(4), plan, name, {"o": 4})
    row = last(graph, setting).row(YOURS)
    assert row.plan.partitions[-1]["o"] == 4
    assert row.plan.partitions[:-1] == plan.partitions[:-1]
    assert row.cost == cost.moved_bytes(graph, row.plan.partitions)
    assert row.choice.tasks.bytes_moved == row.moved


def test_an_edit_back_to_the_plan_is_none():
    graph = matmul(64, 64, 64)
    plan = last(graph, Setting(4)).plan
    cut = plan.partitions[2]
    first = edited(Setting(4), plan, "C", {"i": 3})
    assert first.edits == {"C": {"i": 3}}
    assert edited(first, plan, "C", {"i": cut["i"]}).edits == {}


def test_a_pin_is_kept_and_the_rest_is_planned_around_it():
    graph = ffnn()
    plan = last(graph, Setting(4)).plan
    asked = edited(Setting(4), plan, "Y", {"o": 4, "b": 1})
    yours = by_hand(plan, asked.edits)
    setting = pinned(asked, yours, "Y")
    assert setting.edits == {}
    answer = last(graph, setting)
    assert answer.plan.partitions[-1] == yours.partitions[-1]
    net = ein.compile("Y[i] = x[i]", x=(4,), sites=4)
    assert answer.plan.cost <= cost.moved_bytes(graph, yours.partitions)
    assert net.pins == {}


def test_what_differs_by_hand_only_is_not_planned_again(monkeypatch):
    graph = ffnn()
    before = last(graph, Setting(4))
    monkeypatch.setattr("einsummable.exploring.fitting", None)  # were it called, this would fail
    setting = edited(Setting(4), before.plan, "Y", {"o": 2})
    again = last(graph, setting, before=before)
    assert again.rows[:-1] == before.rows
    assert again.rows[-1].name == YOURS


def test_what_was_answered_completely_is_known(monkeypatch):
    explored = Explored(matmul(64, 64, 64), host(1), kept=2)
    first = list(explored.answers(Setting(4)))
    assert first == list(answers(matmul(64, 64, 64), Setting(4), host(1)))
    next(explored.answers(Setting(3)))  # not to its end
    last_of_five = list(explored.answers(Setting(5)))[-1]
    monkeypatch.setattr("einsummable.exploring.answers", None)  # were it called, this would fail
    assert list(explored.answers(Setting(4))) == first[-1:]
    assert list(explored.answers(Setting(5))) == [last_of_five]
    monkeypatch.undo()
    list(explored.answers(Setting(6)))
    assert len(list(explored.answers(Setting(4)))) == len(first)  # the oldest of three is not kept


def test_inputs_that_lie_on_sites_count_until_their_sites_are_gone():
    graph = matmul(64, 64, 64)
    layouts = {"A": Layout((4, 1), (0, 1, 2, 3))}
    assert last(graph, Setting(4), layouts=layouts).plan.partitions[0].parts == (4, 1)
    assert last(graph, Setting(2), layouts=layouts).plan == last(graph, Setting(2)).plan


def test_settings_survive_json():
    for setting in (Setting(3), Setting(8, 2, 1e9, 0.0, 2e9, "time", 16, {"H": {"b": 2}}, {"Y": {"o": 3}})):
        assert Setting.of(json.loads(json.dumps(setting.json()))) == setting


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"sites": 0}, "sites must be a whole number from 1, not 0"),
        ({"sites": 2.5}, "sites must be a whole number from 1, not 2.5"),
        ({"sites": 2, "hosts": 3}, "2 sites cannot be on 3 hosts"),
        ({"sites": 2, "bandwidth": 0}, "the bandwidth must be more than 0"),
        ({"sites": 2, "memory": -1}, "the memory must be more than 0"),
        ({"sites": 2, "latency": -1.0}, "the latency must be 0 seconds or more"),
        ({"sites": 2, "objective": "fun"}, "for 'bytes' or for 'time', not for 'fun'"),
    ],
)
def test_impossible_settings_are_refused(figures, words):
    with pytest.raises(PlanError, match=words):
        Setting.of(figures)


def test_impossible_cuts_are_refused():
    plan = last(matmul(8, 8, 8), Setting(2)).plan
    with pytest.raises(UnknownNameError, match="no tensor called 'D'"):
        edited(Setting(2), plan, "D", {"i": 2})
    with pytest.raises(UnknownNameError, match="'C' has no label 'z', its labels are i, k, j"):
        edited(Setting(2), plan, "C", {"z": 2})
    with pytest.raises(PlanError, match="extent 8 cannot be cut into 9 parts"):
        edited(Setting(2), plan, "C", {"i": 9})
    with pytest.raises(CapacityError, match="no plan fits"):
        last(matmul(8, 8, 8), Setting(2, memory=10.0))


def test_hosts_and_links_go_into_the_hardware():
    base = host(1)
    one = Setting(5, bandwidth=1e9, latency=1e-5).hardware(base)
    link = replace(base.near, bandwidth=1e9, latency=1e-5)
    assert (one.hosts, one.near) == ((0,) * 5, link)
    two = Setting(5, 2, 1e9, 1e-5, memory=7.0).hardware(base)
    assert (two.hosts, two.near, two.far) == ((0, 0, 0, 1, 1), base.near, replace(link, gap=base.far.gap))
    assert two.memory == 7.0
    uneven = replace(base, hosts=(0, 1, 1))
    again = Setting.start(uneven, timed=True)
    assert again.hardware(uneven) == uneven
    assert (again.objective, again.memory) == ("time", inf)


@pytest.mark.parametrize(
    "setting",
    [
        Setting(3),
        Setting(4, p=8, pins={"H": {"b": 2, "h": 2}}),
        Setting(4, 2, 1e8, 1e-4, objective="time", memory=1e8),
    ],
)
def test_python_for_a_setting_makes_its_plan(setting):
    net = mlp(sites=2)
    scope = {"net": net}
    exec(python(setting), scope)
    assert scope["net"].plan.partitions == last(net.graph, setting, host(2)).plan.partitions


def test_the_row_to_show():
    graph = chain((16, 16), (16, 16), (16, 16), (16, 16), (16, 16))
    answer = last(graph, Setting(4))
    assert answer.row("").name == BEST
    assert answer.row("2-D").name == "2-D"
    assert answer.row("unheard of").name == BEST
    by = last(graph, edited(Setting(4), answer.plan, "Y", {"i": 3}))
    assert by.row("").name == YOURS

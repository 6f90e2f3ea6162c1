"""A plan in figures: what is gathered, and how it prints."""

import re

import pytest
from networks import ffnn, llama, matmul

from einsummable.planner.cost import balance
from einsummable.planner.eindecomp import plan
from einsummable.planner.explain import WIDTH, amount, explain, strategy_row
from einsummable.planner.plan import Layout, Placement
from einsummable.planner.strategies import named_plans


class Counted:
    """The part of a TaskGraph that is read."""

    bytes_moved = 3000
    moved_by_node = (0, 0, 0, 1000, 0, 2000)
    work_by_site = (3.0, 1.0)


class Ran:
    """The part of a simulated run that is read."""

    makespan = 0.25
    peaks = (30, 70)


def test_predicted_figures_add_up():
    found = plan(ffnn(), 4)
    told = explain(found)
    assert not told.measured
    assert told.moved == pytest.approx(found.cost)
    assert sum(row.moved for row in told.rows) == pytest.approx(found.cost)
    assert told.calls == 12
    assert [s.name for s in told.strategies] == ["eindecomp"]


def test_counted_figures_come_from_the_tasks():
    told = explain(
        plan(ffnn(), 2), Placement(2, (), ()), Counted(), [strategy_row("data parallel", Counted(), Ran())]
    )
    assert told.measured
    assert (told.moved, told.balance, told.sites) == (3000, 1.5, 2)
    assert [row.moved for row in told.rows] == [0, 0, 0, 1000, 0, 2000]
    assert [(s.name, s.moved, s.balance) for s in told.strategies] == [
        ("eindecomp", 3000, 1.5),
        ("data parallel", 3000, 1.5),
    ]
    assert [(s.seconds, s.peak) for s in told.strategies] == [(None, None), (0.25, 70)]


def test_printed_as_a_table(golden):
    graph = ffnn()
    rivals = [strategy_row(rival.strategy, rival) for rival in named_plans(graph, 4)]
    golden(explain(plan(graph, 4), rivals=rivals))


def test_a_row_says_what_its_cut_multiplies():
    told = explain(plan(ffnn(), 4, pins={"Y": {"b": 2, "h": 2}}))
    assert told.rows[5].partition == "b:2 h:2"
    assert told.rows[5].copied == "V ×2, partial sums of h ×2"
    assert told.rows[4].copied == ""


def test_a_row_says_why():
    graph = ffnn(64, 512, 512, 16)
    why = {r.name: r.why for r in explain(plan(graph, 4), pins={"V": {}}).rows}
    assert why["W"] == "as %3 reads it"
    assert why["V"] == "pinned"
    assert why["%4"] == "cut like its reader Y"
    lying = {"W": Layout((4, 1), (0, 1, 2, 3))}
    assert {r.name: r.why for r in explain(plan(graph, 4, layouts=lying), layouts=lying).rows}["W"] == (
        "lies on sites so"
    )
    assert {r.why for r in explain(plan(graph, 1)).rows[3:]} == {"one site"}


def test_the_bound_of_a_matrix_product_is_that_of_a_cube():
    told = explain(plan(matmul(1000, 1000, 1000), 8))
    assert told.bound == pytest.approx(3 * 1000**2 * 4)
    assert told.moved == pytest.approx(told.bound)


def test_lines_are_short_and_large_programs_are_summed_up():
    text = str(explain(plan(llama(3, 1, 64, 4, 16, 352), 8), run=Ran(), hardware="host"))
    assert max(map(len, text.split("\n"))) <= WIDTH
    assert "more nodes, which move" in text
    assert "time          250 ms (simulated on host)" in text
    assert "memory        70 B on the fullest site" in text


def test_totals_stand_before_the_rows():
    lines = str(explain(plan(ffnn(), 4))).split("\n")
    assert re.match(r"plan by eindecomp, p = 4, 4 sites", lines[0])
    assert lines[1].strip().startswith("bytes moved")


def test_balance_of_a_single_site_is_p():
    single, data, *_ = named_plans(ffnn(), 4)
    assert balance(single.graph, single.partitions, 4) == 4
    assert balance(data.graph, data.partitions, 4) == 1


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 "),
        (7, "7 "),
        (999.6, "1 k"),
        (1.2e9, "1.2 G"),
        (123456, "123 k"),
        (2e18, "2000 P"),
        (0.0462, "46.2 m"),
        (5e-6, "5 µ"),
    ],
)
def test_amounts_have_three_digits(n, text):
    assert amount(n) == text

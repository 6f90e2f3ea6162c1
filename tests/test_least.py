"""What a plan takes at least: never more than what its tasks send, and what a simulated run takes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import SMALL, matmul

from einsummable import choose
from einsummable.choose import figures
from einsummable.planner.eindecomp import plan as eindecomp
from einsummable.planner.hardware import cluster, host
from einsummable.planner.placement import place
from einsummable.planner.strategies import named_plans
from einsummable.taskgraph.least import least
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.simulate import simulate
from einsummable.taskgraph.tasks import Move


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(SMALL)), st.sampled_from([1, 3, 8, 12]), st.booleans(), st.data())
def test_no_run_is_shorter_and_no_program_sends_less(name, sites, hosted, data):
    hardware = cluster(2, sites // 2) if hosted and sites % 2 == 0 else host(sites)
    graph = SMALL[name]
    plan = data.draw(st.sampled_from([eindecomp(graph, sites), *named_plans(graph, sites)]))
    placement = place(plan, sites, hosts=hardware.hosts)
    bound, program = least(plan, placement, hardware), lower(plan, placement, hosts=hardware.hosts)
    assert bound.messages <= sum(isinstance(task, Move) for task in program.tasks)
    assert bound.nbytes <= program.bytes_moved
    assert 0 < bound.seconds <= simulate(program, hardware).makespan * (1 + 1e-9)


def test_all_that_an_even_product_reads_is_counted():
    """Every site of 4 has half of A and half of B to read, and holds half of each of these."""
    graph, hardware = matmul(512, 512, 512), host(4)
    plan = next(plan for plan in named_plans(graph, 4) if plan.strategy == "2-D")
    placement = place(plan, 4)
    program = lower(plan, placement)
    assert least(plan, placement, hardware).nbytes == program.bytes_moved == 2 * 512 * 512 * 4


def test_of_a_plan_with_too_many_messages_the_least_is_told(monkeypatch):
    graph, hardware = SMALL["ffnn"], cluster(2, 4)
    plan = next(plan for plan in named_plans(graph, 8) if plan.strategy == "tensor parallel")
    simulated = figures(plan, 8, {}, hardware)
    monkeypatch.setattr(choose, "MESSAGES", 0)
    told = figures(plan, 8, {}, hardware)
    assert (simulated.at_least, told.at_least) == (False, True)
    assert 0 < told.seconds <= simulated.seconds
    assert told.moved <= simulated.moved
    assert told.balance == pytest.approx(simulated.balance)

"""What sites hold, told in any order, equals what a look at the whole run says."""

from math import inf
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs, placements, plans
from test_views import small_record, small_taskgraph

from einsummable.planner.hardware import host
from einsummable.runtime.events import simulated
from einsummable.taskgraph.fuse import fuse
from einsummable.taskgraph.held import Held, series
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.simulate import simulate
from einsummable.taskgraph.tasks import Read, Slice, nbytes


def held_at(taskgraph, spans, site, at):
    """Return the bytes that `site` holds just after `at`: every block is asked anew."""
    kept = {t for out in taskgraph.outputs for t, _ in out.blocks}
    inputs = {i for i, task in enumerate(taskgraph.tasks) if isinstance(task, Read)}

    def last_use(i):
        if i in kept | inputs:
            return inf
        readers = taskgraph.consumers[i]
        uses = [last_use(r) if isinstance(taskgraph.tasks[r], Slice) else spans[r][1] for r in readers]
        return max([spans[i][1], *uses])

    return sum(
        nbytes(task)
        for i, task in enumerate(taskgraph.tasks)
        if task.site == site
        and not isinstance(task, Slice)
        and (i in inputs or spans[i][0] <= at < last_use(i))
    )


@st.composite
def programs(draw):
    graph = draw(graphs())
    plan = draw(plans(graph, draw(st.sampled_from([1, 3, 4]))))
    sites = draw(st.sampled_from([1, 2, 3, 5]))
    return fuse(lower(plan, draw(placements(plan, sites))))


@settings(deadline=None, max_examples=60)
@given(programs(), st.integers(0, 99))
def test_told_in_any_order_it_is_what_every_block_says(taskgraph, seed):
    run = simulate(taskgraph, host(taskgraph.sites))
    spans = list(zip(run.starts, run.ends, strict=True))
    order = list(range(len(spans)))
    Random(seed).shuffle(order)
    held = Held(taskgraph)
    levels = series((c for i in order for c in held.ended(i, *spans[i])), taskgraph.sites)
    assert levels == run.memory
    for site, steps in enumerate(levels):
        for at, size in steps:
            assert size == held_at(taskgraph, spans, site, at)


def test_a_block_on_its_way_has_its_place():
    record = small_record()
    held = Held(small_taskgraph())
    changes = [held.ended(e.task, e.sent, e.received) for e in record.moves]
    assert changes == [[(0, 0.014, 64)]]
    assert held.ended(7, 0.02, 0.021) == [(0, 0.02, 64), (0, 0.021, -64)]  # 7 is a result and stays


def test_only_what_ended_counts():
    record = simulated(simulate(small_taskgraph(), host(2)))
    held = Held(small_taskgraph())
    some = [held.ended(e.task, e.started, e.ended) for e in record.tasks if e.site == 1]
    ((_, left),) = series((c for cs in some for c in cs), 2)[1][-1:]
    assert left == 64 + 64  # its input stays; its partial result waits for a move that nobody has told of

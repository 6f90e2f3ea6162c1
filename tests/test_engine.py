"""One site's loop: parts of a TaskGraph, the order of work, blocks that come and go, and what goes wrong."""

import pickle
import threading
import weakref
from queue import SimpleQueue

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same, data_for, graphs, placements, plans

from einsummable.builder import GraphBuilder
from einsummable.dtypes import F32, F64, WEAK_INT
from einsummable.errors import EngineError
from einsummable.nodes import Position
from einsummable.runtime.engine import SiteStoppedError, Stop, TaskFailedError, load, run_site
from einsummable.runtime.executor import blame, gather
from einsummable.runtime.part import split, take
from einsummable.scalar import ScalarBuilder
from einsummable.taskgraph.check import check
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.tasks import (
    Aggregate,
    Apply,
    Move,
    Output,
    Read,
    Slice,
    TaskGraph,
    evaluate,
)


def run_in_turn(taskgraph, arrays, params, as_bytes=False):
    """Run all sites to their ends, each in a thread with nothing but queues between them."""
    parts = split(taskgraph)
    inboxes = [SimpleQueue() for _ in parts]
    results, failures = [], []

    def send(site, tag, block):
        data = np.frombuffer(block.tobytes(), np.uint8).copy() if as_bytes else block.view()
        data.flags.writeable = as_bytes
        inboxes[site].put((tag, data))

    def work(part):
        program, inputs, inbox = load(part), take(part, arrays), inboxes[part.site]
        try:
            results.append(run_site(program, inputs=inputs, params=params, send=send, inbox=inbox))
        except EngineError as error:
            failures.append(error)
            for other in inboxes:
                other.put(Stop("another site failed"))

    threads = [threading.Thread(target=work, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert failures == []
    assert len(results) == len(parts)
    return gather(taskgraph, results)


@st.composite
def programs(draw):
    graph = draw(graphs())
    plan = draw(plans(graph, draw(st.integers(1, 6))))
    return lower(plan, draw(placements(plan, draw(st.integers(1, 3)))))


def assert_computed(taskgraph, seed, as_bytes):
    """The program computes what the oracle says, and leaves its inputs alone."""
    arrays, params = data_for(taskgraph.graph, seed)
    before = {name: x.copy() for name, x in arrays.items()}
    got = run_in_turn(taskgraph, arrays, params, as_bytes)
    assert_same(got, evaluate(taskgraph, arrays, params))
    for name, x in arrays.items():
        np.testing.assert_array_equal(x, before[name])
        for y in got.values():
            assert not np.shares_memory(x, y)


@settings(deadline=None, max_examples=150)
@given(programs(), st.integers(0, 9), st.booleans())
def test_sites_that_exchange_blocks_compute_the_program(taskgraph, seed, as_bytes):
    assert_computed(taskgraph, seed, as_bytes)


@settings(deadline=None, max_examples=50)
@given(programs())
def test_a_part_survives_pickling(taskgraph):
    for part in split(taskgraph):
        assert pickle.loads(pickle.dumps(part)) == part


def matmul(n=4):
    """Return ``Z = A B`` on two sites: site 1 computes half of the sum and sends it."""
    b = GraphBuilder(text="Z[i,k] = A[i,j] * B[j,k]")
    ids = [b.input(name, (n, n), F64) for name in "AB"]
    b.output("Z", b.contract("ik", (ids[0], "ij"), (ids[1], "jk")))
    graph, h = b.build(), n // 2
    tasks = []
    for site, (lo, hi) in enumerate([(0, h), (h, n)]):
        at = len(tasks)
        tasks += [
            Read(site, "A", ((0, n), (lo, hi)), (n, h), F64, 0),
            Read(site, "B", ((lo, hi), (0, n)), (h, n), F64, 1),
            Apply(site, (at, at + 1), ((0, n), (0, n), (lo, hi)), (n, n), F64, 2),
        ]
    tasks += [Move(0, (5,), (n, n), F64, 2), Aggregate(0, (2, 6), "sum", (n, n), F64, 2)]
    taskgraph = TaskGraph(graph, 2, tuple(tasks), (Output("Z", (n, n), F64, ((7, ((0, n), (0, n))),)),))
    check(taskgraph)
    return taskgraph


def test_a_part_says_what_a_site_needs():
    here, there = split(matmul())
    assert here.ids[-1] == 7
    assert here.arrivals == ((6, (4, 4), F64),)
    assert here.outputs == (len(here.ids) - 1,)
    assert set(there.reads) == {("A", ((0, 4), (2, 4))), ("B", ((2, 4), (0, 4)))}
    assert there.sends[there.ids.index(5)] == ((0, 6),)
    assert there.outputs == there.arrivals == ()


def test_the_part_that_others_wait_for_comes_first():
    n = 3
    b = GraphBuilder()
    x = b.input("X", (n,), F64)
    copy = b.einsummable("i", [(x, "i")], _neg())
    b.output("Y", copy)
    graph, box = b.build(), ((0, n),)
    tasks = [Read(0, "X", box, (n,), F64, 0)]
    tasks += [Apply(0, (0,), box, (n,), F64, 1) for _ in range(3)]  # 1, 2, 3: of no further use
    tasks += [Apply(0, (3,), box, (n,), F64, 1), Apply(0, (4,), box, (n,), F64, 1)]
    outputs = tuple(Output(f"Y{t}", (n,), F64, ((t, box),)) for t in (1, 2, 5))
    (part,) = split(TaskGraph(graph, 1, tuple(tasks), outputs))
    assert part.ids == (0, 3, 4, 1, 2, 5)


def _neg():
    s = ScalarBuilder()
    return s.build(s.call("neg", s.arg(0)))


def test_a_partial_result_of_ones_own_takes_the_sum():
    here, _ = split(matmul())
    assert here.overwrites[-1] == 0
    taskgraph = matmul()
    kept = TaskGraph(
        taskgraph.graph,
        2,
        taskgraph.tasks,
        (*taskgraph.outputs, Output("P", (4, 4), F64, ((2, ((0, 4), (0, 4))),))),
    )
    assert split(kept)[0].overwrites[-1] == 1  # what arrived, since the own one is a result
    rng = np.random.default_rng(0)
    arrays = {"A": rng.random((4, 4)), "B": rng.random((4, 4))}
    for as_bytes in (False, True):
        got = run_in_turn(kept, arrays, {}, as_bytes)
        np.testing.assert_allclose(got["Z"], arrays["A"] @ arrays["B"])
        np.testing.assert_allclose(got["P"], arrays["A"][:, :2] @ arrays["B"][:2])


def chain(length, n=8):
    """Return a program that negates `length` times on one site."""
    b = GraphBuilder()
    x = b.input("X", (n,), F64)
    b.output("Y", b.einsummable("i", [(x, "i")], _neg()))
    graph, box = b.build(), ((0, n),)
    tasks = [Read(0, "X", box, (n,), F64, 0)]
    tasks += [Apply(0, (i,), box, (n,), F64, 1) for i in range(length)]
    return TaskGraph(graph, 1, tuple(tasks), (Output("Y", (n,), F64, ((length, box),)),))


def test_a_block_is_dropped_when_its_last_reader_is_done(monkeypatch):
    taskgraph = chain(6)
    program = load(split(taskgraph)[0])
    alive, most = [], 0

    def watched(kernel):
        def run(blocks, at, params):
            nonlocal most
            most = max(most, sum(ref() is not None for ref in alive))
            made = kernel(blocks, at, params)
            alive.append(weakref.ref(made))
            return made

        return run

    program.steps = [(watched(f) if i else f, at) for i, (f, at) in enumerate(program.steps)]
    result = run_site(
        program, inputs=take(program.part, {"X": np.ones(8)}), params={}, send=None, inbox=SimpleQueue()
    )
    np.testing.assert_array_equal(result.blocks[6], np.ones(8))
    assert most == 1


def test_a_program_runs_again_with_other_values():
    taskgraph = chain(3)
    program = load(split(taskgraph)[0])
    for x in (np.arange(8.0), np.ones(8)):
        result = run_site(
            program, inputs=take(program.part, {"X": x}), params={}, send=None, inbox=SimpleQueue()
        )
        np.testing.assert_array_equal(gather(taskgraph, [result])["Y"], -x)
        assert [task for task, _, _ in result.log.ran] == [0, 1, 2, 3]


def test_a_stop_ends_a_site_that_waits():
    program = load(split(matmul())[0])
    inbox = SimpleQueue()
    inbox.put(Stop("enough"))
    inputs = take(program.part, {"A": np.ones((4, 4)), "B": np.ones((4, 4))})
    with pytest.raises(SiteStoppedError, match="site 0 was stopped: enough"):
        run_site(program, inputs=inputs, params={}, send=None, inbox=inbox)


def test_a_block_that_nobody_waits_for_is_refused():
    program = load(split(matmul())[0])
    inbox = SimpleQueue()
    inbox.put((5, np.ones((4, 4))))
    inputs = take(program.part, {"A": np.ones((4, 4)), "B": np.ones((4, 4))})
    with pytest.raises(EngineError, match="site 0 received a block that nobody here waits for: #5"):
        run_site(program, inputs=inputs, params={}, send=None, inbox=inbox)


def test_a_failed_task_is_named_and_travels():
    b = GraphBuilder(text="Y = X[@n]")
    b.param("n", WEAK_INT)
    x = b.input("X", (3,), F32)
    b.output("Y", b.select(x, [Position(param="n")], ()))
    graph = b.build()
    tasks = (Read(0, "X", ((0, 3),), (3,), F32, 0), Apply(0, (0,), (), (), F32, 1))
    taskgraph = TaskGraph(graph, 1, tasks, (Output("Y", (), F32, ((1, ()),)),))
    program = load(split(taskgraph)[0])
    inputs = take(program.part, {"X": np.ones(3, "f4")})
    with pytest.raises(TaskFailedError, match="task #1 failed on site 0: ShapeError: the scalar 'n'") as e:
        run_site(program, inputs=inputs, params={"n": 7}, send=None, inbox=SimpleQueue())
    again = pickle.loads(pickle.dumps(e.value))
    assert (again.site, again.task, str(again)) == (0, 1, str(e.value))
    told = blame(taskgraph, again)
    assert told.message.startswith("site 0 failed in Y: ShapeError: the scalar 'n' is 7")
    assert told.notes == ("the task was #1: %1 = [] select  of %0[@n]",)


def test_outputs_never_share_memory():
    b = GraphBuilder()
    x = b.input("X", (2, 3), F64)
    b.output("X again", x)
    y = b.einsummable("ij", [(x, "ij")], _neg())
    b.output("Y", y)
    b.output("Y again", y)
    b.output("flat", b.reshape(y, (("i", 2), ("j", 3)), (1, 1), (2,)))
    graph = b.build()
    box = ((0, 2), (0, 3))
    tasks = (
        Read(0, "X", box, (2, 3), F64, 0),
        Apply(0, (0,), box, (2, 3), F64, 1),
        Apply(0, (1,), box, (6,), F64, 2),
    )
    outputs = tuple(
        Output(name, tasks[t].shape, F64, ((t, tuple((0, n) for n in tasks[t].shape)),))
        for name, t in (("X again", 0), ("Y", 1), ("Y again", 1), ("flat", 2))
    )
    x = np.arange(6.0).reshape(2, 3)
    got = run_in_turn(TaskGraph(graph, 1, tasks, outputs), {"X": x}, {})
    arrays = [x, *got.values()]
    for i, a in enumerate(arrays):
        for other in arrays[:i]:
            assert not np.shares_memory(a, other)
    np.testing.assert_array_equal(got["flat"], -np.arange(6))


def test_a_slice_of_a_block_without_dimensions_is_an_array():
    b = GraphBuilder()
    x = b.input("X", (), F64)
    b.output("Y", x)
    graph = b.build()
    tasks = (Read(0, "X", (), (), F64, 0), Slice(0, (0,), (), (), F64, 0))
    taskgraph = TaskGraph(graph, 1, tasks, (Output("Y", (), F64, ((1, ()),)),))
    got = run_in_turn(taskgraph, {"X": np.array(3.0)}, {})["Y"]
    assert isinstance(got, np.ndarray)
    assert got == 3

"""The whole ladder: what is compiled, planned, lowered and run equals what the graph says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same, data_for, graphs

import einsummable as ein
from einsummable.errors import PlanError, ShapeError, UnknownNameError
from einsummable.evaluate import evaluate
from einsummable.pipeline import Compiled
from einsummable.planner.hardware import host
from einsummable.runtime.events import Progress, RunStarted
from einsummable.taskgraph import tasks
from einsummable.taskgraph.check import check as check_tasks

MLP = "H[b,h] = relu(sum[d] X[b,d] * W[d,h])\nY[b,o] = H[b,h] * V[h,o]"
SHAPES = {"X": (8, 5), "W": (5, 7), "V": (7, 3)}


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.integers(-3, 4, shape).astype(np.float32) for name, shape in SHAPES.items()}


def mlp(X, W, V):
    return np.maximum(X @ W, 0) @ V


@pytest.mark.slow
@settings(max_examples=500)
@given(graphs(), st.sampled_from([0, 0, 1, 2, 3]))
def test_task_graphs_and_the_local_executor_agree_with_the_graph(graph, sites):
    """Each program is cut for every p from 1 to 9, on p sites or on fewer or more than that."""
    values, params = data_for(graph)
    expected = evaluate(graph, values, params)
    for p in range(1, 10):
        net = Compiled(graph, values | params, sites=sites or p, p=p)
        net.plan.check()
        net.placement.check(net.plan)
        check_tasks(net.tasks)
        assert_same(tasks.evaluate(net.tasks, values, params), expected)
        assert_same(net.run(), expected)


def test_arrays_given_to_compile_are_the_defaults_of_run():
    given = arrays()
    net = ein.compile(MLP, sites=3, **given)
    np.testing.assert_array_equal(net.run()["Y"], mlp(**given))
    other = arrays(1)
    np.testing.assert_array_equal(net.run(X=other["X"])["Y"], mlp(**(given | {"X": other["X"]})))


def test_observers_of_a_run_and_of_all_runs_hear_every_event():
    once, always = [], []
    net = ein.compile(MLP, sites=2, **arrays())
    net.observers.append(always.append)
    net.run(observers=[once.append])
    net.run()
    told = [e for e in once if not isinstance(e, Progress)]
    assert len(told) == len(net.tasks.tasks) + 2
    assert [type(e) for e in always].count(RunStarted) == 2
    assert always[: len(once)] == once


def test_shapes_are_enough_to_plan():
    net = ein.compile(MLP, sites=4, **SHAPES)
    assert net.plan.p == 4
    assert "Y" in str(net.explain())
    with pytest.raises(UnknownNameError, match="no array is given for the input 'X'"):
        net.run()
    np.testing.assert_array_equal(net.run(**arrays())["Y"], mlp(**arrays()))


def test_a_scalar_is_read_when_the_program_runs():
    net = ein.compile("Y[i] = X[i] - lr * G[i]", X=np.ones(4), G=np.ones(4), lr=0.5, sites=2)
    assert net.run()["Y"].tolist() == [0.5] * 4
    tasks_before = net.tasks
    assert net.run(lr=0.25)["Y"].tolist() == [0.75] * 4
    assert net.tasks is tasks_before


def test_inputs_are_not_modified():
    given = arrays()
    copies = {name: a.copy() for name, a in given.items()}
    ein.compile(MLP, sites=2, **given).run()
    for name, a in given.items():
        np.testing.assert_array_equal(a, copies[name])


def test_a_namespace_may_hold_anything():
    namespace = arrays() | {"os": object(), "words": np.array(["a"]), "W2": [1, 2], "f": len}
    np.testing.assert_array_equal(ein.compile(MLP, namespace, sites=2).run()["Y"], mlp(**arrays()))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda: ein.compile(MLP, sites=0, **SHAPES),
            PlanError,
            "sites must be a whole number from 1, not 0",
        ),
        (lambda: ein.compile(MLP, p=2.5, **SHAPES), PlanError, "p must be a whole number from 1, not 2.5"),
        (lambda: ein.compile(MLP, sites=True, **SHAPES), PlanError, "not True"),
        (lambda: ein.compile(MLP, **SHAPES).run(XX=1), UnknownNameError, "no input called 'XX'\nnote: .*'X'"),
        (
            lambda: ein.compile(MLP, **arrays()).run(X=np.ones((9, 5), np.float32)),
            ShapeError,
            r"X has shape \(9, 5\), the program was compiled for \(8, 5\)",
        ),
        (
            lambda: ein.compile("Y[i] = X[i] * a", X=(3,), a=1).run(X=np.ones(3, np.float32), a="b"),
            ein.DtypeError,
            "the scalar 'a' is 'b', which is no single number",
        ),
        (
            lambda: ein.compile("Y[i] = X[i] * a", X=np.ones(3), a=1).run(a=0.5),
            ein.DtypeError,
            "the scalar 'a' is 0.5, the program was compiled for an integer\nnote: compile it again",
        ),
    ],
)
def test_bad_input_is_one_clear_error(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_lazy_tensors_compile_too():
    x, w = ein.tensor(arrays()["X"], "X"), ein.tensor(arrays()["W"], "W")
    y = np.maximum(np.einsum("bd,dh->bh", x, w), 0)
    np.testing.assert_array_equal(ein.run(y, sites=2), np.maximum(arrays()["X"] @ arrays()["W"], 0))


def test_einsum_is_eager():
    X, W = arrays()["X"], arrays()["W"]
    np.testing.assert_array_equal(ein.einsum("bd,dh->bh", X, W), X @ W)


def test_replan_keeps_program_and_data():
    net = ein.compile(MLP, sites=2, **arrays())
    three = net.replan(sites=3)
    assert (three.sites, three.plan.p) == (3, 3)
    np.testing.assert_array_equal(three.run()["Y"], net.run()["Y"])


def test_a_pinned_cut_is_kept_and_the_rest_planned_around_it():
    given = arrays()
    net = ein.compile(MLP, sites=4, pins={"H": {"b": 2, "h": 2}}, **given)
    cuts = {net.graph.name_of(i): str(cut) for i, cut in enumerate(net.plan.partitions)}
    assert cuts["H"] == "b:2 h:2"
    assert net.plan.partitions[net.graph.outputs[0][1]].blocks > 1
    assert "pinned" in {row.why for row in net.explain().rows}
    np.testing.assert_array_equal(net.run()["Y"], mlp(**given))
    with pytest.raises(UnknownNameError, match="the program has no tensor called 'Q'"):
        net.replan(pins={"Q": {}}).plan


def test_with_a_hardware_the_simulated_time_counts():
    net = ein.compile(MLP, hardware=host(3), **arrays())
    told = net.explain()
    assert net.sites == 3
    assert told.hardware == "host"
    assert told.seconds == net.simulation.makespan == min(s.seconds for s in told.strategies)
    with pytest.raises(PlanError, match="host has 3 sites, the program is for 2"):
        net.replan(sites=2, hardware=host(3))


def test_observers_are_functions():
    net = ein.compile(MLP, **arrays())
    with pytest.raises(PlanError, match="observers must be a list of functions of one event, not an array"):
        net.run(observers=np.ones(2))


@pytest.mark.parametrize("option", ["hardware", "memory", "pins", "plan"])
def test_an_input_that_is_called_like_an_option_is_told_where_to_go(option):
    with pytest.raises(PlanError, match=f"{option} must be .*, not an array of float64\nnote: an input that"):
        ein.compile("Y[i] = X[i]", X=np.ones(2), **{option: np.ones(3)})


def test_the_kernel_calls_of_one_tensor_are_a_picture():
    net = ein.compile("C[i,k] = A[i,j] * B[j,k]", A=(8, 8), B=(8, 8), sites=8, pins={"C": {"i": 2, "j": 4}})
    assert "C[i,k] is made by 8 kernel calls, i 2 × j 4, on 8 sites" in str(net.picture("C"))
    with pytest.raises(UnknownNameError, match="no tensor called 'D'"):
        net.picture("D")

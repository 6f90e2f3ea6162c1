"""Tensors computed again in place of being kept: the same results, less held at once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import data_for, graphs

import einsummable as ein
from einsummable.builder import check
from einsummable.choose import realised
from einsummable.errors import PlanError, UnknownNameError
from einsummable.evaluate import evaluate
from einsummable.planner.eindecomp import plan as eindecomp
from einsummable.planner.hardware import host
from einsummable.rematerialise import candidates, computed_again, moment, peak, rematerialise
from einsummable.runtime.local import LocalExecutor
from einsummable.taskgraph.allocate import allocate
from einsummable.training import Trainer

HEADS = """
    Q{n}[b,t,h,d] = X{n}[b,t,m] * WQ{n}[m,h,d]
    K{n}[b,t,h,d] = X{n}[b,t,m] * WK{n}[m,h,d]
    V{n}[b,t,h,d] = X{n}[b,t,m] * WV{n}[m,h,d]
    S{n}[b,h,q,k] = where(k <= q, sum[d] Q{n}[b,q,h,d] * K{n}[b,k,h,d] / sqrt(extent(d)), -inf)
    P{n}[b,h,q,k] = softmax[k](S{n}[b,h,q,k])
    O{n}[b,q,h,d] = P{n}[b,h,q,k] * V{n}[b,k,h,d]
    X{after}[b,q,m] = X{n}[b,q,m] + O{n}[b,q,h,d] * WO{n}[h,d,m]
"""


def attention(layers):
    weights = [f"W{x}{n}" for n in range(layers) for x in "QKVO"]
    lines = [HEADS.format(n=n, after=n + 1) for n in range(layers)]
    lines.append(f"L = sum[b,q,m] (X{layers}[b,q,m] - T[b,q,m])**2")
    lines.append(f"{', '.join('d' + w for w in weights)} = grad L wrt {', '.join(weights)}")
    return "\n".join(lines)


def attention_shapes(layers):
    into = {f"W{x}{n}": (8, 2, 4) for n in range(layers) for x in "QKV"}
    out = {f"WO{n}": (2, 4, 8) for n in range(layers)}
    return {"X0": (2, 24, 8), "T": (2, 24, 8)} | into | out


def mlp(layers):
    lines = [f"X{n + 1}[b,e] = tanh(sum[d] X{n}[b,d] * W{n}[d,e])" for n in range(layers)]
    weights = [f"W{n}" for n in range(layers)]
    lines.append(f"L = sum[b,d] (X{layers}[b,d] - T[b,d])**2")
    lines.append(f"{', '.join('d' + w for w in weights)} = grad L wrt {', '.join(weights)}")
    return "\n".join(lines)


def mlp_shapes(layers, rows=256, width=16):
    weights = {f"W{n}": (width, width) for n in range(layers)}
    return {"X0": (rows, width), "T": (rows, width)} | weights


def arrays_of(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return {n: 0.5 * rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}


def planned(graph, sites):
    """The peak of the fullest site, of a plan with its blocks in order."""
    return max(allocate(realised(eindecomp(graph, sites), sites, {}, None).tasks).peaks)


def assert_equal_results(graph, made, arrays):
    want, got = evaluate(graph, arrays), evaluate(made, arrays)
    assert list(got) == list(want)
    for name, x in want.items():
        np.testing.assert_array_equal(got[name], x, name)


@pytest.mark.parametrize("layers", [4, 9, 16])
def test_a_deep_network_holds_about_the_square_root_of_its_layers(layers):
    shapes = mlp_shapes(layers)
    graph = ein.compile(mlp(layers), sites=1, **shapes).graph
    assert graph.nodes[moment(graph)].shape == ()
    made = candidates(graph)
    row = 256 * 16 * 4
    assert peak(graph) >= layers * row
    assert peak(made[-1]) <= (2 * layers**0.5 + 3.5) * row
    assert [peak(g) for g in made] == sorted({peak(g) for g in made}, reverse=True)
    for again in made:
        check(again)
        assert len(computed_again(again)) <= 2 * layers  # each at most once
        assert_equal_results(graph, again, arrays_of(shapes))


@pytest.mark.parametrize("sites", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("text", "shapes"), [(mlp(12), mlp_shapes(12)), (attention(3), attention_shapes(3))], ids=["mlp", "heads"]
)
def test_plans_hold_less(text, shapes, sites):
    graph = ein.compile(text, sites=sites, **shapes).graph
    made = candidates(graph)
    least = min(planned(again, sites) for again in made)
    assert least < planned(graph, sites)
    arrays = arrays_of(shapes)
    want = ein.compile(text, arrays, sites=1).run()
    net = ein.compile(text, arrays, sites=sites, memory=least)
    assert computed_again(net.plan.graph)
    for name, x in net.run().items():
        np.testing.assert_allclose(x, want[name], rtol=1e-3, atol=1e-3 * np.abs(want[name]).max())


def test_the_first_candidate_keeps_products_and_makes_maps_again():
    lines = [f"X{n + 1}[b,e] = gelu(sum[d] X{n}[b,d] * W{n}[d,e])" for n in range(4)]
    text = "\n".join([*lines, "L = sum[b,d] X4[b,d]**3\ndW0, dW1 = grad L wrt W0, W1"])
    graph = ein.compile(text, sites=1, **{n: s for n, s in mlp_shapes(4).items() if n != "T"}).graph
    first = candidates(graph)[0]
    again = [first.nodes[i] for i in computed_again(first)]
    assert again
    assert not any(node.is_contraction for node in again)


def test_named_tensors_are_computed_again():
    graph = ein.compile(mlp(4), sites=1, **mlp_shapes(4)).graph
    made = rematerialise(graph, ["X2", "X3"])
    assert [str(made.nodes[i]).split("  ")[0] for i in computed_again(made)] == [
        "[b,e] sum[d] x*y", "[b,e] tanh(x)"] * 2  # fmt: skip
    assert_equal_results(graph, made, arrays_of(mlp_shapes(4)))
    assert made.id_of("L") < computed_again(made)[0]
    assert rematerialise(graph, ["W1"]) == rematerialise(graph, []) == graph
    with pytest.raises(UnknownNameError, match="no tensor called 'X9'"):
        rematerialise(graph, ["X9"])


def test_what_comes_before_its_first_reader_is_needed_there():
    graph = ein.compile(mlp(9), sites=1, **mlp_shapes(9)).graph
    made = candidates(graph)[-1]
    again = set(computed_again(made))
    for i in again:
        readers = made.consumers[i]
        assert all(j in again for j in range(i, min(readers)))


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_random_programs_have_the_same_results(graph):
    arrays, params = data_for(graph)
    named = {graph.name_of(i) for i in range(len(graph.nodes))}
    want = evaluate(graph, arrays, params)
    for made in (*candidates(graph), rematerialise(graph, named)):
        check(made)
        got = evaluate(made, arrays, params)
        for name, x in want.items():
            np.testing.assert_array_equal(got[name], x)


# ----------------------------------------------------------------------------------------- budgets


def test_a_budget_that_the_program_as_it_is_does_not_fit():
    text, shapes = mlp(12), mlp_shapes(12)
    arrays, free = arrays_of(shapes), ein.compile(text, sites=2, **shapes)
    memory = min(planned(g, 2) for g in candidates(free.graph))
    assert memory < planned(free.graph, 2)
    assert allocate(free.tasks, memory).written > 0  # as it is, blocks would go to disk
    net = ein.compile(text, arrays, sites=2, memory=memory)
    assert allocate(net.tasks, memory).written == 0
    assert net.graph == free.graph
    assert f"made again    {len(computed_again(net.plan.graph))} of {len(net.plan.graph.nodes)} nodes" in str(
        net.explain()
    )
    assert "made again" not in str(free.explain())
    want = ein.compile(text, arrays, sites=1).run()
    for name, x in net.run().items():
        np.testing.assert_allclose(x, want[name], rtol=1e-3, atol=1e-3 * np.abs(want[name]).max())


def test_the_memory_of_a_hardware_is_kept_to_in_a_run():
    text, shapes = mlp(6), mlp_shapes(6)
    graph = ein.compile(text, sites=1, **shapes).graph
    memory = min(planned(g, 1) for g in candidates(graph))
    net = ein.compile(text, arrays_of(shapes), hardware=replace(host(1), memory=memory))
    assert net.budget == memory
    assert ein.compile(text, hardware=host(1), **shapes).budget is None
    want = ein.compile(text, arrays_of(shapes), sites=1).run()["L"]
    np.testing.assert_allclose(net.run()["L"], want, rtol=1e-4)


def test_the_memory_of_where_it_runs_counts():
    text, shapes = mlp(6), mlp_shapes(6)
    graph = ein.compile(text, sites=1, **shapes).graph
    memory = min(planned(g, 1) for g in candidates(graph))
    net = ein.compile(text, arrays_of(shapes), cluster=LocalExecutor(1, memory=memory))
    assert computed_again(net.plan.graph)
    want = ein.compile(text, arrays_of(shapes), sites=1).run()["L"]
    np.testing.assert_allclose(net.run()["L"], want, rtol=1e-4)


def test_a_trainer_keeps_to_a_memory():
    text, shapes = mlp(10).split("dW0")[0], mlp_shapes(10)
    arrays = arrays_of(shapes)
    weights = {name: arrays[name] for name in shapes if name[0] == "W"}
    batch = {name: arrays[name] for name in ("X0", "T")}
    free = Trainer(text, weights, optimizer="sgd", lr=1e-4, sites=2)
    free.fit([batch] * 3)
    memory = 0.7 * max(allocate(free.net.tasks).peaks)
    short = Trainer(text, weights, optimizer="sgd", lr=1e-4, sites=2, memory=memory)
    short.fit([batch] * 3)
    assert computed_again(short.net.plan.graph)
    assert allocate(short.net.tasks, int(memory)).written == 0
    np.testing.assert_allclose(short.losses, free.losses, rtol=1e-5)


def test_a_plan_that_computes_again_is_saved_and_used(tmp_path):
    text, shapes, path = mlp(8), mlp_shapes(8), tmp_path / "plan.json"
    graph = ein.compile(text, sites=2, **shapes).graph
    memory = min(planned(g, 2) for g in candidates(graph))
    made = ein.compile(text, sites=2, memory=memory, **shapes)
    made.save_plan(path)
    again = ein.compile(text, arrays_of(shapes), sites=2, memory=memory, plan=path)
    assert again.plan.graph == made.plan.graph != graph
    assert again.tasks == made.tasks
    again.run()
    with pytest.raises(PlanError, match="the plan is for another program"):
        ein.compile(mlp(7), sites=2, plan=path, **mlp_shapes(7))

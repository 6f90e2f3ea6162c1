"""Updates: few elements of a tensor change, and where the tensor is given up it changes in place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traffic import addresses

import einsummable as ein
from einsummable.codec import from_json, to_json
from einsummable.errors import EngineError, PlanError, UnknownNameError
from einsummable.evaluate import evaluate
from einsummable.kernels.blocks import Call, prepare
from einsummable.kernels.update import Updating
from einsummable.runtime.cluster import Cluster
from einsummable.taskgraph import replay
from einsummable.taskgraph.allocate import allocate
from einsummable.taskgraph.memory import MemoryPlan, check
from einsummable.taskgraph.updates import replaced, successors

APPEND = """
input old[b={b},s={s},d={d}] f32
input at[b={b}] i32
input new[b={b},d={d}] f32
K[b,s,d] = where(s == at[b], new[b,d], old[b,s,d])
y[b,s] = sum[d] K[b,s,d] * K[b,s,d]
output K, y
"""


def append(b=3, s=7, d=4, at=(6, 0, 3), seed=0):
    """Return the text, its inputs and what it makes."""
    rng = np.random.default_rng(seed)
    old, new = (rng.normal(size=n).astype(np.float32) for n in ((b, s, d), (b, d)))
    data = {"old": old, "new": new, "at": np.array(at, np.int32)}
    expected = old.copy()
    for row, i in enumerate(at):
        if 0 <= i < s:
            expected[row, i] = new[row]
    return APPEND.format(b=b, s=s, d=d), data, expected


def kernels(text, **shapes):
    """Return the kernels of the nodes of a program that join anything."""
    graph = ein.compile(text, sites=1, **shapes).graph
    made = [n for n in graph.nodes if hasattr(n, "join")]
    return [prepare(Call.of(graph, n), tuple(extent for _, extent in n.space)) for n in made]


# -------------------------------------------------------------------------------------- recognised


@pytest.mark.parametrize(
    "line",
    [
        "Y[s,d] = where(s == at, new[d], old[s,d])",
        "Y[s,d] = where(d == at, new[s], old[s,d])",
        "Y[s,d] = where(3 == s, new[d], old[s,d])",
        "Y[s,d] = where(s == n, new[d], old[s,d])",
    ],
)
def test_an_update_is_recognised(line):
    shapes = {"new": np.zeros(5), "old": np.zeros((5, 5)), "at": np.zeros((), np.int64), "n": 2}
    assert isinstance(kernels(line, **shapes)[-1], Updating)


@pytest.mark.parametrize(
    "line",
    [
        "Y[s,d] = where(s == at[d], new[d], old[d,s])",  # old is not read as the result is made
        "Y[s,d] = where(s == at[d], new[s], old[s,d])",  # what is new varies along the label
        "Y[s,d] = where(s == at[s], new[d], old[s,d])",  # so does the index
        "Y[s,d] = where(s < at[d], new[d], old[s,d])",
        "Y[s,d] = where(s == at[d], new[d], 2 * old[s,d])",
        "Y[s,d] = where(s == new[d], new[d], old[s,d])",  # the index is a real number
        "Y[s] = sum[d] where(s == at[d], new[d], old[s,d])",
        "Y[s,d] = where(s == small[d], new[d], old[s,d])",  # in eight bits 256 would be 0
    ],
)
def test_what_is_no_update_is_not(line):
    shapes = {"new": np.zeros(300), "old": np.zeros((300, 300)), "at": np.zeros(300, np.int32)}
    if "small" in line:
        shapes["small"] = np.zeros(300, np.uint8)
    assert not any(isinstance(kernel, Updating) for kernel in kernels(line, **shapes))


# ------------------------------------------------------------------------------------------ equal


@settings(max_examples=60)
@given(st.data())
def test_updates_equal_the_oracle(data):
    extent = {x: data.draw(st.integers(1, 5)) for x in "abcd"}
    label = data.draw(st.sampled_from("abcd"))
    rest = [x for x in "abcd" if x != label]
    index = data.draw(st.lists(st.sampled_from(rest), unique=True))
    new = data.draw(st.lists(st.sampled_from(rest), unique=True))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    arrays = {
        "old": rng.normal(size=[extent[x] for x in "abcd"]),
        "new": rng.normal(size=[extent[x] for x in new]),
        "at": rng.integers(-1, extent[label] + 1, [extent[x] for x in index]),
    }
    at, put = (f"{name}[{','.join(x)}]" if x else name for name, x in (("at", index), ("new", new)))
    line = f"Y[a,b,c,d] = where({label} == {at}, {put}, old[a,b,c,d])"
    sites = data.draw(st.integers(1, 5))
    net = ein.compile(line, arrays, sites=sites)
    expected = evaluate(net.graph, arrays)["Y"]
    before = arrays["old"].copy()
    np.testing.assert_array_equal(net.run()["Y"], expected)
    np.testing.assert_array_equal(arrays["old"], before)
    np.testing.assert_array_equal(net.run(donate=["old"])["Y"], expected)


# --------------------------------------------------------------------------------------- in place


@pytest.mark.parametrize("sites", [1, 2, 3, 4, 5])
def test_what_is_given_up_changes_in_place(sites):
    text, data, expected = append()
    net = ein.compile(text, sites=sites)
    given_up = data["old"].copy()
    results = net.run(data | {"old": given_up}, donate=["old"])
    assert np.shares_memory(results["K"], given_up)
    np.testing.assert_array_equal(results["K"], expected)
    np.testing.assert_allclose(results["y"], (expected**2).sum(-1), rtol=1e-5)


def test_what_is_not_given_up_stays():
    text, data, expected = append()
    before = data["old"].copy()
    np.testing.assert_array_equal(ein.compile(text, sites=2).run(data)["K"], expected)
    np.testing.assert_array_equal(data["old"], before)


def test_what_cannot_be_written_to_is_copied():
    text, data, expected = append()
    data["old"].flags.writeable = False
    results = ein.compile(text, sites=2).run(data, donate=["old"])
    assert not np.shares_memory(results["K"], data["old"])
    np.testing.assert_array_equal(results["K"], expected)


def test_an_input_that_others_read_is_not_written_over():
    line = "K[s] = where(s == n, x, old[s]); y[s] = K[s] - old[s]; output K, y"
    net = ein.compile(line.replace("; ", "\n"), old=np.arange(6.0), x=np.float64(9), n=4, sites=2)
    assert not replaced(net.tasks)
    results = net.run(old=np.arange(6.0), donate=["old"])
    np.testing.assert_array_equal(results["y"], [0, 0, 0, 0, 5, 0])


def test_updates_of_inputs_stay_apart_from_other_calls():
    text, _, _ = append()
    net = ein.compile(text, sites=2)
    assert len(replaced(net.tasks)) == 2
    assert successors(net.tasks) == {"K": "old"}


def test_a_name_that_is_no_input_is_refused():
    text, data, _ = append()
    net = ein.compile(text, sites=1)
    with pytest.raises(UnknownNameError, match="no input called 'K'"):
        net.run(data, donate=["K"])
    with pytest.raises(PlanError, match="donate must be names of inputs"):
        net.run(data, donate="old")


def test_within_a_budget_what_is_given_up_takes_no_space():
    text, data, expected = append(b=2, s=64, d=8, at=(5, 63))
    net = ein.compile(text, sites=1)
    views = tuple(net.graph.inputs)
    plan, free = (allocate(net.tasks, views=views, given=given) for given in (["old"], []))
    check(plan)
    assert free.peaks[0] - plan.peaks[0] == expected.nbytes
    assert from_json(MemoryPlan, to_json(plan)) == plan
    results = replay.evaluate(plan, data | {"old": data["old"].copy()})
    np.testing.assert_array_equal(results["K"], expected)
    np.testing.assert_allclose(results["y"], (expected**2).sum(-1), rtol=1e-5)


@pytest.mark.parametrize("sites", [1, 2, 3])
def test_threads_within_a_budget_write_in_place(sites):
    text, data, expected = append(b=2, s=64, d=8, at=(5, 63))
    net = ein.compile(text, sites=sites, memory=3000)
    before = data["old"].copy()
    np.testing.assert_array_equal(net.run(data)["K"], expected)
    np.testing.assert_array_equal(data["old"], before)
    results = net.run(data | {"old": before}, donate=["old"])
    assert np.shares_memory(results["K"], before)
    np.testing.assert_array_equal(results["K"], expected)
    np.testing.assert_allclose(results["y"], (expected**2).sum(-1), rtol=1e-5)


# --------------------------------------------------------------------------------------- on engines


@pytest.mark.cluster
@pytest.mark.parametrize("memory", [None, "1MB"])
def test_engines_write_into_the_memory_of_what_is_given_up(memory):
    text, data, expected = append()
    with Cluster(n=2, threads=1, memory=memory) as cluster:
        net = ein.compile(text, cluster=cluster)
        net.put(**data)
        first = net.run(keep=["K"], donate=["old"])["K"]
        where = addresses(cluster)
        again = net.run(old=first, keep=["K"], donate=["old"])["K"]
        assert addresses(cluster) == where
        np.testing.assert_array_equal(again.fetch(), expected)
        with pytest.raises(EngineError, match="freed> is used"):
            first.fetch()
        assert sum(cluster._engines.kept_bytes()) == again.nbytes + data["new"].nbytes + data["at"].nbytes

        twice = "Y[s] = where(s == n, x, old[s] + other[s])"
        t = cluster.put(np.arange(6.0))
        with pytest.raises(PlanError, match="the tensor old cannot be given up: it is other too"):
            ein.compile(twice, old=t, other=t, x=np.float64(1), n=1, cluster=cluster).run(donate=["old"])


@pytest.mark.cluster
def test_a_run_that_fails_has_used_up_what_it_was_given():
    line = "K[s] = where(s == n, x, old[s])\nz[j] = table[i[j]]\noutput K, z"
    data = {"old": np.arange(6.0), "x": np.float64(9), "n": 4, "table": np.ones(3), "i": np.array([7, 7])}
    with Cluster(n=2, threads=1) as cluster:
        net = ein.compile(line, data, cluster=cluster)
        net.put(old=data["old"])
        old = net._data["old"]
        with pytest.raises(EngineError, match="the index 7 in i is out of range"):
            net.run(donate=["old"])
        with pytest.raises(EngineError, match="freed> is used"):
            old.fetch()
        assert sum(cluster._engines.kept_bytes()) == 0

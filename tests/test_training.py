"""Training: optimisers held to numpy, weights that stay on their engines, checkpoints that survive a kill."""

import os
import signal
import subprocess
import sys
from itertools import count, islice, pairwise
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

from einsummable import optimizers, tensorfile
from einsummable.errors import (
    DtypeError,
    EinsummableError,
    EngineError,
    ParseError,
    PlanError,
    UnknownNameError,
)
from einsummable.runtime import cluster as runtime_cluster
from einsummable.runtime.cluster import Cluster
from einsummable.training import Trainer

HERE = Path(__file__).parent

TEXT = """\
H[b,h] = tanh(sum[d] X[b,d] * W[d,h] + c[h])
L = sum[b,o] (sum[h] H[b,h] * V[h,o] + s - Y[b,o])**2 / extent(b)
"""


def weights(dtype=np.float64):
    rng = np.random.default_rng(1)
    shapes = {"W": (6, 5), "c": (5,), "V": (5, 3), "s": ()}
    return {name: np.asarray(rng.standard_normal(shape), dtype) for name, shape in shapes.items()}


def batches(n, dtype=np.float64, size=8):
    rng = np.random.default_rng(2)
    return [
        {
            "X": rng.standard_normal((size, 6)).astype(dtype),
            "Y": rng.standard_normal((size, 3)).astype(dtype),
        }
        for _ in range(n)
    ]


def gradients(w, X, Y):
    """Return the loss and its gradients, worked out by hand."""
    H = np.tanh(X @ w["W"] + w["c"])
    E = H @ w["V"] + w["s"] - Y
    dE = 2 * E / len(X)
    dA = (dE @ w["V"].T) * (1 - H**2)
    return (E**2).sum() / len(X), {"W": X.T @ dA, "c": dA.sum(0), "V": H.T @ dE, "s": dE.sum()}


def sgd(w, g, state, lr, t):
    return w - lr * g


def momentum(w, g, state, lr, t):
    state["m"] = 0.9 * state.get("m", 0) + g
    return w - lr * state["m"]


def adamw(w, g, state, lr, t):
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    state["v"] = 0.999 * state.get("v", 0) + 0.001 * g * g
    mean, square = state["m"] / (1 - 0.9**t), state["v"] / (1 - 0.999**t)
    return w * (1 - lr * 0.01) - lr * mean / (np.sqrt(square) + 1e-8)


def reference(rule, rates):
    w, state, losses = weights(), {}, []
    for t, (batch, lr) in enumerate(zip(batches(len(rates)), rates, strict=True), 1):
        loss, grads = gradients(w, **batch)
        losses.append(loss)
        w = {n: rule(w[n], grads[n], state.setdefault(n, {}), lr, t) for n in w}
    return losses, w


# ------------------------------------------------------------------------------------ optimisers


@pytest.mark.parametrize("sites", [1, 2, 3])
@pytest.mark.parametrize("rule", [sgd, momentum, adamw])
def test_five_steps_are_those_of_numpy(rule, sites):
    rates = [0.05, 0.05, 0.01, 0.1, 0.02]
    expected, last = reference(rule, rates)
    trainer = Trainer(TEXT, weights(), optimizer=rule.__name__, sites=sites)
    for trainer.lr, batch in zip(rates, batches(5), strict=True):
        trainer.step(batch)
    np.testing.assert_allclose(trainer.losses, expected, rtol=1e-12)
    for name, array in trainer.weights().items():
        np.testing.assert_allclose(array, last[name], rtol=1e-9, atol=1e-12)
    assert len(trainer._programs) == 1


def test_weights_of_16_bits_are_updated_in_32():
    trainer = Trainer(TEXT, weights(ml_dtypes.bfloat16), lr=0.01, sites=2)
    trainer.fit(batches(3, np.float32))
    assert {a.dtype.name for a in trainer.weights().values()} == {"bfloat16"}
    assert {trainer._state[f"m_{name}"].dtype.name for name in weights()} == {"float32"}
    expected = reference(adamw, [0.01] * 3)[0]
    np.testing.assert_allclose(trainer.losses, expected, rtol=0.05)


def test_a_weight_that_the_loss_does_not_read_only_decays():
    trainer = Trainer("L = sum[i] a[i]**2", {"a": np.ones(3), "b": np.ones(2)}, lr=0.5, sites=1)
    trainer.fit([{}, {}])
    np.testing.assert_allclose(trainer.weights()["b"], (1 - 0.5 * 0.01) ** 2)


def test_arrays_that_were_given_are_not_written_to():
    given, again = weights(), weights()
    Trainer(TEXT, given, optimizer="sgd", sites=1).fit(batches(2))
    assert all((given[name] == again[name]).all() for name in given)


def test_batches_of_another_size_are_another_program():
    trainer = Trainer(TEXT, weights(), optimizer="sgd", lr=0.1, sites=2)
    large, small = batches(1)[0], batches(1, size=3)[0]
    for batch in (large, small, large):
        expected = gradients(trainer.weights(), **batch)[0]
        assert trainer.step(batch) == pytest.approx(expected, rel=1e-12)
    assert len(trainer._programs) == 2


def test_the_other_results_of_a_program_are_told():
    text = TEXT + "near[b] = max[o] Y[b,o]\noutput L, near"
    trainer = Trainer(text, weights(), loss="L", sites=1)
    batch = batches(1)[0]
    trainer.step(**batch)
    assert (trainer.results["near"] == batch["Y"].max(axis=1)).all()


def test_labels_of_updates_are_none_of_the_text():
    trainer = Trainer("extent i = 2\nL = sum[i,j] W[i,j]**2", {"W": np.ones((2, 3))}, optimizer="sgd")
    assert "next_W[k,l] = W[k,l] - lr * grad_W[k,l]" in trainer.program({})


def test_an_optimiser_of_ones_own():
    signs = optimizers.Optimizer("signs", (("w", "{w} - lr * sign({g})"),))
    trainer = Trainer("L = sum[i] a[i]**2", {"a": np.array([3.0, -2.0])}, optimizer=signs, lr=0.5)
    trainer.fit([{}])
    assert trainer.weights()["a"].tolist() == [2.5, -1.5]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Trainer(TEXT, weights(), optimizer="adamv"),
            UnknownNameError,
            "called 'adamv'",
        ),
        (lambda: Trainer(TEXT, {"W": [1, 2]}), DtypeError, "the weight W is i64"),
        (lambda: Trainer("L = (", {}), ParseError, "bracket"),
        (lambda: Trainer(TEXT, weights()).step(W=1.0), ParseError, "'W' is the trainer's"),
        (lambda: Trainer(TEXT, weights()).step(lr=1.0), ParseError, "'lr' is the trainer's"),
        (lambda: Trainer(TEXT, weights()).step(X=np.ones((2, 6))), UnknownNameError, "'Y'"),
        (lambda: Trainer(TEXT + "M = 1", weights()).step(batches(1)[0]), ParseError, "results L, M"),
        (lambda: Trainer(TEXT, weights()).fit([], every=0), PlanError, "not every 0"),
    ],
)
def test_what_cannot_be_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ----------------------------------------------------------------------------------- checkpoints


def test_it_goes_on_as_if_it_had_not_stopped(tmp_path):
    whole = Trainer(TEXT, weights(), lr=0.05, sites=3)
    expected = whole.fit(batches(6))
    path, seen = tmp_path / "it.safetensors", []
    first = Trainer(TEXT, weights(), lr=0.05, sites=3)
    first.fit(batches(6)[:4], save=path, every=3, each=lambda step, loss: seen.append((step, loss)))
    assert seen == list(enumerate(expected[:4], 1))
    again = Trainer.load(path, sites=3)
    assert repr(again) == repr(first)
    again.fit(batches(6)[4:])
    assert again.losses == expected
    assert all((again.weights()[n] == a).all() for n, a in whole.weights().items())
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_others_can_read_a_checkpoint(tmp_path):
    path = tmp_path / "it.safetensors"
    trainer = Trainer(TEXT, weights(np.float32), sites=1)
    trainer.fit(batches(2, np.float32))
    trainer.save(path)
    found = load_file(path)
    assert {n: found[n].tolist() for n in weights()} == {n: a.tolist() for n, a in trainer.weights().items()}
    assert found["training.losses"].tolist() == trainer.losses


def test_a_file_of_something_else_is_no_checkpoint(tmp_path):
    tensorfile.write(tmp_path / "a.safetensors", {"a": np.ones(3)}, {})
    with pytest.raises(EinsummableError, match=r"a\.safetensors is no checkpoint"):
        Trainer.load(tmp_path / "a.safetensors")
    with pytest.raises(DtypeError, match="a is c64"):
        tensorfile.write(tmp_path / "b.safetensors", {"a": np.ones(3, np.complex64)}, {})


class Unreadable:
    """A tensor that cannot be fetched."""

    shape, dtype = (3,), np.dtype(np.float32)

    def __array__(self, dtype=None, copy=None):
        raise OSError("the engine is gone")


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "a.safetensors"
    tensorfile.write(path, {"a": np.ones(3)}, {})
    before = path.read_bytes()
    with pytest.raises(OSError, match="the engine is gone"):
        tensorfile.write(path, {"a": np.zeros(3), "b": Unreadable()}, {})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


#: Forks trainers that go on where the last one was killed, so that there is one start of Python for all.
KILLED = """
import os, random, signal, sys, time
from pathlib import Path
from test_training import TEXT, endless, weights
from einsummable.training import Trainer

path, chance = Path(sys.argv[1]), random.Random(0)

def train(told):
    trainer = Trainer.load(path, sites=1) if path.exists() else Trainer(TEXT, weights(), lr=0.01, sites=1)
    trainer.fit(endless(trainer.steps), save=path, every=1, each=lambda *_: os.write(told, b"."))

for _ in range(20):
    heard, told = os.pipe()
    child = os.fork()
    if not child:
        train(told)
        os._exit(1)
    os.close(told)
    os.read(heard, 1)
    time.sleep(chance.uniform(0.0, 0.1))
    os.kill(child, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    print(Trainer.load(path).steps, flush=True)
"""


def endless(start):
    several = batches(7)
    return (several[n % 7] for n in count(start))


@pytest.mark.slow
def test_a_trainer_that_is_killed_resumes_from_a_whole_checkpoint(tmp_path):
    path = tmp_path / "it.safetensors"
    command = [sys.executable, "-c", KILLED, str(path)]
    told = subprocess.run(command, stdout=subprocess.PIPE, cwd=HERE, text=True, check=True).stdout
    made = [int(line) for line in told.split()]
    assert len(made) == 20
    assert all(before < after for before, after in pairwise([0, *made]))
    again, whole = Trainer.load(path, sites=1), Trainer(TEXT, weights(), lr=0.01, sites=1)
    again.fit(islice(endless(again.steps), 3))
    assert again.losses == whole.fit(islice(endless(0), again.steps))


# -------------------------------------------------------------------------------------- clusters


@pytest.fixture(scope="module")
def cluster():
    with Cluster(n=3, threads=1) as cluster:
        yield cluster


@pytest.mark.cluster
@pytest.mark.parametrize("sites", [2, 3])
def test_a_step_moves_the_batch_and_what_the_plan_says(cluster, sites, monkeypatch):
    here = Trainer(TEXT, weights(np.float32), lr=0.01, sites=1)
    expected = here.fit(batches(5, np.float32))
    there = Trainer(TEXT, weights(np.float32), lr=0.01, sites=sites, cluster=cluster)
    first, *rest = batches(5, np.float32)
    there.step(first)
    layouts, tasks = there._layouts, there.net.tasks
    sent = []
    sort_inputs = runtime_cluster.sort_inputs

    def watched(engines, program, arrays):
        found, *others = sort_inputs(engines, program, arrays)
        sent.append({reads[i][0] for boxes, reads in zip(found, program.reads, strict=True) for i in boxes})
        return found, *others

    monkeypatch.setattr(runtime_cluster, "sort_inputs", watched)
    monkeypatch.setattr(Cluster, "put", None)
    for batch in rest:
        there.step(batch)
        moved = sum(move.nbytes for move in there.net.last.moves)
        assert moved == there.net.tasks.bytes_moved
        assert there.net.last.taskgraph is tasks
        assert there._layouts == layouts
        assert all(there.net.layout(name) == layouts[name] for name in layouts)
    assert sent == [{"X", "Y"}] * 4
    np.testing.assert_allclose(there.losses, expected, rtol=1e-5)
    for name, array in here.weights().items():
        np.testing.assert_allclose(there.weights()[name], array, rtol=1e-4, atol=1e-5)


@pytest.mark.cluster
def test_it_goes_on_on_a_cluster_as_if_it_had_not_stopped(cluster, tmp_path):
    path = tmp_path / "it.safetensors"
    whole = Trainer(TEXT, weights(), lr=0.05, cluster=cluster)
    small = batches(2, size=4)
    whole.fit(batches(3))
    whole.save(path)
    again = Trainer.load(path, cluster=cluster)
    assert again.fit(small) == whole.fit(small)
    assert again.fit(batches(2)) == whole.fit(batches(2))
    here = Trainer.load(path, sites=1)
    np.testing.assert_allclose(here.fit(small), whole.losses[3:5], rtol=1e-9)


@pytest.mark.cluster
def test_a_checkpoint_brings_back_what_an_engine_took_along(tmp_path):
    path, all_batches = tmp_path / "it.safetensors", batches(6)
    with Cluster(n=2, threads=1) as ours:
        whole = Trainer(TEXT, weights(), lr=0.05, cluster=ours)
        whole.fit(all_batches)
        trainer = Trainer(TEXT, weights(), lr=0.05, cluster=ours)
        trainer.fit(all_batches[:3], save=path)
        os.kill(ours.info()[1].pid, signal.SIGKILL)
        with pytest.raises(EngineError, match=r"died|any more"):
            trainer.fit(all_batches[3:])
        assert trainer.steps == 3
        with pytest.raises(EngineError, match=r"died|any more"):
            trainer.weights()
        again = Trainer.load(path, cluster=ours)
        again.fit(all_batches[3:])
        assert again.losses == whole.losses


@pytest.mark.cluster
def test_old_weights_are_dropped(cluster):
    before = cluster._engines.kept_bytes()
    trainer = Trainer(TEXT, weights(), cluster=cluster)
    trainer.fit(batches(3))
    state = sum(array.nbytes for array in weights().values()) * 3
    kept = [now - then for now, then in zip(cluster._engines.kept_bytes(), before, strict=True)]
    assert sum(kept) == state

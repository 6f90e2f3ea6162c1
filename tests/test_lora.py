"""LoRA: adapters that start as nothing, are trained alone, and are held to gradients of the whole weights."""

from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

import einsummable as ein
from einsummable import tensorfile
from einsummable.errors import EinsummableError, ParseError, ShapeError, UnknownNameError
from einsummable.evaluate import evaluate
from einsummable.models import checkpoint, decoding, llama, lora, tokenizer
from einsummable.models.decoder import Decoder
from einsummable.models.llama import Config
from einsummable.models.lora import Lora
from einsummable.runtime import cluster as runtime_cluster
from einsummable.runtime.cluster import Cluster
from einsummable.training import Trainer

DATA = Path(__file__).parents[2] / "shared" / "data"
SMALL = Config(layers=2, dim=16, heads=4, kv_heads=2, hidden=24, seq=6, vocab=11, batch=2)
EVERY = Lora(rank=3, alpha=4.0, on=tuple(llama.PROJECTIONS))
TEXTS = [[1, 7, 3, 3, 10, 0, 5], [4, 4, 9]]


def weights(config=SMALL, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: (rng.standard_normal([n for _, n in labels]) / labels[0][1] ** 0.5).astype(np.float32)
        for name, labels in decoding.shapes(config).items()
    }


def adapters(lora_=EVERY, config=SMALL, seed=1):
    """Adapters of which neither is zero."""
    rng = np.random.default_rng(seed)
    return {
        name: 0.3 * rng.standard_normal(a.shape).astype(np.float32)
        for name, a in lora.start(config, lora_).items()
    }


def scores(config, lora_, given, sites=1):
    text = lora.text(config, lora_, scores=True)
    return ein.compile(text, given, sites=sites).run(tok=lora.batch(config, TEXTS)["tok"])["scores"]


def test_it_starts_as_the_model_it_was():
    found = lora.start(SMALL, EVERY)
    base = scores(SMALL, None, weights())
    np.testing.assert_array_equal(scores(SMALL, EVERY, weights() | found), base)
    assert all(a.any() == name.endswith("_A") for name, a in found.items())
    assert (scores(SMALL, EVERY, weights() | adapters()) != base).any()


def test_the_scores_are_those_of_the_decoder():
    decoder = Decoder(replace(SMALL, batch=1), weights(), sites=1)
    want = decoder.start([TEXTS[0][:-1]], every=True)[0]
    np.testing.assert_allclose(scores(SMALL, None, weights())[0], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("tied", [False, True])
def test_merged_weights_equal_the_adapters(tied):
    config = replace(SMALL, tied=tied)
    base, found = weights(config), adapters()
    with_adapters = scores(config, EVERY, base | found)
    both = lora.merged(EVERY, base, found)
    np.testing.assert_allclose(scores(config, None, both), with_adapters, rtol=1e-5, atol=1e-5)
    assert both["norm"] is base["norm"]
    assert [n for n in base if both[n] is not base[n]] == [n for n in base if n[:-1] in llama.PROJECTIONS]


def test_merged_weights_of_16_bits():
    base = {name: array.astype(ml_dtypes.bfloat16) for name, array in weights().items()}
    both = lora.merged(EVERY, base, adapters())
    want = lora.merged(EVERY, weights(), adapters())
    assert both["WQ0"].dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(both["WQ0"].astype(np.float32), want["WQ0"], rtol=0.02, atol=0.02)


# ------------------------------------------------------------------------------------- gradients


def gradients_of(text, names):
    text = text.replace("output L\n", "")
    return f"{text}{', '.join(f'grad_{n}' for n in names)} = grad L wrt {', '.join(names)}\n"


@pytest.fixture(scope="module")
def by_the_chain_rule():
    """Gradients of adapters, from those of the merged weights in a program without adapters."""
    given, found = weights(), adapters()
    names = [n.removesuffix("_A") for n in found if n.endswith("_A")]
    batch = lora.batch(SMALL, TEXTS)
    net = ein.compile(
        gradients_of(lora.text(SMALL, None), names), lora.merged(EVERY, given, found) | batch, sites=1
    )
    whole, want = net.run(), {}
    for name in names:
        g, A, B = whole[f"grad_{name}"], found[f"{name}_A"], found[f"{name}_B"]
        g2, A2, B2 = g.reshape(A.size // 3, -1), A.reshape(-1, 3), B.reshape(3, -1)
        want[f"{name}_A"] = (EVERY.scale * g2 @ B2.T).reshape(A.shape)
        want[f"{name}_B"] = (EVERY.scale * A2.T @ g2).reshape(B.shape)
    return whole["L"], want


@pytest.mark.parametrize("sites", [1, 3])
def test_gradients_are_those_of_the_chain_rule_and_of_the_oracle(sites, by_the_chain_rule):
    loss, want = by_the_chain_rule
    given = weights() | adapters() | lora.batch(SMALL, TEXTS)
    net = ein.compile(gradients_of(lora.text(SMALL, EVERY), list(want)), given, sites=sites)
    got, oracle = net.run(), evaluate(net.graph, given)
    np.testing.assert_allclose(got["L"], loss, rtol=1e-5)
    for name, g in want.items():
        scale = np.abs(g).max()
        np.testing.assert_allclose(got[f"grad_{name}"], g, atol=2e-4 * scale)
        np.testing.assert_allclose(got[f"grad_{name}"], oracle[f"grad_{name}"], atol=2e-5 * scale)


# -------------------------------------------------------------------------------------- training


def test_only_adapters_are_trained():
    base = weights()
    before = {name: array.copy() for name, array in base.items()}
    trainer = lora.trainer(SMALL, base, Lora(rank=2), lr=0.1, sites=2)
    losses = trainer.fit([lora.batch(SMALL, TEXTS)] * 15)
    assert losses[-1] < losses[0] - 0.2  # the head is frozen, and random
    assert all((base[name] == before[name]).all() for name in base)
    assert set(trainer.weights()) == {f"W{x}{n}_{y}" for x in "QV" for n in (0, 1) for y in "AB"}
    assert {name for name in trainer._state if name not in trainer.weights()} == {
        f"{kept}_{name}" for name in trainer.weights() for kept in "mv"
    }
    # Nothing is computed that only the gradient of a frozen weight would need.
    shapes = {base[name].shape for name in base if name[:-1] in llama.PROJECTIONS}
    assert not shapes & {node.shape for node in trainer.net.graph.nodes if node.inputs}


def test_what_is_empty_in_a_batch_does_not_count():
    batch = lora.batch(SMALL, TEXTS)
    assert batch["counts"].sum(axis=1).tolist() == [6, 2]
    net = ein.compile(lora.text(SMALL, None), weights() | batch, sites=1)
    other = {name: np.where(batch["counts"] > 0, a, 5).astype(a.dtype) for name, a in batch.items()}
    assert net.run(**other | {"counts": batch["counts"]})["L"] == net.run()["L"]
    one = replace(SMALL, batch=1)
    each = [ein.compile(lora.text(one, None), weights() | lora.batch(one, [t]), sites=1) for t in TEXTS]
    losses = [float(net.run()["L"]) for net in each]
    assert net.run()["L"] == pytest.approx((6 * losses[0] + 2 * losses[1]) / 8, rel=1e-5)


def test_it_goes_on_from_a_checkpoint_with_what_wasfrozen(tmp_path):
    path, batch = tmp_path / "it.safetensors", lora.batch(SMALL, TEXTS)
    trainer = lora.trainer(SMALL, weights(), sites=1)
    trainer.fit([batch] * 2)
    trainer.save(path)
    again = Trainer.load(path, frozen=weights(), sites=1)
    assert again.fit([batch] * 2) == trainer.fit([batch] * 2)
    assert not set(weights()) & set(load_file(path))
    with pytest.raises(UnknownNameError, match="goes on only with what was frozen: W10, W11"):
        Trainer.load(path, sites=1)


def test_adapters_go_to_a_file_and_back(tmp_path):
    path, found = tmp_path / "adapters.safetensors", adapters()
    lora.save(path, EVERY, found)
    which, back = lora.load(path)
    assert which == EVERY
    assert all((back[name] == array).all() for name, array in found.items())
    assert load_file(path).keys() == found.keys()
    trainer = lora.trainer(SMALL, weights(), which, adapters=back, sites=1)
    assert all((trainer.weights()[name] == array).all() for name, array in found.items())
    tensorfile.write(path, {"a": np.ones(3)}, {})
    with pytest.raises(EinsummableError, match="has no adapters"):
        lora.load(path)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: lora.text(SMALL, Lora(on=("WX",))), UnknownNameError, "no projection called 'WX'"),
        (lambda: lora.text(SMALL, Lora(rank=0)), ShapeError, "from 1, not 0"),
        (lambda: lora.batch(SMALL, TEXTS[:1]), ShapeError, "1 texts are given for batches of 2"),
        (lambda: lora.batch(SMALL, [TEXTS[0], [1]]), ShapeError, "a text of 1 tokens"),
        (lambda: lora.batch(SMALL, [TEXTS[0], [1] * 8]), ShapeError, "from 2 to 7"),
        (lambda: Trainer("L = a*a", {"a": 1.0}, frozen={"a": 1.0}), ParseError, "both a weight and frozen"),
        (
            lambda: Trainer("L = a*b", {"a": 1.0}, frozen={"b": 1.0}).step(b=1.0),
            ParseError,
            "'b' is the trainer's",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ------------------------------------------------------------------------- a real model, engines


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "stories260K.bin").exists(), reason="the model is not beside the checkout")
def test_a_real_model_learns_another_story():
    model = checkpoint.load(DATA / "stories260K.bin")
    words = tokenizer.load(DATA / "tok512.bin")
    story = words.encode("The old robot counted stars. It had no name, but it had a red lamp.")
    config = replace(model.config, seq=len(story) - 1, batch=1)
    batch = lora.batch(config, [story])
    before = {name: np.array(array) for name, array in model.weights.items()}
    trainer = lora.trainer(config, model.weights, EVERY, lr=0.02, sites=2)
    losses = trainer.fit([batch] * 8)
    assert losses[0] < 3.5  # it speaks English
    assert losses[-1] < losses[0] / 2
    assert all((model.weights[name] == array).all() for name, array in before.items())
    both = lora.merged(EVERY, model.weights, trainer.weights())
    merged = ein.compile(lora.text(config, None), both | batch, sites=2)
    assert merged.run()["L"] == pytest.approx(trainer.step(batch), rel=1e-5)


@pytest.mark.cluster
def test_a_step_on_engines_moves_the_batch_alone(monkeypatch):
    batch, base = lora.batch(SMALL, TEXTS), weights()
    expected = lora.trainer(SMALL, base, sites=1).fit([batch] * 4)
    with Cluster(n=2, threads=1) as cluster:
        there = lora.trainer(SMALL, base, cluster=cluster)
        there.step(batch)
        sent = []
        sort_inputs = runtime_cluster.sort_inputs

        def watched(engines, program, arrays):
            found, *others = sort_inputs(engines, program, arrays)
            sent.append(
                {reads[i][0] for boxes, reads in zip(found, program.reads, strict=True) for i in boxes}
            )
            return found, *others

        monkeypatch.setattr(runtime_cluster, "sort_inputs", watched)
        monkeypatch.setattr(Cluster, "put", None)
        there.fit([batch] * 3)
        assert sent == [{"tok", "next", "counts"}] * 3
        np.testing.assert_allclose(there.losses, expected, rtol=1e-5)
        assert all((np.array(there.frozen[name]) == array).all() for name, array in base.items())

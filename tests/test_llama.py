"""LLaMA in the language: against a forward pass in numpy, and how it is cut."""

import numpy as np
import pytest

import einsummable as ein
from einsummable.errors import ShapeError
from einsummable.models.llama import LLAMA_7B, MODELS, Config, inputs, shapes, text

SMALL = Config(layers=2, dim=16, heads=4, kv_heads=2, hidden=24, seq=6, vocab=11, batch=2)


def normed(x, weight):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * weight


def rotated(x, theta):
    """Turn pairs of coordinates of x (b, t, heads, 2·pairs) as complex numbers."""
    _, t, _, d = x.shape
    angles = np.outer(np.arange(t), theta ** -(np.arange(d // 2) / (d // 2)))
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)[None, :, None, :]
    out = np.empty_like(x)
    out[..., 0::2], out[..., 1::2] = turned.real, turned.imag
    return out


def forward(config, w):
    """The model as others write it: weights are matrices, heads are cut out of vectors."""
    w = {name: array.astype(np.float64) for name, array in w.items()}
    x, t, m, heads, groups = w["X0"], config.seq, config.dim, config.heads, config.groups
    for n in range(config.layers):
        a = normed(x, w[f"norm_a{n}"])
        q = (a @ w[f"WQ{n}"].reshape(m, m)).reshape(-1, t, heads, m // heads)
        k, v = (
            (a @ w[f"{name}{n}"].reshape(m, -1)).reshape(-1, t, groups, m // heads) for name in ("WK", "WV")
        )
        q, k = rotated(q, config.theta), rotated(k, config.theta)
        k, v = (np.repeat(y, heads // groups, axis=2) for y in (k, v))
        scores = q.transpose(0, 2, 1, 3) @ k.transpose(0, 2, 3, 1) / np.sqrt(m // heads)
        scores = np.where(np.tril(np.ones((t, t), bool)), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        o = (weights @ v.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3).reshape(-1, t, m)
        x = x + o @ w[f"WO{n}"].reshape(m, m)
        f = normed(x, w[f"norm_f{n}"])
        gate = f @ w[f"W1{n}"]
        x = x + (gate / (1 + np.exp(-gate)) * (f @ w[f"W3{n}"])) @ w[f"W2{n}"]
    return normed(x[:, -1], w["norm"]) @ w["head"]


@pytest.mark.parametrize("kv_heads", [0, 1, 2])
def test_equals_a_forward_pass_in_numpy(kv_heads):
    config = Config(**{f: getattr(SMALL, f) for f in Config.__slots__} | {"kv_heads": kv_heads})
    given = inputs(config)
    found = ein.compile(text(config), given, sites=3).run()["scores"]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, forward(config, given), rtol=1e-4, atol=1e-5)


def test_the_first_token_attends_to_itself_only():
    config = Config(layers=1, dim=8, heads=2, hidden=12, seq=4, vocab=5)
    program = text(config).replace("output scores", "output P0")
    probabilities = ein.compile(program, inputs(config), sites=2).run()["P0"]
    np.testing.assert_array_equal(np.triu(probabilities, 1), 0)
    np.testing.assert_allclose(probabilities[..., 0, 0], 1)


def test_the_model_of_seven_billion_weights_has_that_many():
    weights = sum(
        np.prod([n for _, n in labels]) for name, labels in shapes(LLAMA_7B).items() if name != "X0"
    )
    assert weights + 32000 * 4096 == 6738415616  # with the embedding table, which the program does not read


def test_layers_that_are_equal_are_cut_alike():
    graph = ein.compile(text(Config(layers=4)), sites=2).graph
    plan = ein.compile(text(Config(layers=4)), sites=8).plan
    cuts = {graph.name_of(i): str(cut) for i, cut in enumerate(plan.partitions)}
    for name in "AQKVSPOFH":
        assert cuts[f"{name}1"] == cuts[f"{name}2"]


def test_two_sites_move_no_more_than_the_split_of_megatron():
    config = Config(layers=2)
    net = ein.compile(text(config), sites=2)
    # It sums the activations on both sites twice a layer; on two sites a sum moves them once each way.
    assert net.tasks.bytes_moved <= config.layers * 2 * 2 * 4 * config.seq * config.dim


def test_a_model_of_every_size_has_the_weights_of_its_name():
    billions = {"llama-7b": 6.7, "llama-13b": 13.0, "llama-30b": 32.5, "llama-65b": 65.3, "llama-3-8b": 8.0}
    for name, config in MODELS.items():
        weights = sum(np.prod([n for _, n in labels], dtype=float) for labels in shapes(config).values())
        weights += config.vocab * config.dim - config.batch * config.seq * config.dim
        assert round(weights / 1e9, 1) == billions[name]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"dim": 10, "heads": 4}, "4 heads of dim 10 have no pairs of coordinates"),
        ({"heads": 8, "kv_heads": 3}, "8 heads cannot share 3 heads of keys and values evenly"),
    ],
)
def test_heads_that_do_not_come_out_even_are_refused(sizes, message):
    with pytest.raises(ShapeError, match=message):
        text(Config(**sizes))


def test_the_layers_alone_leave_what_scores_are_made_of():
    given = inputs(SMALL)
    scores = ein.compile(text(SMALL), given, sites=2).run()["scores"]
    rest = {name: array for name, array in given.items() if name not in ("norm", "head")}
    left = ein.compile(text(SMALL, scores=False), rest, sites=2).run()["X2"]
    assert left.shape == (SMALL.batch, SMALL.seq, SMALL.dim)
    np.testing.assert_allclose(
        normed(left[:, -1], given["norm"]) @ given["head"], scores, rtol=1e-3, atol=1e-4
    )

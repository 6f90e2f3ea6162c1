"""Checkpoints: those of transformers against a forward pass in numpy, those of llama2.c against them."""

import json

import llama_models as lm
import numpy as np
import pytest

from einsummable.errors import DtypeError, EinsummableError, ShapeError
from einsummable.mapped import region
from einsummable.models import checkpoint, decoding
from einsummable.models.decoder import Decoder
from einsummable.models.llama import Config, Scaling

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]


def scores(model, sites=2):
    return Decoder(model.config, model.weights, sites=sites).start([TOKENS], every=True)[0]


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (lm.BF16, 2e-2)])
def test_two_shards_equal_a_forward_pass_in_numpy(tmp_path, dtype, tolerance):
    written = lm.write(tmp_path, dtype=dtype)
    model = checkpoint.load(tmp_path)
    assert all(array.dtype == dtype for array in model.weights.values())
    expected = lm.forward(written, TOKENS)
    np.testing.assert_allclose(scores(model), expected, rtol=tolerance, atol=tolerance)


def test_the_head_of_a_tied_model_is_the_table_of_embeddings(tmp_path):
    config = lm.CONFIG | {"tie_word_embeddings": True, "num_hidden_layers": 1}
    written = lm.write(tmp_path, config)
    model = checkpoint.load(tmp_path)
    assert "head" not in model.weights
    np.testing.assert_allclose(scores(model), lm.forward(written, TOKENS, config), rtol=1e-4, atol=1e-4)


def llama3(base, factor, low, high, original):
    """How transformers stretches wavelengths, one at a time."""
    out = []
    for f in base:
        wavelength = 2 * np.pi / f
        if wavelength < original / high:
            out.append(f)
        elif wavelength > original / low:
            out.append(f / factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            out.append((1 - smooth) * f / factor + smooth * f)
    return np.array(out)


@pytest.mark.parametrize(
    ("scaling", "stretched"),
    [
        ({"rope_type": "linear", "factor": 4.0}, lambda f: f / 4),
        (
            {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
            lambda f: llama3(f, 8.0, 1.0, 4.0, 64),
        ),
    ],
    ids=["linear", "llama3"],
)
def test_scaled_positions(tmp_path, scaling, stretched):
    config = lm.CONFIG | {"rope_scaling": scaling}
    written = lm.write(tmp_path, config)
    base = config["rope_theta"] ** -(np.arange(0, 8, 2) / 8)
    frequencies = stretched(base)
    assert not np.allclose(frequencies, base)
    expected = lm.forward(written, TOKENS, config, frequencies)
    np.testing.assert_allclose(scores(checkpoint.load(tmp_path)), expected, rtol=1e-4, atol=1e-4)


def test_weights_are_views_of_the_files(tmp_path):
    lm.write(tmp_path)
    for array in checkpoint.load(tmp_path).weights.values():
        found = region(array)
        assert found.file.path.startswith(str(tmp_path))
        np.testing.assert_array_equal(found.read(), array)


def test_llama2c_and_transformers_differ_in_how_heads_are_paired(tmp_path):
    config = lm.CONFIG | {"tie_word_embeddings": True, "rms_norm_eps": 1e-5, "rope_theta": 10000.0}
    written = lm.write(tmp_path, config)
    expected = lm.forward(written, TOKENS, config)
    path = tmp_path / "model.bin"
    path.write_bytes(lm.as_llama2c(config, written))
    model = checkpoint.load(path)
    assert model.config == Config(
        layers=3, dim=32, hidden=48, heads=4, kv_heads=2, vocab=29, seq=40, tied=True
    )
    np.testing.assert_allclose(scores(model), expected, rtol=1e-4, atol=1e-4)


# ----------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"num_hidden_layers": 4}, EinsummableError, "has no tensor 'model.layers.3.input_layernorm.weight'"),
        ({"intermediate_size": 47}, ShapeError, r"W1 of layer 0 has shape \(48, 32\)"),
        ({"vocab_size": 30}, ShapeError, r"the weight embed has shape \(29, 32\)"),
        ({"attention_bias": True}, EinsummableError, "layers with a bias"),
        ({"head_dim": 16}, ShapeError, "4 heads of 16 coordinates do not make 32"),
        ({"hidden_act": "gelu"}, EinsummableError, "gelu is not LLaMA's activation"),
        ({"rope_scaling": {"type": "yarn"}}, EinsummableError, "positions scaled by 'yarn'"),
        ({"hidden_size": None}, EinsummableError, "does not say hidden_size"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(tmp_path, change, error, message):
    lm.write(tmp_path)
    config = {name: value for name, value in (lm.CONFIG | change).items() if value is not None}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(error, match=message):
        checkpoint.load(tmp_path)


def rewrite(folder, **weights):
    """Write a model again, in one file, with some weights that are other ones."""
    lm.write(folder)
    (folder / "model.safetensors.index.json").unlink()
    lm.save_file(lm.weights() | weights, folder / "model.safetensors")


def test_weights_of_another_dtype_are_cast(tmp_path):
    rewrite(tmp_path, **{"lm_head.weight": lm.weights()["lm_head.weight"].astype(np.float16)})
    model = checkpoint.load(tmp_path)
    assert (model.config.dtype, model.weights["head"].dtype) == ("f32", np.float16)
    np.testing.assert_allclose(scores(model), lm.forward(lm.weights(), TOKENS), rtol=1e-2, atol=1e-2)


def test_what_is_stored_in_16_bits_is_computed_in_32_if_asked(tmp_path):
    written = lm.write(tmp_path, dtype=lm.BF16)
    model = checkpoint.load(tmp_path, "f32")
    assert (model.config.dtype, model.weights["head"].dtype) == ("f32", lm.BF16)
    np.testing.assert_allclose(scores(model), lm.forward(written, TOKENS), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("dtype", "name"), [(np.int8, "I8"), (np.int32, "norm is i32")])
def test_integers_are_refused(tmp_path, dtype, name):
    rewrite(tmp_path, **{"model.norm.weight": np.zeros(32, dtype)})
    with pytest.raises(DtypeError, match=name):
        checkpoint.load(tmp_path)


def test_a_shard_that_is_missing_or_cut_off_is_named(tmp_path):
    lm.write(tmp_path)
    shard = tmp_path / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-4])
    with pytest.raises(EinsummableError, match=r"model-00002-of-00002\.safetensors is cut off"):
        checkpoint.load(tmp_path)
    shard.write_bytes(b"\xff" * 20)
    with pytest.raises(EinsummableError, match="is no safetensors file: it is shorter than its header"):
        checkpoint.load(tmp_path)
    shard.unlink()
    with pytest.raises(EinsummableError, match=r"00002\.safetensors cannot be read: No such file"):
        checkpoint.load(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it has no header of seven numbers"),
        (np.array([64, 172, 5, 0, 4, 512, 512], "<i4").tobytes(), "its header says"),
        (np.array([8, 4, 1, 2, 2, 7, 3], "<i4").tobytes(), "has 28 bytes; a model of its sizes has"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path, content, message):
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(EinsummableError, match=message):
        checkpoint.load(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(EinsummableError, match=r"nothing\.bin cannot be read: No such file"):
        checkpoint.load(tmp_path / "nothing.bin")


def test_a_scaling_without_bounds_stretches_everything():
    config = Config(layers=1, dim=8, heads=2, hidden=8, vocab=5, seq=4, scaling=Scaling(2.0))
    assert "/ 2.0" in decoding.text(config, 1)

"""Weights of LLaMA from files: llama2.c's ``.bin`` and folders as Hugging Face's transformers writes them.

Contract: `load` returns a `Checkpoint`, whose arrays are views of memory-mapped files with the dimensions
that `decoding.shapes` names: nothing is read before it is used, and nothing is copied.  What differs between
the formats is how a head's coordinates are paired for the rotary embedding: neighbours in llama2.c, halves in
transformers; here it is only the order of two dimensions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import numpy as np

from einsummable import dtypes, tensorfile
from einsummable.errors import DtypeError, EinsummableError, ShapeError
from einsummable.mapped import memmap
from einsummable.models import decoding
from einsummable.models.llama import Config, Scaling

_HEADER_BYTES = 28


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model from a file.

    Attributes
    ----------
    config
        Its sizes; `seq` is the longest text that it was made for.
    weights
        Arrays by the names of `decoding.shapes`.
    """

    config: Config
    weights: Mapping[str, np.ndarray]

    def check(self) -> None:
        """Raise `ShapeError` or `DtypeError` unless every weight is there and what the program reads."""
        for name, labels in decoding.shapes(self.config).items():
            shape, array = tuple(extent for _, extent in labels), self.weights[name]
            if array.shape != shape:
                raise ShapeError(f"the weight {name} has shape {array.shape}, the model needs {shape}")
            if dtypes.kind(array.dtype) != "f":
                raise DtypeError(f"the weight {name} is {dtypes.name(array.dtype)}, which is no real number")


def load(path: str | Path, dtype: str | None = None) -> Checkpoint:
    """Map a model's weights.

    Parameters
    ----------
    path
        A ``.bin`` file of llama2.c, or a folder with ``config.json`` and either ``model.safetensors`` or the
        shards that ``model.safetensors.index.json`` lists.
    dtype
        In what to compute, as in ``config.dtype``; by default what the table of embeddings is stored as.  The
        arrays keep the dtypes of the file.

    Raises
    ------
    EinsummableError
        A file is missing, cut off, or says something that this program cannot do.
    ShapeError, DtypeError
        A weight is not what the configuration says.
    """
    path = Path(path)
    try:
        checkpoint = _folder(path) if path.is_dir() else _llama2c(path)
    except OSError as error:
        raise EinsummableError(f"{error.filename or path} cannot be read: {error.strerror}") from error
    if dtype is not None:
        checkpoint = replace(checkpoint, config=replace(checkpoint.config, dtype=dtype))
    checkpoint.config.check()
    checkpoint.check()
    return checkpoint


# -------------------------------------------------------------------------------------- llama2.c


def _llama2c(path: Path) -> Checkpoint:
    header = np.fromfile(path, "<i4", 7)
    if len(header) < 7:
        raise EinsummableError(f"{path} is no model: it has no header of seven numbers")
    dim, hidden, layers, heads, kv_heads, vocab, seq = (int(n) for n in header)
    if min(dim, hidden, layers, heads, kv_heads, abs(vocab), seq) < 1:
        raise EinsummableError(f"{path} is no model: its header says {header.tolist()}")
    tied, vocab = vocab > 0, abs(vocab)
    config = Config(
        layers=layers, dim=dim, hidden=hidden, heads=heads, kv_heads=kv_heads, vocab=vocab, seq=seq, tied=tied
    )
    config.check()
    inner = config.groups * 2 * config.pairs
    parts = {
        "embed": (vocab, dim),
        "norm_a": (layers, dim),
        "WQ": (layers, dim, dim),
        "WK": (layers, inner, dim),
        "WV": (layers, inner, dim),
        "WO": (layers, dim, dim),
        "norm_f": (layers, dim),
        "W1": (layers, hidden, dim),
        "W2": (layers, dim, hidden),
        "W3": (layers, hidden, dim),
        "norm": (dim,),
        "rotary": (2, seq, config.pairs),
        **({} if tied else {"head": (vocab, dim)}),
    }
    expected = _HEADER_BYTES + 4 * sum(map(prod, parts.values()))
    if path.stat().st_size != expected:
        raise EinsummableError(f"{path} has {path.stat().st_size} bytes; a model of its sizes has {expected}")
    stored, at = {}, _HEADER_BYTES
    for name, shape in parts.items():
        stored[name] = memmap(path, "<f4", shape, at)
        at += 4 * prod(shape)
    weights = {"embed": stored["embed"], "norm": stored["norm"]}
    if not tied:
        weights["head"] = stored["head"].T
    for n in range(layers):
        layer = {name: stored[name][n] for name in _MATRICES}
        weights |= _layer(config, n, layer, halves=False)
    return Checkpoint(config, weights)


# ---------------------------------------------------------------------------------- safetensors

#: What transformers calls the weights of a layer.
_MATRICES = {
    "norm_a": "input_layernorm",
    "WQ": "self_attn.q_proj",
    "WK": "self_attn.k_proj",
    "WV": "self_attn.v_proj",
    "WO": "self_attn.o_proj",
    "norm_f": "post_attention_layernorm",
    "W1": "mlp.gate_proj",
    "W3": "mlp.up_proj",
    "W2": "mlp.down_proj",
}


def _folder(path: Path) -> Checkpoint:
    config = _config(_json(path / "config.json"), path / "config.json")
    stored = tensors(path)

    def find(name: str) -> np.ndarray:
        if name not in stored:
            raise EinsummableError(f"{path} has no tensor {name!r}")
        return stored[name]

    embed = find("model.embed_tokens.weight")
    config = replace(config, dtype=dtypes.name(embed.dtype))
    weights = {"embed": embed, "norm": find("model.norm.weight")}
    if not config.tied:
        weights["head"] = find("lm_head.weight").T
    for n in range(config.layers):
        layer = {ours: find(f"model.layers.{n}.{theirs}.weight") for ours, theirs in _MATRICES.items()}
        weights |= _layer(config, n, layer, halves=True)
    return Checkpoint(config, weights)


def tensors(folder: Path) -> dict[str, np.ndarray]:
    """Return all tensors of a folder's ``safetensors`` files by name, memory-mapped and read-only."""
    index = folder / "model.safetensors.index.json"
    files = {"model.safetensors"} if not index.exists() else {*_json(index)["weight_map"].values()}
    found = {}
    for file in sorted(files):
        found |= tensorfile.read(folder / file).tensors
    return found


def _json(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise EinsummableError(f"{path} is no JSON: {error}") from error


def _config(given: dict, path: Path) -> Config:
    """Return the sizes that a ``config.json`` says."""
    try:
        sizes = {
            "layers": given["num_hidden_layers"],
            "dim": given["hidden_size"],
            "hidden": given["intermediate_size"],
            "heads": given["num_attention_heads"],
            "vocab": given["vocab_size"],
        }
    except KeyError as error:
        raise EinsummableError(f"{path} does not say {error.args[0]}") from None
    if given.get("attention_bias") or given.get("mlp_bias"):
        raise EinsummableError(f"{path}: layers with a bias are not LLaMA's")
    width = given.get("head_dim") or sizes["dim"] // sizes["heads"]
    if width * sizes["heads"] != sizes["dim"]:
        raise ShapeError(f"{path}: {sizes['heads']} heads of {width} coordinates do not make {sizes['dim']}")
    if given.get("hidden_act", "silu") != "silu":
        raise EinsummableError(f"{path}: {given['hidden_act']} is not LLaMA's activation, which is silu")
    rotary = given.get("rope_parameters") or given.get("rope_scaling") or {}
    return Config(
        **sizes,
        kv_heads=given.get("num_key_value_heads") or 0,
        seq=given.get("max_position_embeddings", 2048),
        theta=float(given.get("rope_theta") or rotary.get("rope_theta") or 10000.0),
        eps=float(given.get("rms_norm_eps", 1e-6)),
        tied=bool(given.get("tie_word_embeddings", False)),
        scaling=_scaling(rotary, path),
    )


def _scaling(rotary: dict, path: Path) -> Scaling | None:
    match rotary.get("rope_type") or rotary.get("type") or "default":
        case "default":
            return None
        case "linear":
            return Scaling(float(rotary["factor"]))
        case "llama3":
            return Scaling(
                float(rotary["factor"]),
                float(rotary["low_freq_factor"]),
                float(rotary["high_freq_factor"]),
                int(rotary["original_max_position_embeddings"]),
            )
        case other:
            raise EinsummableError(f"{path}: positions scaled by {other!r} are not supported")


# ----------------------------------------------------------------------------- what both have


def _layer(
    config: Config, n: int, stored: Mapping[str, np.ndarray], *, halves: bool
) -> dict[str, np.ndarray]:
    """Return the weights of layer `n` with heads and pairs as dimensions.

    Parameters
    ----------
    stored
        Matrices by the names of `_MATRICES`, ``[out, in]``.
    halves
        Whether a head's first half is paired with its second; otherwise neighbours are paired.
    """
    groups, each, pairs, dim = config.groups, config.heads // config.groups, config.pairs, config.dim
    inner = (2, pairs) if halves else (pairs, 2)
    named = {name: _expect(name, n, config, array) for name, array in stored.items()}

    def in_pairs(array: np.ndarray, *outer: int) -> np.ndarray:
        """Return ``[m, heads…, p, r]``."""
        split = array.reshape(*outer, *inner, dim)
        return np.moveaxis(split.swapaxes(-3, -2) if halves else split, -1, 0)

    return {
        f"norm_a{n}": named["norm_a"],
        f"WQ{n}": in_pairs(named["WQ"], groups, each),
        f"WK{n}": in_pairs(named["WK"], groups),
        f"WV{n}": in_pairs(named["WV"], groups),
        f"WO{n}": np.moveaxis(in_pairs(named["WO"].T, groups, each), 0, -1),
        f"norm_f{n}": named["norm_f"],
        f"W1{n}": named["W1"].T,
        f"W3{n}": named["W3"].T,
        f"W2{n}": named["W2"].T,
    }


def _expect(name: str, n: int, config: Config, array: np.ndarray) -> np.ndarray:
    dim, hidden, inner = config.dim, config.hidden, config.groups * 2 * config.pairs
    shape = {
        "WQ": (dim, dim),
        "WK": (inner, dim),
        "WV": (inner, dim),
        "WO": (dim, dim),
        "W1": (hidden, dim),
        "W3": (hidden, dim),
        "W2": (dim, hidden),
    }.get(name, (dim,))
    if array.shape != shape:
        raise ShapeError(f"{name} of layer {n} has shape {array.shape}, the configuration says {shape}")
    return array

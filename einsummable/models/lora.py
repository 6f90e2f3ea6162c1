"""LoRA: a model is tuned by matrices of low rank beside its weights (Hu et al., 2021), in the language.

Contract: beside a weight W of a chosen projection stand two adapters, and ``x W`` becomes
``x W + alpha/rank * (x A) B``.  `text` is the program from tokens to the loss, the mean surprise at the token
that comes next; `trainer` makes a `Trainer` of it whose weights are the adapters alone.  The model's own are
frozen: they have no gradients and no optimiser state, and are sent to the engines once.  B starts as zeros,
so that the tuned model starts as the model it was.  `merged` adds the adapters to the weights.

>>> tiny = Config(layers=1, dim=8, heads=2, hidden=16, seq=4, vocab=10)
>>> print(text(tiny, Lora(rank=2, alpha=3.0, on=("WV",))).splitlines()[27])
V0[b,t,g,p,r]   = (sum[m] A0[b,t,m] * WV0[m,g,p,r]) + 1.5 * (sum[l] low_WV0[b,t,l] * WV0_B[l,g,p,r])
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from einsummable import dtypes, tensorfile
from einsummable.codec import from_json, to_json
from einsummable.errors import EinsummableError, ShapeError, UnknownNameError, nearest
from einsummable.models import decoding, llama
from einsummable.models.llama import PROJECTIONS, Config, Projection
from einsummable.training import Trainer


@dataclass(frozen=True, slots=True)
class Lora:
    """Which projections have adapters.

    Attributes
    ----------
    rank
        How many columns A has, and rows B.
    alpha
        What the adapters' product is multiplied by, times the rank.
    on
        Projections, by the names of `llama.PROJECTIONS`.
    """

    rank: int = 8
    alpha: float = 16.0
    on: tuple[str, ...] = ("WQ", "WV")

    @property
    def scale(self) -> float:
        """What the adapters' product is multiplied by."""
        return float(self.alpha) / self.rank

    def check(self) -> None:
        """Raise `ShapeError` unless there is a rank, `UnknownNameError` for a projection that is none."""
        if self.rank < 1:
            raise ShapeError(f"the rank of an adapter is a whole number from 1, not {self.rank}")
        for name in self.on:
            if name not in PROJECTIONS:
                notes = nearest(name, PROJECTIONS) or (f"there are {', '.join(PROJECTIONS)}",)
                raise UnknownNameError(f"a layer has no projection called {name!r}", notes=notes)


def shapes(config: Config, lora: Lora) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return the labels and extents of every adapter, by name: ``WQ0_A``, ``WQ0_B`` and so on."""
    lora.check()
    weights, found = llama.shapes(config), {}
    for n in range(config.layers):
        for name in lora.on:
            extents, rank = dict(weights[f"{name}{n}"]), ("l", lora.rank)
            found[f"{name}{n}_A"] = (*((x, extents[x]) for x in PROJECTIONS[name].summed), rank)
            found[f"{name}{n}_B"] = (rank, *((x, extents[x]) for x in PROJECTIONS[name].left))
    return found


def start(config: Config, lora: Lora, seed: int = 0) -> dict[str, np.ndarray]:
    """Return adapters in float32 that change nothing yet: A is random, B zeros."""
    rng, found = np.random.default_rng(seed), {}
    for name, labels in shapes(config, lora).items():
        shape = tuple(extent for _, extent in labels)
        spread = np.prod(shape[:-1]) ** -0.5 if name.endswith("_A") else 0.0
        found[name] = (spread * rng.standard_normal(shape)).astype(np.float32)
    return found


# ------------------------------------------------------------------------------------------- program

_BATCH = """\
input tok[b={batch}, t={seq}] i32
input next[b={batch}, t={seq}] i32
input counts[b={batch}, t={seq}] f32
X0[b,t,m] = f32(embed[tok[b,t],m])
"""

_LOSS = """\
# the surprise at the tokens that come next, over those that count
surprise[b,t,v] = -logsoftmax[v](scores[b,t,v])
L = (sum[b,t] counts[b,t] * surprise[b,t,next[b,t]]) / sum[b,t] counts[b,t]
output L
"""


def text(config: Config, lora: Lora | None, *, scores: bool = False) -> str:
    """Return the program that reads ``tok``, ``next`` and ``counts``, each ``[b,t]`` (see `batch`).

    Parameters
    ----------
    config
        The model; it reads `seq` tokens of each of `batch` texts.
    lora
        Which projections have adapters; without it the weights are the whole model.
    scores
        Whether to answer with the scores after every token, ``scores[b,t,v]``, instead of the loss ``L``;
        then ``tok`` alone is read.

    Raises
    ------
    ShapeError, UnknownNameError
        The sizes do not come out even, or there is no such projection.
    """
    lora = lora or Lora(on=())
    sizes = {"batch": config.batch, "seq": config.seq}
    lines = [
        llama.RMS.format(eps=config.eps),
        llama.declared(decoding.shapes(config), config.dtype),
        llama.declared(shapes(config, lora), "f32"),
        _BATCH.format(**sizes),
        llama.turns(config, "f32") if config.layers else "",
    ]
    for n in range(config.layers):
        chosen = [PROJECTIONS[name] for name in lora.on]
        lines.append(llama.layer(config, n, {made.name: _adapted(made, n, lora) for made in chosen}))
        lines += [_low(made, n) for made in chosen]
    head = "embed[v,m]" if config.tied else "head[m,v]"
    lines.append(f"scores[b,t,v] = rms[m](X{config.layers}[b,t,m]) * norm[m] * {head}\n")
    return "".join([*lines, "output scores\n" if scores else _LOSS])


def _low(made: Projection, n: int) -> str:
    """Return the line of what a projection reads, brought to the adapters' rank."""
    summed = ",".join(made.summed)
    return f"low_{made.name}{n}[b,t,l] = {made.reads}{n}[b,t,{summed}] * {made.name}{n}_A[{summed},l]\n"


def _adapted(made: Projection, n: int, lora: Lora) -> str:
    """Return the expression of a projection with its adapters."""
    whole = f"sum[{','.join(made.summed)}] {made.operands(n)}"
    added = f"sum[l] low_{made.name}{n}[b,t,l] * {made.name}{n}_B[l,{','.join(made.left)}]"
    return f"({whole}) + {lora.scale!r} * ({added})"


def batch(config: Config, texts: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """Return a batch of texts as the program reads it: what of a shorter text is empty does not count.

    Parameters
    ----------
    texts
        `config.batch` lists of 2 to ``config.seq + 1`` tokens.

    Returns
    -------
    dict
        ``tok`` and ``next``, int32, and ``counts``, float32: each (batch, seq).

    Raises
    ------
    ShapeError
        There are too few or too many texts, or one is too short or too long.
    """
    if len(texts) != config.batch:
        raise ShapeError(f"{len(texts)} texts are given for batches of {config.batch}")
    shape = (config.batch, config.seq)
    found = {"tok": np.zeros(shape, np.int32), "next": np.zeros(shape, np.int32)}
    counts = np.zeros(shape, np.float32)
    for row, tokens in enumerate(texts):
        n = len(tokens) - 1
        if not 1 <= n <= config.seq:
            raise ShapeError(f"a text of {n + 1} tokens does not fit: there are from 2 to {config.seq + 1}")
        found["tok"][row, :n], found["next"][row, :n], counts[row, :n] = tokens[:-1], tokens[1:], 1
    return found | {"counts": counts}


def trainer(
    config: Config,
    weights: Mapping[str, Any],
    lora: Lora | None = None,
    *,
    adapters: Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
    **options: Any,
) -> Trainer:
    """Return a trainer of adapters; its steps take what `batch` makes.

    Parameters
    ----------
    config
        The model, with the `batch` and `seq` of a step.
    weights
        Of the model, by the names of `decoding.shapes`: arrays, or tensors that are on the engines.
    lora
        Which projections have adapters.
    adapters
        To go on from; by default those of `start` for `seed`.
    **options
        Of `Trainer`: optimizer, lr, sites, cluster, memory.
    """
    lora = lora or Lora()
    found = start(config, lora, seed) if adapters is None else {n: adapters[n] for n in shapes(config, lora)}
    frozen = {name: weights[name] for name in decoding.shapes(config)}
    return Trainer(text(config, lora), found, frozen=frozen, **options)


# ------------------------------------------------------------------------------------- afterwards


def merged(lora: Lora, weights: Mapping[str, Any], adapters: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return `weights` with the adapters added to those that have some; the others are the same arrays."""
    found = dict(weights)
    for name in [name.removesuffix("_A") for name in adapters if name.endswith("_A")]:
        weight = weights[name]
        wide = dtypes.accumulator(weight.dtype)
        added = lora.scale * np.tensordot(adapters[f"{name}_A"], adapters[f"{name}_B"], 1)
        found[name] = (weight.astype(wide) + added).astype(weight.dtype)
    return found


def save(path: str | os.PathLike[str], lora: Lora, adapters: Mapping[str, np.ndarray]) -> None:
    """Write adapters to a ``safetensors`` file; an old one is replaced at once, by a whole one.

    Raises
    ------
    OSError
        It cannot be written.
    """
    tensorfile.write(Path(path), adapters, {"lora": to_json(lora)})


def load(path: str | os.PathLike[str]) -> tuple[Lora, dict[str, np.ndarray]]:
    """Return what `save` wrote.

    Raises
    ------
    EinsummableError
        The file has no adapters.
    OSError
        It cannot be read.
    """
    file = tensorfile.read(Path(path))
    if "lora" not in file.metadata:
        raise EinsummableError(f"{path} has no adapters")
    return from_json(Lora, file.metadata["lora"]), dict(file.tensors)

"""LLaMA: a decoder for text (Touvron et al., 2023), written in the language layer by layer.

Contract: `text(config)` is the whole program from embedded tokens to the scores of the next one, with an
`input` line for every tensor, so that it can be planned without data.  Heads and pairs are dimensions of the
weights: ``WQ0[m,g,n,p,r]`` has for query head n of group g, which shares one head of keys and values, the
pairs p of coordinates r that the rotary embedding (Su et al., 2021) turns by an angle that grows with the
position.  A turn is a product with a 2×2 matrix whose entries are made from labels.

>>> print(text(Config(layers=0, dim=8, heads=2, hidden=16, seq=4, vocab=10)).splitlines()[-2])
scores[b,v] = rms[m](last[b,m]) * norm[m] * head[m,v]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from einsummable import dtypes
from einsummable.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a model that was trained on texts of `original` tokens turns pairs in longer ones.

    Wavelengths above ``original / low`` are stretched by `factor`, those below ``original / high`` are left
    alone, and between the two the stretch goes over smoothly (as in Llama 3.1).  With `low` and `high` both 0
    every wavelength is stretched: positions are divided by `factor` (Chen et al., 2023).
    """

    factor: float
    low: float = 0.0
    high: float = 0.0
    original: int = 8192


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of a model and of what it reads.

    Attributes
    ----------
    layers, dim, hidden, heads, kv_heads, vocab
        Of the model; `kv_heads` heads of keys and values are shared by equal groups of the `heads` of queries
        (0: each has its own).
    seq, batch
        How many tokens it reads at once, of how many texts.
    theta
        The base of the rotary embedding's wavelengths.
    eps
        What the mean square is raised by where a vector is scaled to unit mean square.
    dtype
        Of weights and activations, a name of the language.
    tied
        Whether the table of embeddings is the head too.
    scaling
        How the rotary embedding is stretched for longer texts.
    """

    layers: int = 32
    dim: int = 4096
    hidden: int = 11008
    heads: int = 32
    kv_heads: int = 0
    vocab: int = 32000
    seq: int = 4096
    batch: int = 1
    theta: float = 10000.0
    eps: float = 1e-5
    dtype: str = "f32"
    tied: bool = False
    scaling: Scaling | None = None

    @property
    def groups(self) -> int:
        """How many heads of keys and values there are."""
        return self.kv_heads or self.heads

    @property
    def pairs(self) -> int:
        """How many pairs of coordinates a head has."""
        return self.dim // self.heads // 2

    def check(self) -> None:
        """Raise `ShapeError` unless heads and pairs come out even."""
        if self.dim % (2 * self.heads):
            raise ShapeError(f"{self.heads} heads of dim {self.dim} have no pairs of coordinates")
        if self.heads % self.groups:
            raise ShapeError(f"{self.heads} heads cannot share {self.groups} heads of keys and values evenly")


#: The model with 6.7 billion weights, reading 4,096 tokens.
LLAMA_7B = Config()

#: The published models by name, reading 4,096 tokens.
MODELS = {
    "llama-7b": LLAMA_7B,
    "llama-13b": Config(layers=40, dim=5120, hidden=13824, heads=40),
    "llama-30b": Config(layers=60, dim=6656, hidden=17920, heads=52),
    "llama-65b": Config(layers=80, dim=8192, hidden=22016, heads=64),
    "llama-3-8b": Config(hidden=14336, kv_heads=8, vocab=128256, theta=500000.0),
}

RMS = "def rms[m](x) = x * rsqrt(mean[m](square(x)) + {eps!r})\n"

_TURN = """\
# by how much a pair of coordinates is turned at every position, as 2×2 matrices
extent t = {seq}; extent p = {pairs}; extent r = 2; extent s = 2
angle[t,p]    = t * {frequency}
turn[t,p,r,s] = {dtype}(where(r == s, cos(angle[t,p]), where(r < s, sin(angle[t,p]), -sin(angle[t,p]))))
"""

_LAYER = """\
# layer {n}: attention
A{n}[b,t,m]       = rms[m](X{n}[b,t,m]) * norm_a{n}[m]
Q{n}[b,t,g,n,p,s] = ({WQ}) * turn[t,p,r,s]
K{n}[b,t,g,p,s]   = ({WK}) * turn[t,p,r,s]
V{n}[b,t,g,p,r]   = {WV}
S{n}[b,g,n,q,k]   = where(k <= q, sum[p,r] Q{n}[b,q,g,n,p,r] * K{n}[b,k,g,p,r] * {scale!r}, -inf)
P{n}[b,g,n,q,k]   = softmax[k](S{n}[b,g,n,q,k])
O{n}[b,q,g,n,p,r] = P{n}[b,g,n,q,k] * V{n}[b,k,g,p,r]
Y{n}[b,t,m]       = X{n}[b,t,m] + {WO}
# layer {n}: feed-forward
F{n}[b,t,m]       = rms[m](Y{n}[b,t,m]) * norm_f{n}[m]
H{n}[b,t,h]       = silu({W1}) * ({W3})
X{after}[b,t,m]       = Y{n}[b,t,m] + {W2}
"""


@dataclass(frozen=True, slots=True)
class Projection:
    """A product of activations with a weight: its name in a layer, what it reads, labels summed and left."""

    name: str
    reads: str
    summed: tuple[str, ...]
    left: tuple[str, ...]

    def operands(self, n: int) -> str:
        """Return the product in layer `n`, as a line says it."""
        weight = f"{self.name}{n}[{','.join((*self.summed, *self.left))}]"
        return f"{self.reads}{n}[b,t,{','.join(self.summed)}] * {weight}"


_HEAD = ("g", "n", "p", "r")

#: The projections of a layer by the names of their weights.
PROJECTIONS = {
    made.name: made
    for made in (
        Projection("WQ", "A", ("m",), _HEAD),
        Projection("WK", "A", ("m",), ("g", "p", "r")),
        Projection("WV", "A", ("m",), ("g", "p", "r")),
        Projection("WO", "O", _HEAD, ("m",)),
        Projection("W1", "F", ("m",), ("h",)),
        Projection("W3", "F", ("m",), ("h",)),
        Projection("W2", "H", ("h",), ("m",)),
    )
}

_END = """\
# the scores of the token that comes next
last[b,m]   = X{layers}[b,{last},m]
scores[b,v] = rms[m](last[b,m]) * norm[m] * head[m,v]
output scores
"""


def shapes(config: Config) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return the labels and extents of every input, by name."""
    config.check()
    m, h = ("m", config.dim), ("h", config.hidden)
    group, each = ("g", config.groups), ("n", config.heads // config.groups)
    pair = (("p", config.pairs), ("r", 2))
    found = {"X0": (("b", config.batch), ("t", config.seq), m)}
    for n in range(config.layers):
        found |= {
            f"norm_a{n}": (m,),
            f"WQ{n}": (m, group, each, *pair),
            f"WK{n}": (m, group, *pair),
            f"WV{n}": (m, group, *pair),
            f"WO{n}": (group, each, *pair, m),
            f"norm_f{n}": (m,),
            f"W1{n}": (m, h),
            f"W3{n}": (m, h),
            f"W2{n}": (h, m),
        }
    return found | {"norm": (m,), "head": (m, ("v", config.vocab))}


def frequency(config: Config) -> str:
    """Return the expression for the angle by which a step turns the pair p."""
    base = f"exp(-p * {float(np.log(config.theta) / config.pairs)!r})"
    match config.scaling:
        case None:
            return base
        case Scaling(factor, low, high) if low == high:
            return f"{base} / {float(factor)!r}"
        case Scaling(factor, low, high, original):
            # How often a pair turns within the texts of the training, from 0 at `low` to 1 at `high`.
            turns = f"{base} * {float(original / (2 * np.pi))!r}"
            kept = f"minimum(maximum(({turns} - {float(low)!r}) / {float(high - low)!r}, 0.0), 1.0)"
            return f"{base} * ({kept} + (1 - {kept}) / {float(factor)!r})"


def declared(given: Mapping[str, tuple[tuple[str, int], ...]], dtype: str) -> str:
    """Return an ``input`` line for each of `given`, labels and extents by name."""
    lines = []
    for name, labels in given.items():
        extents = ", ".join(f"{label}={extent}" for label, extent in labels)
        lines.append(f"input {name}[{extents}] {dtype}\n")
    return "".join(lines)


def turns(config: Config, dtype: str) -> str:
    """Return the lines that make ``turn``, by how much each pair is turned at every position."""
    angle = {"pairs": config.pairs, "frequency": frequency(config)}
    return _TURN.format(seq=config.seq, dtype=dtype, **angle)


def layer(config: Config, n: int, products: Mapping[str, str] | None = None) -> str:
    """Return the lines of layer `n`, from ``X{n}`` to the X after it.

    Parameters
    ----------
    products
        Expressions in place of products with weights, by the names of `PROJECTIONS`.
    """
    plain = {name: made.operands(n) for name, made in PROJECTIONS.items()}
    plain |= {name: f"sum[m] {plain[name]}" for name in ("W1", "W3")}
    scale = float(1 / np.sqrt(2 * config.pairs))
    return _LAYER.format(n=n, after=n + 1, scale=scale, **plain | dict(products or {}))


def text(config: Config = LLAMA_7B, *, scores: bool = True) -> str:
    """Return the program for `config`.

    Parameters
    ----------
    scores
        Whether it ends in the scores of the next token, for which the last layer computes only what the last
        position needs; else in what the last layer leaves at all positions.

    Raises
    ------
    ShapeError
        The heads do not come out even.
    """
    given = {k: v for k, v in shapes(config).items() if scores or k not in ("norm", "head")}
    lines = [RMS.format(eps=config.eps), declared(given, config.dtype)]
    if config.layers:
        lines.append(turns(config, config.dtype))
    lines += [layer(config, n) for n in range(config.layers)]
    end = _END.format(last=config.seq - 1, layers=config.layers) if scores else f"output X{config.layers}\n"
    return "".join([*lines, end])


def inputs(config: Config, seed: int = 0) -> dict[str, np.ndarray]:
    """Return random inputs for `config`: normally distributed, weights scaled by their rows."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, labels in shapes(config).items():
        shape = tuple(extent for _, extent in labels)
        rows = {"WO": np.prod(shape[:-1])}.get(name[:2], shape[0])
        scale = 1.0 if name == "X0" or name.startswith("norm") else float(rows) ** -0.5
        found[name] = (scale * rng.standard_normal(shape)).astype(dtypes.parse(config.dtype))
    return found

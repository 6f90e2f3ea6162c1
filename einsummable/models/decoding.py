"""LLaMA as it writes: programs from tokens to scores that keep keys and values from one token to the next.

Contract: `text(config, tokens)` is the program that reads so many tokens of every text of a batch.  With one
token it takes the keys and values of all positions so far, ``pastK0[b,s,g,p,r]`` and so on for `config.seq`
positions, and answers with them and those of this token, ``K0`` and so on: one step of decoding, which writes
one position of each and leaves the rest where it is if the past is given up.  With more it starts a text.
Weights are those of `llama.shapes` and the table ``embed``; activations are float32 whatever the dtype of the
weights.

>>> print(text(Config(layers=1, dim=8, heads=2, hidden=16, seq=4, vocab=10), 1).splitlines()[-1])
output scores, K0, V0
"""

from __future__ import annotations

from einsummable.models import llama
from einsummable.models.llama import Config

#: With `t` for ",t" and nothing where one token of each text is read.
_TOKENS = """\
input tok[b={batch}{t}{tokens}] i32
input at[b={batch}{t}{tokens}] i32
extent p = {pairs}; extent o = 2; extent r = 2
X0[b{t},m] = f32(embed[tok[b{t}],m])
angle[b{t},p] = at[b{t}] * {frequency}
side[b{t},p,r,o] = where(r < o, sin(angle[b{t},p]), -sin(angle[b{t},p]))
turn[b{t},p,r,o] = f32(where(r == o, cos(angle[b{t},p]), side[b{t},p,r,o]))
"""

_READ = """\
# layer {n}: queries, keys and values of what is read now
A{n}[b{t},m]       = rms[m](X{n}[b{t},m]) * norm_a{n}[m]
Q{n}[b{t},g,n,p,o] = (A{n}[b{t},m] * WQ{n}[m,g,n,p,r]) * turn[b{t},p,r,o]
k{n}[b{t},g,p,o]   = (A{n}[b{t},m] * WK{n}[m,g,p,r]) * turn[b{t},p,r,o]
v{n}[b{t},g,p,r]   = A{n}[b{t},m] * WV{n}[m,g,p,r]
"""

#: One token is written among those before it, and attends to all up to itself.
_APPEND = """\
K{n}[b,s,g,p,r]   = where(s == at[b], k{n}[b,g,p,r], pastK{n}[b,s,g,p,r])
V{n}[b,s,g,p,r]   = where(s == at[b], v{n}[b,g,p,r], pastV{n}[b,s,g,p,r])
S{n}[b,g,n,s]     = where(s <= at[b], sum[p,r] Q{n}[b,g,n,p,r] * K{n}[b,s,g,p,r] * {scale!r}, -inf)
P{n}[b,g,n,s]     = softmax[s](S{n}[b,g,n,s])
O{n}[b,g,n,p,r]   = P{n}[b,g,n,s] * V{n}[b,s,g,p,r]
"""

#: The tokens that start a text attend to one another; the places after them are still empty.
_START = """\
K{n}[b,c,g,p,r]   = concat[c](k{n}[b,c,g,p,r], empty[b,c,g,p,r])
V{n}[b,c,g,p,r]   = concat[c](v{n}[b,c,g,p,r], empty[b,c,g,p,r])
S{n}[b,g,n,t,c]   = where(c <= t, sum[p,r] Q{n}[b,t,g,n,p,r] * k{n}[b,c,g,p,r] * {scale!r}, -inf)
P{n}[b,g,n,t,c]   = softmax[c](S{n}[b,g,n,t,c])
O{n}[b,t,g,n,p,r] = P{n}[b,g,n,t,c] * v{n}[b,c,g,p,r]
"""

_FEED_FORWARD = """\
Y{n}[b{t},m]       = X{n}[b{t},m] + O{n}[b{t},g,n,p,r] * WO{n}[g,n,p,r,m]
# layer {n}: feed-forward
F{n}[b{t},m]       = rms[m](Y{n}[b{t},m]) * norm_f{n}[m]
H{n}[b{t},h]       = silu(sum[m] F{n}[b{t},m] * W1{n}[m,h]) * (sum[m] F{n}[b{t},m] * W3{n}[m,h])
X{after}[b{t},m]       = Y{n}[b{t},m] + H{n}[b{t},h] * W2{n}[h,m]
"""


def shapes(config: Config) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return the labels and extents of every weight, by name."""
    found = {"embed": (("v", config.vocab), ("m", config.dim))}
    found |= {name: labels for name, labels in llama.shapes(config).items() if name != "X0"}
    if config.tied:
        del found["head"]
    return found


def caches(config: Config) -> dict[str, tuple[int, ...]]:
    """Return the shape of the keys and the values of every layer, by name: ``K0``, ``V0`` and so on."""
    shape = (config.batch, config.seq, config.groups, config.pairs, 2)
    return {f"{kind}{n}": shape for n in range(config.layers) for kind in "KV"}


def text(config: Config, tokens: int, *, every: bool = False) -> str:
    """Return the program that reads `tokens` tokens of every text.

    Parameters
    ----------
    config
        The model; `seq` is the number of positions of which keys and values are kept.
    tokens
        1 for a step, more to start a text.
    every
        Whether to answer with the scores after every token, ``scores[b,t,v]``, instead of those after token
        number ``end[b]``, ``scores[b,v]``.

    Raises
    ------
    ShapeError
        The heads do not come out even.
    """
    config.check()
    scale = float((2 * config.pairs) ** -0.5)
    lines = [_inputs(config, tokens), llama.RMS.format(eps=config.eps)]
    angle = {"pairs": config.pairs, "frequency": llama.frequency(config)}
    t, extent = (",t", f"={tokens}") if tokens > 1 else ("", "")
    lines.append(_TOKENS.format(batch=config.batch, t=t, tokens=extent, **angle))
    if tokens > 1 and config.layers:
        empty = f"extent b = {config.batch}; extent e = {config.seq - tokens}; extent g = {config.groups}"
        lines.append(f"{empty}\nempty[b,e,g,p,r] = f32(0)\n")
    attend = _APPEND if tokens == 1 else _START
    for n in range(config.layers):
        lines += [part.format(n=n, after=n + 1, scale=scale, t=t) for part in (_READ, attend, _FEED_FORWARD)]
    return "".join([*lines, _end(config, tokens, every)])


def _inputs(config: Config, tokens: int) -> str:
    lines = [
        f"input {name}[{', '.join(f'{label}={extent}' for label, extent in labels)}] {config.dtype}\n"
        for name, labels in shapes(config).items()
    ]
    for name, shape in caches(config).items() if tokens == 1 else ():
        extents = ", ".join(f"{label}={n}" for label, n in zip("bsgpr", shape, strict=True))
        lines.append(f"input past{name}[{extents}] f32\n")
    return "".join(lines)


def _end(config: Config, tokens: int, every: bool) -> str:
    head = "embed[v,m]" if config.tied else "head[m,v]"
    last = f"X{config.layers}"
    if every:
        scores = f"scores[b,t,v] = rms[m]({last}[b,t,m]) * norm[m] * {head}\n"
    elif tokens == 1:
        scores = f"scores[b,v] = rms[m]({last}[b,m]) * norm[m] * {head}\n"
    else:
        scores = (
            f"input end[b={config.batch}] i32\n"
            f"last[b,m] = {last}[b,end[b],m]\n"
            f"scores[b,v] = rms[m](last[b,m]) * norm[m] * {head}\n"
        )
    return scores + "output " + ", ".join(["scores", *caches(config)]) + "\n"

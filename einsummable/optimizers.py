"""Optimisers as programs in the language: for every weight a few lines that make the next one.

Contract: an `Optimizer` is text.  `update` writes its lines for one weight ``W``: they read ``W``, its
gradient ``grad_W``, the state that the optimiser keeps of it (``m_W``), the learning rate ``lr`` and the
number of the step ``step``, from 1; they define ``next_W`` and the next state (``next_m_W``).

>>> print(sgd().update("W", ("i", "j"), np.dtype(np.float32)))
next_W[i,j] = W[i,j] - lr * grad_W[i,j]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np

from einsummable import dtypes
from einsummable.errors import UnknownNameError, nearest


@dataclass(frozen=True, slots=True)
class Optimizer:
    """A rule that makes the next weights.

    Attributes
    ----------
    name
        What it is called.
    rules
        For each state its name and the expression of its next value; last, under the name ``w``, that of the
        weight.  In braces: ``w``, the gradient ``g``, a state ``m``, its next value ``next_m``, constants.
    constants
        Numbers by name.
    """

    name: str
    rules: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, float], ...] = ()

    @property
    def state(self) -> tuple[str, ...]:
        """What is kept of every weight: tensors of its shape, zeros at first."""
        return tuple(name for name, _ in self.rules if name != "w")

    def update(self, weight: str, labels: Sequence[str], dtype: np.dtype) -> str:
        """Return the lines that make the next value of a weight and of its state.

        Parameters
        ----------
        labels
            One for each dimension.
        dtype
            Of the weight.  A weight of 16 bits is updated, and its state kept, in 32.
        """
        at = f"[{','.join(labels)}]" if labels else ""
        wide = dtypes.name(state_dtype(dtype))
        half = wide != dtypes.name(dtype)
        names = {
            "w": f"f32({weight}{at})" if half else f"{weight}{at}",
            "g": f"f32(grad_{weight}{at})" if half else f"grad_{weight}{at}",
        }
        for name in self.state:
            names |= {name: f"{name}_{weight}{at}", f"next_{name}": f"next_{name}_{weight}{at}"}
        lines = []
        for name, rule in self.rules:
            value = rule.format(**names, **{key: repr(number) for key, number in self.constants})
            if name == "w" and half:
                value = f"{dtypes.name(dtype)}({value})"
            target = weight if name == "w" else f"{name}_{weight}"
            lines.append(f"next_{target}{at} = {value}")
        return "\n".join(lines)


def state_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which the state of a weight is kept."""
    return dtypes.F32 if dtype.itemsize < dtypes.F32.itemsize else dtype


def free_labels(text: str) -> list[str]:
    """Return labels that the text uses for nothing, `i` first."""
    words = set(re.findall(r"\w+", text))
    letters = ascii_lowercase[8:] + ascii_lowercase[:8]
    names = (letter + number for number in ("", *map(str, range(1, 100))) for letter in letters)
    return [name for name in names if name not in words]


def sgd() -> Optimizer:
    """Return gradient descent: every weight goes against its gradient."""
    return Optimizer("sgd", (("w", "{w} - lr * {g}"),))


def momentum(mu: float = 0.9) -> Optimizer:
    """Return gradient descent with momentum (Polyak 1964).

    Parameters
    ----------
    mu
        How much of the last step is in the next.
    """
    rules = (("m", "{mu} * {m} + {g}"), ("w", "{w} - lr * {next_m}"))
    return Optimizer("momentum", rules, (("mu", float(mu)),))


def adamw(beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, decay: float = 0.01) -> Optimizer:
    """Return Adam with decoupled weight decay (Loshchilov and Hutter 2019).

    Parameters
    ----------
    beta1, beta2
        How much of the means of the gradient and of its square is kept from step to step.
    eps
        Added to the root of the mean square.
    decay
        What part of a weight is taken off it in every step, times the learning rate.
    """
    mean, root = "{next_m} / (1 - {beta1}**step)", "sqrt({next_v} / (1 - {beta2}**step))"
    rules = (
        ("m", "{beta1} * {m} + (1 - {beta1}) * {g}"),
        ("v", "{beta2} * {v} + (1 - {beta2}) * {g}**2"),
        ("w", f"{{w}} - lr * ({{decay}} * {{w}} + {mean} / ({root} + {{eps}}))"),
    )
    constants = {"beta1": beta1, "beta2": beta2, "eps": eps, "decay": decay}
    return Optimizer("adamw", rules, tuple((name, float(number)) for name, number in constants.items()))


_NAMED = {"sgd": sgd, "momentum": momentum, "adamw": adamw}


def named(name: str) -> Optimizer:
    """Return the optimiser of that name; `UnknownNameError` if there is none."""
    if name not in _NAMED:
        notes = nearest(name, _NAMED) or (f"there are {', '.join(_NAMED)}",)
        raise UnknownNameError(f"there is no optimizer called {name!r}", notes=notes)
    return _NAMED[name]()

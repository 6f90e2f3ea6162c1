"""Choosing the next token from scores.

Contract: a `Sampler` is greedy at temperature 0; otherwise it draws from ``softmax(scores / temperature)``,
with `top_p` below 1 from its most likely tokens alone that together have at least that probability (Holtzman
et al., *The curious case of neural text degeneration*, 2020).  Equal seeds draw equal tokens.
"""

from __future__ import annotations

import numpy as np

from einsummable.errors import PlanError


class Sampler:
    """Chooses tokens.

    Parameters
    ----------
    temperature
        0 for the most likely token, 1 for the model's own probabilities, more for flatter ones.
    top_p
        Above 0, up to 1.
    seed
        Of the generator of random numbers; None for another one every time.

    >>> Sampler()(np.array([[0.0, 2.0, 1.0]])).tolist()
    [1]
    """

    def __init__(self, temperature: float = 0.0, top_p: float = 1.0, seed: int | None = None) -> None:
        if not 0 <= temperature < np.inf:
            raise PlanError(f"a temperature is a number from 0, not {temperature}")
        if not 0 < top_p <= 1:
            raise PlanError(f"top_p is above 0 and at most 1, not {top_p}")
        self.temperature, self.top_p = temperature, top_p
        self._rng = np.random.default_rng(seed)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return a token, int64, for each row of `scores`, which is (texts, vocabulary)."""
        if self.temperature == 0:
            return scores.argmax(axis=-1)
        return np.array([self._draw(row) for row in scores.astype(np.float64)], np.int64)

    def _draw(self, scores: np.ndarray) -> int:
        weights = np.exp((scores - scores.max()) / self.temperature)
        order = np.argsort(-weights, kind="stable")
        sums = np.cumsum(weights[order])
        if self.top_p < 1:
            # The token that reaches the threshold belongs to the nucleus.
            sums = sums[: int(np.searchsorted(sums, self.top_p * sums[-1])) + 1]
        return int(order[np.searchsorted(sums, self._rng.random() * sums[-1], side="right")])

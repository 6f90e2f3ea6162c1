"""The matrix chain (A·B) + (C·(D·E)): the running example of the EinDecomp paper.

Contract: a program in the language, inputs for it, and what numpy answers.
"""

from __future__ import annotations

import numpy as np

TEXT = """\
AB[i,k]  = A[i,j] * B[j,k]
DE[l,k]  = D[l,m] * E[m,k]
CDE[i,k] = C[i,l] * DE[l,k]
Z[i,k]   = AB[i,k] + CDE[i,k]
output Z
"""


def shapes(size: int, *, skewed: bool = False) -> dict[str, tuple[int, int]]:
    """Return the shapes of A … E.

    Parameters
    ----------
    size
        S.  Uniform: all S×S.  Skewed: A S×S/10, B S/10×S, C S×S/10, D S/10×10·S, E 10·S×S.
    """
    thin, wide = (size // 10, 10 * size) if skewed else (size, size)
    return {"A": (size, thin), "B": (thin, size), "C": (size, thin), "D": (thin, wide), "E": (wide, size)}


def inputs(size: int, *, skewed: bool = False, seed: int = 0) -> dict[str, np.ndarray]:
    """Return float32 matrices A … E of `shapes`, standard normal."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.standard_normal(shape, np.float32) for name, shape in shapes(size, skewed=skewed).items()
    }


def reference(A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, E: np.ndarray) -> np.ndarray:
    """Return the chain as numpy computes it."""
    return A @ B + C @ (D @ E)

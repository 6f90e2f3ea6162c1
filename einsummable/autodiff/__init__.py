"""Reverse-mode differentiation of EinGraphs.

Layers inside: ``derivatives`` (rules of scalar functions) ‹ ``formula`` (tensors that are no nodes yet) ‹
``others`` (products of all factors but one) ‹ ``rules`` (how each kind of node hands its cotangent on) ‹
``sweep`` (the pass over a graph).
"""

from einsummable.autodiff.sweep import check_differentiable, differentiate, gradients

__all__ = ["check_differentiable", "differentiate", "gradients"]

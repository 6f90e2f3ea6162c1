"""Sums of products: what may be taken out of them.

Contract: works on `Terms` only.  `split_scale` takes factors without labels out of a sum, so that what is
left is a contraction that a matrix multiplication can do and the factor joins the expression around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod

from einsummable.dtypes import kind, promote
from einsummable.language.terms import Apply, Place, Terms


@dataclass(frozen=True, slots=True)
class Product:
    """``±(over[0] * over[1] * …) / (under[0] * …)``."""

    negative: bool
    over: tuple[int, ...]
    under: tuple[int, ...]


def flatten(terms: Terms, i: int, is_leaf: Callable[[int], bool]) -> Product:
    """Return term `i` as a product of factors, none of them a product itself unless `is_leaf` says so."""
    negative, over, under = False, [], []
    todo = [(i, False)]
    while todo:
        at, inverse = todo.pop()
        match terms[at]:
            case Apply("mul", (a, b)) if not is_leaf(at):
                todo += [(b, inverse), (a, inverse)]
            case Apply("div", (a, b)) if not is_leaf(at):
                todo += [(b, not inverse), (a, inverse)]
            case Apply("neg", (a,)) if not is_leaf(at):
                negative = not negative
                todo.append((a, inverse))
            case _:
                (under if inverse else over).append(at)
    return Product(negative, tuple(over), tuple(under))


def build(terms: Terms, product: Product, place: Place) -> int:
    """Append `product` as a term."""
    one = () if product.over else (terms.literal(1, place),)
    first, *rest = *one, *product.over
    for factor in rest:
        first = terms.apply("mul", (first, factor), place)
    for factor in product.under:
        first = terms.apply("div", (first, factor), place)
    return terms.apply("neg", (first,), place) if product.negative else first


@dataclass(frozen=True, slots=True)
class Scaled:
    """A sum of products with a factor taken out: `scale` times the sum of ``over / under`` over `labels`."""

    labels: tuple[str, ...]
    scale: Product
    rest: Product
    place: Place


def split_scale(terms: Terms, labels: Sequence[str], body: int, place: Place) -> Scaled | None:
    """Return `body`, summed over `labels`, with its factors without labels apart; None where that is no gain.

    It is none where fewer than two factors are left, or where it would change the dtype of the sum.
    """
    product = flatten(terms, body, lambda _: False)
    over, under = ([i for i in side if terms.labels[i]] for side in (product.over, product.under))
    scale_over, scale_under = (
        tuple(i for i in side if not terms.labels[i]) for side in (product.over, product.under)
    )
    if len(over) + len(under) < 2 or not (product.negative or scale_over or scale_under):
        return None
    rest = Product(False, tuple(over), tuple(under))
    type_ = promote(terms.types[i] for i in (*over, *under))
    whole = terms.types[body]
    if type_ != whole or type_.weak or kind(type_.dtype) == "b":
        return None
    return Scaled(tuple(labels), Product(product.negative, scale_over, scale_under), rest, place)


def apply_scale(terms: Terms, scale: Product, i: int, place: Place) -> int:
    """Append `scale` times term `i`."""
    if not scale.over:
        return build(terms, Product(scale.negative, (i,), scale.under), place)
    factor = build(terms, Product(scale.negative, scale.over, ()), place)
    return build(terms, Product(False, (factor, i), scale.under), place)


def size(labels: AbstractSet[str] | Sequence[str], extents: Mapping[str, int]) -> int:
    """Return the number of elements of a tensor with these labels, each once."""
    return prod(extents[label] for label in set(labels))

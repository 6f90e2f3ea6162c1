"""The text of a program as segments that say what they belong to, and how labels are cut.

Contract: the segments of `formula` joined are the text again.  A segment has the keys of all nodes' spans
that it lies in, the innermost first; one that is a label has the key of that label of its node before these,
and the parts into which the node cuts it.  Programs that no text made get one line a node.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from itertools import pairwise
from typing import Any

from einsummable.errors import Span
from einsummable.graph import EinGraph
from einsummable.language.einstein import labels_of_line
from einsummable.language.parser import parse
from einsummable.language.syntax import Define
from einsummable.nodes import Input
from einsummable.planner.plan import Plan
from einsummable.planner.strategies import shared_axes
from einsummable.views import links, naming

#: Of cuts: in turn, for the dimensions that are cut anywhere.  All are seen on a white and on a black page.
COLOURS = ("#cc6677", "#44aa99", "#b38f00", "#6699cc", "#aa4499", "#5f9f3f", "#ee8866", "#999999")


def cut_colours(plan: Plan) -> dict[tuple[int, str], str]:
    """Return the colour of every label that is cut, by node: a dimension has one wherever it passes."""
    axes = shared_axes(plan.graph)
    found: dict[tuple[int, str], str] = {}
    of_axis: dict[tuple[int, str], str] = {}
    for i, cuts in enumerate(plan.partitions):
        for label, parts in zip(cuts.labels, cuts.parts, strict=True):
            if parts > 1:
                axis = axes[i, label]
                found[i, label] = of_axis.setdefault(axis, COLOURS[len(of_axis) % len(COLOURS)])
    return found


def formula(plan: Plan) -> list[dict[str, Any]]:
    """Return the segments of the text: ``text``, ``keys``, for labels ``parts``, for cut ones ``colour``."""
    graph = plan.graph
    if not graph.text:
        return _listed(graph)
    labels, colours = _labels(plan), cut_colours(plan)
    spans = sorted({n.origin.span for n in graph.nodes if n.origin.span is not None}, key=_order)
    borders = {0, len(graph.text), *(x for span in (*spans, *labels) for x in (span.start, span.stop))}
    segments = []
    for start, stop in pairwise(sorted(borders)):
        around = [span for span in spans if span.start <= start and stop <= span.stop]
        keys = [links.span_key(span.start, span.stop) for span in reversed(around)]
        segment: dict[str, Any] = {"text": graph.text[start:stop], "keys": keys}
        cut = labels.get(Span(start, stop))
        if cut is not None:
            segment |= {"keys": [links.label_key(*cut[:2]), *keys], "parts": cut[2]}
            segment |= {"colour": colours[cut[:2]]} if cut[2] > 1 else {}
        segments.append(segment)
    return segments


def _order(span: Span) -> tuple[int, int]:
    return span.start, -span.stop


def _labels(plan: Plan) -> dict[Span, tuple[int, str, int]]:
    """Return for each place of a label in the text the node, the label and its parts."""
    graph = plan.graph
    of_line: dict[str, list[int]] = defaultdict(list)
    for i, node in enumerate(graph.nodes):
        if not isinstance(node, Input) and node.origin.span is not None:
            of_line[node.origin.name].append(i)
    found = {}
    for line, label, place in _places(graph.text):
        i = _owner(graph, of_line[line], label, place)
        if i is not None:
            found[place] = (i, label, plan.partitions[i][label])
    return found


@lru_cache(maxsize=16)
def _places(text: str) -> tuple[tuple[str, str, Span], ...]:
    """Return the name of the line, the label and the place of every label in a program."""
    defined = [s for s in parse(text).statements if isinstance(s, Define)]
    return tuple(
        (define.name, label, place)
        for define in defined
        for label, places in labels_of_line(define).items()
        for place in places
    )


def _owner(graph: EinGraph, nodes: list[int], label: str, place: Span) -> int | None:
    """Return the node of the smallest part of the line around `place` that loops over `label`."""
    sizes = []
    for i in nodes:
        span = graph.nodes[i].origin.span
        if span.start <= place.start and place.stop <= span.stop and label in dict(graph.nodes[i].space):
            sizes.append((span.stop - span.start, i))
    return min(sizes)[1] if sizes else None


def _listed(graph: EinGraph) -> list[dict[str, Any]]:
    lines = []
    for i, node in enumerate(graph.nodes):
        if not isinstance(node, Input):
            text = f"{naming.tensor(graph, i)} = {naming.formula(graph, i)}\n"
            lines.append({"text": text, "keys": [links.node_key(i)]})
    return lines

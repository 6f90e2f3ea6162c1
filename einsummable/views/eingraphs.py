"""The picture of an EinGraph: what depends on what.

Contract: `graph_view` is data without coordinates; `draw` gives it a layout (``dot`` where there is one, ours
where there is not) and a look that is the same for both.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import prod
from typing import Any

from einsummable import dtypes
from einsummable.errors import Span
from einsummable.graph import EinGraph
from einsummable.nodes import Einsummable, Input, Node
from einsummable.views import amounts, dot, framed, links, naming
from einsummable.views.colours import INK, PAPER
from einsummable.views.drawing import Drawing, shorten, text_width
from einsummable.views.layered import Edge

_SIZE = 12
_WIDEST = 230.0
_OTHERS = (
    ("Reshape", "reshape"),
    ("Select", "selection"),
    ("Concat", "concatenation"),
    ("Gather", "gather"),
)
#: Beyond this many nodes dot takes longer than a reader waits.
_DOT_LIMIT = 250

#: A use of a macro: its name, the name of its line, the place of the call.
_Use = tuple[str, str, Span | None]


def graph_view(graph: EinGraph) -> dict[str, Any]:
    """Return the nodes, edges and macros of `graph` as a view."""
    outputs: dict[int, list[str]] = defaultdict(list)
    for name, o in graph.outputs:
        outputs[o].append(name)
    nodes = []
    for i, node in enumerate(graph.nodes):
        span = node.origin.span
        nodes.append(
            {
                "id": i,
                "type": type(node).__name__,
                "name": graph.name_of(i),
                "labels": list(naming.labels(graph, i)),
                "space": [[label, n] for label, n in node.space],
                "formula": naming.formula(graph, i),
                "aggregate": node.aggregate if isinstance(node, Einsummable) else None,
                "aggregated": list(node.aggregated) if isinstance(node, Einsummable) else [],
                "shape": list(node.shape),
                "dtype": dtypes.name(node.dtype),
                "bytes": prod(node.shape) * node.dtype.itemsize,
                "outputs": outputs[i],
                "span": [span.start, span.stop] if span else None,
            }
        )
    edges = [
        {
            "source": j,
            "target": i,
            "input": k,
            "labels": list(naming.read_labels(node, k)),
            "bytes": nodes[j]["bytes"],
        }
        for i, node in enumerate(graph.nodes)
        for k, j in enumerate(node.inputs)
    ]
    view = {"kind": "graph", "text": graph.text, "nodes": nodes, "edges": edges, "macros": _macros(graph)}
    return view | {"caption": _caption(graph, view)}


def _caption(graph: EinGraph, view: dict[str, Any]) -> str:
    inputs = [n for n in view["nodes"] if n["type"] == "Input"]
    made = Counter(n["type"] for n in view["nodes"])
    contractions = sum(isinstance(n, Einsummable) and n.is_contraction for n in graph.nodes)
    largest = max(view["nodes"], key=lambda n: n["bytes"], default=None)
    words = f"{amounts.many(len(inputs), 'input')} of {amounts.nbytes(sum(n['bytes'] for n in inputs))}, "
    words += amounts.many(made["Einsummable"], "einsummable")
    words += f" of which {amounts.many(contractions, 'contraction')}" if contractions else ""
    words += "".join(f", {amounts.many(made[kind], noun)}" for kind, noun in _OTHERS if made[kind])
    if largest is not None:
        words += f"; the largest tensor is {largest['name']} with {amounts.nbytes(largest['bytes'])}"
    return words


def _macros(graph: EinGraph) -> list[dict[str, Any]]:
    """Return the connected sets of nodes that one use of a macro made, where there is more than one node."""
    keys = [_macro_key(node) for node in graph.nodes]
    used = set(keys) - {None}
    for i, node in enumerate(graph.nodes):
        if keys[i] is None:
            keys[i] = next((key for key in used if _is_whole_line(graph.text, node, key)), None)
    root = list(range(len(graph.nodes)))

    def find(i: int) -> int:
        while root[i] != i:
            i = root[i]
        return i

    for i, node in enumerate(graph.nodes):
        for j in node.inputs:
            if keys[i] is not None and keys[i] == keys[j]:
                root[find(i)] = find(j)
    members: dict[int, list[int]] = defaultdict(list)
    for i, key in enumerate(keys):
        if key is not None and not isinstance(graph.nodes[i], Input):
            members[find(i)].append(i)
    return [{"name": keys[r][0], "nodes": found} for r, found in members.items() if len(found) > 1]


def _macro_key(node: Node) -> _Use | None:
    return (node.origin.macro, node.origin.name, node.origin.span) if node.origin.macro else None


def _is_whole_line(text: str, node: Node, use: _Use) -> bool:
    """Return whether `node` ends a line whose right side is nothing but this use of a macro."""
    line, (_, name, call) = node.origin.span, use
    if line is None or call is None or node.origin.name != name or line.stop != call.stop:
        return False
    return text[line.start : call.start].rstrip().endswith("=")


# ------------------------------------------------------------------------------------------ text


def text(view: dict[str, Any]) -> str:
    """Return the graph as a table: tensor, formula, shape, size; macros bracketed."""
    macro_of = {i: m["name"] for m in view["macros"] for i in m["nodes"]}
    rows = []
    for node in view["nodes"]:
        mark = "│ " if node["id"] in macro_of else "  "
        what = node["formula"] or "input"
        what += f"   ({macro_of[node['id']]})" if node["id"] in macro_of else ""
        what += f"   → {', '.join(node['outputs'])}" if node["outputs"] else ""
        size = f"{amounts.shape(node['shape'])} {node['dtype']}"
        rows.append((mark + _tensor(node), size, amounts.nbytes(node["bytes"]), what))
    widths = [max((len(row[c]) for row in rows), default=0) for c in range(3)]
    lines = [view["caption"]]
    for name, size, nbytes, what in rows:
        lines.append(f"{name:{widths[0]}}  {size:{widths[1]}}  {nbytes:>{widths[2]}}  {what}".rstrip())
    return "\n".join(lines)


def _tensor(node: dict[str, Any]) -> str:
    return node["name"] + (f"[{','.join(node['labels'])}]" if node["labels"] else "")


# --------------------------------------------------------------------------------------- picture


def draw(view: dict[str, Any]) -> Drawing:
    """Draw a view of `graph_view`."""
    nodes, edges = view["nodes"], view["edges"]
    faces = [_face(node) for node in nodes]
    labels = [_edge_label(edge) for edge in edges]
    wires = [
        Edge(e["source"], e["target"], (max(text_width(line, _SIZE) for line in lines) + 8, 34))
        for e, lines in zip(edges, labels, strict=True)
    ]
    groups = [m["nodes"] for m in view["macros"]]
    sizes = [size for _, _, size in faces]
    layout = dot.lay_out(sizes, wires, groups) if len(nodes) <= _DOT_LIMIT else None
    layout = layout or framed.lay_out(sizes, wires, groups)
    d = Drawing()
    for macro, frame in zip(view["macros"], layout.frames, strict=True):
        if frame is not None:
            with d.group(
                f"{macro['name']}: {amounts.many(len(macro['nodes']), 'node')}", macro=macro["name"]
            ):
                d.rect(
                    frame.left, frame.top, frame.width, frame.height,
                    radius=8, fill=INK, fill_opacity=0.05, stroke=INK, stroke_opacity=0.25, dash="4 3",
                )  # fmt: skip
                title = shorten(macro["name"], frame.width - 16, _SIZE, bold=True)
                d.text(frame.left + 10, frame.top + 15, title, size=_SIZE, bold=True, muted=True)
    for edge, route in zip(edges, layout.routes, strict=True):
        with d.group(
            _edge_title(edge, nodes),
            source=edge["source"],
            target=edge["target"],
            keys=links.edge_key(edge["source"], edge["target"]),
        ):
            d.curve(route.points, stroke_opacity=0.55, weight=1.2)
            tip, before = route.points[-1], route.points[-2]
            d.arrow_head(tip, (tip[0] - before[0] or 1.0, tip[1] - before[1]), fill_opacity=0.75)
    for edge, lines, route in zip(edges, labels, layout.routes, strict=True):
        x, y = route.label
        with d.group("", keys=links.edge_key(edge["source"], edge["target"])):
            for line, dy in zip(lines, (-4, 13), strict=True):  # above and under the edge
                d.text(x, y + dy, line, size=_SIZE, anchor="middle", muted=True, halo=True)
    for node, face, centre in zip(nodes, faces, layout.boxes, strict=True):
        _draw_node(d, node, face, centre)
    return d


def _face(node: dict[str, Any]) -> tuple[str, str, tuple[float, float]]:
    """Return the two lines written in the box of a node, and the size of the box."""
    title = shorten(_tensor(node), _WIDEST, 13, bold=True)
    if node["type"] == "Input":
        second = f"{amounts.shape(node['shape'])} {node['dtype']}"
        width = max(text_width(title, 13, bold=True), text_width(second, _SIZE))
    else:
        second = shorten(node["formula"], _WIDEST, _SIZE, mono=True)
        width = max(text_width(title, 13, bold=True), text_width(second, _SIZE, mono=True))
    return title, second, (width + 22, 44.0)


def _edge_label(edge: dict[str, Any]) -> tuple[str, str]:
    return shorten(",".join(edge["labels"]), _WIDEST / 2, _SIZE), amounts.nbytes(edge["bytes"])


def _edge_title(edge: dict[str, Any], nodes: list[dict[str, Any]]) -> str:
    source, target = nodes[edge["source"]], nodes[edge["target"]]
    read = f"{source['name']}[{','.join(edge['labels'])}]"
    return (
        f"{_tensor(target)} reads {read}: {amounts.shape(source['shape'])}, {amounts.nbytes(edge['bytes'])}"
    )


def _node_title(node: dict[str, Any]) -> str:
    made = f" = {node['formula']}" if node["formula"] else ": input"
    extents = ", ".join(f"{label} {n}" for label, n in node["space"])
    size = f"{amounts.shape(node['shape'])} {node['dtype']}, {amounts.nbytes(node['bytes'])}"
    return f"{_tensor(node)}{made}\n{size}" + (f"\nlabels: {extents}" if extents else "")


def _draw_node(
    d: Drawing, node: dict[str, Any], face: tuple[str, str, tuple[float, float]], centre: tuple[float, float]
) -> None:
    title, second, (width, height) = face
    x, y = centre[0] - width / 2, centre[1] - height / 2
    plain = node["type"] == "Input"
    with d.group(_node_title(node), node=node["id"], keys=links.node_key(node["id"])):
        heavy = 2.2 if node["outputs"] else 1.2
        dash = "" if node["type"] in ("Input", "Einsummable") else "5 3"
        d.rect(
            x, y, width, height,
            radius=0 if plain else 10, fill=PAPER, stroke=INK,
            stroke_opacity=0.35 if plain else 0.9, weight=heavy, dash=dash,
        )  # fmt: skip
        if not plain:
            d.rect(x, y, width, height, radius=10, fill=INK, fill_opacity=0.06)
        d.text(centre[0], y + 18, title, size=13, anchor="middle", bold=True)
        d.text(centre[0], y + 35, second, size=_SIZE, anchor="middle", mono=not plain, muted=plain)

"""What must hold of every SVG that we draw."""

import json
import re
import xml.etree.ElementTree as ET
from math import isfinite

from einsummable.views import html, svg, text
from einsummable.views.drawing import text_width

SVG = "{http://www.w3.org/2000/svg}"


def parse(view):
    """Return the root of the SVG of a view."""
    return ET.fromstring(svg(view))


def elements(root):
    """Yield every element with the translation that applies to it."""
    stack = [(root, 0.0, 0.0)]
    while stack:
        element, x, y = stack.pop()
        moved = re.fullmatch(r"translate\(([-\d.]+),([-\d.]+)\)", element.get("transform", ""))
        if moved:
            x, y = x + float(moved[1]), y + float(moved[2])
        yield element, x, y
        stack += [(child, x, y) for child in element]


def texts(root):
    """Yield each text with its left, top, right and bottom."""
    for element, dx, dy in elements(root):
        if element.tag == f"{SVG}text":
            size, content = float(element.get("font-size")), element.text or ""
            mono, bold = "m" in element.get("class", "").split(), element.get("font-weight") is not None
            width = text_width(content, size, mono=mono, bold=bold)
            left = float(element.get("x")) + dx
            left -= {"start": 0, "middle": width / 2, "end": width}[element.get("text-anchor", "start")]
            bottom = float(element.get("y")) + dy
            yield content, (left, bottom - 0.75 * size, left + width, bottom + 0.25 * size)


def check(view):
    """Assert what must hold of every view and its picture; return the root of the SVG."""
    assert json.loads(json.dumps(view)) == view
    assert view["caption"]
    assert view["caption"] in text(view)
    root = parse(view)
    assert root.get("role") == "img"
    assert root.get("aria-label") == view["caption"]
    x, y, w, h = map(float, root.get("viewBox").split())
    assert all(map(isfinite, (x, y, w, h)))
    for content, (left, top, right, bottom) in texts(root):
        assert x <= left, content
        assert right <= x + w, content
        assert y <= top, content
        assert bottom <= y + h, content
    for element, dx, _ in elements(root):
        assert "id" not in element.attrib
        assert "url(" not in " ".join(element.attrib.values())
        assert all(
            value == value.strip() and "nan" not in value for value in element.attrib.values() if value
        )
        if element.tag == f"{SVG}text":
            assert float(element.get("font-size")) * 0.92 >= 11
        if element.tag == f"{SVG}rect":
            at = [float(element.get(k)) for k in ("x", "y", "width", "height")]
            assert at[2] >= 0
            assert at[3] >= 0
            assert x - 1 <= at[0] + dx <= at[0] + dx + at[2] <= x + w + 1
    assert html(view).count("<svg") == 1
    return root

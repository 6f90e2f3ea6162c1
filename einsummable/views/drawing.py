"""A sheet of SVG that grows with what is drawn on it, and how wide text is.

Contract: every method takes pixels from an arbitrary origin; `finish` makes a viewBox that holds all of it,
text included, so nothing can be cut off.  Colours are ``#rrggbb``, ``none``, or a role of the theme (`INK`,
`PAPER`), which CSS variables of the notebook resolve; without their style sheet an attribute gives the light
theme.  No element has an id, so that any number of pictures can live in one page.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape

from einsummable.views.colours import INK, PAPER

Point = tuple[float, float]

STYLE = (
    ".ein-svg{--ein-ink:var(--jp-ui-font-color1,var(--vscode-editor-foreground,#1f2328));"
    "--ein-paper:var(--jp-layout-color0,var(--vscode-editor-background,#ffffff));"
    "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
    "font-variant-numeric:tabular-nums}"
    "@media(prefers-color-scheme:dark){.ein-svg{"
    "--ein-ink:var(--jp-ui-font-color1,var(--vscode-editor-foreground,#e6edf3));"
    "--ein-paper:var(--jp-layout-color0,var(--vscode-editor-background,#0d1117))}}"
    ".ein-svg .fi{fill:var(--ein-ink)}.ein-svg .fp{fill:var(--ein-paper)}"
    ".ein-svg .si{stroke:var(--ein-ink)}.ein-svg .sp{stroke:var(--ein-paper)}"
    ".ein-svg .h{stroke:var(--ein-paper);stroke-width:3px;stroke-linejoin:round;paint-order:stroke}"
    ".ein-svg .m{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
)
_FALLBACK = {INK: "#1f2328", PAPER: "#ffffff"}
_CLASS = {("fill", INK): "fi", ("fill", PAPER): "fp", ("stroke", INK): "si", ("stroke", PAPER): "sp"}

# Advance widths of the printable ASCII characters in hundredths of the size, those of the widest font a
# reader is likely to have: what fits by this table fits everywhere.
_WIDTHS = (
    32, 40, 46, 84, 64, 95, 78, 28, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    34, 34, 84, 84, 84, 53, 102, 68, 69, 72, 77, 67, 61, 78, 75, 29, 50, 67, 56, 86, 75, 79, 67, 79, 72, 67,
    61, 73, 68, 99, 69, 67, 69, 39, 34, 39, 84, 56, 50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97,
    63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84,
)  # fmt: skip


def text_width(text: str, size: float = 12, *, mono: bool = False, bold: bool = False) -> float:
    """Return an upper estimate of the width of `text` in pixels."""
    total = 0.0
    for char in text:
        if unicodedata.combining(char):
            continue
        wide = unicodedata.east_asian_width(char) in "WF"
        if mono:
            total += 122 if wide else 61
        elif " " <= char <= "~":
            total += _WIDTHS[ord(char) - 32]
        else:
            total += 130 if wide or ord(char) > 0xFFFF else 100 if char == "…" else 84
    return total * size / 100 * (1.13 if bold and not mono else 1.0)


def shorten(text: str, width: float, size: float = 12, *, mono: bool = False, bold: bool = False) -> str:
    """Return `text`, or as much of it as fits `width` with an ellipsis."""
    if text_width(text, size, mono=mono, bold=bold) <= width:
        return text
    while text and text_width(text + "…", size, mono=mono, bold=bold) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def wrap(text: str, width: float, size: float = 12) -> list[str]:
    """Return `text` broken into lines at spaces so that each fits `width`, where its words do."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def clean(text: str) -> str:
    """Return `text` without the characters that XML forbids, and escaped for markup."""
    return escape(re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text))


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


class Drawing:
    """A sheet under construction."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._box = [float("inf"), float("inf"), float("-inf"), float("-inf")]

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of what is drawn so far."""
        left, top, right, bottom = self._box
        return (left, top, right, bottom) if left <= right else (0.0, 0.0, 0.0, 0.0)

    def _cover(self, *points: Point) -> None:
        for x, y in points:
            b = self._box
            b[0], b[1], b[2], b[3] = min(b[0], x), min(b[1], y), max(b[2], x), max(b[3], y)

    @contextmanager
    def group(self, title: str = "", *, css: str = "", **data: object) -> Iterator[None]:
        """Put what is drawn inside into one group with a tooltip and ``data-…`` attributes, None left out."""
        attributes = "".join(
            f' data-{key}="{clean(str(value))}"' for key, value in data.items() if value is not None
        )
        attributes += f' class="{css}"' if css else ""
        self._parts.append(f"<g{attributes}>" + (f"<title>{clean(title)}</title>" if title else ""))
        yield
        self._parts.append("</g>")

    def place(self, other: Drawing, x: float, y: float) -> tuple[float, float]:
        """Put all of `other` here, its top left corner at (x, y); return its width and height."""
        left, top, right, bottom = other.box
        dx, dy = x - left, y - top
        self._cover((x, y), (x + right - left, y + bottom - top))
        self._parts.append(f'<g transform="translate({_number(dx)},{_number(dy)})">')
        self._parts += other._parts
        self._parts.append("</g>")
        return right - left, bottom - top

    def flow(self, others: Sequence[Drawing], width: float, *, gap: float = 22, top: float = 0.0) -> None:
        """Put drawings side by side, in rows no wider than `width`, their tops aligned."""
        x, y, tallest = 0.0, top, 0.0
        for other in others:
            left, high, right, low = other.box
            if x and x + right - left > width:
                x, y, tallest = 0.0, y + tallest + gap, 0.0
            self.place(other, x, y)
            x += right - left + gap
            tallest = max(tallest, low - high)

    def rect(
        self, x: float, y: float, width: float, height: float, *, radius: float = 0, **paint: object
    ) -> None:
        """Draw a rectangle; `paint` as in `path`."""
        self._cover((x, y), (x + width, y + height))
        at = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
        rounded = f' rx="{_number(radius)}"' if radius else ""
        self._parts.append(f"<rect {at}{rounded}{_paint(**paint)}/>")

    def path(self, d: str, points: Sequence[Point], **paint: object) -> None:
        """Draw a path whose extreme points are among `points`.

        `paint` takes `fill`, `stroke` (colours), `weight`, `dash`, and the opacities `fill_opacity` and
        `stroke_opacity`.
        """
        self._cover(*points)
        self._parts.append(f'<path d="{d}"{_paint(**paint)}/>')

    def polygon(self, points: Sequence[Point], **paint: object) -> None:
        """Draw a closed polygon."""
        d = "M" + "L".join(f"{_number(x)},{_number(y)}" for x, y in points) + "Z"
        self.path(d, points, **paint)

    def line(self, *points: Point, **paint: object) -> None:
        """Draw an open line through `points`."""
        d = "M" + "L".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self.path(d, points, fill="none", **({"stroke": INK} | paint))

    def curve(self, points: Sequence[Point], **paint: object) -> None:
        """Draw cubic Bézier curves: a start, then two control points and an end for each piece."""
        rest = [
            " ".join(f"{_number(x)},{_number(y)}" for x, y in points[i : i + 3])
            for i in range(1, len(points), 3)
        ]
        start = f"M{_number(points[0][0])},{_number(points[0][1])}"
        self.path(
            start + "".join(f"C{piece}" for piece in rest), points, fill="none", **({"stroke": INK} | paint)
        )

    def arrow_head(self, tip: Point, direction: Point, size: float = 7, **paint: object) -> None:
        """Draw a triangle that ends in `tip` and points in `direction`."""
        length = (direction[0] ** 2 + direction[1] ** 2) ** 0.5 or 1.0
        dx, dy = direction[0] / length * size, direction[1] / length * size
        back, half = (tip[0] - dx, tip[1] - dy), 0.45
        left = (back[0] - dy * half, back[1] + dx * half)
        right = (back[0] + dy * half, back[1] - dx * half)
        self.polygon([tip, left, right], **({"fill": INK} | paint))

    def hatch(
        self, x: float, y: float, width: float, height: float, *, step: float = 6, **paint: object
    ) -> None:
        """Cover a rectangle with diagonal lines, clipped by arithmetic so that no pattern needs an id."""
        pieces = []
        offset = step / 2
        while offset < width + height:
            x0, y0 = (x + offset, y) if offset <= width else (x + width, y + offset - width)
            x1, y1 = (x, y + offset) if offset <= height else (x + offset - height, y + height)
            pieces.append(f"M{_number(x0)},{_number(y0)}L{_number(x1)},{_number(y1)}")
            offset += step
        if pieces:
            self.path("".join(pieces), [(x, y)], **({"fill": "none", "stroke": INK} | paint))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 12,
        anchor: str = "start",
        fill: str = INK,
        muted: bool = False,
        mono: bool = False,
        bold: bool = False,
        halo: bool = False,
    ) -> None:
        """Write one line of text with its baseline at `y`."""
        width = text_width(text, size, mono=mono, bold=bold)
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        self._cover((left, y - size), (left + width, y + 0.3 * size))
        css = " ".join(
            c for c in (_CLASS.get(("fill", fill), ""), "m" if mono else "", "h" if halo else "") if c
        )
        more = f' class="{css}"' if css else ""
        more += f' fill="{_FALLBACK.get(fill, fill)}"'
        more += f' text-anchor="{anchor}"' if anchor != "start" else ""
        more += ' font-weight="600"' if bold else ""
        more += ' fill-opacity=".72"' if muted else ""
        self._parts.append(
            f'<text x="{_number(x)}" y="{_number(y)}" font-size="{_number(size)}"{more}>{clean(text)}</text>'
        )

    def finish(self, label: str, caption: str = "", *, margin: float = 8) -> str:
        """Return the picture as SVG text.

        Parameters
        ----------
        label
            What a screen reader says.
        caption
            One line drawn under the picture, broken where it is wider; nothing where empty.
        """
        left, top, right, bottom = self.box
        for line in wrap(caption, max(right - left, 360)):
            bottom += 19
            self.text(left, bottom, line, muted=True)
        left, top, right, bottom = self.box
        x, y = left - margin, top - margin
        width, height = right - left + 2 * margin, bottom - top + 2 * margin
        w, h = _number(width), _number(height)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ein-svg" role="img" aria-label="{clean(label)}" '
            f'viewBox="{_number(x)} {_number(y)} {w} {h}" width="{w}" height="{h}" '
            f'style="width:100%;max-width:{w}px;min-width:{0.92 * width:.0f}px;height:auto" '
            f'font-family="sans-serif"><style>{STYLE}</style>'
            f'<rect class="fp" x="{_number(x)}" y="{_number(y)}" width="{w}" height="{h}" fill="#ffffff"/>'
            + "".join(self._parts)
            + "</svg>"
        )


def _paint(
    fill: str = "none",
    stroke: str = "none",
    weight: float = 1,
    dash: str = "",
    fill_opacity: float = 1,
    stroke_opacity: float = 1,
) -> str:
    css = " ".join(c for c in (_CLASS.get(("fill", fill), ""), _CLASS.get(("stroke", stroke), "")) if c)
    out = f' class="{css}"' if css else ""
    out += f' fill="{_FALLBACK.get(fill, fill)}"'
    out += f' fill-opacity="{fill_opacity:.2g}"' if fill_opacity != 1 and fill != "none" else ""
    if stroke != "none":
        out += f' stroke="{_FALLBACK.get(stroke, stroke)}"'
        out += f' stroke-width="{_number(weight)}"' if weight != 1 else ""
        out += f' stroke-opacity="{stroke_opacity:.2g}"' if stroke_opacity != 1 else ""
        out += f' stroke-dasharray="{dash}"' if dash else ""
    return out

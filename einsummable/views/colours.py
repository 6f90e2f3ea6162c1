"""Colour means site: the palette of sites, and what can be read on it.

Contract: up to 8 sites have the colours of Okabe and Ito, which colour-blind readers tell apart; more have a
hue a host and a lightness a site within it; above 64 only the host has a colour.  `INK` and `PAPER` are not
colours but roles, the theme's text and background; the eighth site is drawn in `INK`, so that the palette's
black is seen on a dark page too.

Sources: M. Okabe and K. Ito, *Color Universal Design* (2008); B. Ottosson, *A perceptual color space for
image processing* (2020), for the lightness within a hue; contrast as in WCAG 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import cbrt, ceil, sqrt

#: The theme's colour of text, and of the page.
INK, PAPER = "ink", "paper"

#: Nothing is placed here yet.
UNPLACED = "#9a9a9a"

_BLUE, _ORANGE, _GREEN, _VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
_SKY, _PURPLE, _YELLOW = "#56b4e9", "#cc79a7", "#f0e442"
_INDIGO = "#332288"
OKABE_ITO = (_BLUE, _ORANGE, _GREEN, _VERMILION, _SKY, _PURPLE, _YELLOW, INK)

#: For what is not a site: nodes in a timeline, parts of a cost.  Tol's muted scheme, distinct from the above.
CATEGORIES = (
    "#88ccee", "#cc6677", "#ddcc77", "#44aa99", "#aa4499", "#999933", _INDIGO, "#117733", "#882255",
)  # fmt: skip


def groups(sites: int, hosts: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the group of sites that shares a hue with each site: its host, or where none is known a run."""
    if hosts is not None:
        order = {host: i for i, host in enumerate(dict.fromkeys(hosts))}
        return tuple(order[host] for host in hosts)
    each = ceil(sites / min(8, ceil(sites / ceil(sqrt(sites))))) if sites else 1
    return tuple(site // each for site in range(sites))


@cache
def palette(sites: int, hosts: tuple[int, ...] | None = None) -> tuple[str, ...]:
    """Return the colour of every site."""
    if sites <= len(OKABE_ITO):
        return OKABE_ITO[:sites]
    group = groups(sites, hosts)
    hues = [c for c in OKABE_ITO if c != INK] + [_INDIGO]
    if sites > 64:
        return tuple(hues[g % len(hues)] for g in group)
    colours = []
    for site, g in enumerate(group):
        within, members = group[:site].count(g), group.count(g)
        colours.append(_with_lightness(hues[g % len(hues)], 0.9 - 0.5 * (within + 0.5) / members))
    return tuple(colours)


def ink_on(colour: str) -> str:
    """Return what text is drawn in on a block of `colour`: black or white, whichever has more contrast."""
    if colour in (INK, PAPER):
        return PAPER if colour == INK else INK
    return "#000000" if luminance(colour) > 0.1791 else "#ffffff"


def luminance(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb``, from 0 to 1."""
    r, g, b = _linear(colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _linear(colour: str) -> tuple[float, float, float]:
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return r, g, b


def _with_lightness(colour: str, lightness: float) -> str:
    """Return the hue of `colour` with another OKLab lightness, its chroma cut to what a screen can show."""
    r, g, b = _linear(colour)
    cones = (
        cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b),
        cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b),
        cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b),
    )
    a = 1.9779984951 * cones[0] - 2.4285922050 * cones[1] + 0.4505937099 * cones[2]
    c = 0.0259040371 * cones[0] + 0.7827717662 * cones[1] - 0.8086757660 * cones[2]
    for step in range(21):
        chroma = 1 - step / 20
        rgb = _from_oklab(lightness, a * chroma, c * chroma)
        if all(-1e-3 <= v <= 1.001 for v in rgb):
            break
    return "#" + "".join(f"{round(255 * _encode(min(max(v, 0.0), 1.0))):02x}" for v in rgb)


def _from_oklab(lightness: float, a: float, b: float) -> tuple[float, float, float]:
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )


def _encode(v: float) -> float:
    return 12.92 * v if v <= 0.0031308 else 1.055 * v ** (1 / 2.4) - 0.055

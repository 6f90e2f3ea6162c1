"""Keys to what a picture's colours and textures mean."""

from __future__ import annotations

from collections.abc import Sequence

from einsummable.views import amounts, links
from einsummable.views.colours import INK, UNPLACED, groups, ink_on, palette
from einsummable.views.drawing import Drawing, text_width

_SIZE = 12
_CHIP = 18.0


def site_colours(view: dict) -> tuple[str, ...]:
    """Return the colour of every site of a view with ``sites`` and ``hosts``."""
    hosts = view.get("hosts")
    return palette(view["sites"], tuple(hosts) if hosts is not None else None)


def sites(view: dict) -> list[Drawing]:
    """Return the key of the sites: a chip a site, or above 16 sites a ramp a group."""
    colours = site_colours(view)
    if not colours:
        return []
    if len(colours) <= 16:
        d = Drawing()
        d.text(0, 13, "site", size=_SIZE, muted=True)
        x = text_width("site", _SIZE) + 6
        for site, colour in enumerate(colours):
            width = max(_CHIP, text_width(str(site), _SIZE) + 8)
            _chip(d, x, width, colour, str(site), site)
            x += width + 3
        return [d]
    hosts = view.get("hosts")
    group = groups(len(colours), tuple(hosts) if hosts is not None else None)
    keys = []
    for g in dict.fromkeys(group):
        members = [s for s, mine in enumerate(group) if mine == g]
        shades = list(dict.fromkeys(colours[s] for s in members))
        d = Drawing()
        for k, shade in enumerate(shades):
            d.rect(k * 60 / len(shades), 0, 60 / len(shades), _CHIP, fill=shade)
        d.rect(0, 0, 60, _CHIP, stroke=INK, stroke_opacity=0.3)
        name = f"sites {amounts.ranges(members)}" if len(members) > 1 else f"site {members[0]}"
        d.text(66, 13, name, size=_SIZE, muted=True)
        keys.append(d)
    return keys


def textures(blocks: Sequence[dict]) -> list[Drawing]:
    """Return keys for the textures that occur in `blocks`."""
    keys = []
    if any(b["partials"] > 1 for b in blocks):
        keys.append(_texture("made of partial results", hatched=True))
    if any((b["copies"] or 0) > 1 for b in blocks):
        keys.append(_texture("read whole on several sites", outlined=True))
    if any(b["site"] is None and len(b.get("sites", ())) < 2 for b in blocks):
        keys.append(_texture("not placed", fill=UNPLACED))
    if any(b["site"] is None and len(b.get("sites", ())) > 1 for b in blocks):
        keys.append(_texture("blocks of several sites drawn as one", mixed=True))
    return keys


def categories(names: Sequence[tuple[str, str]]) -> list[Drawing]:
    """Return a key for each pair of a name and a colour."""
    keys = []
    for name, colour in names:
        d = Drawing()
        d.rect(0, 2, 14, 14, fill=colour, stroke=INK, stroke_opacity=0.3)
        d.text(20, 13, name, size=_SIZE, muted=True)
        keys.append(d)
    return keys


def _chip(d: Drawing, x: float, width: float, colour: str, text: str, site: int) -> None:
    with d.group(f"site {site}", site=site, keys=links.site_key(site)):
        d.rect(x, 0, width, _CHIP, fill=colour, stroke=INK, stroke_opacity=0.3)
        d.text(x + width / 2, 13, text, size=_SIZE, anchor="middle", fill=ink_on(colour))


def _texture(
    name: str, *, hatched: bool = False, outlined: bool = False, mixed: bool = False, fill: str = "none"
) -> Drawing:
    d = Drawing()
    d.rect(0, 0, _CHIP, _CHIP, fill=fill, stroke=INK, stroke_opacity=0.3)
    if hatched:
        d.hatch(0, 0, _CHIP, _CHIP, stroke_opacity=0.6)
    if outlined:
        d.rect(2, 2, _CHIP - 4, _CHIP - 4, stroke=INK, weight=1.6)
    if mixed:
        d.rect(0, 0, _CHIP, _CHIP, fill=INK, fill_opacity=0.25)
    d.text(_CHIP + 6, 13, name, size=_SIZE, muted=True)
    return d

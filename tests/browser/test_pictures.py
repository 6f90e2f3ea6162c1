"""Pictures in a real browser, in both themes: no text is cut off, and all of it can be read."""

import numpy as np
import pytest
from sample_graphs import attention, chain, everywhere, in_turn, matmul_plan
from test_views import COSTS, small_record, small_taskgraph
from test_widget_cluster import ENGINES, USED

from einsummable import views
from einsummable.views.clusters import cluster_view
from einsummable.views.meter import Meter

pytestmark = [pytest.mark.browser, pytest.mark.slow]

THEMES = {
    "light": "--jp-ui-font-color1:rgba(0,0,0,0.87);--jp-layout-color0:#ffffff",
    "dark": "--jp-ui-font-color1:rgba(255,255,255,1);--jp-layout-color0:#111111",
    "no theme": "",
}

#: Of every text: whether it lies in its picture, its size on the screen, its colour and opacity.
MEASURE = """() => [...document.querySelectorAll('svg')].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].map(t => {
    const b = t.getBoundingClientRect(), style = getComputedStyle(t);
    return {
      text: t.textContent,
      inside: b.left >= frame.left && b.right <= frame.right
        && b.top >= frame.top - 1 && b.bottom <= frame.bottom + 1,
      size: parseFloat(style.fontSize) * frame.width / svg.viewBox.baseVal.width,
      fill: style.fill, opacity: parseFloat(style.fillOpacity),
      paper: getComputedStyle(svg.querySelector('rect')).fill,
      role: t.classList.contains('fi'),
    };
  });
})"""


def shown():
    plan = matmul_plan()
    placement = in_turn(plan, 8)
    cut = everywhere(attention(), 2)
    meter = Meter(small_taskgraph(), predicted=0.5)
    for event in small_record().events[:-1]:
        meter.hear(event)
    return [
        views.graph_view(attention()),
        views.plan_view(cut, in_turn(cut, 16)),
        views.join_view(plan, placement, 2),
        views.plan_view(everywhere(chain(), 4)),
        views.taskgraph_view(small_taskgraph()),
        views.taskgraph_view(small_taskgraph(), limit=0),
        views.timeline_view(small_record()),
        views.traffic_view(small_taskgraph(), hosts=[0, 1]),
        views.costs_view(COSTS, bound=1e9),
        views.steps_view(small_taskgraph(), dict.fromkeys("AB", np.arange(16, dtype="f4").reshape(4, 4) - 3)),
        meter.view(),
        cluster_view(ENGINES, USED, memory=10_000_000),
    ]


def colour(css):
    """Return red, green, blue and opacity of ``rgb(…)`` or ``rgba(…)``."""
    values = [float(v) for v in css.partition("(")[2].rstrip(")").split(",")]
    return values[:3], values[3] if len(values) > 3 else 1.0


def luminance(rgb):
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in rgb))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", [800, 1400])
def test_text_is_inside_large_enough_and_in_contrast(chromium, theme, scheme, width):
    page = chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.set_content(f"<style>:root{{{THEMES[theme]}}}</style>{views.html(shown())}")
    measured = page.evaluate(MEASURE)
    page.close()
    assert len(measured) > 200
    for text in measured:
        assert text["inside"], text
        assert text["size"] >= 11, text
        if text["role"]:  # written on the page; what is written on blocks is checked with the palettes
            paper, _ = colour(text["paper"])
            ink, alpha = colour(text["fill"])
            alpha *= text["opacity"]
            mixed = [alpha * a + (1 - alpha) * b for a, b in zip(ink, paper, strict=True)]
            low, high = sorted((luminance(mixed), luminance(paper)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, text

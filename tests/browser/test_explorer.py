"""The plan explorer in JupyterLab and Notebook 7: what the reader moves, the planner's own figures follow."""

import json

import pytest

import einsummable as ein
from einsummable.exploring import answers, edited
from einsummable.planner import cost
from einsummable.planner.hardware import host
from einsummable.setting import Setting
from einsummable.views import amounts

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MLP = "H[b,h] = relu(sum[d] X[b,d] * W[d,h])\nY[b,o] = H[b,h] * V[h,o]"
SHAPES = {"X": (64, 512), "W": (512, 256), "V": (256, 10)}
CELLS = [f"import einsummable as ein\nnet = ein.compile({MLP!r}, **{SHAPES}, sites=4)\nnet.explore()"]


@pytest.fixture
def net():
    return ein.compile(MLP, **SHAPES, sites=4)


@pytest.fixture(scope="module", params=["lab", "tree"])
def opened(request, lasting_notebook):
    """A page with the explorer, in either application."""
    return lasting_notebook(CELLS, app=request.param)


@pytest.fixture
def explorer(opened):
    """The explorer as it is at first, all figures there."""
    page = opened.page
    page.mouse.move(2, 2)
    page.evaluate("() => document.activeElement?.blur()")
    page.get_by_role("button", name="Go back to the setting at the start").click()
    settled(opened, 4)
    page.wait_for_selector(".ein-widget:not(:has(.ein-edited, .ein-pinned))")
    opened.errors.clear()
    yield opened
    assert opened.errors == []


def settled(page, sites):
    page.page.wait_for_selector(f'.ein-widget[data-done="true"][data-sites="{sites}"]', timeout=60_000)


def drag_sites(page, sites):
    slider = page.page.get_by_label("number of sites", exact=True)
    slider.fill(str(sites))
    settled(page, sites)


def costs(page):
    """Return the cost that is shown of each strategy, and the line below."""
    rows = page.page.locator(".ein-strategy")
    return {
        rows.nth(k).get_attribute("data-strategy"): (
            rows.nth(k).locator(".ein-strategy-cost").text_content(),
            rows.nth(k).locator(".ein-strategy-foot").text_content(),
        )
        for k in range(rows.count())
    }


def blocks(page, tensor):
    return page.page.locator(f'.ein-deck [data-keys^="block:{tensor}:"]').count()


def lit(page, where, key):
    """Return whether any element of a panel that has `key` is lit."""
    return page.page.locator(f'{where} .ein-lit[data-keys~="{key}"]').count() > 0


def test_blocks_and_bytes_follow_the_sites_slider(explorer, net):
    for sites in (8, 3):
        drag_sites(explorer, sites)
        again = net.replan(sites=sites)
        held = again.placement.held_parts(again.plan, net.graph.id_of("H"))
        shown, foot = costs(explorer)["EinDecomp"]
        assert shown == amounts.nbytes(again.plan.cost)
        assert foot.startswith(f"{amounts.nbytes(again.tasks.bytes_moved)} moved")
        assert blocks(explorer, "H") == held[0] * held[1]
        seen = explorer.page.locator(".ein-deck [data-site]").evaluate_all(
            "found => [...new Set(found.map(e => Number(e.dataset.site)))].sort((a, b) => a - b)"
        )
        assert seen == list(range(sites))


def test_hover_links_formula_graph_blocks_and_run(explorer, net):
    i = net.graph.id_of("Y")
    explorer.page.locator(f'.ein-graph-pane [data-keys="node:{i}"]').hover()
    explorer.page.wait_for_selector(".ein-selecting")
    span = net.graph.nodes[i].origin.span
    assert lit(explorer, ".ein-formula", f"span:{span.start}-{span.stop}")
    assert lit(explorer, ".ein-deck", "tensor:Y")
    assert explorer.page.locator(".ein-strip .ein-lit").count() > 0
    assert not lit(explorer, ".ein-deck", "tensor:X")
    faded = explorer.page.locator('.ein-deck [data-keys^="block:X:"]').first
    assert faded.evaluate("e => getComputedStyle(e).opacity") == "0.25"

    block = explorer.page.locator('.ein-deck [data-keys^="block:H:"]').first
    block.hover()
    h = net.graph.id_of("H")
    explorer.page.wait_for_selector(f'.ein-graph-pane .ein-lit[data-keys="node:{h}"]')
    assert lit(explorer, ".ein-formula", f"span:{net.graph.nodes[h].origin.span.start}-{span.start - 1}")
    assert explorer.page.locator('.ein-deck .ein-lit[data-keys^="block:H:"]').count() == 1
    explorer.page.mouse.move(2, 2)
    explorer.page.wait_for_selector(".ein-widget:not(.ein-selecting)")


def test_a_partition_that_is_changed_costs_what_the_planner_says(explorer, net):
    page, y = explorer.page, net.graph.id_of("Y")
    page.locator('.ein-deck [data-keys="tensor:Y"], .ein-deck [data-keys^="block:Y:"]').last.click()
    value = page.locator('.ein-cut-parts[data-label="o"]')
    before = int(value.text_content())
    value.scroll_into_view_if_needed()
    box = value.bounding_box()
    x, middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, middle)
    page.mouse.down()
    page.mouse.move(x + 20, middle)
    page.mouse.move(x + 40, middle, steps=4)
    page.mouse.up()
    page.wait_for_selector('.ein-strategy[data-strategy="yours"]')
    page.wait_for_function(
        "before => Number(document.querySelector('.ein-cut-parts[data-label=o]').textContent) > before + 1",
        arg=before,
    )
    parts = int(page.locator('.ein-cut-parts[data-label="o"]').text_content())
    chosen = list(net.plan.partitions)
    setting = edited(Setting(4), net.plan, "Y", {"o": parts})
    row = list(answers(net.graph, setting, host(4)))[-1].row("yours")
    chosen[y] = row.plan.partitions[y]
    assert costs(explorer)["yours"][0] == amounts.nbytes(cost.moved_bytes(net.graph, chosen))


def test_keys_cut_pin_and_undo(explorer, net):
    page = explorer.page
    page.locator(f'.ein-graph-pane [data-keys="node:{net.graph.id_of("Y")}"]').click()
    value = page.locator('.ein-cut-parts[data-label="o"]')
    value.focus()
    before = value.text_content()
    page.keyboard.press("]")
    page.wait_for_selector(".ein-tensor.ein-edited")
    assert int(value.text_content()) > int(before)
    page.keyboard.press("Enter")
    page.wait_for_selector(".ein-tensor.ein-pinned")
    assert page.locator(".ein-tensor.ein-edited").count() == 0
    page.get_by_role("button", name="Undo the last change").click()
    page.wait_for_selector(".ein-tensor.ein-edited")
    page.get_by_role("button", name="Go back to the setting").click()
    page.wait_for_selector(".ein-widget:not(:has(.ein-edited))")
    settled(explorer, 4)
    assert costs(explorer)["EinDecomp"][0] == amounts.nbytes(net.plan.cost)


def test_arrows_go_from_block_to_block_and_escape_gives_up(explorer):
    page = explorer.page
    page.locator('.ein-deck [data-keys^="block:W:"]').first.click()
    first = page.evaluate("() => document.activeElement.dataset.keys")
    page.keyboard.press("ArrowDown")
    second = page.evaluate("() => document.activeElement.dataset.keys")
    assert first != second
    assert second.startswith("block:")
    assert "site" in page.evaluate("() => document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Escape")
    page.mouse.move(2, 2)
    page.evaluate("() => document.activeElement.blur()")
    page.wait_for_selector(".ein-widget:not(.ein-selecting)")


def test_what_cannot_be_is_said_and_the_picture_stays(explorer):
    page = explorer.page
    before = costs(explorer)
    memory = page.get_by_label("memory of a site")
    memory.fill("0")
    page.wait_for_selector('.ein-error:has-text("no plan fits")')
    assert costs(explorer) == before
    memory.fill(memory.get_attribute("max"))
    page.wait_for_selector(".ein-error:empty", state="attached")


def test_a_picture_and_the_program_can_be_saved(explorer):
    page = explorer.page
    drag_sites(explorer, 3)
    page.locator(".ein-widget .ein-menu > summary").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as SVG").click()
    text = saved.value.path().read_text()
    assert text.startswith("<svg")
    assert "EinDecomp" in text
    page.locator(".ein-widget .ein-menu > summary").click()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as Python").click()
    page.wait_for_selector('summary:has-text("Copied")')
    assert page.evaluate("() => navigator.clipboard.readText()") == "net = net.replan(sites=3)\n"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [800, 1400])
def test_nothing_is_too_small_or_sticks_out(notebook, theme, width):
    page = notebook(CELLS, theme=theme, width=width)
    settled(page, 4)
    page.page.locator('.ein-graph-pane [data-keys^="node:"]').last.click()
    page.page.wait_for_selector(".ein-cut-row")
    measured = json.loads(page.page.evaluate(MEASURE))
    assert measured["texts"] > 100
    assert measured["small"] == []
    assert measured["outside"] == []
    assert measured["scrolls"] <= 0


#: Texts below 11 pixels on the screen, panels that stick out of the widget, how much it must be scrolled.
MEASURE = """() => {
  const widget = document.querySelector('.ein-widget');
  const frame = widget.getBoundingClientRect();
  const small = [], outside = [];
  let texts = 0;
  const walker = document.createTreeWalker(widget, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || parent.closest('style, title')) continue;
    if (!parent.getClientRects().length) continue;
    texts++;
    const svg = parent.closest('svg');
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    const size = parseFloat(getComputedStyle(parent).fontSize) * scale;
    if (size < 10.75) small.push([walker.currentNode.textContent, size]);
  }
  for (const panel of widget.querySelectorAll('.ein-panel')) {
    const box = panel.getBoundingClientRect();
    if (box.left < frame.left - 1 || box.right > frame.right + 1) outside.push(panel.className);
  }
  return JSON.stringify({texts, small, outside, scrolls: widget.scrollWidth - widget.clientWidth - 1});
}"""

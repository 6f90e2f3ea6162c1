"""Stepping through a program in a real browser: buttons and keys, the right numbers, what travels."""

import re

import numpy as np
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ARRAYS = "A, B = np.arange(24.0).reshape(4, 6), np.arange(18.0).reshape(6, 3)"
CELLS = (
    f"%load_ext einsummable\nimport numpy as np\n{ARRAYS}",
    "%%ein net --sites 2 --no-show --pin C:i=1,k=1,j=2\nC[i,k] = A[i,j] * B[j,k]",
    "%ein_steps net",
)
PRODUCT = np.arange(24.0).reshape(4, 6) @ np.arange(18.0).reshape(6, 3)


def words(page):
    return page.locator(".ein-steps-words").inner_text()


def digits(page, task):
    """The numbers that the card of a task shows."""
    shown = page.locator(f'[data-cells="{task}"] text')
    return [float(text.replace("−", "-")) for text in shown.all_text_contents()]


def stages(page):
    return page.locator(".ein-card").evaluate_all("cards => cards.map(c => c.dataset.stage)")


@pytest.mark.parametrize("app", ["lab", "tree"])
def test_a_matmul_on_two_sites_step_by_step(notebook, app):
    page = notebook(CELLS, app=app).page
    page.wait_for_selector(".ein-steps")
    assert set(stages(page)) == {"yet"}
    assert re.match(r"\d+ steps on 2 sites", words(page))
    first = page.get_by_role("button", name="To the beginning")
    after, before = (page.get_by_role("button", name=name) for name in ("One step on", "One step back"))
    assert first.is_disabled()
    assert before.is_disabled()
    after.click()
    assert stages(page)[0] == "now"
    # a sum that grows
    while "computes C" not in words(page):
        after.click()
    task = stages(page).index("now")
    grown = digits(page, task)
    assert "a partial result" in words(page)
    assert page.locator("rect.ein-cell").count() > 0
    assert page.locator(".ein-steps-formula mark").inner_text().startswith("C[i,k]")
    assert page.locator(".ein-steps-top .ein-now").count() > 0
    after.click()
    assert stages(page).index("now") == task
    assert digits(page, task) != grown
    before.click()
    assert digits(page, task) == grown
    # what travels
    while "travels" not in words(page):
        after.click()
    assert page.locator('.ein-flight[data-stage="now"]').count() == 1
    # the end, by the keyboard
    page.locator(".ein-steps-words").click()
    page.locator(".ein-steps").evaluate("e => e.focus()")
    page.keyboard.press("End")
    assert after.is_disabled()
    results = [i for i, stage in enumerate(stages(page)) if stage in ("now", "here")]
    shown = np.array([digits(page, i) for i in results[-1:]]).reshape(PRODUCT.shape)
    np.testing.assert_allclose(shown, PRODUCT)
    page.keyboard.press("ArrowLeft")
    assert after.is_enabled()
    page.keyboard.press("Home")
    assert set(stages(page)) == {"yet"}


def test_it_plays_by_itself_and_pauses(notebook):
    page = notebook(CELLS).page
    page.wait_for_selector(".ein-steps")
    page.get_by_label("speed").select_option("fast")
    play = page.get_by_role("button", name="Step by itself")
    play.click()
    page.wait_for_function(
        "() => document.querySelectorAll('.ein-card[data-stage=\"here\"]').length > 1", timeout=60_000
    )
    assert play.inner_text() == "Pause"
    play.click()
    assert play.inner_text() == "Play"
    held = words(page)
    page.wait_for_timeout(800)
    assert words(page) == held
    play.click()
    page.wait_for_function("() => !document.querySelector('.ein-card[data-stage=\"yet\"]')", timeout=120_000)


def test_selecting_a_block_lights_its_node_and_python_hears_of_it(notebook):
    opened = notebook([*CELLS, "from IPython import get_ipython\nw = net.steps()\nw"])
    page = opened.page
    widget = page.locator(".ein-steps").last
    widget.get_by_role("button", name="One step on").click()
    widget.locator('.ein-card[data-stage="now"]').click()
    assert widget.locator(".ein-steps-top .ein-lit").count() > 0
    page.wait_for_timeout(300)
    assert opened.python("print(w.selection)") == "task:0"
    assert opened.python("print(w.step)") == "1"
    opened.python("w.step = 3")
    count = widget.locator(".ein-steps-count")
    page.wait_for_timeout(500)
    assert count.inner_text().startswith("3 of")

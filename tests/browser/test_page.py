"""The explorer as a page without a notebook, as ``einsummable demo --web`` serves it."""

import re
import signal
import subprocess
import sys

import pytest

import einsummable as ein
from einsummable.models import gallery
from einsummable.views import amounts

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def address():
    """Start the command, and end it as Ctrl-C does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "einsummable.cli", "demo", "--web", "--no-open"],
        stdout=subprocess.PIPE,
        text=True,
    )
    yield re.search(r"http://\S+", process.stdout.readline())[0]
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    process.stdout.close()


@pytest.fixture
def page(chromium, address):
    page = chromium.new_page(viewport={"width": 1400, "height": 1000})
    errors = []
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.goto(address)
    settled(page, 8)
    yield page
    page.close()
    assert errors == []


def settled(page, sites):
    page.wait_for_selector(f'.ein-widget[data-done="true"][data-sites="{sites}"]', timeout=60_000)


def best(page):
    return page.locator('[data-strategy="EinDecomp"] .ein-strategy-foot').text_content()


def test_the_sites_slider_moves_the_planners_figures(page):
    page.get_by_label("number of sites", exact=True).fill("5")
    settled(page, 5)
    net = ein.compile(gallery.PROGRAMS["matrix product"], sites=5)
    assert best(page).startswith(f"{amounts.nbytes(net.tasks.bytes_moved)} moved")


def test_another_program_and_one_of_ones_own(page):
    page.get_by_label("program", exact=True).select_option("two layers")
    page.wait_for_selector('.ein-formula:has-text("relu")')
    settled(page, 8)
    page.get_by_label("program", exact=True).select_option("write your own …")
    page.get_by_label("formulas", exact=True).fill("input x[i=64] f32\ny = sum[i] x[i] * z[i]\n")
    page.get_by_role("button", name="Explore these formulas").click()
    page.wait_for_selector('.ein-page-own .ein-error:has-text("z")')
    page.get_by_label("formulas", exact=True).fill("input x[i=64] f32\ny = sum[i] x[i] * x[i]\n")
    page.get_by_role("button", name="Explore these formulas").click()
    page.wait_for_selector('.ein-formula:has-text("y = sum")')
    settled(page, 8)


def test_a_plan_that_takes_long_says_how_far_it_is_and_can_be_stopped(page):
    page.get_by_label("program", exact=True).select_option("LLaMA block")
    page.wait_for_selector('.ein-formula:has-text("softmax")')
    settled(page, 8)
    before = best(page)
    page.get_by_label("number of sites", exact=True).fill("64")
    page.get_by_label("what the plan makes least").select_option("time")
    page.wait_for_selector(".ein-planning.ein-on")
    assert re.search(r"\w … \d+\.\d s", page.locator(".ein-planning").text_content())
    page.get_by_role("button", name="Stop planning").click()
    page.wait_for_selector('.ein-error:has-text("planning was stopped")')
    page.wait_for_selector(".ein-planning:not(.ein-on)", state="attached")
    assert best(page) == before
    page.get_by_role("button", name="Go back to the setting").click()
    page.wait_for_selector(".ein-error:empty", state="attached")
    settled(page, 8)


def test_a_cut_by_hand_and_a_saved_picture(page):
    page.locator('.ein-graph-pane [data-keys="node:2"]').click()
    page.get_by_role("button", name="More parts of j").click()
    page.wait_for_selector('[data-strategy="yours"]')
    page.locator(".ein-menu > summary").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as SVG").click()
    assert "yours" in saved.value.path().read_text()

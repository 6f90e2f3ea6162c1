"""Writing formulas in Lab: what Tab offers, errors with carets, and the line of a run that takes long."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LOAD = (
    "%load_ext einsummable\nimport numpy as np, einsummable as ein\nA, B = np.ones((4, 6)), np.ones((6, 3))"
)
MATMUL = "C[i,k] = A[i,j] * B[j,k]"


def write(page, text):
    """Put `text` into the last cell, the cursor at its end."""
    page.locator(".jp-CodeCell .cm-content").last.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def offered(page, text):
    """What the menu offers after `text`, and what it says of each."""
    write(page, text)
    page.keyboard.press("Tab")
    page.wait_for_selector(".jp-Completer:not(.lm-mod-hidden) .jp-Completer-item", timeout=60_000)
    items = page.locator(".jp-Completer-item")
    words = items.locator(".jp-Completer-match").all_text_contents()
    kinds = items.locator(".jp-Completer-typeExtended").all_text_contents()
    page.keyboard.press("Escape")
    return dict(zip(words, kinds, strict=True))


def test_tab_offers_what_may_stand_there(notebook):
    page = notebook([LOAD, f"%%ein net --no-show\n{MATMUL}", "1"]).page
    menu = offered(page, f"%%ein net\n{MATMUL}\nS[i,k] = s")
    assert menu["softmax"] == "macro"
    assert menu["sqrt"] == "function"
    assert menu["sum"] == "aggregate"
    assert "sorted" not in menu
    assert offered(page, f"%%ein net\n{MATMUL}\nS[i] = C[") == {"i": "label", "j": "label", "k": "label"}
    assert set(offered(page, "%ein_run net --")) == {"--on", "--keep", "--live", "--no-show"}


def test_a_wrong_formula_shows_its_carets_and_no_python(notebook):
    page = notebook([LOAD, "1"]).page
    write(page, "%%ein net\nC[i,k] = A[i,j] * B[k,j]")
    page.keyboard.press("Shift+Enter")
    error = page.locator(".jp-OutputArea-output", has_text="ShapeError")
    error.wait_for(timeout=60_000)
    assert error.inner_text().splitlines()[:3] == [
        "ShapeError: label 'j' is 6 in A but 3 in B",
        "1 | C[i,k] = A[i,j] * B[k,j]",
        "  |              ^        ^",
    ]
    assert "Traceback" not in error.inner_text()


def test_a_long_run_says_how_far_it_is_and_then_nothing(notebook):
    chain = "'\\n'.join(f'X{i + 1}[i,k] = X{i}[i,j] * W[j,k]' for i in range(20))"
    opened = notebook([LOAD, f"W = np.eye(1500)\nnet = ein.compile({chain}, X0=W, W=W, sites=2)", "1"])
    page = opened.page
    write(page, "out = net.run()")
    page.keyboard.press("Shift+Enter")
    bar = page.locator('.jp-OutputArea-output [role="progressbar"]')
    bar.wait_for(timeout=60_000)
    assert "tasks" in page.locator(".jp-OutputArea-output").last.inner_text()
    bar.wait_for(state="detached", timeout=120_000)
    assert opened.python("print(out['X20'].shape)") == "(1500, 1500)"

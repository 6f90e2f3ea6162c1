"""A notebook that somebody else ran shows its pictures, although Jupyter takes inline SVG out of it."""

import nbformat
import pytest

import einsummable as ein

pytestmark = pytest.mark.browser

TEXT = "Y[b,h] = relu(sum[d] X[b,d] * W[d,h])"
OUTPUT = ".jp-OutputArea-output"


def committed(picture):
    """Return a cell as it stands in a file: with the output of a kernel that is gone."""
    output = nbformat.v4.new_output(
        "execute_result", data=picture._repr_mimebundle_(), metadata={}, execution_count=1
    )
    return nbformat.v4.new_code_cell("net.picture()", outputs=[output], execution_count=1)


@pytest.mark.parametrize("app", ["lab", "tree"])
def test_pictures_are_seen_before_anything_runs(notebook, app):
    picture = ein.compile(TEXT, X=(64, 32), W=(32, 128), sites=4).picture()
    page = notebook([committed(picture)], app=app, run=False).page
    image = page.locator(f"{OUTPUT} img")
    image.wait_for(timeout=60_000)
    assert image.evaluate("e => e.complete && e.naturalWidth") > 200
    assert page.locator(f"{OUTPUT} svg").count() == 0
    words = page.locator(f"{OUTPUT} figure > div")
    assert "blocks" in words.text_content()  # Jupyter leaves the words of what it takes out
    assert words.bounding_box()["height"] == 0


def test_the_page_of_who_ran_it_has_the_picture_once(notebook):
    code = f"import einsummable as ein\nein.compile({TEXT!r}, X=(64, 32), W=(32, 128), sites=4).picture()"
    page = notebook([code]).page
    assert page.locator(f"{OUTPUT} svg").first.bounding_box()["height"] > 50
    assert page.locator(f"{OUTPUT} img").count() == 0

"""Runs and clusters in a real browser: a run is watched and cancelled, engines are started and stopped."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LOAD = "%load_ext einsummable\nimport numpy as np"
ARRAYS = "A = X0 = np.eye(1200, dtype='f4')"
LINES = "lines = [f'X{{i + 1}}[i,k] = X{{i}}[i,j] * A[j,k]' for i in range({})]"
SMALL = "get_ipython().run_cell_magic('ein', 'small --run --no-show --on cluster', 'y[i] = 2 * x[i]')"
START = "get_ipython().run_cell_magic('ein', 'net --no-show{}', '\\n'.join(lines))"


def state(page):
    return page.locator(".ein-live").last.get_attribute("data-state")


def await_state(page, wanted, seconds=90):
    page.wait_for_function(
        "wanted => [...document.querySelectorAll('.ein-live')].at(-1)?.dataset.state === wanted",
        arg=wanted,
        timeout=seconds * 1000,
    )


def done(page):
    text = page.locator(".ein-live").last.locator(".ein-live-whole").get_attribute("aria-valuetext")
    return int(text.split()[0])


@pytest.mark.cluster
@pytest.mark.parametrize("app", ["lab", "tree"])
def test_a_run_on_two_engines_is_watched_and_cancelled(notebook, app):
    opened = notebook(
        [
            LOAD,
            "%ein_cluster start -n 2",
            ARRAYS,
            LINES.format(200),
            START.format(" --on cluster"),
            "%ein_run net --live",
            "x = np.arange(4.0)",
        ],
        app=app,
    )
    page = opened.page
    page.wait_for_selector(".ein-live")
    page.wait_for_function(
        "() => parseInt(document.querySelector('.ein-live-whole').getAttribute('aria-valuetext')) > 5",
        timeout=120_000,
    )
    assert state(page) == "running"
    assert page.locator(".ein-timeline").count() == 1
    names = page.locator(".ein-live tbody th").all_text_contents()
    assert [name.partition(",")[0] for name in names[:2]] == ["engine 0", "engine 1"]
    page.get_by_role("button", name="Cancel the run").click()
    await_state(page, "cancelled", 30)
    assert 5 < done(page) < int(opened.python("print(len(net.tasks.tasks))"))
    assert page.get_by_role("button", name="Cancel the run").is_disabled()
    assert opened.python("print(type(ein_live.error).__name__)") == "CancelledError"
    # and the cluster is usable
    opened.python(
        "get_ipython().run_cell_magic('ein', 'small --run --no-show --on cluster', 'y[i] = 2 * x[i]')"
    )
    assert opened.python("print(y.tolist())") == "[0.0, 2.0, 4.0, 6.0]"
    opened.python("%ein_cluster stop")


def test_a_run_on_threads_comes_to_its_end_and_binds_its_results(notebook):
    opened = notebook(
        [LOAD, ARRAYS, LINES.format(30), START.format(" --sites 2"), "%ein_run net --live"],
    )
    await_state(opened.page, "done")
    assert done(opened.page) == int(opened.python("print(len(net.tasks.tasks))"))
    assert "done in" in opened.page.locator(".ein-live").inner_text()
    assert opened.python("print(X30.shape)") == "(1200, 1200)"
    # a cell that runs meanwhile is not kept waiting, and the same run again is one more widget
    assert opened.page.locator(".ein-live").count() == 1


def test_what_is_refused_is_said_in_the_widget(notebook):
    opened = notebook(
        [
            LOAD,
            "A = np.ones((3, 3))",
            "%%ein net --no-show\nB[i,j] = A[i,j]",
            "net.run_live(A=np.ones((2, 2)))",
        ],
    )
    await_state(opened.page, "failed")
    assert "A has shape (2, 2)" in opened.page.locator(".ein-live .ein-error").inner_text()


@pytest.mark.cluster
def test_the_panel_starts_and_stops_engines(notebook):
    opened = notebook([LOAD, "%ein_cluster"])
    page = opened.page
    panel = page.locator(".ein-cluster")
    assert "no cluster" in panel.inner_text()
    panel.get_by_role("spinbutton", name="engines").fill("2")
    panel.get_by_role("button", name="Start engines").click()
    page.wait_for_selector('.ein-cluster[data-state="running"]', timeout=120_000)
    assert panel.locator("tbody tr").count() == 2
    assert "MB" in panel.locator("tbody tr").first.inner_text()
    assert opened.python("print(ein_cluster.n)") == "2"
    opened.python("x = np.arange(4.0)")
    opened.python(SMALL)
    assert opened.python("print(y.tolist())") == "[0.0, 2.0, 4.0, 6.0]"
    panel.get_by_role("button", name="Stop the engines").click()
    page.wait_for_selector('.ein-cluster[data-state="none"]', timeout=60_000)
    assert opened.python("print('ein_cluster' in globals())") == "False"

"""What browser tests share: one Lab server, one chromium, and notebooks that are run in them.

A test asks for ``notebook``, gives it cells and an application ("lab" or "tree", which is Notebook 7), and
gets a page in which all cells have run.  When it ends, no error may stand in the page's console.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import nbformat
import pytest

sync_api = pytest.importorskip("playwright.sync_api")

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--force-color-profile=srgb",
)  # fmt: skip
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}

#: Said by Jupyter itself on every page, whatever is on it.
_NOT_OURS = re.compile(
    "favicon|Failed to load resource|WebSocket connection|ERR_ABORTED|preload|restore the debugger state"
    r"|undefined \(reading 'schema'\)|'filebrowser:open-path' not"  # Notebook 7, of what only Lab has
)

_RUN_ALL = "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"
_READY = """() => {
  const shown = window.jupyterapp?.shell?.currentWidget;
  return shown?.sessionContext?.isReady && shown?.sessionContext?.session?.kernel?.status === 'idle';
}"""
_DONE = """() => {
  const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(e => e.textContent);
  return prompts.length > 0 && !prompts.some(t => t.includes('*'));
}"""


@pytest.fixture(scope="package")
def chromium():
    """A headless browser, gone with these tests: its event loop would be in the way of others."""
    with sync_api.sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def jupyter(tmp_path_factory):
    """A Lab server (which serves Notebook 7, too): its address and the folder of its notebooks."""
    home = tmp_path_factory.mktemp("jupyter")
    folder = home / "notebooks"
    settings = home / "settings" / "@jupyterlab"
    folder.mkdir()
    (settings / "apputils-extension").mkdir(parents=True)
    (settings / "apputils-extension" / "notification.jupyterlab-settings").write_text(
        json.dumps({"fetchNews": "false", "checkForUpdates": False})
    )
    (settings / "notebook-extension").mkdir()
    (settings / "notebook-extension" / "tracker.jupyterlab-settings").write_text(
        json.dumps({"windowingMode": "none"})  # what is out of sight is in the page all the same
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = (
        "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0",
        "--IdentityProvider.token=", "--ServerApp.password=", "--ServerApp.disable_check_xsrf=True",
        f"--ServerApp.root_dir={folder}", "--LabApp.news_url=None", "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    )  # fmt: skip
    places = {
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": home / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": home / "workspaces",
        "IPYTHONDIR": home / "ipython",
    }
    with open(home / "server.log", "w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter", "lab", *options],
            env={**os.environ, **{name: str(path) for name, path in places.items()}},
            stdout=log,
            stderr=log,
            start_new_session=True,  # kernels are children of it: they end with their group
        )
    try:
        _await_server(server, port, home / "server.log")
        yield f"http://127.0.0.1:{port}", folder
    finally:
        _end(server)


def _await_server(server, port, log):
    for _ in range(480):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api", timeout=2):
                return
        except OSError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.25)
    raise AssertionError(f"the server did not start: {log.read_text()}")


def _end(server):
    """End the server and all that it started, kernels in sessions of their own included."""
    import psutil

    children = psutil.Process(server.pid).children(recursive=True) if server.poll() is None else []
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait(5)
    for child in children:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(children, timeout=5)


class Page:
    """A notebook in a browser page, and what its console said."""

    def __init__(self, page, base, name):
        self.page, self.base, self.name = page, base, name
        self.errors = []
        page.on("console", lambda m: self._said(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: self._said(f"pageerror: {e}"))

    def _said(self, text):
        if not _NOT_OURS.search(text):
            self.errors.append(text[:500])

    def run_all(self, timeout=180):
        """Run all cells and wait until they have run."""
        self.page.wait_for_function(_READY, timeout=timeout * 1000)
        self.page.evaluate(_RUN_ALL)
        self.page.wait_for_function(_DONE, timeout=timeout * 1000)

    def outputs_in_error(self):
        """Return the texts of outputs that are errors or were written to stderr."""
        kinds = ("application/vnd.jupyter.error", "application/vnd.jupyter.stderr")
        found = ", ".join(f'.jp-OutputArea-output[data-mime-type="{kind}"]' for kind in kinds)
        return self.page.locator(found).all_text_contents()

    def python(self, code):
        """Run `code` in the notebook's kernel and return what it prints."""
        return self.page.evaluate(
            """async code => {
              const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
              const future = kernel.requestExecute({code, store_history: false});
              let text = '';
              future.onIOPub = m => {
                if (m.header.msg_type === 'stream') text += m.content.text;
                if (m.header.msg_type === 'error') text += m.content.traceback.join('\\n');
              };
              await future.done;
              return text;
            }""",
            code,
        ).strip()


@pytest.fixture
def notebook(jupyter, chromium):
    """Open a notebook of the given cells, run it, and return its `Page`: ``notebook(cells, app="lab")``."""
    with notebooks(jupyter, chromium) as start:
        yield start


@pytest.fixture(scope="module")
def lasting_notebook(jupyter, chromium):
    """The same for pages that all tests of a module share."""
    with notebooks(jupyter, chromium) as start:
        yield start


@contextmanager
def notebooks(jupyter, chromium):
    """Give a function that opens notebooks; in the end close them, and see that no console had errors."""
    base, folder = jupyter
    opened, contexts = [], []

    def start(cells, *, app="lab", width=1400, height=1000, theme="light", name="test", run=True):
        path = folder / f"{name}-{len(opened)}-{time.monotonic_ns()}.ipynb"
        made = nbformat.v4.new_notebook(
            cells=[c if isinstance(c, dict) else nbformat.v4.new_code_cell(c) for c in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        )
        nbformat.write(made, path)
        _choose_theme(folder.parent, theme)
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
        contexts.append(context)
        page = Page(context.new_page(), base, path.name)
        opened.append(page)
        where = f"lab/tree/{path.name}?reset" if app == "lab" else f"notebooks/{path.name}"
        page.page.goto(f"{base}/{where}", wait_until="domcontentloaded")
        page.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=120_000)
        if run:
            page.run_all()
            assert not page.outputs_in_error()
        else:
            page.page.wait_for_function(_READY, timeout=180_000)
        return page

    yield start
    for page in opened:
        _shut_down(page)
    for context in contexts:
        context.close()
    assert [error for page in opened for error in page.errors] == []


def _choose_theme(home, theme):
    chosen = home / "settings" / "@jupyterlab" / "apputils-extension" / "themes.jupyterlab-settings"
    chosen.write_text(json.dumps({"theme": THEMES[theme]}))


def _shut_down(page):
    """End the kernel of a page: two cores are few."""
    page.page.evaluate("() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.shutdown()")

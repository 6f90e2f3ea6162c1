"""The browser's half: bundles are what their sources make, clean, and tested by node's own runner."""

import shutil
import subprocess
from pathlib import Path

import pytest

WIDGETS = Path(__file__).parents[1] / "widgets"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs the program npm, which users do not"),
]


@pytest.fixture(scope="module")
def npm():
    """Run npm in the widgets' folder, its packages installed."""

    def run(*arguments):
        done = subprocess.run(["npm", *arguments], cwd=WIDGETS, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    if not (WIDGETS / "node_modules").exists():
        run("ci", "--no-fund", "--no-audit")
    return run


def test_bundles_are_what_their_sources_make(npm, tmp_path):
    npm("run", "build", "--", str(tmp_path))
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert "einsummable.css" in made
    assert made == {path.name: path.read_text() for path in (WIDGETS / "static").iterdir()}


def test_sources_are_formatted_and_without_lint(npm):
    npm("run", "lint")


def test_units(npm):
    npm("test")

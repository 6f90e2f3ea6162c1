"""What every test file shares: golden text and the hypothesis profile."""

import re
from pathlib import Path

import pytest
from hypothesis import settings

GOLDEN = Path(__file__).parent / "golden"

# Same examples in every run, so that a red run can be run again; `--hypothesis-profile=default` explores.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/ from this run")


@pytest.fixture
def golden(request):
    """Compare text with ``tests/golden/<test module>/<test name>.txt``: ``golden(str(thing))``."""
    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    path = GOLDEN / request.path.stem / f"{name}.txt"

    def check(actual):
        actual = f"{actual}\n"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(actual, encoding="utf-8")
        assert path.exists(), f"no golden file {path}; run pytest --update-golden and read the diff"
        assert actual == path.read_text(encoding="utf-8")

    return check

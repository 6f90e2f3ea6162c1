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


def pytest_collection_modifyitems(config, items):
    """Try a fifth of the random programs, ten at least, where slow tests are left out."""
    if "not slow" in config.option.markexpr:
        for test in {item.obj for item in items if getattr(item.obj, "is_hypothesis_test", False)}:
            given = test._hypothesis_internal_use_settings  # hypothesis lets nobody set them twice
            few = min(given.max_examples, max(10, given.max_examples // 5))
            test._hypothesis_internal_use_settings = settings(given, max_examples=few)


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

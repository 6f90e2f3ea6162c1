"""Every notebook runs from top to bottom in a real kernel, and is committed with what it shows.

The exercises of the course are cells whose first line is an answer that is left open.  Their metadata holds a
``solution`` and a ``wrong`` answer, which the notebook's own check tells apart.
"""

import json
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(ROOT.glob("*.ipynb"))
COURSE = sorted((ROOT / "course").glob("*.ipynb"))


@pytest.mark.parametrize("paths", [NOTEBOOKS, COURSE], ids=["notebooks", "course"])
def test_notebooks_are_numbered(paths):
    assert paths
    assert [path.stem[:2] for path in paths] == [f"{i:02d}" for i in range(1, len(paths) + 1)]


@pytest.mark.parametrize("path", NOTEBOOKS + COURSE, ids=lambda path: path.stem)
def test_what_is_committed_is_small_whole_and_in_order(path):
    assert path.stat().st_size <= 300_000
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(len(cell.source.splitlines()) <= 8 for cell in code)
    assert not [
        o
        for cell in code
        for o in cell.outputs
        if o.output_type in ("error", "stream") and o.get("name") == "stderr"
    ]
    assert any("assert" in cell.source for cell in code[-3:])
    assert "/tmp" not in json.dumps(notebook)


@pytest.mark.parametrize("path", COURSE, ids=lambda path: path.stem)
def test_the_course_asks(path):
    cells = nbformat.read(path, as_version=4).cells
    asked = [cell for cell in cells if "solution" in cell.metadata]
    assert len(asked) >= 2
    for cell in asked:
        first, *_ = cell.source.splitlines()
        assert first.endswith(" = ...")
        assert "○ Your turn" in cell.outputs[-1]["data"]["text/plain"]
    said = [cell for cell in cells if cell.cell_type == "markdown" and "**Your turn.**" in cell.source]
    assert len(said) == len(asked)


def executed(notebook, folder):
    """Run a notebook; return the outputs of its code cells in one list."""
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    outputs = executed(nbformat.read(path, as_version=4), tmp_path)
    assert any("text/html" in o.get("data", {}) for o in outputs)
    assert not [o for o in outputs if o.get("name") == "stderr"]


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("path", COURSE, ids=lambda path: path.stem)
def test_exercises_tell_right_from_wrong(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        for kind in ("wrong", "solution"):
            if kind in cell.metadata:
                tried = deepcopy(cell)
                del tried["id"]
                _, _, rest = cell.source.partition("\n")
                tried.source = f"{cell.metadata[kind]}\n{rest}"
                cells.append(tried)
    notebook.cells = cells
    outputs = executed(notebook, tmp_path)
    said = [o["data"]["text/plain"][0] for o in outputs if "text/plain" in o.get("data", {})]
    marks = [mark for mark in said if mark in "○✗✓"]
    assert marks == ["○", "✗", "✓"] * (len(marks) // 3)
    assert len(marks) >= 6
    assert not [o for o in outputs if o.get("name") == "stderr"]

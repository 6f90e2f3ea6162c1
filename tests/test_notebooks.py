"""Every notebook runs from top to bottom in a real kernel, and is committed with what it shows."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"{i:02d}" for i in range(1, len(NOTEBOOKS) + 1)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
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


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    outputs = [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]
    assert any("text/html" in o.get("data", {}) for o in outputs)
    assert not [o for o in outputs if o.get("name") == "stderr"]

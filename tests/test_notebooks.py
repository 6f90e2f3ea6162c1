"""Every notebook runs in the environment that Binder makes, and is committed with what it shows.

The exercises of the course are cells whose first line is an answer that is left open.  Their metadata holds a
``solution`` and a ``wrong`` answer, which the notebook's own check tells apart.
"""

import json
import os
import subprocess
from copy import deepcopy

import nbformat
import pytest
from environments import ROOT, fresh
from nbclient import NotebookClient

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
COURSE = sorted((ROOT / "notebooks" / "course").glob("*.ipynb"))


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


@pytest.fixture(scope="module")
def binder(tmp_path_factory):
    """Make the environment that Binder makes of the repository; return the name of its kernel."""
    folder = tmp_path_factory.mktemp("binder")
    programs = fresh(folder / "venv")
    path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "binder/postBuild"], cwd=ROOT, env=os.environ | path, check=True)
    spec = folder / "share" / "kernels" / "binder" / "kernel.json"
    spec.parent.mkdir(parents=True)
    start = [str(programs / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": start, "display_name": "Binder", "language": "python", "env": path}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder / "share"))
        yield "binder"


def executed(notebook, folder, kernel):
    """Run a notebook; return the outputs of its code cells in one list."""
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=120, resources=where, kernel_name=kernel).execute()
    return [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path, binder):
    outputs = executed(nbformat.read(path, as_version=4), tmp_path, binder)
    assert any("text/html" in o.get("data", {}) for o in outputs)
    assert not [o for o in outputs if o.get("name") == "stderr"]


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("path", COURSE, ids=lambda path: path.stem)
def test_exercises_tell_right_from_wrong(path, tmp_path, binder):
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
    outputs = executed(notebook, tmp_path, binder)
    said = [o["data"]["text/plain"][0] for o in outputs if "text/plain" in o.get("data", {})]
    marks = [mark for mark in said if mark in "○✗✓"]
    assert marks == ["○", "✗", "✓"] * (len(marks) // 3)
    assert len(marks) >= 6
    assert not [o for o in outputs if o.get("name") == "stderr"]


def test_binder_asks_for_a_python_that_will_do():
    (version,) = (ROOT / "binder" / "runtime.txt").read_text().split()
    assert version == "python-3.11"
    assert (ROOT / "binder" / "apt.txt").read_text().split() == ["graphviz"]
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK)

"""A wheel, installed where there is nothing else, runs the quick start without node, dot and network."""

import json
import subprocess
import sys
import zipfile

import pytest
from environments import ROOT, alone, fresh

pytestmark = pytest.mark.slow

#: Runs a notebook and prints how many outputs of each kind it has.
RUN = """
import json, sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
outputs = [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]
print(json.dumps({
    "html": sum("text/html" in o.get("data", {}) for o in outputs),
    "stderr": [o["text"] for o in outputs if o.get("name") == "stderr"],
}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    (found,) = folder.glob("einsummable-*.whl")
    return found


def test_the_wheel_holds_what_is_no_python(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"einsummable/language/grammar.lark", "einsummable/language/prelude.ein"} <= names
    shipped = {f"einsummable/widgets/static/{path.name}" for path in (ROOT / "widgets/static").iterdir()}
    assert shipped
    assert shipped <= names
    assert not [n for n in names if n.startswith(("tests/", "notebooks/", "widgets/")) or "node_modules" in n]


def test_the_wheel_runs_the_quick_start(wheel, tmp_path):
    programs = fresh(tmp_path / "venv")
    subprocess.run([programs / "pip", "install", "-q", f"einsummable[notebook] @ file://{wheel}"], check=True)
    notebook = ROOT / "notebooks" / "01_first_formula.ipynb"
    ran = subprocess.run(
        [programs / "python", "-c", RUN, str(notebook)],
        cwd=tmp_path,
        env=alone(programs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["html"] >= 3
    assert told["stderr"] == []

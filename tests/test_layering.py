"""The one-way street: a module imports only from layers below its own, and the package imports light."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "einsummable"

#: Bottom first.  A name on a line may import any name on an earlier line, none on its own or a later one.
LAYERS = [
    {"errors", "course", "progress"},
    {"dtypes"},
    {"mapped"},
    {"optimizers", "tensorfile"},
    {"codec"},
    {"functions"},
    {"scalar"},
    {"onehot"},
    {"nodes"},
    {"work"},
    {"graph"},
    {"evaluate"},
    {"builder"},
    {"contract", "rematerialise"},
    {"autodiff"},
    {"language", "equation"},
    {"arguments"},
    {"lazy"},
    {"kernels"},
    {"planner"},
    {"taskgraph"},
    {"choose"},
    {"fit"},
    {"setting"},
    {"exploring"},
    {"runtime"},
    {"calibration"},
    {"views"},
    {"display", "background", "progressbar"},
    {"options"},
    {"widgets"},
    {"interactive"},
    {"planned"},
    {"compiled"},
    {"pipeline"},
    {"training"},
    {"models"},
    {"completion"},
    {"magic_completion", "magic_options"},
    {"magics"},
    {"cli"},
]
RANK = {name: i for i, layer in enumerate(LAYERS) for name in layer}


def imported(source: str):
    """Yield (line, module) for each import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, a.name) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write absolute imports"
            if node.module == "einsummable":
                yield from ((node.lineno, f"einsummable.{a.name}") for a in node.names)
            else:
                yield node.lineno, node.module


def upward(me: str, source: str) -> list[str]:
    """Return a line for each import of `source`, a module of layer `me`, that does not point down."""
    found = []
    for line, name in imported(source):
        root, _, rest = name.partition(".")
        other = rest.partition(".")[0]
        if root == "einsummable" and other != me and RANK[other] >= RANK[me]:
            found.append(f"{line}: {me} (layer {RANK[me]}) imports {other} (layer {RANK[other]})")
    return found


def sources():
    """Every module of the package, the widgets included."""
    return sorted(ROOT.rglob("*.py")) + sorted((ROOT.parent / "widgets").rglob("*.py"))


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT.parent)))
def test_imports_point_down(path):
    widget = path.is_relative_to(ROOT.parent / "widgets")
    me = "widgets" if widget else path.relative_to(ROOT).parts[0].removesuffix(".py")
    if me in ("__init__", "__main__"):
        return
    assert me in RANK, f"{me} is not in LAYERS: give it a place"
    assert not upward(me, path.read_text())


def test_an_upward_import_is_found():
    assert upward("graph", "def f():\n    from einsummable.planner import plan\n") == [
        f"2: graph (layer {RANK['graph']}) imports planner (layer {RANK['planner']})"
    ]
    assert upward("planner", "from einsummable import graph, errors\nimport numpy\n") == []


@pytest.mark.parametrize("module", ["einsummable", "einsummable.runtime.engine"])
def test_the_import_is_light(module):
    code = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    heavy = {"IPython", "ipyparallel", "ipywidgets", "anywidget", "scipy", "sklearn", "graphviz", "lark"}
    assert not heavy & set(loaded)
    if module != "einsummable":
        ours = {name.split(".")[1] for name in loaded if name.startswith("einsummable.")}
        assert not ours & {"language", "planner", "views", "pipeline", "magics", "cli"}

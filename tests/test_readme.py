"""The README's code runs as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

README = Path(__file__).parents[1] / "README.md"


def test_the_quick_start_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        done = subprocess.run(
            [sys.executable, "-c", block], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("(64, 10)\n")


def test_every_line_of_the_table_compiles():
    import einsummable as ein

    text = README.read_text(encoding="utf-8")
    shown = re.findall(r"^\| [^|]+ \| `(.+?)` \|$", text, re.MULTILINE)
    assert len(shown) >= 7
    shapes = {
        "A": (5, 5), "B": (5, 6), "X": (4, 8), "W": (8, 6), "S": (3, 7), "Q": (2, 5, 3), "K": (2, 5, 3),
        "T": (3, 8), "L": (5, 5), "E": (9, 4), "tok": np.arange(3), "old": (4, 3), "new": (2, 3), "x": (6,),
    }  # fmt: skip
    for line in shown:
        for formula in re.split(r"`, `", line):
            if "def " in formula:
                formula += "\nZ[b] = mse[k](S[b,k], S[b,k])"
            prefix = "extent h = 2\n" if "(h d)" in formula else ""
            assert ein.compile(prefix + formula, sites=2, **shapes).graph.outputs

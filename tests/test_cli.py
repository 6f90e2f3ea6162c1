"""The command line."""

import pytest

from einsummable import cli

PROGRAM = "input A[i=6, j=4] f64\ninput x[j=4] f64\nb[i] = A[i,j] * x[j]\n"


def test_plan_prints_the_graph_and_the_plan(tmp_path, capsys):
    path = tmp_path / "program.ein"
    path.write_text(PROGRAM)
    assert cli.main(["plan", str(path), "--sites", "3"]) == 0
    printed = capsys.readouterr().out
    assert "[i] sum[j] x*y" in printed
    assert "eindecomp" in printed.lower()


def test_a_wrong_program_is_one_message_and_status_1(tmp_path, capsys):
    path = tmp_path / "wrong.ein"
    path.write_text("input A[i=6, j=4] f64\nb[i] = A[i]\n")
    assert cli.main(["plan", str(path)]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("ShapeError: ")
    assert "^" in printed
    assert "Traceback" not in printed


def test_an_unknown_benchmark_is_named(capsys):
    assert cli.main(["bench", "nothing"]) == 1
    assert "no benchmark called 'nothing'" in capsys.readouterr().err


@pytest.mark.cluster
@pytest.mark.slow
def test_the_demo_equals_numpy(tmp_path, capsys):
    assert cli.main(["demo", "--size", "256", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("equals numpy") >= 4
    assert printed.rstrip().endswith("everything equals numpy")
    assert len(list(tmp_path.glob("*.svg"))) >= 8

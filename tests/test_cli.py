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


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe", "is no text in UTF-8"), (None, "cannot be read: No such file")],
)
def test_a_file_that_is_no_text(content, message, tmp_path, capsys):
    path = tmp_path / "program.ein"
    if content is not None:
        path.write_bytes(content)
    assert cli.main(["plan", str(path)]) == 1
    assert message in capsys.readouterr().err


def test_a_byte_order_mark_and_dos_line_ends_are_no_part_of_a_program(tmp_path, capsys):
    path = tmp_path / "program.ein"
    path.write_bytes(b"\xef\xbb\xbf" + PROGRAM.replace("\n", "\r\n").encode())
    assert cli.main(["plan", str(path), "-p", "2"]) == 0
    assert "p = 2" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["plan", "-", "--sites", "0"], ["demo", "--size", "-5"], []])
def test_wrong_arguments_are_told_with_the_usage(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    assert capsys.readouterr().err.startswith("usage: ")


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

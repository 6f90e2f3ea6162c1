"""The magics in a real IPython shell: what they bind, what they show, and how they fail."""

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from einsummable.background import LiveRun
from einsummable.graph import EinGraph
from einsummable.pipeline import Compiled

MATMUL = "C[i,k] = A[i,j] * B[j,k]\n"


@pytest.fixture
def shell():
    """A shell with the extension loaded and two arrays in its namespace."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "einsummable")
    shell.user_ns.update(A=np.arange(6.0).reshape(2, 3), B=np.ones((3, 4)), lr=2.0)
    yield shell
    shell.run_line_magic("unload_ext", "einsummable")
    InteractiveShell.clear_instance()


def run(shell, code):
    """Run a cell; return its captured output, and the error it ended in."""
    with capture_output() as captured:
        result = shell.run_cell(code)
    return captured, result.error_in_exec or result.error_before_exec


def test_a_cell_builds_a_graph_and_shows_it(shell):
    captured, error = run(shell, "%%ein G\n" + MATMUL)
    assert error is None
    assert isinstance(shell.user_ns["G"], Compiled)
    assert isinstance(shell.user_ns["G"].graph, EinGraph)
    (shown,) = captured.outputs
    assert "<svg" in shown.data["text/html"]
    assert "C" not in shell.user_ns


def test_run_binds_the_results(shell):
    _, error = run(shell, "%%ein --run --sites 3 --no-show\n" + MATMUL)
    assert error is None
    np.testing.assert_array_equal(shell.user_ns["C"], shell.user_ns["A"] @ shell.user_ns["B"])


def test_ein_run_takes_the_arrays_and_scalars_of_now(shell):
    run(shell, "%%ein G\nZ[i,j] = A[i,j] * lr")
    shell.user_ns.update(A=np.ones((2, 3)), lr=5.0)
    captured, error = run(shell, "%ein_run G")
    assert error is None
    assert shell.user_ns["Z"].tolist() == [[5.0] * 3] * 2
    assert "2 sites" in captured.outputs[0].data["text/plain"]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ({"lr": 0.5}, np.full((2, 3), 0.5)),
        ({"A": np.ones((4, 1))}, np.full((4, 1), 2.0)),
        ({"A": np.ones((2, 3), "f4")}, np.full((2, 3), 2, "f4")),
    ],
)
def test_ein_run_compiles_again_where_kinds_have_changed(shell, now, expected):
    shell.user_ns.update(A=np.ones((2, 3)), lr=2)
    run(shell, "%%ein G --sites 3 -p 6\nZ[i,j] = A[i,j] * lr")
    before = shell.user_ns["G"]
    run(shell, "%ein_run G --no-show")
    assert shell.user_ns["G"] is before
    shell.user_ns.update(now)
    _, error = run(shell, "%ein_run G --no-show")
    assert error is None
    assert (shell.user_ns["G"].sites, shell.user_ns["G"].p) == (3, 6)
    assert shell.user_ns["Z"].dtype == expected.dtype
    np.testing.assert_array_equal(shell.user_ns["Z"], expected)


def test_braces_and_dollars_are_left_alone(shell):
    shell.user_ns["x"] = np.ones(3)
    _, error = run(shell, "%%ein --run --no-show\nZ[i] = x[i]  # {A} $A")
    assert error is None
    assert shell.user_ns["Z"].tolist() == [1.0] * 3


def test_plan_and_explain(shell):
    run(shell, "%%ein G --sites 2\n" + MATMUL)
    captured, error = run(shell, "%ein_plan G --sites 4")
    assert error is None
    assert shell.user_ns["G"].sites == 4
    assert len(captured.outputs) == 2
    run(shell, "%ein_plan G -p 8")
    assert (shell.user_ns["G"].sites, shell.user_ns["G"].p) == (4, 8)
    captured, error = run(shell, "%ein_explain G")
    assert error is None
    assert "single site" in captured.outputs[0].data["text/plain"]


def test_a_wrong_formula_shows_its_message_and_no_python(shell):
    captured, error = run(shell, "%%ein\nC[i,k] = A[i,j] * B[k,j]")
    assert type(error).__name__ == "ShapeError"
    lines = captured.stdout.strip().split("\n")
    assert lines[0].startswith("ShapeError: label 'j' is 3 in A but 4 in B")
    assert "^" in captured.stdout
    assert "Traceback" not in captured.stdout
    assert ".py" not in captured.stdout


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%ein_run H", "'H' is no program of this notebook"),
        ("%%ein --run --on cluster\n" + MATMUL, "there is no cluster yet"),
        ("%%ein --on moon\n" + MATMUL, "--on takes 'local' or 'cluster'"),
        ("%%ein for\n" + MATMUL, "'for' is no name"),
        ("%%ein --sites 0 --run\n" + MATMUL, "sites must be a whole number from 1"),
        ("%%ein --colour red\n" + MATMUL, "unrecognized arguments: --colour"),
        ("%ein_cluster info", "there is no cluster yet"),
    ],
)
def test_wrong_use_is_one_message(shell, cell, message):
    before = set(shell.user_ns)
    captured, error = run(shell, cell)
    assert error is not None
    assert message in captured.stdout + captured.stderr
    assert "Traceback" not in captured.stdout + captured.stderr
    assert not {"C", "G", "H"} & (set(shell.user_ns) - before)


@pytest.mark.parametrize(
    ("cell", "offered", "refused"),
    [
        ("%%ein G\nC[i,k] = A[i,j] * rel", {"relu"}, {"reload"}),
        ("%%ein G\nC[i,k] = A[", {"i", "k"}, {"relu"}),
        ("%%ein G --no", {"--no-show"}, {"relu"}),
        ("%%ein G\nC[row,k] = A[ro", {"row"}, {"round"}),
        ("%%ein_other\nrel", set(), {"relu"}),
        ("%%ein --me", {"--memory"}, {"--memoryview"}),
        ("%ein_run --li", {"--live"}, {"license", "list"}),
        ("watched = %ein_run mat", {"matmul"}, {"math"}),
        ("%ein_explain matmul ma", set(), {"matmul"}),
        ("%ein_cluster st", {"start", "stop"}, {"staticmethod"}),
        ("%ein_nothing st", set(), {"start"}),
    ],
)
def test_completion_inside_a_cell(shell, cell, offered, refused):
    run(shell, f"%%ein matmul --no-show\n{MATMUL}")
    with provisionalcompleter():
        found = {c.text for c in shell.Completer.completions(cell, len(cell))}
    assert offered <= found
    assert not refused & found


def test_loading_twice_registers_once_and_unloading_takes_all_back(shell):
    before = len(shell.Completer.custom_matchers)
    shell.run_line_magic("reload_ext", "einsummable")
    assert len(shell.Completer.custom_matchers) == before
    shell.run_line_magic("unload_ext", "einsummable")
    assert len(shell.Completer.custom_matchers) == before - 1
    assert shell.find_cell_magic("ein") is None
    shell.run_line_magic("load_ext", "einsummable")


@pytest.mark.cluster
@pytest.mark.slow
def test_a_cluster_from_start_to_stop(shell):
    captured, error = run(shell, "%ein_cluster start -n 2 --threads 1")
    assert error is None
    assert captured.stdout == captured.stderr == ""
    assert "threads" in captured.outputs[0].data["text/plain"]
    _, error = run(shell, "%%ein G --run --on cluster --no-show\n" + MATMUL)
    assert error is None
    np.testing.assert_array_equal(shell.user_ns["C"], shell.user_ns["A"] @ shell.user_ns["B"])
    _, error = run(shell, "%%ein --run --on cluster --keep --no-show\nS[i,k] = A[i,j] * B[j,k]")
    assert error is None
    _, error = run(shell, "%%ein --run --on cluster --no-show\nt = S[i,k]")
    assert error is None
    assert float(shell.user_ns["t"]) == shell.user_ns["C"].sum()
    _, error = run(shell, "%ein_cluster stop")
    assert error is None
    assert "ein_cluster" not in shell.user_ns


# --------------------------------------------------------------------------------- planning options


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--memory 2GB", {"memory": 2_000_000_000}),
        ("--sites 3 -p 6", {"sites": 3, "p": 6}),
        ("--sites 4 --pin C:i=2,k=2 --pin A:d0=1", {"pins": {"C": {"i": 2, "k": 2}, "A": {"d0": 1}}}),
    ],
)
def test_options_of_a_plan_are_those_of_compile(shell, options, expected):
    _, error = run(shell, f"%%ein G --no-show {options}\n{MATMUL}")
    assert error is None
    for name, value in expected.items():
        assert getattr(shell.user_ns["G"], name) == value
    assert shell.user_ns["G"].tasks.sites == shell.user_ns["G"].sites


@pytest.mark.parametrize(
    ("options", "hosts", "name"),
    [
        ("--sites 5 --hosts 2", (0, 0, 0, 1, 1), "cluster"),
        ("--sites 2 --hosts 1", (0, 0), "host"),
        ("--sites 3 --objective time", (0, 0, 0), "host"),
        ("--hardware mine", (0, 1), "two"),
    ],
)
def test_hardware_is_said_by_hosts_objective_or_name(shell, options, hosts, name):
    from dataclasses import replace

    from einsummable.planner.hardware import host

    shell.user_ns["mine"] = replace(host(2), name="two", hosts=(0, 1))
    _, error = run(shell, f"%%ein G --no-show {options}\n{MATMUL}")
    assert error is None
    net = shell.user_ns["G"]
    assert net.hardware.hosts == hosts
    assert net.hardware.name == name
    assert net.sites == len(hosts)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--hosts 2 --objective bytes", "the fewest bytes are the same on any hardware"),
        ("--hosts 3 --sites 2", "2 sites cannot be on 3 hosts"),
        ("--hosts 2 --hardware mine", "leave out --hosts"),
        ("--hardware mine", "'mine' is no Hardware of this notebook"),
        ("--pin C", "--pin takes a tensor and its cuts"),
        ("--pin C:i=two", "--pin takes a tensor and its cuts"),
        ("--memory lots", "lots"),
        ("--plan-from nowhere.json", "nowhere.json"),
    ],
)
def test_options_that_cannot_be_are_refused(shell, options, words):
    _, error = run(shell, f"%%ein G --no-show {options}\n{MATMUL}")
    assert error is not None
    assert words in str(error)
    assert "G" not in shell.user_ns


def test_a_plan_that_was_saved_is_used_again(shell, tmp_path):
    run(shell, f"%%ein G --no-show --sites 4 --pin C:i=2,k=2\n{MATMUL}")
    shell.user_ns["G"].save_plan(tmp_path / "plan.json")
    _, error = run(shell, f"%%ein H --no-show --sites 4 --plan-from {tmp_path / 'plan.json'}\n{MATMUL}")
    assert error is None
    assert shell.user_ns["H"].plan == shell.user_ns["G"].plan


def test_planning_again_keeps_what_no_option_says(shell):
    run(shell, f"%%ein G --no-show --sites 4 --memory 1GB --pin C:i=2,k=2\n{MATMUL}")
    _, error = run(shell, "%ein_plan G --memory 2GB")
    assert error is None
    assert (shell.user_ns["G"].memory, shell.user_ns["G"].sites) == (2_000_000_000, 4)
    run(shell, "%ein_plan G --sites 2")
    assert (shell.user_ns["G"].sites, shell.user_ns["G"].memory) == (2, 2_000_000_000)
    assert shell.user_ns["G"].pins == {"C": {"i": 2, "k": 2}}


# ------------------------------------------------------------------------------------------ widgets


def test_a_live_run_is_shown_and_binds_its_results_when_they_are_there(shell):
    run(shell, f"%%ein G --no-show\n{MATMUL}")
    captured, error = run(shell, "%ein_run G --live")
    assert error is None
    figures, timeline = (shown.data for shown in captured.outputs)
    assert "tasks" in figures["text/plain"]
    assert "site 1" in timeline["text/plain"]
    assert isinstance(shell.user_ns["ein_live"], LiveRun)
    shell.user_ns["ein_live"].result(timeout=30)
    np.testing.assert_array_equal(shell.user_ns["C"], shell.user_ns["A"] @ shell.user_ns["B"])


def test_a_cell_can_run_live(shell):
    captured, error = run(shell, f"%%ein G --run --live\n{MATMUL}")
    assert error is None
    assert len(captured.outputs) == 3
    assert shell.user_ns["ein_live"].result(timeout=30)["C"].shape == (2, 4)


def test_steps_are_shown_with_the_arrays_of_now(shell):
    run(shell, f"%%ein G --no-show\n{MATMUL}")
    shell.user_ns["A"] = np.full((2, 3), 7.0)
    captured, error = run(shell, "%ein_steps G")
    assert error is None
    (shown,) = captured.outputs
    assert "21" in shown.data["text/plain"]


def test_tasks_and_timeline_are_shown(shell):
    run(shell, f"%%ein G --sites 2 --run --no-show\n{MATMUL}")
    for line, words in (("%ein_tasks G", "kernel call"), ("%ein_timeline G", "measured: ")):
        captured, error = run(shell, line)
        assert error is None
        (shown,) = captured.outputs
        assert words in shown.data["text/plain"]
        assert "application/vnd.jupyter.widget-view+json" in shown.data
    assert shell.user_ns["G"].observers == []
    run(shell, "%ein_timeline G --live")
    assert len(shell.user_ns["G"].observers) == 1


def test_a_panel_of_no_cluster(shell):
    captured, error = run(shell, "%ein_cluster")
    assert error is None
    assert "no cluster" in captured.outputs[0].data["text/plain"]


def test_a_program_is_explored(shell):
    run(shell, "%%ein G --sites 2\n" + MATMUL)
    captured, error = run(shell, "%ein_explore G")
    assert error is None
    (shown,) = captured.outputs
    assert "EinDecomp" in shown.data["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in shown.data

"""Our plans against those of a published planner, where its answers are at hand."""

import sys
from pathlib import Path

import golden_graphs
import pytest
from golden_graphs import FOLDER, cases, reference_plan

from einsummable.planner.hardware import cluster
from einsummable.taskgraph.lower import lower

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))

import bench_plans

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the reference's answers are not at {FOLDER}")

#: Graphs of each kind, with 2 to 8 sites.
NAMES = [
    "matmul_1024_1024_1024",
    "matmul_1024_4096_1024",
    "matmul_16_4_16",
    "chain_ABpCDE_square_1024",
    "chain_ABpCDE_skew8_1024",
    "ffnn_fwd_128_4096x16384x4096",
    "ffnn_fwdbwd_256_3l",
    "sdpa_b1_h1_s8192_d128",
    "mha_b1_s1024_h16_d64",
]


def case_of(name):
    return next(case for case in cases() if case.name == name)


def misses(case, most_sites):
    hardware = {n: cluster(n, 1) for n in {a.n for a in case.answers}}
    few = golden_graphs.Case(
        case.file, case.name, case.graph, case.ids, tuple(a for a in case.answers if a.n <= most_sites)
    )
    return [line for row in bench_plans.rows(few, hardware) for line in row.misses()]


@pytest.mark.parametrize("name", NAMES)
def test_no_worse_than_the_reference(name):
    assert misses(case_of(name), 8) == []


@pytest.mark.slow
def test_no_worse_than_the_reference_anywhere():
    assert [line for case in cases() for line in misses(case, 64)] == []


@pytest.mark.parametrize("name", NAMES)
def test_its_plans_move_the_bytes_that_it_says(name):
    case = case_of(name)
    for answer in case.answers:
        if answer.locations is not None and answer.n <= 8:
            assert lower(*reference_plan(case, answer)).bytes_moved == answer.nbytes


@pytest.mark.parametrize(("n", "gigabytes"), [(8, 1.25), pytest.param(64, 3.7, marks=pytest.mark.slow)])
def test_a_large_cube_is_at_the_lower_bound(n, gigabytes):
    ours = bench_plans.plan(bench_plans.matmul(10_000, 10_000, 10_000), cluster(n, 1))
    assert ours.nbytes == round(ours.bound) <= gigabytes * 1e9
    assert ours.bound == pytest.approx(3 * 10_000**2 * (n ** (1 / 3) - 1) * 4)


def test_a_row_says_what_it_misses():
    case = case_of("matmul_1024_1024_1024")
    row = next(bench_plans.rows(case, {n: cluster(n, 1) for n in (2, 4, 8, 16, 64)}))
    assert row.verdict() == "ok"
    worse = bench_plans.Row(row.case, row.n, row.spaces, row.ours, row.nbytes - 1, 1.2, row.makespan, True)
    assert "we move 4194304 bytes, the reference 4194303" in worse.misses()[0]
    slower = bench_plans.Row(row.case, row.n, row.spaces, row.ours, 0, 1.3, row.makespan / 2, True)
    assert "our run takes 10.6 ms, the reference 5.301 ms" in slower.misses()[0]
    assert slower.verdict() == "MISS"
    unknown = bench_plans.Row(row.case, row.n, row.spaces, row.ours, 0, 1.3, row.makespan / 2, False)
    assert unknown.verdict() == "open"

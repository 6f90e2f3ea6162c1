"""Calibration: what is fitted, what is measured on real sites, and files."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import einsummable as ein
from einsummable import calibration
from einsummable.errors import PlanError
from einsummable.planner.hardware import cluster, laptop
from einsummable.runtime.local import LocalExecutor
from einsummable.taskgraph import tasks
from einsummable.taskgraph.check import check as check_tasks


@settings(deadline=None, max_examples=30)
@given(st.floats(1e9, 1e12), st.integers(0, 100))
def test_speed_and_half_speed_are_found_again(flops, half):
    sizes = (32, 64, 128, 256, 512)
    rates = [flops * (n / (n + half)) ** 3 for n in sizes]
    found = calibration._fitted(sizes, rates)
    assert found[0] == pytest.approx(flops, rel=0.02)
    assert found[1] == pytest.approx(half, abs=0.5)


@pytest.mark.parametrize("sites", [1, 3])
def test_the_programs_that_are_run_are_well_formed(sites):
    program = calibration._repeated(calibration._map(8, "neg"), sites, 4)
    check_tasks(program)
    assert sum(isinstance(t, tasks.Apply) for t in program.tasks) == 4 * sites


@pytest.mark.slow
def test_this_process_can_be_calibrated():
    hardware = ein.calibrate(LocalExecutor(2), "here")
    hardware.check()
    assert (hardware.name, hardware.hosts) == ("here", (0, 0))
    assert hardware.product_flops(np.dtype("f4")) > hardware.product_flops(np.dtype("c16")) > 1e7
    assert hardware.near == hardware.far
    assert 0 < hardware.overhead < 0.1
    net = ein.compile("C[i,k] = A[i,j] * B[j,k]", A=np.eye(8), B=np.eye(8), hardware=hardware)
    assert net.explain().hardware == "here"


def test_a_site_alone_has_no_link_to_measure():
    near, far = calibration._links(LocalExecutor(1), (0,))
    assert near == far
    assert near.latency == 0


def test_hardware_is_saved_and_loaded(tmp_path):
    for hardware in (laptop(2), replace(cluster(2, 3), half=7.5)):
        calibration.save(hardware, tmp_path / "hardware.json")
        assert calibration.load(tmp_path / "hardware.json") == hardware
    with pytest.raises(PlanError, match=r"the hardware '.*none' cannot be read: No such file"):
        calibration.load(tmp_path / "none")
    (tmp_path / "odd").write_text("[1]")
    with pytest.raises(PlanError, match=r"the file '.*odd' holds no hardware"):
        calibration.load(tmp_path / "odd")

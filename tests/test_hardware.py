"""Hardware: presets, links, JSON, refusals."""

from dataclasses import replace

import pytest

from einsummable.codec import from_json, to_json
from einsummable.dtypes import BF16, F32, F64
from einsummable.errors import PlanError
from einsummable.planner.hardware import Hardware, Link, cluster, host, laptop


@pytest.mark.parametrize("make", [lambda: laptop(2), lambda: host(8), lambda: cluster(2, 3)])
def test_presets_are_well_formed_and_round_trip(make):
    hardware = make()
    hardware.check()
    assert from_json(Hardware, to_json(hardware)) == hardware


def test_a_cluster_groups_its_sites_in_hosts():
    hardware = cluster(2, 3)
    assert (hardware.sites, hardware.hosts) == (6, (0, 0, 0, 1, 1, 1))
    assert hardware.link(0, 2) == hardware.near
    assert hardware.link(2, 3) == hardware.far


def test_a_message_takes_its_latency_and_its_bytes():
    assert Link(1e9, 1e-3).seconds(2e9) == pytest.approx(2.001)


def test_speed_of_a_dtype_that_nobody_measured_is_that_of_maps():
    hardware = laptop()
    assert hardware.product_flops(F32) > hardware.product_flops(F64) > hardware.map_flops
    assert hardware.product_flops(BF16) == hardware.map_flops


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"memory": 0}, "memory of laptop is 0, it must be more than 0"),
        ({"map_flops": -1.0}, "map_flops of laptop is -1"),
        ({"flops": {"f32": 0.0}}, "flops of f32 of laptop is 0"),
        ({"near": Link(float("nan"), 0)}, r"near\.bandwidth of laptop is nan"),
        ({"far": Link(1e9, -1e-6)}, "the latency of far of laptop is -1e-06"),
        ({"hosts": ()}, "laptop has no site"),
    ],
)
def test_figures_that_cannot_be_are_refused(changes, message):
    with pytest.raises(PlanError, match=message):
        replace(laptop(), **changes).check()


def test_sites_of_several_cores_do_as_much_as_their_cores():
    one, two = cluster(2, 4), cluster(2, 2, cores=2)
    assert two.flops["f32"] * two.sites == one.flops["f32"] * one.sites
    assert two.memory * two.sites == one.memory * one.sites
    assert two.memory_bandwidth == 2 * one.memory_bandwidth
    assert (two.far, two.near.bandwidth) == (one.far, 2 * one.near.bandwidth)

"""Tensors in files: what a region says is what an array shows, and engines read no more than their blocks."""

import json
import os
from dataclasses import replace
from math import prod

import llama_models as lm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traffic import Traffic

import einsummable as ein
from einsummable import tensorfile
from einsummable.errors import EinsummableError, EngineError
from einsummable.mapped import File, Region, memmap, region
from einsummable.models import checkpoint
from einsummable.models.decoder import Decoder
from einsummable.nodes import box_shape
from einsummable.runtime import wire
from einsummable.runtime.cluster import Cluster
from einsummable.runtime.service import Service


@pytest.fixture
def path(tmp_path):
    """A file with four bytes and 60 numbers."""
    path = tmp_path / "numbers"
    path.write_bytes(b"head" + np.arange(60, dtype=np.float32).tobytes())
    return path


def view_of(data, array):
    """Return a view of an array as programs make them: parts, steps, other orders, other groups."""
    for _ in range(data.draw(st.integers(0, 3))):
        d = data.draw(st.integers(0, array.ndim - 1))
        match data.draw(st.sampled_from(["part", "back", "turn", "split"])):
            case "part":
                start = data.draw(st.integers(0, array.shape[d] - 1))
                array = array[(slice(None),) * d + (slice(start, None, 2),)]
            case "back":
                array = np.flip(array, d)
            case "turn":
                array = np.moveaxis(array, d, 0)
            case "split":
                n = array.shape[d]
                by = data.draw(st.sampled_from([k for k in range(1, n + 1) if n % k == 0]))
                array = array.reshape(*array.shape[:d], by, n // by, *array.shape[d + 1 :])
    return array


@given(st.data())
def test_a_region_is_what_its_array_shows(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("regions") / "numbers"
    path.write_bytes(b"xx" + np.arange(120, dtype=np.int16).tobytes())
    mapped = memmap(path, np.int16, (4, 5, 6), 2)
    array = view_of(data, mapped)
    if not np.shares_memory(array, mapped):  # a regrouping that numpy makes by copying
        assert region(array) is None
        return
    found = Region.from_json(json.loads(json.dumps(region(array).to_json())))
    np.testing.assert_array_equal(found.read(), array)
    box = []
    for n in array.shape:
        start = data.draw(st.integers(0, n - 1))
        box.append((start, data.draw(st.integers(start, n))))
    part = array[tuple(slice(*r) for r in box)]
    read = found.part(tuple(box)).read(np.dtype(np.float64))
    assert read.dtype == np.float64
    np.testing.assert_array_equal(read, part)


def test_arrays_in_memory_have_no_region(path):
    mapped = memmap(path, np.float32, 60, 4)
    assert region(mapped) is not None
    for other in (np.zeros(3), mapped.copy(), mapped[:0], np.memmap(path, np.uint8, "r"), [1.0], 3):
        assert region(other) is None


def test_a_file_that_is_not_what_was_mapped_has_no_region(path):
    mapped = memmap(path, np.float32, 60, 4)
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)  # the old file is still mapped, but has no name
    assert region(mapped) is None
    again = memmap(path, np.float32, 60, 4)
    found = region(again)
    os.utime(path, ns=(0, 1))
    with pytest.raises(EinsummableError, match="numbers has changed, or is not there any more"):
        found.read()
    path.unlink()
    assert region(again) is None


def test_reading_a_part_needs_no_other_bytes_of_the_file(path):
    rows = region(memmap(path, np.float32, (6, 10), 4)).part(((1, 3), (0, 10)))
    os.truncate(path, 4 + 3 * 40)
    np.testing.assert_array_equal(
        replace(rows, file=File.at(path)).read(), np.arange(10, 30, dtype=np.float32).reshape(2, 10)
    )
    os.truncate(path, 3 * 40)
    with pytest.raises(EinsummableError, match="numbers cannot be read"):
        replace(rows, file=File.at(path)).read()


def test_a_file_that_is_too_short_is_refused(path):
    with pytest.raises(ValueError, match="mmap length is greater than file size"):
        memmap(path, np.float32, 61, 4)
    with pytest.raises(FileNotFoundError):
        memmap(path.with_name("nothing"))


def test_only_the_driver_may_name_a_file(path):
    service = Service("of a test", 0, bytes(32), 1, "127.0.0.1")
    try:
        part = region(memmap(path, np.float32, 60, 4))
        load = np.frombuffer(wire.pack_load(part, part.dtype), np.uint8)
        service._on_frame(1, wire.LOAD, 1, 7, load)
        service._load(1, 8, wire.unpack_load(load))
        assert list(service.blocks) == [8]
        assert service._orders.empty()
    finally:
        service.close()


# --------------------------------------------------------------------------------------- on engines


@pytest.fixture(scope="module")
def cluster():
    """Two engines."""
    with Cluster(n=2, threads=1) as started:
        yield started


TOKENS = [3, 1, 4, 1, 5, 9, 2, 6]


def checkpoint_of(kind, folder):
    """Write a model as transformers or llama2.c do; return its weights and its path."""
    if kind == "transformers":
        return lm.write(folder, dtype=lm.BF16), folder
    config = lm.CONFIG | {"tie_word_embeddings": True, "rms_norm_eps": 1e-5, "rope_theta": 10000.0}
    written = lm.weights(config)
    (folder / "model.bin").write_bytes(lm.as_llama2c(config, written))
    return written, folder / "model.bin"


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("kind", "dtype", "tolerance"),
    [("transformers", None, 2e-2), ("transformers", "f32", 1e-4), ("llama2.c", None, 1e-4)],
)
def test_each_engine_reads_its_blocks_of_a_checkpoint_and_no_more(
    tmp_path, cluster, monkeypatch, kind, dtype, tolerance
):
    written, path = checkpoint_of(kind, tmp_path)
    model = checkpoint.load(path, dtype)
    traffic = Traffic(cluster, monkeypatch)
    decoder = Decoder(model.config, model.weights, cluster=cluster)
    assert traffic.data == 0
    each = [0, 0]
    for name, array in model.weights.items():
        assert decoder._weights[name].layout == decoder.net.layout(name)
        for site, box, _ in decoder._weights[name].blocks:
            each[site] += prod(box_shape(box)) * array.dtype.itemsize
    assert [traffic.read[0], traffic.read[1]] == each
    assert sum(each) == sum(array.nbytes for array in model.weights.values())
    config = lm.CONFIG if kind == "transformers" else lm.CONFIG | {"rms_norm_eps": 1e-5, "rope_theta": 1e4}
    found = decoder.start([TOKENS], every=True)[0]
    np.testing.assert_allclose(found, lm.forward(written, TOKENS, config), rtol=tolerance, atol=tolerance)


@pytest.mark.cluster
def test_to_an_engine_that_does_not_see_the_file_the_driver_sends(path, monkeypatch):
    with Cluster(n=2, threads=1) as cluster:
        blind = "from einsummable import mapped; mapped.File.is_here = lambda self: False"
        cluster.client[1].execute(blind, block=True)
        traffic = Traffic(cluster, monkeypatch)
        array = memmap(path, np.float32, (6, 10), 4)
        tensor = cluster.put(array, parts=(2, 1), sites=(0, 1), dtype=np.float64)
        assert traffic.read == {0: 120}
        assert (traffic.sent[0, wire.STORE], traffic.sent[1, wire.STORE]) == (0, 240)
        np.testing.assert_array_equal(tensor.fetch(), array)


@pytest.mark.cluster
@pytest.mark.parametrize("memory", [None, "1MB"])
def test_what_a_run_reads_of_files_is_not_sent(path, cluster, monkeypatch, memory):
    array = memmap(path, np.float32, (6, 10), 4)
    net = ein.compile("Y[j] = sum[i] X[i,j] * X[i,j]", X=array, cluster=cluster, memory=memory)
    traffic = Traffic(cluster, monkeypatch)
    np.testing.assert_allclose(net.run()["Y"], (array**2).sum(0))
    assert traffic.data == 0


@pytest.mark.cluster
def test_a_file_that_changes_before_an_engine_reads_it_is_named(path, cluster, monkeypatch):
    array = memmap(path, np.float32, (6, 10), 4)
    cluster.put(array).free()
    before = sum(cluster._engines.kept_bytes())
    found = region(array)
    os.utime(path, ns=(0, 1))
    monkeypatch.setattr("einsummable.mapped.region", lambda _: found)
    with pytest.raises(EngineError, match=r"engine \d .*numbers has changed"):
        cluster.put(array)
    with pytest.raises(EngineError, match=r"numbers has changed"):
        ein.compile("Y[j] = sum[i] X[i,j]", X=array, cluster=cluster).run()
    assert sum(cluster._engines.kept_bytes()) == before


@pytest.mark.cluster
def test_a_checkpoint_of_ours_is_read_by_engines(tmp_path, cluster, monkeypatch):
    weights = np.random.default_rng(0).normal(size=(7, 5))
    tensorfile.write(tmp_path / "w.safetensors", {"w": weights}, {})
    traffic = Traffic(cluster, monkeypatch)
    tensor = cluster.put(tensorfile.read(tmp_path / "w.safetensors").tensors["w"].T)
    np.testing.assert_array_equal(tensor.fetch(), weights.T)
    assert traffic.data == 0


# ------------------------------------------------------------------------ from engine to engine


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("parts", "sites"), [((1, 1), (1,)), ((2, 1), (1, 0)), ((1, 3), (0, 1, 1)), ((3, 2), (0, 1, 0, 1, 1, 0))]
)
def test_a_tensor_is_laid_out_anew_without_the_driver(cluster, monkeypatch, parts, sites):
    array = np.random.default_rng(0).normal(size=(7, 5))
    tensor = cluster.put(array, parts=(2, 1), sites=(0, 1))
    traffic = Traffic(cluster, monkeypatch)
    moved = cluster.put(tensor, parts=parts, sites=sites)
    assert traffic.data == 0
    assert (moved.layout.parts, moved.layout.sites) == (parts, sites)
    assert tensor.layout.sites == (0, 1)
    for found in (tensor, moved):
        np.testing.assert_array_equal(found.fetch(), array)

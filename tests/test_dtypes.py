"""dtypes: numpy's promotion, weak scalars, names."""

from itertools import product

import numpy as np
import pytest

from einsummable import dtypes
from einsummable.dtypes import (
    BF16,
    BOOL,
    C64,
    C128,
    F16,
    F32,
    F64,
    I32,
    I64,
    NAMED,
    WEAK_BOOL,
    WEAK_COMPLEX,
    WEAK_FLOAT,
    WEAK_INT,
    ScalarType,
    promote,
)
from einsummable.errors import DtypeError

NUMPYS = [d for d in NAMED.values() if d != BF16]


@pytest.mark.parametrize(("a", "b"), list(product(NUMPYS, NUMPYS)))
def test_tensors_mix_as_in_numpy(a, b):
    assert promote([ScalarType(a), ScalarType(b)]) == ScalarType(np.result_type(a, b))


@pytest.mark.parametrize(("dtype", "value"), list(product(NUMPYS, [1, 1.0, 1j])))
def test_python_scalars_are_weak_as_in_numpy(dtype, value):
    expected = (np.ones(1, dtype) + value).dtype
    assert promote([ScalarType(dtype), dtypes.of_value(value)]) == ScalarType(expected)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(BOOL, BF16), (F16, F32), (F32, F32), (F64, F64), (C64, C64), (C128, C128), (I32, F64), (I64, F64)],
)
def test_bf16_mixes_as_a_narrow_float(dtype, expected):
    assert promote([ScalarType(BF16), ScalarType(dtype)]).dtype == expected
    assert promote([ScalarType(dtype), ScalarType(BF16)]).dtype == expected


def test_bf16_keeps_its_width_beside_weak_numbers():
    assert promote([WEAK_FLOAT, ScalarType(BF16), WEAK_INT]) == ScalarType(BF16)
    assert promote([ScalarType(BF16), WEAK_COMPLEX]) == ScalarType(C64)


def test_weak_values_among_themselves_stay_weak():
    assert promote([WEAK_BOOL, WEAK_INT]) == WEAK_INT
    assert promote([WEAK_COMPLEX, WEAK_FLOAT]) == WEAK_COMPLEX
    assert dtypes.inexact_of(WEAK_INT) == ScalarType(F64, weak=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, WEAK_BOOL),
        (3, WEAK_INT),
        (0.5, WEAK_FLOAT),
        (1j, WEAK_COMPLEX),
        (np.float32(1), ScalarType(F32)),
        (np.int32(1), ScalarType(I32)),
        (np.array(1, BF16), ScalarType(BF16)),
    ],
)
def test_pythons_scalars_are_weak_and_numpys_are_not(value, expected):
    assert dtypes.of_value(value) == expected


@pytest.mark.parametrize("name", NAMED)
def test_names_round_trip(name):
    assert dtypes.name(dtypes.parse(name)) == name


def test_numpys_names_are_known_too():
    assert dtypes.parse("float32") == F32
    assert dtypes.parse("uint8") == np.uint8
    assert dtypes.name(np.dtype(np.uint8)) == "uint8"
    assert dtypes.kind(np.dtype(np.uint8)) == "i"


@pytest.mark.parametrize("text", ["f31", "", "no such"])
def test_a_name_that_is_no_dtype_is_refused(text):
    with pytest.raises(DtypeError, match=f"no dtype is called '{text}'"):
        dtypes.parse(text)


@pytest.mark.parametrize("dtype", ["U3", "O", "M8[s]", "V4"])
def test_what_is_no_number_is_refused(dtype):
    with pytest.raises(DtypeError, match="is neither a number nor a boolean"):
        dtypes.kind(np.dtype(dtype))


@pytest.mark.parametrize("value", ["x", None, [1], np.datetime64("2020-01-01")])
def test_a_value_that_is_no_number_is_refused(value):
    with pytest.raises(DtypeError, match="is neither a number nor a boolean"):
        dtypes.of_value(value)


def test_parts_of_complex_dtypes():
    assert [dtypes.complex_of(d) for d in (F16, BF16, F32, F64, I32, C64)] == [C64, C64, C64, C128, C128, C64]
    assert [dtypes.real_of(d) for d in (C64, C128, F16, I64, BF16)] == [F32, F64, F16, I64, BF16]


def test_narrow_floats_accumulate_in_f32():
    assert [dtypes.accumulator(d) for d in (F16, BF16, F32, C64, I32)] == [F32, F32, F32, C64, I32]

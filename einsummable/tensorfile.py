"""Tensors by name in a file of the `safetensors` format: a length, a JSON header, and the data.

Contract: `read` maps the file into memory, so that nothing is read before it is used and nothing is copied,
which the package `safetensors` does (its arrays are regions of the file, see `mapped`); `write` puts a whole
file in place of the old one at once, so that whoever reads it, and whenever the writer dies, finds one or
the other and never a part.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from einsummable import dtypes
from einsummable.errors import DtypeError, EinsummableError
from einsummable.mapped import memmap

_DTYPES = {
    "F32": "f32",
    "F16": "f16",
    "BF16": "bf16",
    "F64": "f64",
    "I32": "i32",
    "I64": "i64",
    "BOOL": "bool",
}
_CODES = {name: code for code, name in _DTYPES.items()}
_ALIGNED = 8


@dataclass(frozen=True, slots=True)
class TensorFile:
    """What a file holds.

    Attributes
    ----------
    tensors
        Arrays by name, memory-mapped and read-only.
    metadata
        Text by name.
    """

    tensors: Mapping[str, np.ndarray]
    metadata: Mapping[str, str] = field(default_factory=dict)


def read(path: Path) -> TensorFile:
    """Map a file.

    Raises
    ------
    EinsummableError
        It is no such file, or it is cut off.
    DtypeError
        A tensor is of a dtype that is not known here.
    OSError
        It cannot be read.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        try:
            if length > size - 8:
                raise ValueError("it is shorter than its header")
            header = json.loads(file.read(length))
        except ValueError as error:
            raise EinsummableError(f"{path} is no safetensors file: {error}") from error
    data = memmap(path, offset=8 + length) if size > 8 + length else np.empty(0, np.uint8)
    metadata = header.pop("__metadata__", {})
    found = {}
    for name, entry in header.items():
        if entry["dtype"] not in _DTYPES:
            raise DtypeError(f"{path}: {name} is {entry['dtype']}; known are {', '.join(_DTYPES)}")
        dtype, (begin, end) = dtypes.parse(_DTYPES[entry["dtype"]]), entry["data_offsets"]
        if end - begin != prod(entry["shape"]) * dtype.itemsize or end > len(data):
            raise EinsummableError(f"{path} is cut off: {name} is not whole")
        found[name] = data[begin:end].view(np.ndarray).view(dtype).reshape(entry["shape"])
    return TensorFile(found, metadata)


def write(path: Path, tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write a file, and put it in place of an old one when it is whole and on the disk.

    Parameters
    ----------
    tensors
        Arrays by name, or what has a shape and a dtype and numpy makes an array of; one is made at a time.

    Raises
    ------
    DtypeError
        The format has no such dtype.
    OSError
        It cannot be written; then an old file is as it was.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    at = 0
    for name, tensor in tensors.items():
        dtype = np.dtype(tensor.dtype)
        if dtypes.name(dtype) not in _CODES:
            raise DtypeError(f"{name} is {dtypes.name(dtype)}, which a safetensors file cannot hold")
        end = at + prod(tensor.shape) * dtype.itemsize
        code = _CODES[dtypes.name(dtype)]
        header[name] = {"dtype": code, "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _ALIGNED)
    # The same name each time, so that what a killed writer leaves is overwritten and does not pile up.
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(len(text).to_bytes(8, "little"))
            file.write(text)
            for tensor in tensors.values():
                array = np.asarray(tensor)
                file.write(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Make the disk remember which file has which name."""
    if os.name == "nt":  # where a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Tensors in files: arrays that whoever sees the file can read by themselves.

Contract: `memmap` answers an array that looks at a file and reads nothing yet.  `region` tells of such an
array, or of a part, transposition or regrouping of it, where in which file its elements are; None where it
is another array, or the file is not what was mapped any more.  A `Region` is data: whoever has the file
reads from it what the region says, and nothing else of the file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from einsummable import dtypes
from einsummable.errors import EinsummableError


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was: its path, its bytes, and when it was last changed (nanoseconds of the Unix epoch)."""

    path: str
    size: int
    changed: int

    @classmethod
    def at(cls, path: str | Path) -> File:
        """Return what is at `path` now; raise `OSError` where that is nothing."""
        found = os.stat(path)
        return cls(os.path.abspath(path), found.st_size, found.st_mtime_ns)

    def is_here(self) -> bool:
        """Return whether this process sees the file, and it is as it was."""
        try:
            return File.at(self.path) == self and os.access(self.path, os.R_OK)
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class Region:
    """A tensor in a file.

    Attributes
    ----------
    file, offset
        Where its first element is.
    dtype, shape
        Of the tensor.
    strides
        How many bytes further the next element of each dimension is.
    """

    file: File
    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return prod(self.shape) * self.dtype.itemsize

    def part(self, box: tuple[tuple[int, int], ...]) -> Region:
        """Return the region of a box of it, half-open ranges of its dimensions."""
        first = sum(start * step for (start, _), step in zip(box, self.strides, strict=True))
        return replace(self, offset=self.offset + first, shape=tuple(stop - start for start, stop in box))

    def read(self, dtype: np.dtype | None = None) -> np.ndarray:
        """Return the tensor as an array in C order, cast to `dtype`; only what it spans is mapped.

        Raises
        ------
        EinsummableError
            The file is not what it was, or cannot be read.
        """
        result = np.empty(self.shape, dtype or self.dtype)
        self.read_into(result)
        return result

    def read_into(self, place: np.ndarray) -> None:
        """Write the tensor to `place`, an array of its shape (see `read`)."""
        if not self.file.is_here():
            raise EinsummableError(f"{self.file.path} has changed, or is not there any more")
        if 0 in self.shape:
            return
        reach = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        first = self.offset + sum(min(r, 0) for r in reach)
        size = sum(map(abs, reach)) + self.dtype.itemsize
        try:
            data = np.memmap(self.file.path, np.uint8, "r", first, (size,))
        except (OSError, ValueError) as error:
            raise EinsummableError(f"{self.file.path} cannot be read: {error}") from error
        place[...] = np.ndarray(self.shape, self.dtype, data, self.offset - first, self.strides)

    def to_json(self) -> list[Any]:
        """Return the region as lists, numbers and text."""
        file = [self.file.path, self.file.size, self.file.changed]
        return [file, self.offset, dtypes.name(self.dtype), self.shape, self.strides]

    @classmethod
    def from_json(cls, data: list[Any]) -> Region:
        """Return the region that `to_json` wrote."""
        file, offset, dtype, shape, strides = data
        return cls(File(*file), offset, dtypes.parse(dtype), tuple(shape), tuple(strides))


class _Map(np.memmap):
    """A mapped file that knows which file it is: another one may come to have its name."""

    file: File | None = None


def memmap(
    path: str | Path,
    dtype: Any = np.uint8,
    shape: int | tuple[int, ...] | None = None,
    offset: int = 0,
) -> np.ndarray:
    """Return an array that looks at a file, read-only, as ``numpy.memmap`` does.

    On a cluster, engines that see the file read what they need of it by themselves: it is not sent.

    Parameters
    ----------
    path
        The file.
    dtype, shape, offset
        Of the array, and the byte of the file at which it begins; without `shape` it goes to the end.

    Raises
    ------
    OSError
        It cannot be read.
    ValueError
        It is too short.
    """
    file = File.at(path)
    array = _Map(path, dtype, "r", offset, shape)
    array.file = file
    return array.view(np.ndarray)


def region(array: Any) -> Region | None:
    """Return where in which file the elements of `array` are; None where it is no view of a mapped file."""
    if not isinstance(array, np.ndarray) or not array.size:
        return None
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if not isinstance(root, _Map) or root.file is None or not root.file.is_here():
        return None
    first = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return Region(root.file, root.offset + first, array.dtype, array.shape, array.strides)

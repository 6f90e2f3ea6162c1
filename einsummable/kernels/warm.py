"""Memory that is used again and again: to touch a fresh page costs more than to write to it.

Contract: `empty` answers what `numpy.empty` does; the memory of large arrays is used again when the last
array that looks at them is gone.  So the intermediate blocks of a program that runs again and again, and
results that are dropped, cost no page faults.  At most `KEPT` bytes wait for their next use, those that were
used last, and none while something runs within a `budget`.  `lend` answers arrays of given memory that tell
when they are gone.  All is safe to call from several threads, and from finalizers.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from math import prod
from queue import Empty, SimpleQueue
from threading import Lock

import numpy as np

#: Bytes that wait for their next use.
KEPT = 1 << 28
#: Smaller arrays are quick to make: the allocator of the system has memory for them at hand.
LARGE = 1 << 18
_ALIGNED = 64


def lend(memory: np.ndarray, offset: int, nbytes: int, gone: Callable[[int], None]) -> np.ndarray:
    """Return a part of `memory`; when the last array that looks at it is gone, ``gone(offset)`` is called."""
    # A buffer of its own, because numpy lets a view of a view refer to the first array only.
    view = np.frombuffer(memory.data, np.uint8, nbytes, offset)
    weakref.finalize(view, gone, offset).atexit = False
    return view


class Buffers:
    """Warm memory, by size.

    Parameters
    ----------
    large
        The bytes from which on memory is kept.
    """

    def __init__(self, large: int = LARGE) -> None:
        self._large = large
        self._free: OrderedDict[int, list[np.ndarray]] = OrderedDict()  # what was used last stands last
        self._kept, self._frugal = 0, 0
        self._back: SimpleQueue[np.ndarray] = SimpleQueue()
        self._lock = Lock()

    def take(self, nbytes: int) -> np.ndarray:
        """Return a writable array of `nbytes` bytes, whatever they are."""
        if nbytes < self._large:
            return np.empty(nbytes, np.uint8)
        size = _size_class(nbytes)
        with self._lock:
            self._take_back()
            whole = self._of(size)
        back = self._back
        return lend(whole, -whole.ctypes.data % _ALIGNED, nbytes, lambda _: back.put(whole))

    @contextlib.contextmanager
    def frugal(self) -> Iterator[None]:
        """Keep nothing meanwhile, and nothing of before."""
        with self._lock:
            self._frugal += 1
            self._take_back()
        try:
            yield
        finally:
            with self._lock:
                self._take_back()
                self._frugal -= 1

    def _of(self, size: int) -> np.ndarray:
        free = self._free.get(size)
        if free is None:
            return np.empty(size + _ALIGNED, np.uint8)
        whole = free.pop()
        self._kept -= whole.nbytes
        if not free:
            del self._free[size]
        return whole

    def _drop(self) -> None:
        while self._kept > (0 if self._frugal else KEPT):
            self._of(next(iter(self._free)))

    def _take_back(self) -> None:
        self._drop()
        with contextlib.suppress(Empty):
            while True:
                whole = self._back.get_nowait()
                size = whole.nbytes - _ALIGNED
                self._free.setdefault(size, []).append(whole)
                self._free.move_to_end(size)
                self._kept += whole.nbytes
                self._drop()


def _size_class(nbytes: int) -> int:
    """Return the size of the buffer for `nbytes`: an eighth more at most."""
    step = 1 << max(nbytes.bit_length() - 4, 12)
    return -(-nbytes // step) * step


_BUFFERS = Buffers()
#: A context in which no memory waits for its next use.
budget = _BUFFERS.frugal


def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Return an array of any contents, in C order.

    >>> empty((2, 3), np.dtype(np.float32)).shape
    (2, 3)
    """
    nbytes = prod(shape) * dtype.itemsize
    if nbytes < LARGE:
        return np.empty(shape, dtype)
    return _BUFFERS.take(nbytes).view(dtype).reshape(shape)

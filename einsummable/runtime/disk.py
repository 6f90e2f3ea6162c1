"""Where evicted blocks go: one file without a name for each run of a site.

Contract: `store` and `load` return at once and call back from the file's own thread, in the order in which
they were asked.  The file has no name from the beginning, so that not even a killed process leaves it behind.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

import numpy as np

#: Told when it is done, and what went wrong if anything did.
Told = Callable[[BaseException | None], None]


class Disk:
    """A file for evicted blocks, to be used in a ``with`` block."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - __exit__ closes it
        self._thread = ThreadPoolExecutor(1, "einsummable disk")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)
        self._file.close()

    def store(self, at: int, raw: np.ndarray, told: Told) -> None:
        """Write the bytes `raw` at `at`; they must not change until then."""
        self._submit(os.pwrite, at, raw, told)

    def load(self, at: int, raw: np.ndarray, told: Told) -> None:
        """Fill `raw` with the bytes at `at`."""
        self._submit(lambda file, data, at: os.preadv(file, [data], at), at, raw, told)

    def _submit(self, some: Callable[..., int], at: int, raw: np.ndarray, told: Told) -> None:
        def all_of_it() -> None:
            data, done = raw.data, 0
            while done < raw.nbytes:  # the system may do less than it is asked for
                done += some(self._file.fileno(), data[done:], at + done)

        def tell(future: Future) -> None:
            told(None if future.cancelled() else future.exception())

        self._thread.submit(all_of_it).add_done_callback(tell)

"""What driver and sites say to each other over the mesh: kinds of frames, and how payloads are written.

Contract: numbers, bytes of arrays, and JSON; never a pickle.  A frame's `run` numbers the exchange that it
belongs to (the driver counts them up), its `tag` means what the table says.

======== =================== ==========================================================================
kind     goes                payload and tag
======== =================== ==========================================================================
BLOCK    site to site        a block of a run; tag: the Move
INPUT    driver to site      a box of an input; tag: its index in ``SitePart.reads``, or that of a NEED
RUN      driver to site      an `Order`; tag: the program
ABORT    driver to site      end the run
REPORT   driver to site      tell what has happened so far
STORE    driver to site      keep this block; tag: its number.  Answer: DONE
FETCH    driver to site      send this block; tag: its number.  Answer: RESULT or FAILED
FREE     driver to site      drop this block; tag: its number
FORGET   driver to site      drop this program; tag: its number
CLOCK    driver to site      what time is it?  Answer: DONE with a Unix time and a `SiteLog.offset`
READY    site to site        there is space for a block; tag: the Move
SEES     driver to site      is this file there?  JSON of a `mapped.File`.  Answer: DONE, one byte, 1 or 0
LOAD     driver to site      keep this block of a file; tag: its number.  Answer: DONE, bytes read, as uint64
USAGE    driver to site      how large is your process?  Answer: DONE, bytes of memory, as uint64
RESULT   site to driver      a block; tag: the task that made it, or the block's number
LOG      site to driver      new rows of the lists of a SiteLog, as float64
BUSY     site to driver      ends the answer to REPORT; tag: one more than the running task, 0 if none
DONE     site to driver      the run ended well, what was asked for is done
FAILED   site to driver      JSON ``[task, reason]``; if no task is to blame, -1 or CUT_OFF
NEED     site to driver      the index in ``SitePart.reads`` as uint64.  Answer: INPUT with the same tag
======== =================== ==========================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from einsummable import dtypes
from einsummable.mapped import File, Region

BLOCK, INPUT, RUN, ABORT, REPORT, STORE, FETCH, FREE, FORGET, CLOCK, READY = range(11)
SEES, LOAD, USAGE = range(11, 14)
RESULT, LOG, BUSY, DONE, FAILED, NEED = range(16, 22)

#: In FAILED: the site could not go on because of another, or was told to end.
CUT_OFF = -2
#: The site number of the driver, which runs no tasks.
DRIVER = -1
#: The lists of a SiteLog in the order of a LOG frame, and how long their rows are.
LISTS = {"ran": 3, "sent": 2, "received": 2, "evicted": 3, "loaded": 3}


@dataclass(frozen=True, slots=True)
class Order:
    """How one run of a program differs from another.

    Attributes
    ----------
    params
        The scalars.
    blocks
        For each index in ``SitePart.reads`` that is a block already here, the number of that block.
    keep
        For each task whose block is to stay here, the numbers that it shall have.
    donated
        Indices in ``SitePart.reads`` of blocks that are given up: results may take their memory.
    files
        For each index in ``SitePart.reads`` that the site reads from a file, the region.
    """

    params: Mapping[str, np.generic] = field(default_factory=dict)
    blocks: Mapping[int, int] = field(default_factory=dict)
    keep: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    donated: tuple[int, ...] = ()
    files: Mapping[int, Region] = field(default_factory=dict)

    def pack(self) -> bytes:
        """Return the order as JSON, scalars bit for bit."""
        scalars = [
            [name, dtypes.name(value.dtype), value.tobytes().hex()] for name, value in self.params.items()
        ]
        files = [[i, region.to_json()] for i, region in self.files.items()]
        rest = [list(self.blocks.items()), list(self.keep.items()), self.donated, files]
        return json.dumps([scalars, *rest]).encode()

    @classmethod
    def unpack(cls, payload: np.ndarray) -> Order:
        """Return the order that `pack` wrote."""
        scalars, blocks, keep, donated, files = json.loads(payload.tobytes())
        params = {
            name: np.frombuffer(bytes.fromhex(digits), dtypes.parse(dtype))[0]
            for name, dtype, digits in scalars
        }
        kept = {task: tuple(numbers) for task, numbers in keep}
        regions = {i: Region.from_json(region) for i, region in files}
        return cls(params, dict(blocks), kept, tuple(donated), regions)


def pack_load(region: Region, dtype: np.dtype) -> bytes:
    """Return the payload of LOAD: a region, and the dtype of the block."""
    return json.dumps([region.to_json(), dtypes.name(dtype)]).encode()


def unpack_load(payload: np.ndarray) -> tuple[Region, np.dtype]:
    """Return the region and the dtype of LOAD."""
    region, dtype = json.loads(payload.tobytes())
    return Region.from_json(region), dtypes.parse(dtype)


def pack_file(file: File) -> bytes:
    """Return the payload of SEES."""
    return json.dumps([file.path, file.size, file.changed]).encode()


def unpack_file(payload: np.ndarray) -> File:
    """Return the file of SEES."""
    return File(*json.loads(payload.tobytes()))


def pack_failure(task: int, reason: str) -> bytes:
    """Return the payload of FAILED."""
    return json.dumps([task, reason]).encode()


def unpack_failure(payload: np.ndarray) -> tuple[int, str]:
    """Return the task and the reason of FAILED."""
    task, reason = json.loads(payload.tobytes())
    return task, reason


def pack_rows(lists: Sequence[Sequence[tuple]]) -> np.ndarray:
    """Return rows of the lists of a SiteLog as an array of float64, which is exact for task ids."""
    numbers = [number for rows in lists for row in rows for number in row]
    return np.array([*map(len, lists), *numbers], np.float64)


def unpack_rows(payload: np.ndarray) -> list[list[tuple]]:
    """Return the rows of each list that `pack_rows` wrote."""
    numbers = payload.view(np.float64)
    at, found = len(LISTS), []
    for rows, width in zip(numbers[:at].astype(int).tolist(), LISTS.values(), strict=True):
        columns = numbers[at : at + rows * width].reshape(-1, width).T
        found.append(
            list(zip(columns[0].astype(int).tolist(), *(c.tolist() for c in columns[1:]), strict=True))
        )
        at += rows * width
    return found

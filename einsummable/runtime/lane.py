"""Blocks by MPI, between processes that one ``mpiexec`` has started.

Contract: `lane` answers this process's `Lane`, or None where MPI is not running (as it is in engines started
with ``--mpi``, which ipyparallel's ``engines="mpi"`` does) or must not be called from several threads.
`meet` lets the two ends of an authenticated socket find out whether MPI joins them: each sends the other a
secret on both ways and compares.  What a lane then receives was announced on that socket, by tag.

All calls of MPI are made by one thread, which looks at what is under way and sleeps where nothing is.
Messages go through ``COMM_WORLD`` with tags from `_FIRST` on.
"""

from __future__ import annotations

import secrets
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from queue import SimpleQueue
from typing import Any

import numpy as np

_FIRST = 1 << 20
_TAGS = 1 << 20
_HELLO = struct.Struct("<qq16s")  # rank (-1: none), size of the world, a secret
_MEET_SECONDS = 2.0
_LOOK_SECONDS = 0.05  # how often who waits looks whether it still should
_BUSY_SECONDS = 2e-4  # how long the thread looks again and again before it begins to pause
_PAUSE_SECONDS = 2e-5


@dataclass(slots=True)
class Transfer:
    """A message under way; `begin` starts it and answers MPI's request."""

    begin: Callable[[], Any]
    can_be_cancelled: bool
    request: Any = None
    done: threading.Event = field(default_factory=threading.Event)
    given_up: bool = False

    def wait(self, wanted: Callable[[], bool] = lambda: True, timeout: float = float("inf")) -> bool:
        """Wait for the end; return False, and give up, if that is not `wanted` any more or takes too long."""
        deadline = time.monotonic() + timeout
        while not self.done.wait(_LOOK_SECONDS):
            if not wanted() or time.monotonic() > deadline:
                self.given_up = True
                return False
        return True


class Lane:
    """MPI as one process sees it.

    Attributes
    ----------
    rank, size
        In the world.
    carried
        The bytes that went out.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi, self._world = mpi, mpi.COMM_WORLD
        self.rank, self.size, self.carried = self._world.rank, self._world.size, 0
        self._new: SimpleQueue[Transfer] = SimpleQueue()
        self._numbers = count()
        self._abandoned: list[Transfer] = []
        threading.Thread(target=self._work, name="mpi", daemon=True).start()

    def tag(self) -> int:
        """Return the tag for the next message."""
        return _FIRST + next(self._numbers) % _TAGS

    def send(self, rank: int, tag: int, data: np.ndarray) -> Transfer:
        """Begin to send bytes, which must not change before the end."""
        self.carried += data.nbytes
        return self._begin(lambda: self._world.Isend([data, self._mpi.BYTE], rank, tag), False)

    def receive(self, rank: int, tag: int, data: np.ndarray) -> Transfer:
        """Begin to fill `data` with a message of as many bytes."""
        return self._begin(lambda: self._world.Irecv([data, self._mpi.BYTE], rank, tag), True)

    def _begin(self, begin: Callable[[], Any], can_be_cancelled: bool) -> Transfer:
        transfer = Transfer(begin, can_be_cancelled)
        self._new.put(transfer)
        return transfer

    def _work(self) -> None:
        under_way: list[Transfer] = []
        since = time.monotonic()
        while True:
            while not under_way or not self._new.empty():
                transfer = self._new.get()
                transfer.request = transfer.begin()
                under_way.append(transfer)
                since = time.monotonic()
            left = [transfer for transfer in under_way if not self._ended(transfer)]
            if len(left) < len(under_way):
                since = time.monotonic()
            elif time.monotonic() - since > _BUSY_SECONDS:
                time.sleep(_PAUSE_SECONDS)
            under_way = left

    def _ended(self, transfer: Transfer) -> bool:
        if transfer.request.Test():
            transfer.done.set()
            return True
        if transfer.given_up:
            if transfer.can_be_cancelled:
                transfer.request.Cancel()
            self._abandoned.append(transfer)  # MPI may still look at its memory
            return True
        return False


@lru_cache(maxsize=1)
def _lane(mpi: Any) -> Lane:
    return Lane(mpi)


def lane() -> Lane | None:
    """Return the lane of this process, None if there is none."""
    mpi = getattr(sys.modules.get("mpi4py"), "MPI", None)  # who wants MPI has imported it
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return None
    if mpi.COMM_WORLD.size < 2 or mpi.Query_thread() < mpi.THREAD_MULTIPLE:
        return None
    return _lane(mpi)


def meet(sock: socket.socket, mine: Lane | None, timeout: float) -> int | None:
    """Return the rank of the process at the other end of a socket, None if MPI does not lead there.

    Both ends call this at the same point of their conversation.

    Raises
    ------
    OSError
        The other end is gone or silent.
    """
    sock.settimeout(timeout)
    secret = secrets.token_bytes(16)
    sock.sendall(_HELLO.pack(mine.rank, mine.size, secret) if mine else _HELLO.pack(-1, 0, secret))
    rank, size, theirs = _HELLO.unpack(_read(sock, _HELLO.size))
    found = mine is not None and 0 <= rank < size == mine.size and rank != mine.rank
    found = found and _greeted(mine, rank, secret, theirs)
    sock.sendall(b"+" if found else b"-")
    found = _read(sock, 1) == b"+" and found
    sock.settimeout(None)
    return rank if found else None


def _greeted(mine: Lane, rank: int, secret: bytes, theirs: bytes) -> bool:
    """Return whether the secrets arrive by MPI, too."""
    # Of both, so that other pairs, and other meetings of this one, have another tag.
    tag = _FIRST + _TAGS + (int.from_bytes(secret) ^ int.from_bytes(theirs)) % _TAGS
    heard = np.zeros(len(theirs), np.uint8)
    coming = mine.receive(rank, tag, heard)
    going = mine.send(rank, tag, np.frombuffer(secret, np.uint8))
    return coming.wait(timeout=_MEET_SECONDS) and going.wait(timeout=_MEET_SECONDS) and bytes(heard) == theirs


def _read(sock: socket.socket, nbytes: int) -> bytes:
    data = b""
    while len(data) < nbytes:
        piece = sock.recv(nbytes - len(data))
        if not piece:
            raise ConnectionResetError("the other end is gone")
        data += piece
    return data

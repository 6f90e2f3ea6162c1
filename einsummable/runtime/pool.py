"""Memory that blocks travel through, used again and again: a fresh page costs more than copying to it.

Contract: a `Pool` is memory that peers on this machine map, so that what is written to it is read in place.
It has no name anywhere, only a descriptor that goes through an authenticated Unix socket (`swap`), so nothing
can be left behind.  The bytes are used again when the last array of a peer that looks at them is gone.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import threading
from queue import Empty, SimpleQueue

import numpy as np
import psutil

from einsummable.taskgraph.memory import aligned
from einsummable.taskgraph.space import Space

_MOST = 1 << 30  # bytes of a pool; only what was used once takes memory


class Pool:
    """Memory of this process that others may read.

    Attributes
    ----------
    descriptor
        Of the memory; -1 if this system has no such thing.
    """

    def __init__(self) -> None:
        self.descriptor, self._bytes = -1, np.empty(0, np.uint8)
        size = min(_MOST, psutil.virtual_memory().total // 16)
        with contextlib.suppress(AttributeError, OSError):  # then blocks go through sockets
            self.descriptor = os.memfd_create("einsummable", os.MFD_CLOEXEC)
            os.ftruncate(self.descriptor, size)
            self._bytes = np.frombuffer(mmap.mmap(self.descriptor, size), np.uint8)
        self._space = Space(self._bytes.nbytes)
        self._lent: dict[int, tuple[int, int]] = {}
        self._back: SimpleQueue[int] = SimpleQueue()
        self._lock = threading.Lock()

    def put(self, peer: int, block: np.ndarray) -> int | None:
        """Copy `block` to where `peer` will read it and return the offset; None if there is no room."""
        size = aligned(block.nbytes)
        with self._lock:
            self._take_back()
            offset = self._space.take(size)
            if offset is None:
                return None
            self._lent[offset] = size, peer
        place = self._bytes[offset : offset + block.nbytes].view(block.dtype).reshape(block.shape)
        place[...] = block
        return offset

    def give_back(self, offset: int) -> None:
        """Note that the reader at `offset` is done."""
        self._back.put(offset)

    def forget(self, peer: int) -> None:
        """Note that `peer` reads nothing any more."""
        with self._lock:
            self._take_back()
            for offset in [o for o, (_, reader) in self._lent.items() if reader == peer]:
                self._space.give(offset, self._lent.pop(offset)[0])

    def _take_back(self) -> None:
        with contextlib.suppress(Empty):
            while True:
                offset = self._back.get_nowait()
                if offset in self._lent:  # else its reader was forgotten before
                    self._space.give(offset, self._lent.pop(offset)[0])

    def close(self) -> None:
        """Let go of the memory, as far as nobody reads it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor, self._bytes, self._space = -1, np.empty(0, np.uint8), Space(0)


def swap(sock: socket.socket, descriptor: int, timeout: float) -> np.ndarray | None:
    """Show the peer at the other end of a Unix socket our memory; return its own, or None if it has none.

    Both ends call this at the same point of their conversation.

    Raises
    ------
    OSError
        The other end is gone or silent.
    """
    sock.settimeout(timeout)
    if descriptor >= 0:
        socket.send_fds(sock, [b"+"], [descriptor])
    else:
        sock.sendall(b"-")
    word, theirs, *_ = socket.recv_fds(sock, 1, 1)
    sock.settimeout(None)
    if not word:
        raise ConnectionResetError("the other end is gone")
    if not theirs:
        return None
    try:
        memory = mmap.mmap(theirs[0], os.fstat(theirs[0]).st_size, prot=mmap.PROT_READ)
    finally:
        os.close(theirs[0])
    return np.frombuffer(memory, np.uint8)

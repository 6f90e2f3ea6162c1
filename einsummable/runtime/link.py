"""One authenticated connection between two sites: frames, and a thread for each direction.

Contract: what is `put` goes out in order, and every frame that comes in is given to the owner's ``on_frame``;
when the connection ends, its ``forget`` is called once.  A frame is a header and the bytes of its payload, or
the place in the sender's pool where they are.  ``put`` never waits: a small frame is written at once if
nothing else is on its way and the socket takes it, for to wake a thread costs more; all else a thread writes.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol, TypeAlias

import numpy as np

from einsummable.kernels.warm import Buffers, lend
from einsummable.runtime.lane import Lane
from einsummable.runtime.pool import Pool

#: What can be sent.
Payload: TypeAlias = "np.ndarray | np.generic | bytes | bytearray | memoryview"

_HEADER = struct.Struct("<IQQQ")  # kind, run, tag, bytes of payload
_POOLED = 1 << 31  # added to the kind: the payload is in the sender's pool, what follows is where
_BY_MPI = 1 << 29  # added to the kind: the payload comes by MPI, what follows is its tag
_BACK = 1 << 30  # the kind of a frame between meshes: the receiver is done with what is at `tag`
_OFFSET = struct.Struct("<Q")
_SMALL = 1 << 15  # payloads up to this are copied into one write with their neighbours
_LARGE = 1 << 17  # payloads from this on go through a pool
_FAR = 1 << 20  # payloads from this on go by MPI: smaller ones are there before its thread is awake
_BATCH = 1 << 17  # bytes that are written, or read, at a time when frames are small
_AT_ONCE = getattr(socket, "MSG_DONTWAIT", 0)  # where there is no such flag, small frames may wait a little


class Owner(Protocol):
    """The mesh that a connection belongs to."""

    site: int
    pool: Pool
    buffers: Buffers
    lane: Lane | None

    def on_frame(self, peer: int, kind: int, run: int, tag: int, payload: np.ndarray) -> None:
        """Take a frame."""

    def place(self, peer: int, kind: int, run: int, tag: int, nbytes: int) -> np.ndarray | None:
        """Return where a large payload shall go, None if that is all the same."""

    def forget(self, link: Link, reason: str) -> None:
        """Take the end of `link` to the books."""


@dataclass(slots=True)
class Frame:
    """What is queued for a peer."""

    kind: int
    run: int
    tag: int
    nbytes: int
    payload: Payload
    pooled: bool = False
    gone: Callable[[], None] | None = None
    follows: bool = False  # not a frame, but the rest of one

    def head(self, flag: int = 0) -> bytes:
        """Return the bytes that go before the payload."""
        return _HEADER.pack(self.kind | flag, self.run, self.tag, self.nbytes)


class Link:
    """One authenticated connection of `mesh`.

    Parameters
    ----------
    memory
        The pool of the peer, if that is near.
    rank
        Its rank in MPI's world, if MPI leads there.
    """

    def __init__(
        self,
        mesh: Owner,
        peer: int,
        sock: socket.socket,
        memory: np.ndarray | None = None,
        rank: int | None = None,
    ) -> None:
        self.peer, self.memory, self.rank = peer, memory, rank
        self._queue: SimpleQueue[Frame | None] = SimpleQueue()
        self._unwritten: deque[None] = deque()  # as long as what is queued and not written
        self._writing = threading.Lock()
        self._rest = b""  # what the socket did not take of a frame that was written at once
        self.ended = threading.Event()
        self._mesh, self._sock = mesh, sock
        self._reason = ""
        name = f"mesh {mesh.site} peer {peer}"
        self._writer = threading.Thread(target=self._write, name=f"{name} send", daemon=True)
        self._reader = threading.Thread(target=self._read, name=f"{name} receive", daemon=True)

    def start(self) -> None:
        """Begin to write and to read."""
        self._writer.start()
        self._reader.start()

    def put(self, frame: Frame) -> None:
        """Send a frame; return at once."""
        # Without waiting, so that a finalizer may send in the middle of this.
        if frame.nbytes <= _SMALL and self._writing.acquire(blocking=False):
            try:
                if not self._unwritten:
                    self._write_now(frame)
                    return
            finally:
                self._writing.release()
        self._unwritten.append(None)
        self._queue.put(frame)

    def _write_now(self, frame: Frame) -> None:
        data = frame.head() + _bytes_of(frame.payload)
        try:
            sent = self._sock.send(data, _AT_ONCE)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self.end(f"cannot send: {error}")
            return
        if sent == len(data):
            if frame.gone is not None:
                frame.gone()
            return
        self._rest = data[sent:]
        self._unwritten.append(None)
        self._queue.put(Frame(_BACK, 0, 0, 0, b"", gone=frame.gone, follows=True))

    def close_soon(self) -> None:
        """Let the writer end when all that was put is written."""
        self._queue.put(None)

    def end(self, reason: str) -> None:
        """Cut the connection; the reader notices and cleans up."""
        self._reason = self._reason or reason
        shut(self._sock)

    def finish(self, deadline: float) -> None:
        """Wait for the queue to be written, then cut the connection and wait for both threads."""
        self._writer.join(max(deadline - time.monotonic(), 0))
        self.end("closed here")
        for thread in (self._writer, self._reader):
            if thread is not threading.current_thread():
                thread.join()

    def _write(self) -> None:
        queue = self._queue
        try:
            while (frame := queue.get()) is not None:
                with self._writing:
                    self._write_batch(frame)
                frame = None  # an idle writer must not keep the last block alive
        except OSError as error:
            self.end(f"cannot send: {error}")

    def _write_batch(self, frame: Frame | None) -> None:
        """Write a frame and what else is queued."""
        sock, queue = self._sock, self._queue
        batch, left, packed = bytearray(), [], 0
        if self._rest:
            rest, self._rest = self._rest, b""
            sock.sendall(rest)
        while frame is not None:
            if not frame.follows:
                self._pack(frame, batch)
            left += [frame.gone] if frame.gone else []
            packed += 1
            frame = None
            if len(batch) >= _BATCH or queue.empty():
                break
            frame = queue.get()
        else:
            queue.put(None)  # the end was among the batch: say it again to the loop
        sock.sendall(batch)
        for _ in range(packed):
            self._unwritten.popleft()
        for gone in left:
            gone()

    def _pack(self, frame: Frame, batch: bytearray) -> None:
        """Add a frame to what is written next; a large one is written now, or put into the pool."""
        sock, payload = self._sock, frame.payload
        near = frame.pooled and sock.family == socket.AF_UNIX and frame.nbytes >= _LARGE
        if near and isinstance(payload, np.ndarray):
            offset = self._mesh.pool.put(self.peer, payload)
            if offset is not None:
                batch += frame.head(_POOLED) + _OFFSET.pack(offset)
                sock.sendall(batch)  # the peer may begin while the next one is copied
                batch.clear()
                return
        data = _bytes_of(payload)
        if self.rank is not None and frame.nbytes >= _FAR:
            self._send_by_mpi(frame, data, batch)
            return
        batch += frame.head()
        if len(data) <= _SMALL:
            batch += data
        else:
            sock.sendall(batch)
            sock.sendall(data)
            batch.clear()

    def _send_by_mpi(self, frame: Frame, data: memoryview, batch: bytearray) -> None:
        lane = self._mesh.lane
        tag = lane.tag()
        batch += frame.head(_BY_MPI) + _OFFSET.pack(tag)
        self._sock.sendall(batch)
        batch.clear()
        sent = lane.send(self.rank, tag, np.frombuffer(data, np.uint8))
        if not sent.wait(self._is_open):
            raise OSError("the other end is gone")

    def _received_by_mpi(self, tag: bytes, place: np.ndarray) -> np.ndarray:
        """Return `place` filled with what the peer sends under `tag`."""
        received = self._mesh.lane.receive(self.rank, *_OFFSET.unpack(tag), place)
        if not received.wait(self._is_open):
            raise OSError("the other end is gone")
        return place

    def _is_open(self) -> bool:
        """Return whether neither end has closed the connection; there may be something to read."""
        poll = select.poll()
        poll.register(self._sock, getattr(select, "POLLRDHUP", 0))
        return not self._reason and not poll.poll(0)

    def _read(self) -> None:
        reason = "stopped reading"
        try:
            self._read_frames()
            reason = "closed by the other end"
        except OSError as error:
            reason = f"connection lost: {error}"
        finally:
            self._clean_up(self._reason or reason)

    def _read_frames(self) -> None:
        sock = self._sock
        warm = bytearray(_BATCH)
        view = memoryview(warm)
        start = end = 0
        while True:
            while end - start >= _HEADER.size:
                kind, run, tag, nbytes = _HEADER.unpack_from(warm, start)
                start += _HEADER.size
                payload = self._place(kind, run, tag, nbytes)
                have = min(payload.nbytes, end - start)
                data = payload.data
                data[:have] = view[start : start + have]
                start += have
                while have < payload.nbytes:
                    got = sock.recv_into(data[have:])
                    if not got:
                        return
                    have += got
                del data
                if kind == _BACK:
                    self._mesh.pool.give_back(tag)
                    continue
                if kind & _POOLED:
                    payload = self._lent(payload, nbytes)
                elif kind & _BY_MPI:
                    place = self._place(kind & ~_BY_MPI, run, tag, nbytes)
                    payload = self._received_by_mpi(payload.tobytes(), place)
                self._mesh.on_frame(self.peer, kind & ~(_POOLED | _BY_MPI), run, tag, payload)
                del payload
            view[: end - start] = view[start:end]
            start, end = 0, end - start
            got = sock.recv_into(view[end:])
            if not got:
                return
            end += got

    def _place(self, kind: int, run: int, tag: int, nbytes: int) -> np.ndarray:
        """Return an array for what follows a header."""
        if kind & (_POOLED | _BY_MPI):
            return np.empty(_OFFSET.size, np.uint8)
        wanted = self._mesh.place(self.peer, kind, run, tag, nbytes) if nbytes > _SMALL else None
        return self._mesh.buffers.take(nbytes) if wanted is None else wanted

    def _lent(self, payload: np.ndarray, nbytes: int) -> np.ndarray:
        """Return what is in the peer's pool where the payload says."""
        (offset,) = _OFFSET.unpack(payload)
        if self.memory is None or offset + nbytes > self.memory.nbytes:
            raise OSError("the other end speaks of memory that is not there")
        put = self.put
        return lend(self.memory, offset, nbytes, lambda at: put(Frame(_BACK, 0, at, 0, b"")))

    def _clean_up(self, reason: str) -> None:
        shut(self._sock)
        self.close_soon()
        self._writer.join()
        self._sock.close()
        try:
            self._mesh.forget(self, reason)
        finally:
            self.ended.set()


def _bytes_of(payload: Payload) -> memoryview:
    if isinstance(payload, np.ndarray | np.generic):
        # Through uint8, because dtypes like bfloat16 do not offer the buffer protocol.
        return np.ascontiguousarray(payload).reshape(-1).view(np.uint8).data
    return memoryview(payload).cast("B")


def shut(sock: socket.socket) -> None:
    """End a connection; whoever reads from it notices."""
    with contextlib.suppress(OSError):  # it is gone already: what was wanted
        sock.shutdown(socket.SHUT_RDWR)

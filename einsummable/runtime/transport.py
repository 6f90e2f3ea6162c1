"""The data plane: every site talks to every other directly, in frames.

Contract: a `Mesh` belongs to one site.  It listens, dials the `Address` of others, and after the handshake
carries frames ``(kind, run, tag, payload)`` whose numbers mean what the caller wants.  ``send`` never waits
for the network: one thread a peer empties a queue (small frames travel together, large arrays go out of
the caller's memory uncopied), one thread a peer reads and calls ``on_frame(peer, kind, run, tag, payload)``
with a fresh, writable `numpy.uint8` array.  Frames of one peer arrive in the order they were sent.  When a
connection ends, ``on_lost(peer, reason)`` is called once, after its last frame.  Nothing that comes from a
peer is unpickled.  ``close`` leaves no socket, file or thread.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import TypeAlias

import numpy as np

from einsummable.errors import EngineError
from einsummable.runtime.address import Address, listen, route_text, routes
from einsummable.runtime.handshake import HandshakeError, greet, introduce

#: What can be sent.
Payload: TypeAlias = "np.ndarray | np.generic | bytes | bytearray | memoryview"
OnFrame: TypeAlias = Callable[[int, int, int, int, np.ndarray], None]
OnLost: TypeAlias = Callable[[int, str], None]

_HEADER = struct.Struct("<IQQQ")  # kind, run, tag, bytes of payload
_SMALL = 1 << 15  # payloads up to this are copied into one write with their neighbours
_BATCH = 1 << 17  # bytes that are written, or read, at a time when frames are small
_HANDSHAKE_SECONDS = 5.0
_STRANGERS = 64  # connections in the handshake at a time; more are turned away
_LINGER_SECONDS = 1.0


class NotConnectedError(EngineError):
    """There is no connection to the site that something was to be sent to."""


class Mesh:
    """One site's connections to all others.

    Parameters
    ----------
    site
        The number of this site.
    key
        The secret that all sites of the mesh share.
    on_frame, on_lost
        Called from the thread that reads the peer's connection.  They must be quick and not raise: while
        they run, nothing more is read from that peer.
    bind
        The interface to listen on for TCP.  ``"0.0.0.0"`` lets other machines in.
    """

    def __init__(
        self, site: int, key: bytes, on_frame: OnFrame, on_lost: OnLost, *, bind: str = "127.0.0.1"
    ) -> None:
        self.site = site
        self._key, self._on_frame, self._on_lost = key, on_frame, on_lost
        self._links: dict[int, _Link] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._strangers: dict[threading.Thread, socket.socket] = {}
        self._listeners, self.address = listen(bind)
        self._wake, self._woken = socket.socketpair()
        self._porter = threading.Thread(target=self._accept, name=f"mesh {site} accept", daemon=True)
        self._porter.start()

    @property
    def peers(self) -> tuple[int, ...]:
        """The sites that are connected now, in order."""
        with self._changed:
            return tuple(sorted(self._links))

    def dial(self, peer: int, address: Address, timeout: float = _HANDSHAKE_SECONDS) -> None:
        """Connect to `peer`; raise `EngineError` that says why if that takes longer than `timeout`."""
        deadline = time.monotonic() + timeout
        reasons = []
        ways = routes(address)
        for i, (family, target) in enumerate(ways):
            # An address behind a wall answers nothing: it must not use up the time of the others.
            share = max(deadline - time.monotonic(), 1e-3) / (len(ways) - i)
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.settimeout(share)
                sock.connect(target)
                introduce(sock, self.site, peer, self._key, share)
            except (OSError, HandshakeError) as error:
                sock.close()
                reasons.append(f"{route_text(target)}: {error}")
            else:
                self._adopt(peer, sock)
                return
        raise EngineError(f"site {self.site} cannot reach site {peer}", notes=tuple(reasons))

    def wait_for(self, sites: Iterable[int], timeout: float) -> tuple[int, ...]:
        """Wait until all of `sites` are connected or `timeout` has passed; return those that are missing."""
        wanted = set(sites) - {self.site}
        with self._changed:
            self._changed.wait_for(lambda: wanted <= self._links.keys(), timeout)
            return tuple(sorted(wanted - self._links.keys()))

    def send(self, peer: int, kind: int, run: int = 0, tag: int = 0, payload: Payload = b"") -> None:
        """Queue a frame for `peer` and return at once.

        The payload is kept until it is on its way and must not change before; a discontiguous array is
        copied.

        Raises
        ------
        NotConnectedError
            If `peer` is not connected.
        """
        link = self._links.get(peer)
        if link is None:
            raise NotConnectedError(f"site {self.site} has no connection to site {peer}")
        nbytes = payload.nbytes if hasattr(payload, "nbytes") else len(payload)
        link.queue.put((_HEADER.pack(kind, run, tag, nbytes), payload))

    def drop(self, peer: int, reason: str) -> None:
        """End the connection to `peer`, if there is one; ``on_lost`` is told `reason`."""
        link = self._links.get(peer)
        if link is not None:
            link.end(reason)

    def close(self) -> None:
        """Send what is queued, as far as the peers take it within a second, and end everything.

        ``on_lost`` is not called any more.
        """
        with self._changed:
            if self._closed:
                return
            self._closed = True
            links, self._links = list(self._links.values()), {}
        self._wake.send(b"x")
        self._porter.join()
        for sock in (*self._listeners, self._wake, self._woken):
            sock.close()
        for thread, sock in list(self._strangers.items()):
            _shut(sock)
            thread.join()
        deadline = time.monotonic() + _LINGER_SECONDS
        for link in links:
            link.queue.put(None)
        for link in links:
            link.finish(deadline)

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            for listener in (*self._listeners, self._woken):
                selector.register(listener, selectors.EVENT_READ)
            while True:
                for event, _ in selector.select():
                    if event.fileobj is self._woken:
                        return
                    try:
                        sock, _ = event.fileobj.accept()
                    except OSError:  # it hung up before it was let in
                        continue
                    self._let_in(sock)

    def _let_in(self, sock: socket.socket) -> None:
        # A thread of its own: a stranger that says nothing must not keep others out.
        if len(self._strangers) >= _STRANGERS:
            sock.close()
            return
        thread = threading.Thread(
            target=self._greet, args=(sock,), name=f"mesh {self.site} greet", daemon=True
        )
        self._strangers[thread] = sock
        thread.start()

    def _greet(self, sock: socket.socket) -> None:
        try:
            peer = greet(sock, self.site, self._key, _HANDSHAKE_SECONDS)
        except HandshakeError:
            sock.close()
        else:
            self._adopt(peer, sock)
        finally:
            del self._strangers[threading.current_thread()]

    def _adopt(self, peer: int, sock: socket.socket) -> None:
        _tune(sock)
        while True:
            with self._changed:
                if self._closed:
                    sock.close()
                    return
                old = self._links.get(peer)
                if old is None:
                    link = self._links[peer] = _Link(self, peer, sock)
                    link.start()
                    self._changed.notify_all()
                    return
            old.end("replaced by a new connection")
            old.ended.wait(_LINGER_SECONDS)  # its loss is told before the first frame of the new one

    def _forget(self, link: _Link, reason: str) -> None:
        """Take the end of `link` to the books and tell the owner."""
        with self._changed:
            if self._links.get(link.peer) is link:
                del self._links[link.peer]
            closed = self._closed
            self._changed.notify_all()
        if not closed:
            self._on_lost(link.peer, reason)


class _Link:
    """One authenticated connection, a thread for each direction."""

    def __init__(self, mesh: Mesh, peer: int, sock: socket.socket) -> None:
        self.peer = peer
        self.queue: SimpleQueue[tuple[bytes, Payload] | None] = SimpleQueue()
        self.ended = threading.Event()
        self._mesh, self._sock = mesh, sock
        self._reason = ""
        name = f"mesh {mesh.site} peer {peer}"
        self._writer = threading.Thread(target=self._write, name=f"{name} send", daemon=True)
        self._reader = threading.Thread(target=self._read, name=f"{name} receive", daemon=True)

    def start(self) -> None:
        self._writer.start()
        self._reader.start()

    def end(self, reason: str) -> None:
        """Cut the connection; the reader notices and cleans up."""
        self._reason = self._reason or reason
        _shut(self._sock)

    def finish(self, deadline: float) -> None:
        """Wait for the queue to be written, then cut the connection and wait for both threads."""
        self._writer.join(max(deadline - time.monotonic(), 0))
        self.end("closed here")
        for thread in (self._writer, self._reader):
            if thread is not threading.current_thread():
                thread.join()

    def _write(self) -> None:
        sock, queue = self._sock, self.queue
        try:
            while (item := queue.get()) is not None:
                batch = bytearray()
                while item is not None:
                    header, payload = item
                    data = _bytes_of(payload)
                    batch += header
                    if len(data) <= _SMALL:
                        batch += data
                    else:
                        sock.sendall(batch)
                        sock.sendall(data)
                        batch.clear()
                    del item, payload, data  # an idle writer must not keep the last block alive
                    if len(batch) >= _BATCH or queue.empty():
                        break
                    item = queue.get()
                else:
                    queue.put(None)  # the end was among the batch: say it again to the outer loop
                sock.sendall(batch)
        except OSError as error:
            self.end(f"cannot send: {error}")

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
        sock, on_frame, peer = self._sock, self._mesh._on_frame, self.peer
        warm = bytearray(_BATCH)
        view = memoryview(warm)
        start = end = 0
        while True:
            while end - start >= _HEADER.size:
                kind, run, tag, nbytes = _HEADER.unpack_from(warm, start)
                start += _HEADER.size
                payload = np.empty(nbytes, np.uint8)
                have = min(nbytes, end - start)
                data = payload.data
                data[:have] = view[start : start + have]
                start += have
                while have < nbytes:
                    got = sock.recv_into(data[have:])
                    if not got:
                        return
                    have += got
                del data
                on_frame(peer, kind, run, tag, payload)
                del payload
            view[: end - start] = view[start:end]
            start, end = 0, end - start
            got = sock.recv_into(view[end:])
            if not got:
                return
            end += got

    def _clean_up(self, reason: str) -> None:
        _shut(self._sock)
        self.queue.put(None)
        self._writer.join()
        self._sock.close()
        try:
            self._mesh._forget(self, reason)
        finally:
            self.ended.set()


def _bytes_of(payload: Payload) -> memoryview:
    if isinstance(payload, np.ndarray | np.generic):
        # Through uint8, because dtypes like bfloat16 do not offer the buffer protocol.
        return np.ascontiguousarray(payload).reshape(-1).view(np.uint8).data
    return memoryview(payload).cast("B")


def _tune(sock: socket.socket) -> None:
    if sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # A machine that vanishes sends no end of connection; ask it every 2 s, give up after 4 silences.
    for option, value in (("TCP_KEEPIDLE", 2), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is gone already: what was wanted
        sock.shutdown(socket.SHUT_RDWR)

"""The data plane: every site talks to every other directly, in frames.

Contract: a `Mesh` belongs to one site.  It listens, dials the `Address` of others, and after the handshake
carries frames ``(kind, run, tag, payload)`` whose numbers mean what the caller wants.  ``send`` never waits
for the network: a small frame is written at once where the socket takes it, the rest by a thread a peer.
Another one reads and calls ``on_frame(peer, kind, run, tag, payload)`` with a `numpy.uint8` array.  Large
frames go through memory that both sites share (see `pool`) or by MPI (see `lane`) where they can, else out of
the caller's memory uncopied and into a warm buffer.  A writable payload is the receiver's; a read-only one
is lent, and what its bytes say stays as long as an array looks at them and the receiver keeps the connection.
Frames of one peer arrive in the order they were sent.  When a connection ends, ``on_lost(peer, reason)`` is
called once, after its last frame.  Nothing that comes from a peer is unpickled.  ``close`` leaves no socket,
file or thread.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from einsummable.errors import EngineError
from einsummable.kernels.warm import Buffers
from einsummable.runtime.address import Address, listen, route_text, routes
from einsummable.runtime.handshake import HandshakeError, greet, introduce
from einsummable.runtime.lane import lane, meet
from einsummable.runtime.link import Frame, Link, Payload, shut
from einsummable.runtime.pool import Pool, swap

OnFrame: TypeAlias = Callable[[int, int, int, int, np.ndarray], None]
OnLost: TypeAlias = Callable[[int, str], None]
#: Answers where a payload of so many bytes shall go, None if that is all the same.
Place: TypeAlias = Callable[[int, int, int, int, int], "np.ndarray | None"]

_HANDSHAKE_SECONDS = 5.0
_STRANGERS = 64  # connections in the handshake at a time; more are turned away
_LINGER_SECONDS = 1.0
_SMALL = 1 << 16  # smaller payloads get a fresh array


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
    place
        Asked where a large payload that comes through a socket shall go, by ``(peer, kind, run, tag,
        bytes)``.
    """

    def __init__(
        self,
        site: int,
        key: bytes,
        on_frame: OnFrame,
        on_lost: OnLost,
        *,
        bind: str = "127.0.0.1",
        place: Place = lambda *_: None,
    ) -> None:
        self.site = site
        self.pool, self.buffers, self.place = Pool(), Buffers(_SMALL), place
        self.lane = lane()
        self._key, self.on_frame, self._on_lost = key, on_frame, on_lost
        self._links: dict[int, Link] = {}
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
                means = self._compare(sock)
            except (OSError, HandshakeError) as error:
                sock.close()
                reasons.append(f"{route_text(target)}: {error}")
            else:
                self._adopt(peer, sock, *means)
                return
        raise EngineError(f"site {self.site} cannot reach site {peer}", notes=tuple(reasons))

    def wait_for(self, sites: Iterable[int], timeout: float) -> tuple[int, ...]:
        """Wait until all of `sites` are connected or `timeout` has passed; return those that are missing."""
        wanted = set(sites) - {self.site}
        with self._changed:
            self._changed.wait_for(lambda: wanted <= self._links.keys(), timeout)
            return tuple(sorted(wanted - self._links.keys()))

    def send(
        self,
        peer: int,
        kind: int,
        run: int = 0,
        tag: int = 0,
        payload: Payload = b"",
        *,
        pooled: bool = True,
        gone: Callable[[], None] | None = None,
    ) -> None:
        """Queue a frame for `peer` and return at once.

        The payload is kept until it is on its way and must not change before.

        Parameters
        ----------
        pooled
            Whether it may go through shared memory, which holds a copy until the receiver is done.
        gone
            Called, from another thread, when the payload is on its way.

        Raises
        ------
        NotConnectedError
            If `peer` is not connected.
        """
        link = self._links.get(peer)
        if link is None:
            raise NotConnectedError(f"site {self.site} has no connection to site {peer}")
        nbytes = payload.nbytes if hasattr(payload, "nbytes") else len(payload)
        link.put(Frame(kind, run, tag, nbytes, payload, pooled, gone))

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
            shut(sock)
            thread.join()
        deadline = time.monotonic() + _LINGER_SECONDS
        for link in links:
            link.close_soon()
        for link in links:
            link.finish(deadline)
        self.pool.close()

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
            means = self._compare(sock)
        except (OSError, HandshakeError):
            sock.close()
        else:
            self._adopt(peer, sock, *means)
        finally:
            del self._strangers[threading.current_thread()]

    def _compare(self, sock: socket.socket) -> tuple[np.ndarray | None, int | None]:
        """Find out with the other end what else joins us; return its pool, and its rank in MPI's world.

        Memory can be shown through a Unix socket only.
        """
        rank = meet(sock, self.lane, _HANDSHAKE_SECONDS)
        if sock.family != socket.AF_UNIX:
            return None, rank
        return swap(sock, self.pool.descriptor, _HANDSHAKE_SECONDS), rank

    def _adopt(self, peer: int, sock: socket.socket, memory: np.ndarray | None, rank: int | None) -> None:
        _tune(sock)
        while True:
            with self._changed:
                if self._closed:
                    sock.close()
                    return
                old = self._links.get(peer)
                if old is None:
                    link = self._links[peer] = Link(self, peer, sock, memory, rank)
                    link.start()
                    self._changed.notify_all()
                    return
            old.end("replaced by a new connection")
            old.ended.wait(_LINGER_SECONDS)  # its loss is told before the first frame of the new one

    def forget(self, link: Link, reason: str) -> None:
        """Take the end of `link` to the books and tell the owner."""
        with self._changed:
            if self._links.get(link.peer) is link:
                del self._links[link.peer]
            closed = self._closed
            self.pool.forget(link.peer)
            self._changed.notify_all()
        if not closed:
            self._on_lost(link.peer, reason)


def _tune(sock: socket.socket) -> None:
    if sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # A machine that vanishes sends no end of connection; ask it every 2 s, give up after 4 silences.
    for option, value in (("TCP_KEEPIDLE", 2), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

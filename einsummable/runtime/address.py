"""Where a site listens, and how another gets there.

Contract: `listen` opens sockets and answers their `Address`, which any other process can turn into `routes`.
Processes in one network namespace of a Linux machine meet on an abstract Unix socket, which has no file that
a killed process could leave behind; all others meet on TCP.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """Where a mesh listens."""

    namespace: str
    """Names the network namespace in which `path` can be dialled; empty if there is no such socket."""
    path: str
    """Name of an abstract Unix socket, without its leading NUL."""
    hosts: tuple[str, ...]
    """Addresses of the machine, the likeliest first."""
    port: int
    """TCP port."""


def listen(bind: str) -> tuple[list[socket.socket], Address]:
    """Return listening sockets, not blocking, and the address under which they can be reached."""
    tcp = socket.create_server((bind, 0))
    listeners, namespace, path = [tcp], "", ""
    if sys.platform == "linux":
        path = f"einsummable-{os.getpid()}-{os.urandom(8).hex()}"
        unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        unix.bind(f"\0{path}")
        unix.listen()
        listeners.append(unix)
        namespace = machine()
    for listener in listeners:
        listener.setblocking(False)
    hosts = _own_hosts() if ipaddress.ip_address(bind).is_unspecified else (bind,)
    return listeners, Address(namespace, path, hosts, tcp.getsockname()[1])


def machine() -> str:
    """Return what is equal for processes that can meet on loopback: on Linux the boot and the namespace."""
    if sys.platform != "linux":
        return socket.gethostname()
    with open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()} {os.readlink('/proc/self/ns/net')}"


def _own_hosts() -> tuple[str, ...]:
    import psutil

    hosts = []
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Connecting a datagram socket sends nothing; it asks the routing table for our own address.
        probe.connect(("203.0.113.1", 9))
        hosts.append(probe.getsockname()[0])
    for addresses in psutil.net_if_addrs().values():
        hosts += [a.address for a in addresses if a.family == socket.AF_INET]
    outside = [h for h in dict.fromkeys(hosts) if not ipaddress.ip_address(h).is_loopback]
    return tuple(outside) or ("127.0.0.1",)


def routes(address: Address) -> list[tuple[int, object]]:
    """Return what to connect to, as ``(socket family, target)``, the quickest first."""
    found: list[tuple[int, object]] = []
    if address.path and address.namespace == machine():
        found.append((socket.AF_UNIX, f"\0{address.path}"))
    return found + [(socket.AF_INET, (host, address.port)) for host in address.hosts]


def route_text(target: object) -> str:
    """Return a target as a reader would write it."""
    return f"{target[0]}:{target[1]}" if isinstance(target, tuple) else f"unix socket {target[1:]}"

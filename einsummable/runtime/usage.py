"""What the engines of a cluster take of their machines."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass

from einsummable.runtime.engines import Engines


@dataclass(frozen=True, slots=True)
class Usage:
    """One engine: bytes of its process (None where nobody can see it), bytes kept there, why it is gone."""

    site: int
    resident: int | None
    kept: int
    lost: str = ""


def usage(engines: Engines) -> tuple[Usage, ...]:
    """Return what every engine takes; safe in any thread, also while a program runs."""
    kept = engines.kept_bytes()
    return tuple(
        Usage(site, _resident(engines, site), kept[site], engines.lost.get(site, ""))
        for site in sorted(engines.info)
    )


def _resident(engines: Engines, site: int) -> int | None:
    import psutil

    if site in engines.lost or engines.info[site].host != socket.gethostname():
        return None
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(engines.info[site].pid).memory_info().rss
    return None

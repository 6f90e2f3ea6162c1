"""What the engines of a cluster take of their machines."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from einsummable.errors import EngineError
from einsummable.runtime import wire
from einsummable.runtime.engines import Answer, Engines

_PATIENCE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Usage:
    """One engine: bytes of its process (None if it does not answer), bytes kept there, why it is gone."""

    site: int
    resident: int | None
    kept: int
    lost: str = ""


def usage(engines: Engines) -> tuple[Usage, ...]:
    """Return what every engine takes; safe in any thread, also while a program runs."""
    kept, resident = engines.kept_bytes(), _resident(engines)
    return tuple(
        Usage(site, resident.get(site), kept[site], engines.lost.get(site, ""))
        for site in sorted(engines.info)
    )


def _resident(engines: Engines) -> dict[int, int]:
    """Ask every engine for the size of its process; one that hangs is not waited for."""
    found: dict[int, int] = {}
    asked = [site for site in engines.info if site not in engines.lost]
    end = time.monotonic() + _PATIENCE_SECONDS
    with engines.exchange() as exchange, suppress(EngineError):  # the cluster is stopped meanwhile
        for site in asked:
            exchange.send(site, wire.USAGE)
        while len(found) < len(asked) and (left := end - time.monotonic()) > 0:
            match exchange.receive(left):
                case Answer(site=site, payload=payload):
                    found[site] = int(payload.view(np.uint64)[0])
    return found

"""Timing several callables against each other: interleaved, so that a slow moment hits all of them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Timing:
    """Seconds of each repetition of one callable."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the repetitions."""
        return median(self.seconds)


def interleaved(calls: Mapping[str, Callable[[], object]], repetitions: int = 7) -> dict[str, Timing]:
    """Return timings of `calls`, run in turn `repetitions` times after one warm-up each."""
    for call in calls.values():
        call()
    seconds = {name: [] for name in calls}
    for _ in range(repetitions):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(tuple(s)) for name, s in seconds.items()}


def ratio(peer: Timing, ours: Timing) -> tuple[float, float, float]:
    """Return median, least and greatest of peer/ours, pair by pair: above 1 we are faster."""
    ratios = [p / o for p, o in zip(peer.seconds, ours.seconds, strict=True)]
    return median(ratios), min(ratios), max(ratios)


def table(title: str, rows: Mapping[str, tuple[Timing, Mapping[str, Timing]]]) -> str:
    """Return a table: a row for each of ours, with its time and the ratio to each peer."""
    lines = [title, f"{'':34} {'ours':>10}   peer/ours: median (least … greatest)"]
    for name, (ours, peers) in rows.items():
        cells = []
        for peer, timing in peers.items():
            mid, low, high = ratio(timing, ours)
            cells.append(f"{peer} {mid:.2f} ({low:.2f} … {high:.2f})")
        lines.append(f"{name:34} {1e3 * ours.median:7.1f} ms   " + ", ".join(cells))
    return "\n".join(lines)

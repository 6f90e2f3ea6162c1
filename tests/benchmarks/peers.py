"""Timing several callables against each other: interleaved, so that a slow moment hits all of them."""

import time
from collections.abc import Callable, Iterable, Mapping
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


def compared(label: str, ours: Timing, peers: Iterable[tuple[str, Timing, float]]) -> list[str]:
    """Print a row for each peer, given with its timing and the ratio wanted; return those that fall short."""
    short = []
    for k, (name, theirs, at_least) in enumerate(peers):
        middle, least, greatest = ratio(theirs, ours)
        first = (label, f"{1e3 * ours.median:.1f} ms") if not k else ("", "")
        seen = f"{1e3 * theirs.median:7.1f} ms  {middle:.2f} ({least:.2f} … {greatest:.2f}), {at_least}"
        short += _judged("{:42} {:>9}".format(*first), name, seen, middle, at_least, label)
    return short


def reached(label: str, what: str, figures: Iterable[float], at_least: float) -> list[str]:
    """Print a row for figures that are to reach something by themselves; return it if they fall short."""
    figures = sorted(figures)
    middle = median(figures)
    seen = f"{'':10}  {middle:,.6g} ({figures[0]:,.6g} … {figures[-1]:,.6g}), {at_least:,}"
    return _judged(f"{label:42} {'':9}", what, seen, middle, at_least, label)


def _judged(start: str, name: str, seen: str, figure: float, at_least: float, label: str) -> list[str]:
    falls_short = figure < at_least
    print(f"{start}   {name:18} {seen}{'  ← short' if falls_short else ''}", flush=True)
    return [f"{label}, {name}: {figure:,.3g}, wanted {at_least:,}"] if falls_short else []


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

"""Our plans against those of a published planner: bytes that move, balance of the work, simulated makespan.

einsummable bench plans [--files matmul chain …] [--sites-per-host 1]

For every answer of the reference with a placement: where it shares the work about evenly (its busiest site
has at most 1.2 times the mean), we must move no more bytes; where it does not, our simulated run must take no
longer, both lowered alike.  Our work must be even within 1.1.  The
placement on 64 sites is not given: there the time is at least what the busiest site computes (">"), and is
not judged.  Exits with 1 where a rule is broken, with 2 where the answers are not there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import golden_graphs
from golden_graphs import Answer, Case
from networks import matmul

from einsummable.choose import Choice, choose, routed
from einsummable.dtypes import F32
from einsummable.graph import EinGraph
from einsummable.planner import bounds
from einsummable.planner.hardware import Hardware, cluster

#: A reference that is about balanced must not move fewer bytes than we do.
BALANCED = 1.2
#: What our own work may be off balance.
OURS = 1.1
#: Of a product of two matrices of 10000 × 10000, the most bytes on so many sites.
CUBES = {8: 1.25e9, 64: 3.7e9}


@dataclass(frozen=True)
class Ours:
    """What we chose for a graph on so many sites, how long that took, bytes that no even plan can beat."""

    choice: Choice
    planning: float
    bound: float

    @property
    def makespan(self) -> float:
        """Seconds of the simulated run."""
        return self.choice.simulation.makespan

    @property
    def nbytes(self) -> int:
        """Bytes that move."""
        return self.choice.tasks.bytes_moved


@dataclass(frozen=True)
class Row:
    """One answer of the reference beside ours; `makespan` is a lower bound where `given` is not set."""

    case: str
    n: int
    spaces: str
    ours: Ours
    nbytes: int
    balance: float
    makespan: float
    given: bool

    def misses(self) -> list[str]:
        """Return what of the rule does not hold, in words."""
        found, where = [], f"{self.case} on {self.n} sites ({self.spaces})"
        if self.ours.choice.work_balance > OURS:
            found.append(
                f"{where}: our busiest site has {self.ours.choice.work_balance:.2f} times the mean work"
            )
        if self.balance <= BALANCED and self.ours.nbytes > self.nbytes:
            found.append(f"{where}: we move {self.ours.nbytes} bytes, the reference {self.nbytes}")
        longer = self.ours.makespan > self.makespan * (1 + 1e-9)
        if self.balance > BALANCED and self.given and longer:
            took = f"{1e3 * self.ours.makespan:.4g} ms, the reference {1e3 * self.makespan:.4g} ms"
            found.append(f"{where}: our run takes {took}")
        return found

    def verdict(self) -> str:
        """Return in a word how it ended."""
        if self.misses():
            return "MISS"
        judged = self.balance <= BALANCED or self.given or self.ours.makespan <= self.makespan
        return "ok" if judged else "open"

    def __str__(self) -> str:
        ours = _figures(self.ours.nbytes, self.ours.choice.work_balance, " ", self.ours.makespan)
        theirs = _figures(self.nbytes, self.balance, " " if self.given else ">", self.makespan)
        rest = f"{self.ours.bound / 1e6:9.2f} {self.ours.planning:7.3f}  {self.verdict():4}  {self.spaces}"
        return f"{self.case:34} {self.n:3} {ours} {theirs} {rest}"


def _figures(nbytes: int, balance: float, least: str, seconds: float) -> str:
    return f"{nbytes / 1e6:9.2f} {balance:5.2f} {least}{1e3 * seconds:10.3f}"


HEAD = (
    f"{'':38} {'ours':>27} {'reference':>27} {'bound':>9} {'plan':>7}\n"
    f"{'case':34}   n        MB  work          ms        MB  work          ms {'MB':>9} {'s':>7}"
)


def rows(case: Case, hardware: dict[int, Hardware]) -> Iterator[Row]:
    """Yield a row for each distinct answer for `case`, on the machine for its number of sites."""
    ours: dict[int, Ours] = {}
    distinct: dict[tuple, list[Answer]] = {}
    for answer in case.answers:
        distinct.setdefault((answer.n, answer.parts, answer.locations, answer.work), []).append(answer)
    for (n, *_), answers in sorted(distinct.items(), key=lambda item: item[0][0]):
        if n not in ours:
            ours[n] = plan(case.graph, hardware[n])
        first = answers[0]
        spaces = ", ".join(dict.fromkeys(answer.space for answer in answers)) + f" (×{len(answers)})"
        makespan = _makespan(case, first, hardware[n])
        given = first.locations is not None
        yield Row(case.name, n, spaces, ours[n], first.nbytes, first.balance, makespan, given)


def plan(graph: EinGraph, hardware: Hardware) -> Ours:
    """Return our choice; planning is the time of everything but the simulation of the reference."""
    start = time.perf_counter()
    choice = choose(graph, hardware.sites, hardware=hardware)
    return Ours(choice, time.perf_counter() - start, bounds.moved(graph, hardware.sites))


def _makespan(case: Case, answer: Answer, hardware: Hardware) -> float:
    """Return how long the reference's plan runs, or at least how long its busiest site computes."""
    if answer.locations is None:
        # It counts a multiplication with its addition once.
        return 2 * max(answer.work) / hardware.product_flops(F32)
    reference = routed(*golden_graphs.reference_plan(case, answer), hardware)
    moved = reference.tasks.bytes_moved
    if moved != answer.nbytes:
        raise ValueError(f"{case.name}: its plan moves {moved} bytes, it says {answer.nbytes}")
    return reference.simulation.makespan


def cubes(sites_per_host: int) -> Iterator[str]:
    """Print the bytes of large cubes; yield what is missed."""
    for n, most in CUBES.items():
        ours = plan(matmul(10_000, 10_000, 10_000), machine(n, sites_per_host))
        print(
            f"matmul 10000³ on {n} sites: {ours.nbytes / 1e9:.3f} GB, at most {most / 1e9} GB, "
            f"bound {ours.bound / 1e9:.3f} GB, {1e3 * ours.makespan:.1f} ms"
        )
        if ours.nbytes > most:
            yield f"matmul 10000³ on {n} sites: we move {ours.nbytes} bytes, at most {most:.4g} are allowed"


def machine(sites: int, sites_per_host: int) -> Hardware:
    """Return a cluster of so many sites."""
    each = min(sites, sites_per_host)
    return cluster(sites // each, each)


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", nargs="+", default=list(golden_graphs.FILES), choices=golden_graphs.FILES)
    parser.add_argument("--sites-per-host", type=int, default=1, help="a power of two")
    args = parser.parse_args()
    if not golden_graphs.FOLDER.is_dir():
        print(f"the reference's answers are not there: {golden_graphs.FOLDER} (or set EINSUMMABLE_SHARED)")
        return 2
    print(HEAD)
    missed, judged, open_, answers = [], 0, 0, 0
    for case in golden_graphs.cases(tuple(args.files)):
        hardware = {a.n: machine(a.n, args.sites_per_host) for a in case.answers}
        for row in rows(case, hardware):
            print(row, flush=True)
            missed += row.misses()
            judged += row.verdict() != "open"
            open_ += row.verdict() == "open"
        answers += len(case.answers)
    missed += cubes(args.sites_per_host)
    print(
        f"{judged} distinct plans of {answers} answers judged, {len(missed)} missed; {open_} open: "
        "unbalanced, no placement given, and our run takes longer than its busiest site computes"
    )
    for line in missed:
        print("MISS", line)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())

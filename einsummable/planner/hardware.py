"""What a machine can do: sites grouped in hosts, their speed, and the links between them.

Contract: a `Hardware` is a value (JSON by `codec`); presets are round figures of machines that many have.
Times are seconds, sizes bytes.  Every site has a port within its host, every host one to the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from einsummable import dtypes
from einsummable.errors import PlanError


@dataclass(frozen=True, slots=True)
class Link:
    """What joins two sites, as in the LogGP model (Alexandrov et al., 1995).

    Attributes
    ----------
    bandwidth
        Bytes a second.
    latency
        Seconds that a message is under way.
    gap
        Seconds for which a message keeps a port busy besides its bytes: many small ones take their time.
    """

    bandwidth: float
    latency: float
    gap: float = 0.0

    def busy(self, nbytes: float) -> float:
        """Return how long a port is busy with a message of `nbytes`."""
        return self.gap + nbytes / self.bandwidth

    def seconds(self, nbytes: float) -> float:
        """Return how long a message of `nbytes` takes if nothing else is on the link."""
        return self.latency + self.busy(nbytes)


@dataclass(frozen=True, slots=True)
class Hardware:
    """Sites, what each can do, and what joins them.

    Attributes
    ----------
    name
        What a reader calls it.
    hosts
        The host of every site.
    flops
        Multiplications and additions a second in matrix products, of one site, by name of dtype.
    map_flops
        Additions a second of one site elsewhere, where memory does not limit it.
    memory_bandwidth, memory
        Of one site: bytes a second, and bytes.
    near, far
        The link of a site within its host, and of a host to the others.
    overhead
        What every task costs besides.
    half
        The extent at which a matrix product reaches half of its speed, in each of its three dimensions.
    """

    name: str
    hosts: tuple[int, ...]
    flops: Mapping[str, float]
    map_flops: float
    memory_bandwidth: float
    memory: float
    near: Link
    far: Link
    overhead: float = 5e-6
    half: float = 16.0

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return len(self.hosts)

    def product_flops(self, dtype: np.dtype) -> float:
        """Return the speed of a site in matrix products of `dtype`; where it is not known, that of maps."""
        return self.flops.get(dtypes.name(dtype), self.map_flops)

    def product_rate(self, dtype: np.dtype, *sizes: float | np.ndarray) -> float | np.ndarray:
        """Return the speed of a product of matrices with these rows, columns and summed extents."""
        rate = self.product_flops(dtype)
        for size in sizes:
            rate = rate * (size / (size + self.half))
        return rate

    def link(self, a: int, b: int) -> Link:
        """Return what joins sites `a` and `b`."""
        return self.near if self.hosts[a] == self.hosts[b] else self.far

    def message(self, a: int, b: int, nbytes: float) -> float:
        """Return how long a message takes from site `a` to `b`, whose ports it streams through."""
        if self.hosts[a] == self.hosts[b]:
            return self.near.seconds(nbytes)
        return self.far.latency + max(self.near.busy(nbytes), self.far.busy(nbytes))

    def check(self) -> None:
        """Raise `PlanError` unless every figure can be."""
        speeds = {
            "map_flops": self.map_flops,
            "memory_bandwidth": self.memory_bandwidth,
            "memory": self.memory,
            "near.bandwidth": self.near.bandwidth,
            "far.bandwidth": self.far.bandwidth,
            **{f"flops of {name}": value for name, value in self.flops.items()},
        }
        for what, value in speeds.items():
            if not value > 0:
                raise PlanError(f"{what} of {self.name} is {value}, it must be more than 0")
        for what, value in (
            ("near", self.near.latency),
            ("far", self.far.latency),
            ("a message within a host", self.near.gap),
            ("a message between hosts", self.far.gap),
            ("a task", self.overhead),
            ("half speed", self.half),
        ):
            if not 0 <= value < inf:
                raise PlanError(f"the latency of {what} of {self.name} is {value}")
        if not self.hosts:
            raise PlanError(f"{self.name} has no site")


#: One core of a present-day server: round figures, measured with numpy's BLAS.
_CORE = {"f32": 1.2e11, "f64": 6e10, "c64": 1.2e11, "c128": 6e10}
#: Additions that such a core makes in a compiled loop.
_ADDITIONS = 3e10
#: Between processes of one host: a socket or shared memory.
_SHARED_MEMORY = Link(4e9, 5e-5, 1e-5)


def laptop(sites: int = 4) -> Hardware:
    """Return a machine of one host whose sites are single cores and share 16 GB."""
    return Hardware(
        "laptop", (0,) * sites, _CORE, _ADDITIONS, 8e9, 16e9 / sites, _SHARED_MEMORY, _SHARED_MEMORY
    )


def host(sites: int) -> Hardware:
    """Return one server with 4 GB a site."""
    return Hardware("host", (0,) * sites, _CORE, _ADDITIONS, 8e9, 4e9, _SHARED_MEMORY, _SHARED_MEMORY)


def cluster(hosts: int = 32, sites_per_host: int = 64, *, cores: int = 1) -> Hardware:
    """Return servers joined by 100 Gbit/s each, whose sites have `cores` cores and 4 GB for each of them."""
    of = tuple(h for h in range(hosts) for _ in range(sites_per_host))
    near = replace(_SHARED_MEMORY, bandwidth=cores * _SHARED_MEMORY.bandwidth)
    flops = {name: cores * rate for name, rate in _CORE.items()}
    far = Link(1.25e10, 2e-5, 1e-6)
    return Hardware("cluster", of, flops, cores * _ADDITIONS, cores * 8e9, cores * 4e9, near, far)

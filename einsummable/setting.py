"""What a plan is asked for, as one value: sites, hosts, link, memory, objective, cuts that are given.

Contract: `Setting.of` and `Setting.json` take and give JSON; `python` writes the same as Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import inf, isfinite
from typing import Any

from einsummable.errors import PlanError
from einsummable.planner.eindecomp import Pins
from einsummable.planner.hardware import Hardware


@dataclass(frozen=True, slots=True)
class Setting:
    """What a plan is asked for.

    Attributes
    ----------
    sites, hosts
        How many, the sites in equal runs on the hosts.
    bandwidth, latency
        Of the link between hosts, of a single host between its sites: bytes a second, seconds.
    memory
        Bytes of a site.
    objective
        ``"bytes"`` that move, or simulated ``"time"``.
    p
        Into how many kernel calls each node is cut; None for as many as there are sites.
    pins
        Cuts that the plan keeps, by tensor and label.
    edits
        Cuts by hand on top of the plan: the strategy called "yours".
    """

    sites: int
    hosts: int = 1
    bandwidth: float = 4e9
    latency: float = 5e-5
    memory: float = inf
    objective: str = "bytes"
    p: int | None = None
    pins: Pins = field(default_factory=dict)
    edits: Pins = field(default_factory=dict)

    @classmethod
    def start(cls, hardware: Hardware, *, timed: bool, **more: Any) -> Setting:
        """Return the setting that asks for a plan on `hardware`, as it is; `more` are further figures."""
        hosts = len(set(hardware.hosts))
        link = hardware.near if hosts == 1 else hardware.far
        objective = "time" if timed else "bytes"
        return cls(hardware.sites, hosts, link.bandwidth, link.latency, objective=objective, **more)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Setting:
        """Return the setting that `json` made, checked.

        Raises
        ------
        PlanError
            A figure cannot be.
        """
        known = {f.name for f in fields(cls)}
        given = {k: v for k, v in data.items() if k in known}
        if given.get("memory") is None:
            given["memory"] = inf
        made = cls(**given)
        made.check()
        return made

    def json(self) -> dict[str, Any]:
        """Return it as JSON; memory without a limit is None."""
        return asdict(self) | {"memory": self.memory if isfinite(self.memory) else None}

    def check(self) -> None:
        """Raise `PlanError` unless every figure can be."""
        for what, n in (("sites", self.sites), ("hosts", self.hosts)):
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                raise PlanError(f"{what} must be a whole number from 1, not {n!r}")
        if self.hosts > self.sites:
            raise PlanError(f"{self.sites} sites cannot be on {self.hosts} hosts")
        for what, x in (("bandwidth", self.bandwidth), ("memory", self.memory)):
            if not x > 0:
                raise PlanError(f"the {what} must be more than 0, not {x!r}")
        if not 0 <= self.latency < inf:
            raise PlanError(f"the latency must be 0 seconds or more, not {self.latency!r}")
        if self.objective not in ("bytes", "time"):
            raise PlanError(f"a plan is made for 'bytes' or for 'time', not for {self.objective!r}")

    @property
    def host_of(self) -> tuple[int, ...]:
        """The host of every site."""
        return tuple(site * self.hosts // self.sites for site in range(self.sites))

    def hardware(self, base: Hardware) -> Hardware:
        """Return `base` with as many sites, hosts and links as asked for."""
        which = "near" if self.hosts == 1 else "far"
        link = replace(getattr(base, which), bandwidth=self.bandwidth, latency=self.latency)
        same = base.sites == self.sites and len(set(base.hosts)) == self.hosts
        limit = min(base.memory, self.memory)
        hosts = base.hosts if same else self.host_of
        return replace(base, hosts=hosts, memory=limit, **{which: link})


def python(setting: Setting) -> str:
    """Return Python that plans the program called ``net`` for `setting`; cuts by hand become pins."""
    pins = {**setting.pins, **{n: {**setting.pins.get(n, {}), **cut} for n, cut in setting.edits.items()}}
    options = [f"p={setting.p}"] if setting.p is not None else []
    options += [f"memory={setting.memory!r}"] if isfinite(setting.memory) else []
    options += [f"pins={pins!r}"] if pins else []
    if setting.objective == "bytes":
        return f"net = net.replan({', '.join([f'sites={setting.sites}', *options])})\n"
    which = "near" if setting.hosts == 1 else "far"
    figures = f"bandwidth={setting.bandwidth!r}, latency={setting.latency!r}"
    return (
        "from dataclasses import replace\n\n"
        "from einsummable.planner.hardware import host\n\n"
        "hardware = net.hardware or host(1)\n"
        f"link = replace(hardware.{which}, {figures})\n"
        f"hosts = tuple(site * {setting.hosts} // {setting.sites} for site in range({setting.sites}))\n"
        f"hardware = replace(hardware, hosts=hosts, {which}=link)\n"
        f"net = net.replan({', '.join(['hardware=hardware', *options])})\n"
    )

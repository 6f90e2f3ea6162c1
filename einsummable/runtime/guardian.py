"""Starts the processes of one ipyparallel cluster and ends them when its owner is gone, however it went.

Contract: a program of its own that imports nothing of the package, so that it starts at once.  Its argument
is a folder, its standard input a pipe to which the owner writes lines of JSON:
``{"engines": n, "environment": {name: value}}`` starts a controller and n engines, and is answered by
``{"controller": pid, "engines": [pid, …]}``; ``{"engine": id}`` starts one more: ``{"engine": pid}``.
When the pipe ends (its owner closed it, exited or was killed), when the owner is no longer its parent, or on
SIGTERM, it kills every process of the cluster, removes the folder, and exits.  The folder holds all that the
cluster writes: connection files, logs, the engines' temporary files.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

#: IPython's folder of profiles: what belongs to a cluster has the cluster's folder here.
MARK = "IPYTHONDIR"
_POLL_SECONDS = 0.5
_CONTROLLER = (
    "--ip=127.0.0.1",
    "--nodb",  # the hub need not remember what went through it
    "--usethreads",  # one process more instead of eight
    # An engine that misses 20 beats (5 s) is given up.
    "--HeartMonitor.period=250",
    "--HeartMonitor.max_heartmonitor_misses=20",
)
# Engines start beside the controller and wait for the file that it writes in place: ipyparallel's own waiting
# ends when the file is there, and an engine that reads half of it dies.
_ENGINE_PROGRAM = """
import json, sys, time
from ipyparallel.engine.app import main
path = sys.argv.pop(1)
while True:
    try:
        with open(path) as file:
            json.load(file)
        break
    except (FileNotFoundError, ValueError):
        time.sleep(0.02)
sys.exit(main())
"""


class _TerminatedError(Exception):
    """SIGTERM came."""


class Guardian:
    """The processes of one cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.profile = folder / "profile"
        self.children: list[subprocess.Popen] = []
        self.environment = dict(os.environ)

    def start(self, engines: int, environment: dict[str, str]) -> dict[str, object]:
        """Start the controller and `engines` engines; return their process ids."""
        for name in ("security", "log", "pid", "startup"):
            (self.profile / name).mkdir(parents=True)
        temporary = self.folder / "tmp"
        temporary.mkdir()
        self.environment |= environment | {MARK: str(self.folder), "TMPDIR": str(temporary)}
        controller = self.spawn("controller", "-m", "ipyparallel.controller", *_CONTROLLER)
        return {"controller": controller, "engines": [self.engine(i) for i in range(engines)]}

    def engine(self, number: int) -> int:
        """Start the engine that is to get the id `number`; return its process id."""
        described = str(self.profile / "security" / "ipcontroller-engine.json")
        options = (f"--IPEngine.id={number}", "--IPEngine.timeout=60")
        return self.spawn(f"engine-{number}", "-c", _ENGINE_PROGRAM, described, *options)

    def spawn(self, name: str, *arguments: str) -> int:
        """Start one process of ipyparallel; return its id."""
        common = (f"--profile-dir={self.profile}", "--log-level=30")
        with (self.profile / "log" / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, *arguments, *common],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
                start_new_session=True,  # Ctrl-C in the owner's terminal is not for the engines
            )
        self.children.append(child)
        return child.pid

    def obey(self, order: dict) -> dict[str, object]:
        """Do what one line of the owner says and return the answer."""
        if "engine" in order:
            return {"engine": self.engine(order["engine"])}
        return self.start(order["engines"], order["environment"])

    def watch(self, owner: int) -> None:
        """Obey until the owner is gone."""
        waiting = b""
        while os.getppid() == owner:
            for child in self.children:
                child.poll()  # a zombie would look alive to whoever watches it
            readable, _, _ = select.select([sys.stdin], [], [], _POLL_SECONDS)
            if not readable:
                continue
            data = os.read(sys.stdin.fileno(), 1 << 16)
            if not data:
                return
            *lines, waiting = (waiting + data).split(b"\n")
            for line in lines:
                print(json.dumps(self.obey(json.loads(line))), flush=True)

    def end(self) -> None:
        """Kill all and leave nothing."""
        kill_all(self.folder)
        for child in self.children:
            child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def kill_all(folder: Path) -> None:
    """Kill every process of the cluster in `folder`, until none is left.

    They are known by their environment, which whatever an engine starts inherits, even if its parent is gone.
    """
    while found := [p for p in psutil.process_iter(["environ", "status"]) if _belongs(p, folder)]:
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(0.01)


def _belongs(process: psutil.Process, folder: Path) -> bool:
    environment = process.info["environ"] or {}
    return environment.get(MARK) == str(folder) and process.info["status"] != psutil.STATUS_ZOMBIE


def _terminate(*_: object) -> None:
    raise _TerminatedError


def main() -> None:
    """Watch over one cluster, in the folder that the command line names."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _terminate)
    guardian = Guardian(Path(sys.argv[1]))
    try:
        guardian.watch(os.getppid())
    except _TerminatedError:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        guardian.end()


if __name__ == "__main__":
    main()

"""Starting an ipyparallel cluster that cannot outlive its owner, and finding one that a user started.

Contract: `launch` starts a controller and engines in a folder of their own, independent of any profile, and
answers the `Launched` cluster with a connected client; `Launched.stop` ends every process and removes the
folder.  A guardian process does the same when the owner dies without saying so.  `find` answers a client of
a cluster that runs already.  All print nothing, and raise `EngineError` within a bounded time.
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
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from einsummable.errors import EngineError

#: Every BLAS and OpenMP reads its number of threads from one of these when it is loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
_POLL_SECONDS = 0.02
_STOP_SECONDS = 15.0


@dataclass(slots=True)
class Launched:
    """A cluster that we started."""

    folder: Path
    guardian: subprocess.Popen
    next_id: int
    client: Any = None

    def replace(self, pid: int, timeout: float) -> int:
        """Start an engine in place of the process `pid`, which is killed if it hangs; return its id."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        number = self.next_id
        self.next_id += 1
        started = self.order({"engine": number})["engine"]
        deadline = time.monotonic() + timeout
        while number not in self.client.ids:
            _check_alive(self, "engine", [started], deadline)
        return number

    def order(self, order: dict) -> dict:
        """Give the guardian an order and return its answer."""
        try:
            self.guardian.stdin.write(json.dumps(order).encode() + b"\n")
            self.guardian.stdin.flush()
            readable, _, _ = select.select([self.guardian.stdout], [], [], 30)
            return json.loads(self.guardian.stdout.readline()) if readable else {}
        except (OSError, ValueError) as error:
            raise EngineError(f"the guardian of the cluster is gone: {error}") from error

    def stop(self) -> None:
        """End every process of the cluster and remove its folder; return when that is done."""
        if self.client is not None:
            close_client(self.client)
            self.client = None
        with contextlib.suppress(BrokenPipeError):
            self.guardian.stdin.close()
        try:
            self.guardian.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.guardian.kill()
            self.guardian.wait()
        self.guardian.stdout.close()
        if self.guardian.returncode:  # it was killed: do its work
            from einsummable.runtime.guardian import kill_all

            kill_all(self.folder)
            shutil.rmtree(self.folder, ignore_errors=True)


def launch(n: int, threads: int, timeout: float) -> Launched:
    """Start a controller and `n` engines, each with `threads` BLAS threads, and connect to them."""
    folder = Path(tempfile.mkdtemp(prefix="einsummable-cluster-"))
    program = Path(__file__).with_name("guardian.py")
    with (folder / "guardian.log").open("wb") as log:
        guardian = subprocess.Popen(
            [sys.executable, "-P", str(program), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    cluster = Launched(folder, guardian, n)
    try:
        environment = dict.fromkeys(THREAD_VARIABLES, str(threads))
        answer = cluster.order({"engines": n, "environment": environment})
        _connect(cluster, answer["controller"], answer["engines"], time.monotonic() + timeout)
    except BaseException:
        cluster.stop()
        raise
    return cluster


def _connect(cluster: Launched, controller: int, engines: list[int], deadline: float) -> None:
    connection = cluster.folder / "profile" / "security" / "ipcontroller-client.json"
    while not (info := _read_json(connection)):
        _check_alive(cluster, "controller", [controller], deadline)
    cluster.client = connect_client(info, max(deadline - time.monotonic(), 1))
    while len(cluster.client.ids) < len(engines):
        _check_alive(cluster, "engine", engines, deadline)


def _check_alive(cluster: Launched, what: str, pids: list[int], deadline: float) -> None:
    """Wait a moment; raise if a process died or the time is over."""
    import psutil

    time.sleep(_POLL_SECONDS)
    dead = not all(psutil.pid_exists(pid) for pid in pids)
    if dead or time.monotonic() > deadline:
        logs = sorted((cluster.folder / "profile" / "log").glob(f"{what}*.log"))
        said = [line for log in logs for line in log.read_text(errors="replace").splitlines()[-5:]]
        why = "died while it started" if dead else "did not start in time"
        raise EngineError(f"an ipyparallel {what} {why}", notes=tuple(said))


def _read_json(path: Path) -> dict | None:
    # The controller writes its file in place: half of it is as good as none.
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def find(profile: str | None, cluster_file: str | None, timeout: float) -> Any:
    """Return a client of the cluster that runs under `profile`, or that `cluster_file` describes."""
    path = Path(cluster_file).expanduser() if cluster_file is not None else _file_of_profile(profile)
    info = _read_json(path)
    if info is None:
        raise EngineError(f"no cluster is described by {path}")
    if "cluster" in info:  # what `ipcluster` writes names the files that the controller writes
        described = info["cluster"]
        path = _client_file(Path(described["profile_dir"]), described.get("cluster_id", ""))
        info = _read_json(path)
        if info is None:
            raise EngineError(f"the cluster of {cluster_file} does not run: there is no {path}")
    return connect_client(info, timeout)


def _client_file(profile_dir: Path, cluster_id: str) -> Path:
    name = f"ipcontroller-{cluster_id}-client.json" if cluster_id else "ipcontroller-client.json"
    return profile_dir / "security" / name


def _file_of_profile(profile: str | None) -> Path:
    from IPython.paths import get_ipython_dir

    profile = profile or "default"
    folder = Path(get_ipython_dir()) / f"profile_{profile}"
    path = _client_file(folder, "")
    others = sorted(folder.glob("security/ipcontroller-*-client.json"), key=lambda p: p.stat().st_mtime)
    if path.exists() or not others:
        if not path.exists():
            raise EngineError(
                f"no cluster runs under the profile {profile!r}",
                notes=(f"start one with: ipcluster start -n 2 --profile={profile}",),
            )
        return path
    return others[-1]


def wait_for_engines(client: Any, n: int, timeout: float) -> None:
    """Wait until a cluster has `n` engines; raise `EngineError` if it has fewer after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while len(client.ids) < n:
        if time.monotonic() > deadline:
            raise EngineError(
                f"the cluster has {len(client.ids)} engines after {timeout:g} s, {n} are needed",
                notes=("ipcluster engines -n 2 starts two more",),
            )
        time.sleep(_POLL_SECONDS)


def connect_client(info: dict, timeout: float) -> Any:
    """Return an ipyparallel client of the controller that `info` describes."""
    import ipyparallel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ipyparallel.Client(info, timeout=timeout)
        except (OSError, TimeoutError) as error:
            raise EngineError(f"the controller of the cluster does not answer: {error}") from error


def close_client(client: Any) -> None:
    """Close the sockets and the thread of a client."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client.close(linger=0)

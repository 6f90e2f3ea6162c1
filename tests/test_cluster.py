"""The cluster executor: equal to the oracle, and nothing hangs, leaks or survives whatever goes wrong."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipyparallel import interactive
from jupyter_client.manager import start_new_kernel
from jupyter_core.utils import ensure_event_loop
from strategies import assert_same, data_for
from test_engine import chain, matmul, programs

from einsummable.errors import EngineError, PlanError, ShapeError
from einsummable.planner.plan import Layout
from einsummable.runtime.address import Address
from einsummable.runtime.cluster import Cluster, connect
from einsummable.runtime.events import MoveEnded, Progress, RunEnded, RunStarted, TaskEnded
from einsummable.runtime.transport import Mesh
from einsummable.taskgraph.tasks import Apply, evaluate

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def shared():
    with Cluster(n=3, threads=1) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared):
    """The shared cluster, with its kernels as they were before the test."""
    yield shared
    on_engines(shared, mend)


def data(n=4):
    rng = np.random.default_rng(0)
    return {"A": rng.random((n, n)), "B": rng.random((n, n))}


# ------------------------------------------------------------- functions that are sent to the engines


def on_engines(cluster, function, *args):
    alive = [e.id for e in cluster.info() if e.site not in cluster._engines.lost]
    return cluster.client[alive].apply_sync(function, *args)


@interactive
def break_kernels(sites, code):
    """Make every kernel of programs that `sites` load from now on run `code` first."""
    from einsummable.runtime import engine, service

    if not hasattr(engine, "whole_prepare"):
        engine.whole_prepare = engine.kernels.prepare

    def prepared(call, shape):
        kernel = engine.whole_prepare(call, shape)

        def broken(blocks, at, params):
            if any(s.site in sites for s in service._services.values()):
                exec(code)
            return kernel(blocks, at, params)

        return broken

    engine.kernels.prepare = prepared


@interactive
def mend():
    from einsummable.runtime import engine

    if hasattr(engine, "whole_prepare"):
        engine.kernels.prepare = engine.whole_prepare


@interactive
def held():
    """Return how many blocks and programs the services of an engine hold."""
    from einsummable.runtime import service

    return [(len(s.blocks), len(s.programs)) for s in service._services.values()]


# ------------------------------------------------------------------------------------------- right


def test_the_engines_are_what_info_says(cluster):
    info = cluster.info()
    assert [e.site for e in info] == [0, 1, 2]
    assert cluster.sites == cluster.n == 3
    assert {e.pid for e in info} == set(on_engines(cluster, os.getpid))
    assert all(e.threads == 1 for e in info)
    assert all(e.blas for e in info)
    assert all("ipyparallel.engine" in " ".join(psutil.Process(e.pid).cmdline()) for e in info)
    head, *rows = str(info).splitlines()
    assert head.split() == ["site", "engine", "host", "pid", "threads", "BLAS"]
    assert [row.split()[3] for row in rows] == [str(e.pid) for e in info]
    assert str(rows[0]) in info._repr_html_()
    assert "3 engines on 1 host, 1 BLAS threads each" in repr(cluster)


@settings(deadline=None, max_examples=60)
@given(programs(), st.integers(0, 9))
def test_random_programs_equal_the_oracle(shared, taskgraph, seed):
    arrays, params = data_for(taskgraph.graph, seed)
    before = {name: x.copy() for name, x in arrays.items()}
    expected = evaluate(taskgraph, arrays, params)
    assert_same(shared.run(taskgraph, arrays, params), expected)
    kept = shared.run(taskgraph, arrays, params, keep=True)
    assert {name: (t.shape, t.dtype) for name, t in kept.items()} == {
        name: (x.shape, x.dtype) for name, x in expected.items()
    }
    assert_same({name: t.fetch() for name, t in kept.items()}, expected)
    for name, x in arrays.items():
        np.testing.assert_array_equal(x, before[name])


def test_a_second_run_ships_no_program(cluster, monkeypatch):
    taskgraph = matmul()
    first = cluster.run(taskgraph, data())
    monkeypatch.setattr(cluster._engines, "call", None)
    again = cluster.run(taskgraph, {name: 2 * x for name, x in data().items()})
    np.testing.assert_allclose(again["Z"], 4 * first["Z"])


def test_ten_thousand_tasks(cluster):
    taskgraph = chain(10_000)
    x = np.ones(8)
    assert_same(cluster.run(taskgraph, {"X": x}), evaluate(taskgraph, {"X": x}))
    assert sum(len(log.ran) for log in cluster.last.logs) == len(taskgraph.tasks)


def test_events_tell_the_whole_run(cluster):
    seen = []
    cluster.run(matmul(), data(), observers=[seen.append])
    assert seen[0] == RunStarted(0.0, 2, 8)
    assert isinstance(seen[-1], RunEnded)
    assert sorted(e.task for e in seen if isinstance(e, TaskEnded)) == [0, 1, 2, 3, 4, 5, 7]
    (move,) = [e for e in seen if isinstance(e, MoveEnded)]
    assert (move.task, move.source, move.site, move.nbytes) == (6, 1, 0, 128)
    assert 0 <= move.sent <= move.received <= seen[-1].at
    told = [e for e in seen if not isinstance(e, Progress)]
    assert set(told[1:-1]) == set(cluster.last.events[1:-1])
    assert cluster.last.error == ""


def test_observers_hear_of_tasks_while_the_run_goes_on(cluster):
    on_engines(cluster, break_kernels, [0, 1], "import time; time.sleep(0.1)")
    ends, seen = [], []
    cluster.run(chain(20), {"X": np.ones(8)}, observers=[lambda e: ends.append(time.time()), seen.append])
    told = [at for at, e in zip(ends, seen, strict=True) if isinstance(e, TaskEnded)]
    assert told[0] < cluster.last.began + cluster.last.wall / 2
    working = [e.working for e in seen if isinstance(e, Progress)]
    kernels = {i for i, task in enumerate(chain(20).tasks) if isinstance(task, Apply)}
    assert kernels & {task for tasks in working for task in tasks}


def test_runs_in_several_threads_take_turns(cluster):
    taskgraph, wrong = matmul(64), []

    def work(seed):
        arrays = {name: x + seed for name, x in data(64).items()}
        for _ in range(5):
            got = cluster.run(taskgraph, arrays)["Z"]
            wrong.extend([seed] * (not np.allclose(got, arrays["A"] @ arrays["B"])))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_run_does_not_need_the_main_thread_of_an_engine(cluster):
    taskgraph = matmul()
    cluster.run(taskgraph, data())
    sleeping = cluster.client[:].apply_async(time.sleep, 3)
    cluster.run(taskgraph, data())
    assert not sleeping.ready()
    sleeping.get()


# ----------------------------------------------------------------------------------------- tensors


@pytest.mark.parametrize(
    "array",
    [
        np.arange(35.0).reshape(5, 7),
        np.arange(35).reshape(7, 5).T,
        np.array(3, np.int32),
        np.zeros((0, 4), np.complex64),
        np.arange(9).astype(ml_dtypes.bfloat16),
        np.array([True, False]),
        np.ones((2, 3, 4))[:, ::2, ::-1],
    ],
    ids=lambda a: f"{a.dtype}{a.shape}",
)
def test_a_tensor_comes_back_as_it_was_put(cluster, array):
    tensor = cluster.put(array)
    fetched = tensor.fetch()
    assert (fetched.dtype, fetched.shape) == (tensor.dtype, tensor.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(fetched, array)
    assert fetched.flags.writeable


def test_numpy_fetches_a_tensor(cluster):
    array = np.arange(12.0).reshape(3, 4)
    tensor = cluster.put(array)
    np.testing.assert_array_equal(np.asarray(tensor), array)
    assert np.asarray(tensor, np.float32).dtype == np.float32
    assert np.add(tensor, 1).sum() == 78
    with pytest.raises(ValueError, match="always copied"):
        np.array(tensor, copy=False)


def test_a_tensor_is_cut_evenly_or_as_one_says(cluster):
    assert cluster.put(np.zeros((4, 10))).layout == Layout((1, 3), (0, 1, 2))
    assert cluster.put(np.zeros((2, 1))).layout == Layout((2, 1), (0, 1))
    assert cluster.put(np.zeros((4, 4)), parts=(2, 2)).layout == Layout((2, 2), (0, 1, 2, 0))
    assert cluster.put(np.zeros(4), parts=(2,), sites=(2, 2)).layout == Layout((2,), (2, 2))
    both = cluster.put(A=np.ones(3), B=np.zeros(2))
    assert sorted(both) == ["A", "B"]
    with pytest.raises(PlanError, match=r"shape \(3,\) cannot lie in parts \(4,\)"):
        cluster.put(np.zeros(3), parts=(4,))
    with pytest.raises(PlanError, match="a site that does not exist: there are 3"):
        cluster.put(np.zeros(3), sites=(0, 1, 7))


def test_what_changes_after_put_changes_nothing_there(cluster):
    array = np.zeros((300, 300))
    tensor = cluster.put(array)
    array[:] = 1
    assert not tensor.fetch().any()


def test_results_stay_and_are_read_in_place(cluster):
    arrays = data()
    kept = cluster.run(matmul(), arrays, keep=True)["Z"]
    assert repr(kept) == "<DistributedTensor [4, 4] f64, 1×1 block on site 0>"
    assert (kept.ndim, kept.nbytes) == (2, 128)
    there = {"A": cluster.put(arrays["A"], parts=(1, 2), sites=(0, 1)),
             "B": cluster.put(arrays["B"], parts=(2, 1), sites=(0, 1))}  # fmt: skip
    for _ in range(2):
        np.testing.assert_allclose(cluster.run(matmul(), there)["Z"], arrays["A"] @ arrays["B"])
    np.testing.assert_array_equal(there["A"].fetch(), arrays["A"])
    with pytest.raises(PlanError, match="A does not lie on the engines as the program reads it"):
        cluster.run(matmul(), {"A": kept, "B": there["B"]})


def settled(cluster, expected):
    """Return what the engines hold, once it is `expected` or a second has passed."""
    end = time.monotonic() + 1
    while (found := on_engines(cluster, held)) != expected and time.monotonic() < end:
        time.sleep(0.01)
    return found


def test_what_nobody_has_any_more_is_forgotten(cluster):
    cluster.last = None  # the record of the last run holds its program
    gc.collect()
    nothing = [[(0, 0)]] * 3
    assert settled(cluster, nothing) == nothing
    tensors = [cluster.put(np.ones(300)) for _ in range(5)]
    taskgraph = matmul()
    tensors.append(cluster.run(taskgraph, data(), keep=True)["Z"])
    assert settled(cluster, None) == [[(6, 1)], [(5, 1)], [(5, 0)]]
    tensors[0].free()
    tensors[0].free()
    with pytest.raises(EngineError, match=r"<DistributedTensor \[300\] f64, freed> is used"):
        tensors[0].fetch()
    del tensors, taskgraph
    cluster.last = None
    gc.collect()
    assert settled(cluster, nothing) == nothing


def test_nothing_grows_with_the_number_of_runs(cluster):
    def sizes():
        client, engines = cluster.client, cluster._engines
        kept = (client.results, client.metadata, client.history, engines._inboxes, cluster._programs._known)
        return np.array([len(x) for x in kept])

    taskgraph = matmul()
    cluster.run(taskgraph, data())
    there = on_engines(cluster, held)
    before = sizes()
    for _ in range(50):
        cluster.run(taskgraph, data(), keep=True)
    assert (sizes() <= before).all()
    assert settled(cluster, there) == there


# ----------------------------------------------------------------------------------------- refused


def test_what_does_not_fit_is_refused_before_anything_runs(cluster):
    with pytest.raises(ShapeError, match=r"A has shape \(3, 3\), the program was compiled for \(4, 4\)"):
        cluster.run(matmul(), {"A": np.ones((3, 3)), "B": np.ones((4, 4))})
    for n in (0, -1, 1.5, True, "2"):
        with pytest.raises(PlanError, match="n must be a whole number from 1"):
            Cluster(n=n)
    with pytest.raises(PlanError, match="threads must be a whole number from 1"):
        Cluster(threads=0)


# ----------------------------------------------------------------------------------------- failing


def survives(cluster, tensor, expected):
    """See that the cluster is as good as before."""
    on_engines(cluster, mend)
    np.testing.assert_array_equal(tensor.fetch(), expected)
    arrays = data()
    np.testing.assert_allclose(cluster.run(matmul(), arrays)["Z"], arrays["A"] @ arrays["B"])


@pytest.mark.parametrize("site", [0, 1])
def test_an_exception_in_a_kernel_names_engine_and_formula(cluster, site):
    tensor = cluster.put(np.arange(9))
    on_engines(cluster, break_kernels, [site], "raise ZeroDivisionError('one over nothing')")
    engine = cluster.info()[site]
    who = rf"engine {engine.id} \(site {site}, pid {engine.pid} on .*\)"
    with pytest.raises(EngineError, match=rf"{who} failed in Z: ZeroDivisionError: one over") as caught:
        cluster.run(matmul(), data())
    assert any("#" in note for note in caught.value.notes)
    assert "ZeroDivisionError" in cluster.last.error
    survives(cluster, tensor, np.arange(9))


def test_a_time_out_names_who_was_late(cluster):
    tensor = cluster.put(np.arange(9))
    on_engines(cluster, break_kernels, [1], "import time\nwhile True: time.sleep(0.01)")
    pid = cluster.info()[1].pid
    with pytest.raises(EngineError, match=rf"given up after 0.3 s, while engine .*pid {pid}.* worked on Z"):
        cluster.run(matmul(), data(), timeout=0.3)
    survives(cluster, tensor, np.arange(9))


def test_ctrl_c_ends_the_run_on_all_engines(cluster):
    tensor = cluster.put(np.arange(9))
    on_engines(cluster, break_kernels, [0, 1], "import time\nwhile True: time.sleep(0.01)")
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        cluster.run(matmul(), data())
    timer.join()
    assert cluster.last.error == "KeyboardInterrupt"
    survives(cluster, tensor, np.arange(9))


def test_an_observer_that_raises_ends_the_run(cluster):
    def observer(event):
        raise RuntimeError("I do not like it")

    tensor = cluster.put(np.arange(9))
    with pytest.raises(RuntimeError, match="I do not like it"):
        cluster.run(matmul(), data(), observers=[observer])
    survives(cluster, tensor, np.arange(9))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_an_engine_that_dies_or_hangs_ends_the_run_and_is_replaced(cluster, how):
    tensor = cluster.put(np.arange(9), parts=(2,), sites=(0, 2))
    lost = cluster.put(np.arange(9), parts=(2,), sites=(0, 1))
    on_engines(cluster, break_kernels, [1], "import time; time.sleep(60)")
    engine = cluster.info()[1]
    timer = threading.Timer(0.7, os.kill, [engine.pid, how])
    timer.start()
    why = "died" if how == signal.SIGKILL else "hangs: its .* stopped"
    message = rf"engine {engine.id} \(site 1, pid {engine.pid} on .*\) {why} while it worked on Z"
    with pytest.raises(EngineError, match=message):
        cluster.run(matmul(), data(), timeout=30)
    timer.join()
    assert cluster.last.wall < 10
    survives(cluster, tensor, np.arange(9))
    assert cluster.info()[1].pid != engine.pid
    psutil.wait_procs([psutil.Process(engine.pid)] if psutil.pid_exists(engine.pid) else [], timeout=5)
    assert not psutil.pid_exists(engine.pid)
    with pytest.raises(EngineError, match=r"site 1.*the block is not here any more"):
        lost.fetch()


def test_an_engine_that_died_between_runs_is_replaced(cluster):
    taskgraph = matmul()
    cluster.run(taskgraph, data())
    pid = cluster.info()[0].pid
    os.kill(pid, signal.SIGKILL)
    while psutil.pid_exists(pid):
        time.sleep(0.01)
    end = time.monotonic() + 5
    while 0 not in cluster._engines.lost and time.monotonic() < end:
        time.sleep(0.01)
    arrays = data()
    np.testing.assert_allclose(cluster.run(taskgraph, arrays)["Z"], arrays["A"] @ arrays["B"])
    assert cluster.info()[0].pid != pid


# ------------------------------------------------------------------------------ beginning and ending


def processes_of(folder):
    """Return the processes of the cluster that lives in `folder`."""
    return [
        p
        for p in psutil.process_iter(["environ", "status"])
        if (p.info["environ"] or {}).get("IPYTHONDIR") == str(folder) and p.info["status"] != "zombie"
    ]


def gone(folder, sockets):
    """Wait until nothing is left of a cluster; return what is."""
    end = time.monotonic() + 15
    while True:
        left = [*processes_of(folder)]
        left += [folder] if Path(folder).exists() else []
        left += [s for s in sockets if s in Path("/proc/net/unix").read_text()]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)


def sockets_of(cluster):
    return [address.path for address in cluster._engines._addresses.values()]


def test_stop_leaves_nothing_and_prints_nothing(capfd):
    process = psutil.Process()
    shared_memory = set(os.listdir("/dev/shm"))
    with Cluster(n=1):  # what ipyparallel and zmq open once and for all
        pass
    threads, files = threading.active_count(), process.num_fds()
    cluster = Cluster(n=2)
    folder, sockets = cluster._launched.folder, sockets_of(cluster)
    cluster.run(matmul(), data())
    kept = cluster.put(np.ones(3))
    cluster.stop()
    cluster.stop()
    assert gone(folder, sockets) == []
    assert set(os.listdir("/dev/shm")) <= shared_memory
    assert (threading.active_count(), process.num_fds()) == (threads, files)
    assert capfd.readouterr() == ("", "")
    assert repr(cluster) == "<Cluster, stopped>"
    for use in (lambda: cluster.run(matmul(), data()), lambda: cluster.put(np.ones(3))):
        with pytest.raises(EngineError, match="the cluster was stopped"):
            use()
    with pytest.raises(EngineError, match="the cluster was stopped"):
        kept.fetch()


OWNER = """
import sys
import numpy as np
from einsummable.runtime.cluster import Cluster
cluster = Cluster(n=2)
cluster.put(np.ones(10))
print(cluster._launched.folder, *(a.path for a in cluster._engines._addresses.values()), flush=True)
"""


def test_a_notebook_sees_nothing_of_ipyparallel_and_its_end_is_the_end_of_the_engines():
    manager, client = start_new_kernel(kernel_name="python3")

    def cell(code, interrupt=False):
        shown = []
        if interrupt:
            threading.Timer(1, os.kill, [manager.provisioner.pid, signal.SIGINT]).start()
        client.execute_interactive(code, output_hook=shown.append, timeout=60)
        return [m["content"] for m in shown if m["msg_type"] != "status" and m["msg_type"] != "execute_input"]

    try:
        assert cell("import numpy as np; from einsummable.runtime.cluster import Cluster") == []
        assert cell("cluster = Cluster(n=2)") == []
        assert cell(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})") == []
        assert cell("from test_engine import chain; program = chain(100)") == []
        (error,) = cell("while True: cluster.run(program, {'X': np.ones(8)})", interrupt=True)
        assert error["ename"] == "KeyboardInterrupt"
        assert cell("assert (cluster.run(program, {'X': np.ones(8)})['Y'] == 1).all()") == []
        (folder,) = cell("print(cluster._launched.folder, end='')")
        assert len(processes_of(folder["text"])) >= 4
    finally:
        manager.shutdown_kernel(now=True)
        client.stop_channels()
        ensure_event_loop().close()  # the one that the client made
    assert gone(folder["text"], []) == []


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("import time; time.sleep(100)", lambda process: process.kill()),
        ("import time; time.sleep(100)", lambda process: process.terminate()),
        ("import os; os._exit(1)", lambda process: None),
        ("sys.exit(0)", lambda process: None),
    ],
    ids=["killed", "terminated", "crashed", "finished"],
)
def test_nothing_survives_the_owner(end, how):
    process = subprocess.Popen([sys.executable, "-c", OWNER + end], stdout=subprocess.PIPE, text=True)
    with process:
        folder, *sockets = process.stdout.readline().split()
        assert len(sockets) == 2
        how(process)
        process.wait(20)
    assert gone(folder, sockets) == []


def test_a_dead_guardian_is_made_up_for():
    cluster = Cluster(n=1)
    folder, sockets = cluster._launched.folder, sockets_of(cluster)
    cluster._launched.guardian.kill()
    cluster.run(matmul_on_one(), data())
    cluster.stop()
    assert gone(folder, sockets) == []


def matmul_on_one():
    from test_engine import GraphBuilder

    from einsummable.planner.eindecomp import plan
    from einsummable.planner.placement import place
    from einsummable.taskgraph.lower import lower

    b = GraphBuilder()
    ids = [b.input(name, (4, 4), np.dtype(np.float64)) for name in "AB"]
    b.output("Z", b.contract("ik", (ids[0], "ij"), (ids[1], "jk")))
    one = plan(b.build(), 1)
    return lower(one, place(one, 1))


def test_a_cluster_that_cannot_start_says_why(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "ipykernel.py").write_text("raise ImportError('no kernel today')")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(EngineError, match=r"an ipyparallel \w+ died while it started(.|\n)*no kernel today"):
        Cluster(n=1)
    assert list(tmp_path.glob("einsummable-cluster-*")) == []


# --------------------------------------------------------------------------- clusters of other people


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    """The name of a profile under which a user started a cluster of two engines."""
    home = tmp_path_factory.mktemp("ipython")
    command = [sys.executable, "-m", "ipyparallel.cluster"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(home))
        start = [*command, "start", "-n", "2", "--profile=mine", "--daemonize"]
        subprocess.run(start, check=True, capture_output=True)
        yield "mine"
        subprocess.run([*command, "stop", "--profile=mine"], check=True, capture_output=True)
        for process in processes_of(home):
            process.kill()


def test_a_cluster_of_somebody_else_is_used_and_left_alone(profile, capfd):
    arrays = data()
    with connect(profile=profile, n=2, threads=2, timeout=30) as cluster:
        pids = [engine.pid for engine in cluster.info()]
        assert [engine.threads for engine in cluster.info()] == [2, 2]
        tensor = cluster.put(np.arange(9))
        np.testing.assert_allclose(cluster.run(matmul(), arrays)["Z"], arrays["A"] @ arrays["B"])
        with connect(profile=profile) as other:
            np.testing.assert_allclose(other.run(matmul(), arrays)["Z"], arrays["A"] @ arrays["B"])
            with pytest.raises(EngineError, match=r"A is <DistributedTensor.* of another cluster"):
                other.run(matmul(), {"A": cluster.put(arrays["A"]), "B": arrays["B"]})
        np.testing.assert_array_equal(tensor.fetch(), np.arange(9))
    with connect(profile=profile) as again:
        assert [engine.pid for engine in again.info()] == pids
        assert [engine.threads for engine in again.info()] == [1, 1]
        end = time.monotonic() + 5
        while any(len(s) > 1 for s in on_engines(again, held)) and time.monotonic() < end:
            time.sleep(0.01)
        assert on_engines(again, held) == [[(0, 0)], [(0, 0)]]  # the first two services are gone
        assert repr(again) == "<Cluster of 2 engines on 1 host, 1 BLAS threads each>"
    assert capfd.readouterr() == ("", "")


def test_a_cluster_is_found_by_its_files_and_by_a_client(profile):
    import ipyparallel

    folder = Path(os.environ["IPYTHONDIR"]) / "profile_mine" / "security"
    for name in ("cluster-.json", "ipcontroller-client.json"):
        with connect(cluster_file=str(folder / name)) as cluster:
            assert cluster.put(np.ones(4)).fetch().sum() == 4
    with ipyparallel.Client(profile=profile) as client:
        with connect(client) as cluster:
            assert cluster.client is client
        assert client[:].apply_sync(os.getpid)  # it is still open


class WalledMesh(Mesh):
    """A driver's mesh that cannot dial."""

    def dial(self, peer, address, timeout):
        raise EngineError("a wall", notes=("192.0.2.1: timed out",))


class WalledInMesh(WalledMesh):
    """One that cannot be dialled either."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.address = Address("", "", ("127.0.0.1",), 1)


def test_where_the_driver_cannot_dial_the_engines_do(profile, monkeypatch):
    monkeypatch.setattr("einsummable.runtime.engines.machine", lambda: "another machine")
    monkeypatch.setattr("einsummable.runtime.engines.Mesh", WalledMesh)
    with connect(profile=profile, n=2, timeout=30) as cluster:
        assert cluster._engines.mesh.address.hosts != ("127.0.0.1",)
        assert cluster.put(np.ones(4)).fetch().sum() == 4


def test_an_engine_that_cannot_be_reached_is_named(profile, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("einsummable.runtime.engines.Mesh", WalledInMesh)
        message = r"the driver and engine 0 .* cannot reach each other(.|\n)*Connection refused"
        with pytest.raises(EngineError, match=message):
            connect(profile=profile, n=2, timeout=30)
    with connect(profile=profile) as cluster:  # what was begun has been taken back
        assert on_engines(cluster, held) == [[(0, 0)], [(0, 0)]]


def test_a_stopped_engine_of_somebody_else_is_given_up_and_comes_back(profile):
    with connect(profile=profile, n=2, timeout=30) as cluster:
        taskgraph = matmul()
        cluster.run(taskgraph, data())
        engine = psutil.Process(cluster.info()[1].pid)
        engine.suspend()
        try:
            why = rf"site 1, pid {engine.pid} on .*hangs: its process is stopped"
            with pytest.raises(EngineError, match=why):
                cluster.run(taskgraph, data(), timeout=30)
            assert cluster.last.wall < 10
        finally:
            engine.resume()
    with connect(profile=profile, n=2, timeout=30) as again:
        assert again.put(np.ones(4)).fetch().sum() == 4
        end = time.monotonic() + 5
        while max(map(len, on_engines(again, held))) > 1 and time.monotonic() < end:
            time.sleep(0.01)
        assert on_engines(again, held) == [[(0, 0)], [(0, 0)]]


def test_a_dead_engine_of_somebody_else_is_not_replaced(profile):
    with connect(profile=profile) as cluster:
        engine = cluster.info()[1]
        tensor, lost = cluster.put(np.arange(4), sites=(0, 0)), cluster.put(np.arange(4))
        os.kill(engine.pid, signal.SIGKILL)
        for use in (lost.fetch, lambda: cluster.run(matmul(), data())):
            with pytest.raises(EngineError, match=rf"engine .*site 1, pid {engine.pid} on .*died"):
                use()
        np.testing.assert_array_equal(tensor.fetch(), np.arange(4))
    with connect(profile=profile) as smaller:
        assert smaller.sites == 1
        with pytest.raises(PlanError, match="the program is for 2 sites, the cluster has 1 engines"):
            smaller.run(matmul(), data())


def test_what_is_no_cluster_is_said_at_once(profile, tmp_path):
    with pytest.raises(
        EngineError, match=r"'nobody'\nnote: start one with: ipcluster start -n 2 --profile=no"
    ):
        connect(profile="nobody")
    with pytest.raises(EngineError, match=r"no cluster is described by .*nothing\.json"):
        connect(cluster_file=str(tmp_path / "nothing.json"))
    with pytest.raises(EngineError, match=r"the cluster has \d engines after 0.1 s, 9 are needed"):
        connect(profile=profile, n=9, timeout=0.1)
    folder = Path(os.environ["IPYTHONDIR"]) / "profile_mine" / "security"
    dead = (folder / "ipcontroller-client.json").read_text().replace("127.0.0.1", "127.0.0.2")
    (tmp_path / "dead.json").write_text(dead)
    with pytest.raises(EngineError, match="the controller of the cluster does not answer"):
        connect(cluster_file=str(tmp_path / "dead.json"), timeout=1)

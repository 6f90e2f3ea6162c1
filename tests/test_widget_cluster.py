"""The panel of a cluster: what it says of engines, and that its buttons do not keep the notebook waiting."""

import json
import threading

import pytest
from svg_checks import check

from einsummable import views
from einsummable.errors import EngineError
from einsummable.runtime.engines import EngineInfo, EngineTable
from einsummable.runtime.usage import Usage
from einsummable.views.clusters import cluster_view
from einsummable.widgets.cluster import ClusterPanel

ENGINES = EngineTable(
    (EngineInfo(0, 0, "here", 11, 1, "openblas 0.3"), EngineInfo(1, 4, "there", 12, 2, "openblas 0.3"))
)
USED = (Usage(0, 200_000_000, 3_000_000), Usage(1, None, 0, "died"))


class Holder:
    """Something that has a cluster, or not."""

    memory = 10_000_000

    def __init__(self):
        self.running, self.go, self.fails = False, threading.Event(), False

    def current(self):
        return self if self.running else None

    def start(self, n, threads):
        self.go.wait(10)
        if self.fails:
            raise EngineError("an engine died")
        self.asked, self.running = (n, threads), True

    def stop(self):
        self.running = False

    def info(self):
        return ENGINES

    def usage(self):
        return USED


@pytest.fixture
def holder():
    return Holder()


@pytest.fixture
def panel(holder):
    panel = ClusterPanel(holder.current, holder.start, holder.stop)
    yield panel
    panel.close()


def await_state(panel, state):
    reached = threading.Event()
    panel.observe(lambda change: change.new["state"] == state and reached.set(), "view")
    assert panel.view["state"] == state or reached.wait(10)


def test_a_view_of_two_engines(golden):
    view = cluster_view(ENGINES, USED, memory=10_000_000)
    check(view)
    golden(json.dumps(view, indent=1, ensure_ascii=False) + "\n\n" + views.text(view))


@pytest.mark.parametrize(
    ("engines", "state", "words"),
    [
        (EngineTable(), "", "no cluster: programs run on threads of this process"),
        (EngineTable(), "starting", "engines are starting"),
        (EngineTable(), "stopping", "engines are stopping"),
        (ENGINES[:1], "", "1 engine on 1 host, 1 BLAS thread each"),
        (ENGINES, "", "2 engines on 2 hosts, 1–2 BLAS threads each"),
    ],
)
def test_captions(engines, state, words):
    view = cluster_view(EngineTable(engines), state=state)
    assert view["caption"] == words
    check(view)


def test_start_is_back_at_once_and_the_panel_follows(holder, panel):
    assert panel.view["state"] == "none"
    panel._answer(panel, {"do": "start", "n": 3, "threads": 2}, [])
    assert panel.view["state"] == "starting"
    panel._answer(panel, {"do": "start", "n": 9, "threads": 9}, [])  # a second click does nothing
    holder.go.set()
    await_state(panel, "running")
    assert holder.asked == (3, 2)
    assert [row["lost"] for row in panel.view["engines"]] == ["", "died"]
    assert "n=2, threads=1" in panel.python()
    panel._answer(panel, {"do": "stop"}, [])
    await_state(panel, "none")
    assert not holder.running


def test_what_goes_wrong_is_said_in_the_panel(holder, panel):
    holder.fails = True
    holder.go.set()
    panel._answer(panel, {"do": "start", "n": 1, "threads": 1}, [])
    await_state(panel, "none")
    assert panel.error == "an engine died"


@pytest.mark.parametrize("content", [{"do": "start", "n": "many", "threads": 1}, {"do": "dance"}, {}])
def test_what_no_button_says_is_passed_over(holder, panel, content):
    panel._answer(panel, content, [])
    assert panel.view["state"] == "none"


def test_it_looks_now_and_then(holder, panel):
    holder.running = True
    panel.refresh()
    assert panel.view["state"] == "running"
    data, _ = panel._repr_mimebundle_()
    assert "openblas" in data["text/html"]
    assert "there" in data["text/plain"]


@pytest.mark.cluster
@pytest.mark.slow
def test_a_real_cluster_is_started_from_a_thread_and_a_run_on_it_cancelled():
    import numpy as np

    import einsummable as ein
    from einsummable.background import CancelledError
    from einsummable.runtime.cluster import Cluster

    held = {}
    panel = ClusterPanel(
        lambda: held.get("cluster"),
        lambda n, threads: held.update(cluster=Cluster(n=n, threads=threads)),
        lambda: held.pop("cluster").stop(),
    )
    try:
        panel._answer(panel, {"do": "start", "n": 2, "threads": 1}, [])
        reached = threading.Event()
        panel.observe(lambda change: change.new["state"] in ("running", "none") and reached.set(), "view")
        assert reached.wait(90)
        assert panel.error == ""
        assert all(row["process"] for row in panel.view["engines"])
        lines = [f"X{i + 1}[i,k] = X{i}[i,j] * A[j,k]" for i in range(30)]
        a = np.eye(1200, dtype="f4")
        net = ein.compile("\n".join(lines), X0=a, A=a, cluster=held["cluster"])
        run = net.run_live()
        begun = threading.Event()
        run.listen(lambda r: r.view()["done"] > 0 and begun.set())
        assert begun.wait(60)
        run.cancel()
        with pytest.raises(CancelledError, match="the run was cancelled"):
            run.result(timeout=60)
        assert run.view()["done"] < run.view()["tasks"]
        small = ein.compile("y[i] = 2 * x[i]", x=np.arange(5.0), cluster=held["cluster"])
        assert small.run()["y"].tolist() == [0, 2, 4, 6, 8]
    finally:
        panel.close()
        if "cluster" in held:
            held["cluster"].stop()

"""What engines take of their machines, asked of themselves."""

import threading

import numpy as np
import psutil
import pytest

from einsummable.runtime.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_engines_say_how_large_they_are_also_while_they_work():
    import einsummable as ein

    with Cluster(n=2, memory="1GB") as cluster:
        before = cluster.usage()
        for used, engine in zip(before, cluster.info(), strict=True):
            there = psutil.Process(engine.pid).memory_info().rss
            assert 0.5 * there < used.resident < 2 * there
            assert (used.site, used.kept, used.lost) == (engine.site, 0, "")
        kept = cluster.put(np.ones((1000, 1000)))
        assert [used.kept for used in cluster.usage()] == [4_000_000] * 2
        a = np.eye(1000, dtype="f4")
        lines = [f"X{i + 1}[i,k] = X{i}[i,j] * A[j,k]" for i in range(20)]
        run = ein.compile("\n".join(lines), X0=a, A=a, cluster=cluster).run_live()
        begun = threading.Event()
        run.listen(lambda r: r.view()["done"] > 0 and begun.set())
        assert begun.wait(60)
        assert all(used.resident for used in cluster.usage())
        run.result(timeout=120)
        kept.free()
        psutil.Process(cluster.info()[1].pid).kill()
        gone = threading.Event()
        while not (lost := cluster.usage()[1].lost):
            gone.wait(0.1)
        assert lost == "died"
        assert cluster.usage()[1].resident is None
        assert cluster.usage()[0].resident

"""The matrix chain on engines, its inputs there: against numpy, and against dask.distributed.

Contract: `rows` prints a row for each peer and returns those that fall short.  Every engine and every worker
of dask is a process with one BLAS thread, numpy has as many threads as there are engines; results stay where
they are made.  Dask gets the best of several chunkings, the one that is fastest when each is tried once.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np
from peers import compared, interleaved

import einsummable as ein
from einsummable.models import chain

NAMES = {"numpy": 0.95, "dask": 1.4}


def rows(size: int, *, skewed: bool, engines: int, repetitions: int) -> list[str]:
    """Print the rows of one chain; return those that fall short."""
    arrays = chain.inputs(size, skewed=skewed)
    with ein.Cluster(n=engines, threads=1) as cluster:
        net = ein.compile(chain.TEXT, cluster=cluster, **arrays)
        net.put(**arrays)
        ours = net.run()["Z"]
        theirs = chain.reference(**arrays)
        if not np.allclose(ours, theirs, rtol=1e-3, atol=2.0):
            raise SystemExit("the chain on engines answers something else than numpy")
        del ours, theirs
        calls = {"ours": lambda: net.run(keep=True), "numpy": lambda: chain.reference(**arrays)}
        if find_spec("distributed") is None:
            print("distributed is not installed: its rows are left out")
            times = interleaved(calls, repetitions)
        else:
            with workers(engines) as client:
                times = interleaved({**calls, "dask": best_chunking(client, arrays)}, repetitions)
    peers = [(name, times[name], wanted) for name, wanted in NAMES.items() if name in times]
    kind = "skewed" if skewed else "uniform"
    return compared(f"chain, {kind}, S = {size}, {engines} engines", times["ours"], peers)


@contextmanager
def workers(n: int) -> Iterator[object]:
    """Start dask workers, each a process with one thread, and yield their client."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=n, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=None
    )
    with cluster, Client(cluster) as client:
        client.wait_for_workers(n)
        yield client


def best_chunking(client: object, arrays: Mapping[str, np.ndarray]) -> Callable[[], None]:
    """Return the call that computes the chain in dask in the chunks that suit it best, with data in place."""
    calls = {}
    for name, parts in {"rows": (2, 1), "columns": (1, 2), "both": (2, 2)}.items():
        calls[name] = in_chunks(client, arrays, parts)
    times = interleaved(calls, 1)
    best = min(calls, key=lambda name: times[name].median)
    return calls[best]


def in_chunks(client: object, arrays: Mapping[str, np.ndarray], parts: tuple[int, int]) -> Callable[[], None]:
    """Return the call for arrays that are cut into `parts` and persisted."""
    import dask.array as da
    from distributed import wait

    there = {
        name: da.from_array(x, chunks=tuple(-(-n // k) for n, k in zip(x.shape, parts, strict=True)))
        for name, x in arrays.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # much is sent, once, before the clock starts
        there = dict(zip(there, client.persist(list(there.values())), strict=True))
    wait(list(there.values()))

    def call() -> None:
        wait(client.persist(chain.reference(**there)))

    return call

"""The matrix chain (A·B) + (C·(D·E)) against numpy with as many BLAS threads as there are sites.

einsummable bench chain [--size 2048] [--sites 2] [--repetitions 7] [--skewed]
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import threadpoolctl

import einsummable as ein
from einsummable.models import chain

sys.path.insert(0, str(Path(__file__).parent))

from peers import interleaved, table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--sites", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--skewed", action="store_true")
    args = parser.parse_args()
    arrays = chain.inputs(args.size, skewed=args.skewed)
    controller = threadpoolctl.ThreadpoolController()

    def numpy_run():
        with controller.limit(limits=args.sites, user_api="blas"):
            return chain.reference(**arrays)

    with ein.Cluster(n=args.sites, threads=1) as cluster:
        there = ein.compile(chain.TEXT, cluster=cluster, **arrays)
        there.put(**arrays)
        here = ein.compile(chain.TEXT, sites=args.sites, **arrays)
        for net in (there, here):
            np.testing.assert_allclose(net.run()["Z"], chain.reference(**arrays), rtol=1e-3, atol=1e-1)
        times = interleaved(
            {
                "numpy": numpy_run,
                "engines": lambda: there.run(keep=True),
                "engines, fetched": there.run,
                "local": here.run,
            },
            args.repetitions,
        )
    peer = {f"numpy, {args.sites} threads": times["numpy"]}
    kind = "skewed" if args.skewed else "uniform"
    print(
        table(
            f"chain (A·B) + (C·(D·E)), {kind}, S = {args.size}, {args.sites} sites × 1 thread",
            {
                f"{args.sites} engines, inputs there, kept": (times["engines"], peer),
                f"{args.sites} engines, result fetched": (times["engines, fetched"], peer),
                f"local, {args.sites} threads": (times["local"], peer),
            },
        )
    )


if __name__ == "__main__":
    main()

"""The command line: ``einsummable demo | lab | plan | generate | bench``.

Contract: every command prints to standard output and returns an exit status; an error of ours is printed
without a traceback and ends in status 1.
"""

from __future__ import annotations

import argparse
import os
import runpy
import subprocess
import sys
import time
import webbrowser
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np

from einsummable import pipeline
from einsummable.display import picture
from einsummable.errors import EinsummableError
from einsummable.interactive import widgets_installed
from einsummable.models import chain, gallery, generate, knn
from einsummable.runtime.cluster import Cluster
from einsummable.runtime.executor import Executor

#: The checkout this file is part of: where the notebooks and the benchmarks are.
CHECKOUT = Path(__file__).resolve().parents[1]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (by default the process's own arguments) names; return its exit status."""
    args = _parser().parse_args(argv)
    try:
        return args.command(args)
    except EinsummableError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="einsummable", description="Write what to compute; see how it is cut; run it on what you have."
    )
    parser.add_argument("--version", action="version", version=f"einsummable {version('einsummable')}")
    commands = parser.add_subparsers(required=True, metavar="command")
    demo = commands.add_parser(
        "demo", help="run the main job here and on an ipyparallel cluster, against numpy"
    )
    demo.add_argument("--engines", type=_positive, default=2, help="engines of the cluster (default 2)")
    demo.add_argument("--size", type=_positive, default=2048, help="size of the matrix chain (default 2048)")
    demo.add_argument("--out", type=Path, default=Path("einsummable-demo"), help="folder for the pictures")
    demo.add_argument("--web", action="store_true", help="serve the plan explorer as a page instead")
    demo.add_argument(
        "--port", type=_port, default=0, help="with --web: of the page (default: any that is free)"
    )
    demo.add_argument("--no-open", action="store_true", help="with --web: do not open a browser")
    demo.set_defaults(command=_demo)
    lab = commands.add_parser("lab", help="open JupyterLab on the notebooks")
    lab.add_argument("options", nargs=argparse.REMAINDER, help="passed on to jupyter lab")
    lab.set_defaults(command=_lab)
    plan = commands.add_parser("plan", help="plan a program: every input needs an `input` line")
    plan.add_argument("file", help="a program; - reads it from standard input")
    plan.add_argument("--sites", type=_positive, help="how many sites (default: the processors)")
    plan.add_argument("-p", type=_positive, help="how many kernel calls a node (default: the sites)")
    plan.set_defaults(command=_plan)
    generate.add_arguments(commands.add_parser("generate", help="go on with a text: LLaMA from a checkpoint"))
    bench = commands.add_parser("bench", help="measure against numpy and others, as ratios")
    bench.add_argument("name", help="which benchmark: " + ", ".join(_benchmarks()))
    bench.add_argument("options", nargs=argparse.REMAINDER, help="passed on to it")
    bench.set_defaults(command=_bench)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


# ------------------------------------------------------------------------------------------ demo


def _demo(args: argparse.Namespace) -> int:
    if args.web:
        return _web(args.port, open_browser=not args.no_open)
    args.out.mkdir(parents=True, exist_ok=True)
    jobs = {
        "digits nearest neighbour": (knn, knn.inputs(), "pred"),
        f"matrix chain {args.size}": (chain, chain.inputs(args.size), "Z"),
    }
    failed = 0
    with Cluster(n=args.engines, threads=1) as cluster:
        print(cluster.info(), end="\n\n")
        for title, (model, arrays, result) in jobs.items():
            print(f"── {title} " + "─" * max(0, 76 - len(title)))
            print(model.TEXT)
            expected, seconds = _timed(lambda m=model, a=arrays: m.reference(**a))
            print(f"numpy: {1e3 * seconds:.1f} ms")
            for where in (None, cluster):
                failed += not _demo_run(model.TEXT, arrays, result, expected, where, args.out)
        right = np.mean(pipeline.compile(knn.TEXT, knn.inputs()).run()["pred"] == knn.answers())
        print(f"accuracy of the nearest neighbour on {len(knn.answers())} digits: {right:.1%}")
    print("everything equals numpy" if not failed else f"{failed} results differ from numpy")
    return int(failed > 0)


def _demo_run(
    text: str, arrays: dict, result: str, expected: np.ndarray, cluster: Executor | None, out: Path
) -> bool:
    """Plan and run one program, print what happened, and return whether it equals `expected`."""
    where = "local" if cluster is None else "cluster"
    net = pipeline.compile(text, arrays, cluster=cluster)
    values, seconds = _timed(lambda: net.run()[result])
    same = values.dtype == expected.dtype and np.allclose(values, expected, rtol=1e-3, atol=1e-2)
    if cluster is None:
        print(f"\n{net.explain()}\n")
        names = [
            picture(net.graph).save(out / f"{result}-graph.svg"),
            net.picture().save(out / f"{result}-plan.svg"),
        ]
        names.append(picture(net.tasks).save(out / f"{result}-tasks.svg"))
        print("pictures:", *(path for paths in names for path in paths))
    saved = picture(net.last).save(out / f"{result}-timeline-{where}.svg")
    print(f"{where}, {net.sites} sites: {1e3 * seconds:.1f} ms, "
          f"{'equals numpy' if same else 'DIFFERS FROM NUMPY'}; timeline: {saved[0]}")  # fmt: skip
    return same


def _timed(call) -> tuple:  # noqa: ANN001
    """Return the result of `call` and the median seconds of three calls after the first."""
    result, seconds = call(), []
    for _ in range(3):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return result, median(seconds)


def _web(port: int, *, open_browser: bool) -> int:
    """Serve the plan explorer until Ctrl-C or SIGTERM."""
    if not widgets_installed():
        raise EinsummableError("anywidget is not installed", notes=("pip install 'einsummable[notebook]'",))
    from einsummable.widgets.page import Server

    try:
        server = Server(gallery.PROGRAMS, lambda text: pipeline.compile(text, sites=8).explore(), port=port)
    except OSError as error:
        raise EinsummableError(f"port {port} cannot be used: {error.strerror}") from error
    with server:
        print(f"the plan explorer is at {server.url} (Ctrl-C ends it)", flush=True)
        if open_browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


# ---------------------------------------------------------------------------------- other commands


def _lab(args: argparse.Namespace) -> int:
    notebooks = CHECKOUT / "notebooks"
    if not notebooks.is_dir():
        notebooks = Path.cwd()
    if find_spec("jupyterlab") is None:
        raise EinsummableError("JupyterLab is not installed", notes=("pip install 'einsummable[notebook]'",))
    return subprocess.call([sys.executable, "-m", "jupyter", "lab", *args.options, str(notebooks)])


def _plan(args: argparse.Namespace) -> int:
    text = sys.stdin.read() if args.file == "-" else _read(Path(args.file))
    net = pipeline.compile(text, sites=args.sites, p=args.p)
    print(net.graph, end="\n\n")
    print(net.explain())
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise EinsummableError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise EinsummableError(f"{path} is no text in UTF-8") from error


def _benchmarks() -> list[str]:
    folder = CHECKOUT / "tests" / "benchmarks"
    return sorted(path.stem.removeprefix("bench_") for path in folder.glob("bench_*.py"))


def _bench(args: argparse.Namespace) -> int:
    path = CHECKOUT / "tests" / "benchmarks" / f"bench_{args.name}.py"
    if not path.exists():
        known = ", ".join(_benchmarks()) or "none: benchmarks are part of the source checkout"
        raise EinsummableError(f"there is no benchmark called {args.name!r}", notes=(f"known: {known}",))
    sys.argv = [str(path), *args.options]
    runpy.run_path(str(path), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())

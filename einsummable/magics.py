"""The notebook's face: ``%%ein`` and its line magics.  Only what is called magic needs IPython.

Contract: a magic parses its line, calls `pipeline`, and displays what comes back.  Formulas reach the
language as they are typed (nothing in braces is expanded), and a wrong one shows its message, carets and
no Python frames.
"""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from einsummable import pipeline
from einsummable.background import LiveRun
from einsummable.compiled import default_sites
from einsummable.errors import PlanError, UnknownNameError, nearest
from einsummable.interactive import widgets_installed
from einsummable.magic_completion import make_matcher
from einsummable.magic_options import plan_arguments, planning
from einsummable.pipeline import Compiled
from einsummable.runtime.cluster import Cluster, connect

if TYPE_CHECKING:
    from einsummable.widgets.cluster import ClusterPanel

#: The name of the cluster in the notebook's namespace, for use from Python.
CLUSTER = "ein_cluster"
#: The name of the run that was started last to be watched.
LIVE = "ein_live"


@magics_class
class EinMagics(Magics):
    """``%%ein``, ``%ein_plan``, ``%ein_run``, ``%ein_explain`` and ``%ein_cluster``."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.cluster: Cluster | None = None
        self.panel: ClusterPanel | None = None

    # -------------------------------------------------------------------------------- formulas

    @magic_arguments()
    @argument("name", nargs="?", help="what to call the compiled program in the notebook")
    @argument("--run", action="store_true", help="run it and bind its outputs in the notebook")
    @argument("--plan", action="store_true", help="show how every tensor is cut and placed")
    @argument("--on", metavar="WHERE", default="local", help="'local' (threads) or 'cluster' (%%ein_cluster)")
    @planning
    @argument("--keep", action="store_true", help="leave the results on the engines as distributed tensors")
    @argument("--live", action="store_true", help="with --run: run in the background, and watch it")
    @argument("--no-show", action="store_true", help="display nothing")
    @no_var_expand
    @cell_magic
    def ein(self, line: str, cell: str) -> None:
        """Build an EinGraph from the formulas of the cell, and show it.

        Each line defines one tensor; a label that the left side lacks is summed::

            %%%%ein net --run
            S[q,k] = sum[d] Q[q,d] * K[k,d] / sqrt(extent(d))
            P[q,k] = softmax[k](S[q,k])            # a macro; so are mean, var, rmsnorm, argmax …
            O[q,d] = P[q,k] * V[k,d]
            top[q] = max[k] where(k <= q, P[q,k], 0)   # labels are values, too
            output O, top                          # without it: what no other line reads

        Aggregates: sum prod max min any all.  Other statements: ``extent h = 8``,
        ``input X[b=64, d=32] f32`` (a shape in place of an array), ``def f[k](x) = …`` (a macro of your own).
        Names that no line defines are looked up in the notebook: arrays, distributed tensors, scalars.
        Scalars are read when the program runs.
        """
        args = parse_argstring(self.ein, line)
        if args.name is not None:
            _check_name(args.name)
        cluster = self._where(args.on)
        sites = default_sites() if cluster is None else cluster.sites
        options = plan_arguments(args, self.shell.user_ns, sites)
        net = pipeline.compile(cell, self._namespace(), cluster=cluster, **options)
        if args.name is not None:
            self.shell.user_ns[args.name] = net
        if args.plan:
            net.tasks  # noqa: B018 - planning is what was asked for
        if not args.no_show and args.live:
            display(net)
        if args.run:
            self._run(net, keep=args.keep, live=args.live)
        if not args.no_show and not args.live:
            display(net)

    @magic_arguments()
    @argument("name", help="a program that %%%%ein made")
    @planning
    @line_magic
    def ein_plan(self, line: str) -> None:
        """Plan a program, and show the blocks of every tensor and what happens on which site.

        What no option says stays as it was; another number of sites is one of the same host.
        """
        args = parse_argstring(self.ein_plan, line)
        net = self._compiled(args.name)
        options = plan_arguments(args, self.shell.user_ns, net.sites)
        if new := {name: value for name, value in options.items() if value is not None}:
            same = {"sites": net.sites, "memory": net.memory, "pins": net.pins}
            if new.get("sites", net.sites) == net.sites and args.objective is None:
                same["hardware"] = net.hardware
            net = net.replan(cluster=net.cluster, **(same | new))
            self.shell.user_ns[args.name] = net
        display(net.picture())
        display(net.tasks)

    @magic_arguments()
    @argument("name", help="a program that %%%%ein made")
    @argument("--on", metavar="WHERE", help="'local' or 'cluster'; by default where it was compiled for")
    @argument("--keep", action="store_true", help="leave the results on the engines as distributed tensors")
    @argument("--live", action="store_true", help="run in the background, and watch it")
    @argument("--no-show", action="store_true", help="display nothing")
    @line_magic
    def ein_run(self, line: str) -> None:
        """Run a program with the notebook's present arrays and scalars, and bind its outputs.

        It is compiled again where their shapes, dtypes or kinds are other ones now.  With ``--live`` the cell
        is done at once and shows how far the run is, which is called ``ein_live``; outputs are bound when
        they are there.
        """
        args = parse_argstring(self.ein_run, line)
        net = self._compiled(args.name)
        if args.on is not None:
            net = net.replan(cluster=self._where(args.on))
        net = self.shell.user_ns[args.name] = net.renew(self._namespace())
        self._run(net, keep=args.keep, live=args.live)
        if not args.live and not args.no_show:
            display(net.last)

    @magic_arguments()
    @argument("name", help="a program that %%%%ein made")
    @line_magic
    def ein_explain(self, line: str) -> None:
        """Show a plan in figures, beside the named strategies."""
        display(self._compiled(parse_argstring(self.ein_explain, line).name).explain())

    @magic_arguments()
    @argument("name", help="a program that %%%%ein made")
    @line_magic
    def ein_explore(self, line: str) -> None:
        """Show formula, graph, blocks and costs of a program, for any number of sites, links and memory."""
        display(self._compiled(parse_argstring(self.ein_explore, line).name).explore())

    @magic_arguments()
    @argument("name", help="a program that %%%%ein made")
    @line_magic
    def ein_tasks(self, line: str) -> None:
        """Show what happens on which site: lanes to pan, zoom and fold, with the figures of each task."""
        display(self._compiled(parse_argstring(self.ein_tasks, line).name).show_tasks())

    @magic_arguments()
    @argument("name", help="a program that %%%%ein made")
    @argument("--live", action="store_true", help="follow the runs to come, too, while they go on")
    @line_magic
    def ein_timeline(self, line: str) -> None:
        """Show where time goes: the last run above the simulated one, kernels, moves and what is held."""
        args = parse_argstring(self.ein_timeline, line)
        display(self._compiled(args.name).timeline(live=args.live))

    @magic_arguments()
    @argument("name", help="a program that %%%%ein made")
    @line_magic
    def ein_steps(self, line: str) -> None:
        """Run a small program step by step: the numbers in the blocks, sums that grow, and what travels."""
        net = self._compiled(parse_argstring(self.ein_steps, line).name)
        display(net.steps(self._inputs(net)))

    def _run(self, net: Compiled, *, keep: bool, live: bool) -> None:
        """Run `net` with the notebook's present values, and bind what it makes: now, or when it is there."""
        if not live:
            self.shell.user_ns.update(net.run(self._inputs(net), keep=keep))
            return
        drawn = [net.timeline(live=True)] if widgets_installed() else []
        run = self.shell.user_ns[LIVE] = net.run_live(self._inputs(net), keep=keep)
        run.listen(self._bind)
        display(run, *drawn)

    def _bind(self, run: LiveRun) -> None:
        if run.done and run.error is None:
            self.shell.user_ns.update(run.result())

    def _inputs(self, net: Compiled) -> dict[str, Any]:
        """Return the notebook's present values of what `net` reads."""
        names = {*net.graph.inputs, *(p.name for p in net.graph.params)}
        return {name: value for name, value in self._namespace().items() if name in names}

    def _namespace(self) -> dict[str, Any]:
        """Return what of the notebook a formula may mean: no underscore names, which are IPython's own."""
        return {name: value for name, value in self.shell.user_ns.items() if not name.startswith("_")}

    def _compiled(self, name: str) -> Compiled:
        net = self.shell.user_ns.get(name)
        if not isinstance(net, Compiled):
            known = [n for n, v in self.shell.user_ns.items() if isinstance(v, Compiled)]
            notes = nearest(name, known) or ("make one with %%ein " + name,)
            raise UnknownNameError(f"{name!r} is no program of this notebook", notes=notes)
        return net

    # --------------------------------------------------------------------------------- cluster

    @magic_arguments()
    @argument("action", nargs="?", choices=["start", "connect", "info", "stop"])
    @argument("profile", nargs="?", help="with connect: the ipyparallel profile, or a connection file")
    @argument("-n", type=int, default=2, help="with start: how many engines (default 2)")
    @argument("--threads", type=int, default=1, help="BLAS threads of each engine (default 1)")
    @line_magic
    def ein_cluster(self, line: str) -> None:
        """Start, connect to, describe or stop the ipyparallel cluster that ``--on cluster`` uses.

        Without a word: a panel of its engines and their memory, with buttons.
        """
        args = parse_argstring(self.ein_cluster, line)
        match args.action:
            case "start":
                self.start_cluster(args.n, args.threads)
            case "connect":
                self.stop_cluster()
                self._take(_connect(args.profile, args.threads))
            case "stop":
                self.stop_cluster()
                if self.panel is not None:
                    self.panel.refresh()
                return
            case "info":
                display(self._need_cluster().info())
                return
        self._show_cluster()

    def start_cluster(self, n: int, threads: int) -> None:
        """Start a cluster in place of the one there is."""
        self.stop_cluster()
        self._take(Cluster(n=n, threads=threads))

    def _take(self, cluster: Cluster) -> None:
        self.cluster = self.shell.user_ns[CLUSTER] = cluster

    def _show_cluster(self) -> None:
        """Display the panel, or where widgets are not installed the table."""
        if not widgets_installed():
            display(self._need_cluster().info())
            return
        from einsummable.widgets.cluster import ClusterPanel

        if self.panel is None:
            self.panel = ClusterPanel(lambda: self.cluster, self.start_cluster, self.stop_cluster)
        self.panel.refresh()
        display(self.panel)

    def stop_cluster(self) -> None:
        """Stop the cluster that we started, or let go of the one we are connected to."""
        cluster, self.cluster = self.cluster, None
        if cluster is not None:
            self.shell.user_ns.pop(CLUSTER, None)
            cluster.stop()

    def _need_cluster(self) -> Cluster:
        if self.cluster is None:
            raise PlanError("there is no cluster yet", notes=("start one with %ein_cluster start -n 2",))
        return self.cluster

    def _where(self, where: str) -> Cluster | None:
        if where not in ("local", "cluster"):
            raise UsageError(f"--on takes 'local' or 'cluster', not {where!r}")
        return self._need_cluster() if where == "cluster" else None


def _connect(where: str | None, threads: int) -> Cluster:
    if where is not None and where.endswith(".json"):
        return connect(cluster_file=where, threads=threads)
    return connect(profile=where or "default", threads=threads)


def _check_name(name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"{name!r} is no name for a Python variable")


def load(ipython: InteractiveShell) -> None:
    """Register magics and completion with `ipython`; loading twice registers once."""
    unload(ipython)
    magics = EinMagics(ipython)
    ipython.register_magics(magics)
    matcher = make_matcher(ipython, magics)
    if ipython.Completer is not None:
        ipython.Completer.custom_matchers.append(matcher)
    ipython.einsummable = (magics, matcher)


def unload(ipython: InteractiveShell) -> None:
    """Take magics and completion back, and stop the cluster that the magics started."""
    found = getattr(ipython, "einsummable", None)
    if found is None:
        return
    magics, matcher = found
    magics.stop_cluster()
    if magics.panel is not None:
        magics.panel.close()
    for kind, names in magics.magics.items():
        for name in names:
            ipython.magics_manager.magics[kind].pop(name, None)
    if ipython.Completer is not None and matcher in ipython.Completer.custom_matchers:
        ipython.Completer.custom_matchers.remove(matcher)
    del ipython.einsummable

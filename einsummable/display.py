"""How every object shows itself in a notebook.

Contract: programs, plans, tasks and runs know nothing of pictures; this module gives their classes the method
that IPython asks for.  Displaying formats what is there and computes nothing.  `Picture` holds views, so that
one can be shown, printed or saved.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from einsummable import views
from einsummable.graph import EinGraph
from einsummable.planner.explain import Explanation
from einsummable.planner.plan import Plan
from einsummable.runtime.events import RunRecord
from einsummable.taskgraph.tasks import TaskGraph


class Picture:
    """One or more views, shown one below the other."""

    def __init__(self, *shown: dict) -> None:
        self.views = list(shown)

    def __str__(self) -> str:
        return "\n\n".join(views.text(view) for view in self.views)

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": views.html(self.views), "text/plain": str(self)}

    def save(self, path: str | Path) -> list[Path]:
        """Write the views as SVG files; return their paths.

        Parameters
        ----------
        path
            Ends in ``.svg``.  Several views are numbered: ``plan.svg``, ``plan-2.svg`` …
        """
        path = Path(path)
        written = []
        for i, view in enumerate(self.views, 1):
            target = path if i == 1 else path.with_name(f"{path.stem}-{i}{path.suffix}")
            target.write_text(views.svg(view), encoding="utf-8")
            written.append(target)
        return written


def _costs(explanation: Explanation) -> dict:
    """Return what the plan and the strategies that share the work out as evenly move.

    One that leaves sites idle moves less, and says nothing of what sharing the work costs.
    """
    first, *rivals = explanation.strategies
    even = [s for s in rivals if s.balance <= max(1.1, first.balance)]
    return views.costs_view([{"name": s.name, "moved": s.moved} for s in (first, *even)])


_DRAW = {
    EinGraph: views.graph_view,
    Explanation: _costs,
    Plan: lambda plan: views.plan_view(plan, None),
    RunRecord: views.timeline_view,
    TaskGraph: views.taskgraph_view,
}


def picture(value: EinGraph | Explanation | Plan | RunRecord | TaskGraph) -> Picture:
    """Return `value` as a picture."""
    return Picture(_DRAW[type(value)](value))


def _mimebundle(self: Any, **_: Any) -> dict[str, str]:
    shown = views.html([_DRAW[type(self)](self)])
    if isinstance(self, Explanation):  # its table is the point, the bars sum it up
        shown += f"<pre>{escape(str(self))}</pre>"
    return {"text/html": shown, "text/plain": str(self)}


for _cls in _DRAW:
    _cls._repr_mimebundle_ = _mimebundle

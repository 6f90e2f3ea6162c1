"""The settings that a reader went through, to go back to."""

from __future__ import annotations

import time
from typing import Any

#: Changes of one thing that follow each other within so many seconds are one: a slider that is dragged.
TOGETHER = 0.8


class History:
    """Settings as JSON, the first one and those since."""

    def __init__(self, first: dict[str, Any]) -> None:
        self.first = first
        self._past: list[dict[str, Any]] = []
        self._now = first
        self._changed: tuple[str, ...] = ()
        self._at = 0.0

    def note(self, new: dict[str, Any]) -> int:
        """Note that the setting is `new` now; return how often `back` can be asked for."""
        changed = tuple(key for key in new if new[key] != self._now.get(key))
        if changed:
            now = time.monotonic()
            if changed != self._changed or now - self._at > TOGETHER or not self._past:
                self._past.append(self._now)
            self._changed, self._at, self._now = changed, now, new
        return len(self._past)

    def back(self) -> dict[str, Any]:
        """Return the setting before, which is the present one then."""
        if self._past:
            self._now, self._changed = self._past.pop(), ()
        return self._now

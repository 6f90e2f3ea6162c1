"""Which bytes of an arena are free: best fit, in logarithmic time.

Contract: `take` answers an offset, `give` returns what was taken.  Holes that touch are one.

>>> space = Space(256)
>>> space.take(128), space.take(64), space.take(128)
(0, 128, None)
>>> space.give(0, 128); space.take(64), space.take(64)
(0, 64)
"""

from __future__ import annotations

from bisect import bisect_left, insort


class Space:
    """The free bytes of an arena of `size` bytes; without a size it grows as needed."""

    def __init__(self, size: int | None = None) -> None:
        self.used = 0
        """The end of the highest byte that was ever taken."""
        self._size = size
        self._holes: list[tuple[int, int]] = []  # bytes and offset of each hole below `used`, sorted
        self._at: dict[int, int] = {}  # offset of a hole → its bytes
        self._ending: dict[int, int] = {}  # end of a hole → its offset

    def take(self, n: int) -> int | None:
        """Return where `n` bytes are free, and take them; None if that is nowhere."""
        if n == 0:
            return 0
        i = bisect_left(self._holes, (n, 0))
        if i < len(self._holes):
            size, offset = self._holes[i]
            self._drop(offset)
            if size > n:
                self._add(offset + n, size - n)
            return offset
        # Behind all: a hole that ends there counts.
        offset = self._ending.get(self.used, self.used)
        if self._size is not None and offset + n > self._size:
            return None
        if offset < self.used:
            self._drop(offset)
        self.used = offset + n
        return offset

    def give(self, offset: int, n: int) -> None:
        """Free the `n` bytes at `offset`, which were taken."""
        if n == 0:
            return
        start, end = offset, offset + n
        if start in self._ending:
            start = self._ending[start]
            self._drop(start)
        if end in self._at:
            size = self._at[end]
            self._drop(end)
            end += size
        self._add(start, end - start)

    def _add(self, offset: int, size: int) -> None:
        insort(self._holes, (size, offset))
        self._at[offset] = size
        self._ending[offset + size] = offset

    def _drop(self, offset: int) -> None:
        size = self._at.pop(offset)
        del self._ending[offset + size]
        del self._holes[bisect_left(self._holes, (size, offset))]

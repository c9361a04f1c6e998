"""Free pieces of one line of memory: taken from the front, joined again when they come back."""

from __future__ import annotations

from bisect import bisect_left, insort

from runtime.errors import StateError


class Extents:
    """The free parts of `size` bytes, by place; neighbours are joined at once.

    `take` uses the first piece that is large enough. With pieces that come back roughly in the order in
    which they were taken, as in a stream, there are two or three free pieces at any time.
    """

    def __init__(self, size: int) -> None:
        self.size = self.free = size
        self._starts = [0] if size else []
        self._sizes = {0: size} if size else {}

    def largest(self) -> int:
        """The size of the largest free piece."""
        return max(self._sizes.values(), default=0)

    def take(self, size: int) -> int:
        """The place of `size` bytes, no longer free. StateError if there is no such piece."""
        for number, start in enumerate(self._starts):
            if self._sizes[start] >= size:
                rest = self._sizes.pop(start) - size
                if rest:
                    self._starts[number] = start + size
                    self._sizes[start + size] = rest
                else:
                    del self._starts[number]
                self.free -= size
                return start
        raise StateError(f"no free piece of {size} bytes among {self.free}")

    def put(self, start: int, size: int) -> None:
        """Give `size` bytes at `start` back. StateError if any of them is free already."""
        place = bisect_left(self._starts, start)
        before = self._starts[place - 1] if place else None
        after = self._starts[place] if place < len(self._starts) else None
        if ((before is not None and before + self._sizes[before] > start)
                or start + size > (self.size if after is None else after)):
            raise StateError(f"the {size} bytes at {start} are free already, or not of this memory")
        self.free += size
        if after == start + size:
            size += self._sizes.pop(after)
            del self._starts[place]
        if before is not None and before + self._sizes[before] == start:
            self._sizes[before] += size
        else:
            insort(self._starts, start)
            self._sizes[start] = size

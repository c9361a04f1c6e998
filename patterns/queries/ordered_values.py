"""Values of windows by rank, for quantiles: the values of all open windows stay in order while windows slide."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from patterns.queries.fields import decoded, encoded
from patterns.queries.kernels.order import CODE, PANE, VALUE, merge, selected
from patterns.queries.multisets import Multiset
from runtime.message import Columns

#: New rows are merged in when there are at least so many, or as many as there are already.
_AT_ONCE = 1 << 13


class OrderedWindows:
    """The rows of a multiset that open windows may hold; a slide costs one pass over those of its key."""

    def __init__(self, multiset: Multiset, per_window: int, per_slide: int) -> None:
        self.multiset = multiset
        self._per_window, self._per_slide = per_window, per_slide
        self._dtype = np.dtype(np.int64)
        # Two tables that take turns: memory that was used before is much faster than fresh memory.
        self._whole = self._spare = np.empty((0, 4), np.int64)
        self._rows = self._whole
        self._new: list[np.ndarray] = []

    def add(self, partials: Columns) -> None:
        """Take the values of `partials`, which are sorted by pane."""
        weights, values = (partials[f"{kind}_{self.multiset.name}"] for kind in ("weights", "values"))
        held = weights > 0
        self._dtype = values.dtype
        self._new.append(np.column_stack([partials["code"][held], encoded(values[held]), partials["pane"][held],
                                          weights[held]]))

    def values(self, windows: np.ndarray, codes: np.ndarray, ranks: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """The values of the given ranks (from 1, a row per window) of windows sorted by id, as a matrix.

        `starts` are, by key code, the first panes that later windows may hold: rows before them are forgotten.
        """
        new = np.concatenate(self._new) if self._new else self._rows[:0]
        new = new[np.argsort(new[:, PANE], kind="stable")]
        turn = np.argsort(ranks, axis=1)
        ascending = np.take_along_axis(ranks, turn, axis=1)
        found = np.empty(ranks.shape, np.int64)
        for first, last, taken in self._steps(windows, new[:, PANE]):
            needed = starts.copy()
            np.minimum.at(needed, codes[first:], windows[first:] * self._per_slide)
            self._merge(new[:taken], needed)
            new = new[taken:]
            low, high = (np.searchsorted(self._rows[:, CODE], codes[first:last], side) for side in ("left", "right"))
            selected(self._rows, low, high, windows[first:last] * self._per_slide, self._per_window,
                     ascending[first:last], found[first:last])
        self._new = [new] if len(new) else []
        values = np.empty_like(found)
        np.put_along_axis(values, turn, found, axis=1)
        return decoded(values.reshape(-1), self._dtype).reshape(values.shape)

    def _steps(self, windows: np.ndarray, panes: np.ndarray) -> Iterator[tuple[int, int, int]]:
        """Ranges of windows to look at together, and how many of the rows that are new come in before them.

        A pass over a key's rows should not see many that are for later windows: so not all come in at once.
        """
        first, done = 0, 0
        while first < len(windows):
            room = done + max(_AT_ONCE, len(self._rows))
            reach = int(panes[room]) if room < len(panes) else 2**62
            last = int(np.searchsorted(windows * self._per_slide + self._per_window, reach, side="right"))
            last = max(last, int(np.searchsorted(windows, windows[first], side="right")))
            end = int(windows[last - 1]) * self._per_slide + self._per_window
            upto = int(np.searchsorted(panes, end, side="left"))
            yield first, last, max(upto - done, 0)
            first, done = last, max(upto, done)

    def _merge(self, new: np.ndarray, starts: np.ndarray) -> None:
        new = new[np.lexsort((new[:, VALUE], new[:, CODE]))]
        size = len(self._rows) + len(new)
        if len(self._spare) < size:
            self._spare = np.empty((2 * size, 4), np.int64)
        used = merge(self._rows, new, starts, self._spare)
        self._whole, self._spare = self._spare, self._whole
        self._rows = self._whole[:used]

    @property
    def size_bytes(self) -> int:
        return self._whole.nbytes + self._spare.nbytes + sum(rows.nbytes for rows in self._new)

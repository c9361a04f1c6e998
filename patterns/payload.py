"""The whole rows behind the items: kept while a window may report them, and for good once one has.

Workers see only the columns that the query reads. An item of a sliding window is reported by many
windows; its row is stored once, and looked up when the table of results is made.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from patterns.intake import Taken
from patterns.lifetime import LiveItems
from patterns.progress import Progress
from patterns.window import Window

#: Some whole rows and their numbers, ascending.
Rows = tuple[np.ndarray, pa.Table]

_REPORTED, _STORED = 1, 2


class Payload:
    """Rows by number: those that open windows may still report, and those that were reported."""

    def __init__(self, window: Window) -> None:
        self._open: LiveItems[Rows] = LiveItems(window, _select_rows, _join_rows, self._store)
        self._stored: list[Rows] = []
        self._state = np.zeros(0, np.uint8)  # of the rows from `first` on
        self._first = self._next = 0

    def keep(self, taken: Taken) -> None:
        """Hold the rows of `taken`, which get the next numbers."""
        size = taken.kept.num_rows
        numbers = np.arange(self._next, self._next + size)
        self._open.add((numbers, pa.Table.from_batches([taken.kept])), taken.codes, taken.ordinates)
        self._next += size
        if self._next - self._first > len(self._state):
            larger = np.zeros(2 * (self._next - self._first), np.uint8)
            larger[: len(self._state)] = self._state
            self._state = larger

    def report(self, rows: np.ndarray) -> None:
        """Note that these rows are part of a result."""
        self._state[rows - self._first] |= _REPORTED

    def purge(self, progress: Progress) -> None:
        """Drop the rows that only windows hold which have been reported; rows of results stay."""
        self._open.purge(progress)
        first = next((int(numbers[0]) for numbers, _ in self._open), self._next)
        if 2 * (first - self._first) > len(self._state):
            self._state = np.concatenate((self._state[first - self._first:], np.zeros(first - self._first, np.uint8)))
            self._first = first

    def reported(self) -> Rows | None:
        """All rows that were reported, and their numbers; None if there are none."""
        for rows in self._open:
            self._store(rows)
        if not self._stored:
            return None
        numbers, table = _join_rows(self._stored)
        order = np.argsort(numbers, kind="stable")
        return numbers[order], table.take(pa.array(order))

    @property
    def rows(self) -> int:
        """How many rows are held for open windows."""
        return self._open.items

    def _store(self, rows: Rows) -> None:
        state = self._state[rows[0] - self._first]
        fresh = state == _REPORTED
        if fresh.any():
            self._stored.append(_select_rows(rows, fresh))
            self._state[self._stored[-1][0] - self._first] |= _STORED


def _select_rows(rows: Rows, chosen: np.ndarray) -> Rows:
    numbers, table = rows
    return numbers[chosen], table.filter(pa.array(chosen))


def _join_rows(parts: Sequence[Rows]) -> Rows:
    return np.concatenate([numbers for numbers, _ in parts]), pa.concat_tables([table for _, table in parts])

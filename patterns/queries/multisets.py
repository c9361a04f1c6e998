"""Multisets of values per pane, window and key: what quantiles are taken from.

A multiset travels as rows (value, weight): every different value once, with the number of times it
occurred. Adding weights is exact and knows no order, so a quantile is the same at every degree of
parallelism and in every run, which sketches that flip coins (KLL, REQ) cannot promise. Memory is bounded
by rounding: with a relative `error` a, values are first moved to the middle of buckets whose bounds grow
by the factor (1 + a) / (1 - a), so that no value moves by more than the share a of itself, and a window
has at most some hundred different ones per power of ten. Reference: Masson, Rim and Lee, "DDSketch",
2019.

In partials that also have fields, the first row of a pane and key carries the fields and the others
have `count` 0; a row that carries no value has weight 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from patterns.queries.rows import expand, limits_of, starts_of
from patterns.query import Frontier
from runtime.message import Columns

#: Rounded values are counted whenever this many have come on top of those that were left.
_COUNT_EVERY = 1 << 16
#: Rows of windows that are sorted at a time.
_ROWS_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True)
class Multiset:
    """The values of a column, exact, or rounded to within a relative `error`."""

    column: str
    error: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.column}~{self.error}" if self.error else self.column

    def round(self, values: np.ndarray) -> np.ndarray:
        if not self.error:
            return values
        values = values.astype(np.float64)
        growth = (1 + self.error) / (1 - self.error)
        with np.errstate(divide="ignore", over="ignore"):
            bucket = np.ceil(np.log(np.abs(values)) / np.log(growth))
            middle = np.exp(bucket * np.log(growth)) * (2 / (1 + growth))
        return np.copysign(np.minimum(middle, np.finfo(np.float64).max), values)


class Weighted(NamedTuple):
    """Rows of several multisets, sorted by group, then value; every value once per group."""

    groups: np.ndarray
    values: np.ndarray
    weights: np.ndarray


def counted(groups: np.ndarray, values: np.ndarray, weights: np.ndarray) -> Weighted:
    """`Weighted` rows from rows in any order."""
    order = np.lexsort((values, groups))
    groups, values = groups[order], values[order]
    starts = starts_of(groups, values)
    sums = np.add.reduceat(weights[order], starts) if len(starts) else weights[order]
    return Weighted(groups[starts], values[starts], sums)


class MultisetPanes:
    """The multisets of open panes: rows of (pane, code, value, weight) as they came, counted when closed."""

    def __init__(self, multiset: Multiset) -> None:
        self.multiset = multiset
        self._rows: list[tuple[np.ndarray, ...]] = []
        self._size = self._left = 0
        self._first = 2**62

    def add(self, codes: np.ndarray | None, panes: np.ndarray, columns: Columns) -> None:
        values = self.multiset.round(columns[self.multiset.column])
        if values.dtype.kind == "f":
            values = values + values.dtype.type(0)  # -0.0 is 0.0, whichever of the two comes first
        codes = np.zeros(len(panes), np.int64) if codes is None else codes
        self._rows.append((panes.copy(), codes.copy(), values.copy(), np.ones(len(panes), np.int64)))
        self._size += len(panes)
        self._first = min(self._first, int(panes.min(initial=2**62)))
        if self.multiset.error and self._size > 2 * self._left + _COUNT_EVERY:
            self._keep(_counted_rows(tuple(np.concatenate(pieces) for pieces in zip(*self._rows, strict=True))))

    def close(self, before: Frontier) -> tuple[np.ndarray, ...]:
        """Panes, codes, values, weights of the panes below `before`, sorted in this order."""
        if not self._rows or (isinstance(before, int) and before <= self._first):
            return tuple(np.empty(0, np.int64) for _ in range(4))
        rows = tuple(np.concatenate(pieces) for pieces in zip(*self._rows, strict=True))
        ready = rows[0] < limits_of(before, rows[1])
        self._keep(tuple(column[~ready] for column in rows))
        return _counted_rows(tuple(column[ready] for column in rows))

    def _keep(self, rows: tuple[np.ndarray, ...]) -> None:
        self._rows = [rows] if len(rows[0]) else []
        self._size = self._left = len(rows[0])
        self._first = int(rows[0].min()) if self._rows else 2**62

    @property
    def size_bytes(self) -> int:
        return sum(column.nbytes for rows in self._rows for column in rows)


def _counted_rows(rows: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Rows (pane, code, value, weight), sorted, every value once per pane and code."""
    panes, codes, values, weights = rows
    order = np.lexsort((values, codes, panes))
    panes, codes, values = panes[order], codes[order], values[order]
    starts = starts_of(panes, codes, values)
    sums = np.add.reduceat(weights[order], starts) if len(starts) else weights
    return panes[starts], codes[starts], values[starts], sums


class MultisetWindows:
    """The rows of a multiset that open windows may hold, and their windows' whole contents when they fire.

    For windows that are merged once more elsewhere; results are taken from `ordered_values.OrderedWindows`.
    """

    def __init__(self, multiset: Multiset, per_window: int, per_slide: int) -> None:
        self.multiset = multiset
        self._per_window, self._per_slide = per_window, per_slide
        self._rows: list[tuple[np.ndarray, ...]] = []

    def add(self, partials: Columns) -> None:
        weights = partials[f"weights_{self.multiset.name}"]
        held = weights > 0
        values = partials[f"values_{self.multiset.name}"]
        self._rows.append((partials["pane"][held], partials["code"][held], values[held], weights[held]))

    def windows(self, windows: np.ndarray, codes: np.ndarray) -> Iterator[Weighted]:
        """The contents of the windows that fire; group i is window `windows[i]` of key `codes[i]`.

        The groups come in order, in pieces, so that many windows can fire at once.
        """
        if not len(windows):
            return
        panes, keys, values, weights = self._sorted()
        floor = int(panes[0] if len(panes) == 1 else panes.min())
        span = int(panes.max()) - floor + 2
        line = keys * span + (panes - floor)
        starts = np.clip(windows * self._per_slide - floor, 0, span - 1)
        ends = np.clip(windows * self._per_slide + self._per_window - floor, 0, span - 1)
        low, high = np.searchsorted(line, codes * span + starts), np.searchsorted(line, codes * span + ends)
        for first, last in _pieces(high - low):
            rows, groups = expand(low[first:last], high[first:last])
            yield counted(groups + first, values[rows], weights[rows])

    def purge(self, starts: np.ndarray) -> None:
        """Forget the rows below the first pane, by key code, that a window still to fire may hold."""
        if self._rows:
            rows = self._sorted()
            kept = rows[0] >= starts[rows[1]]
            self._rows = [tuple(column[kept] for column in rows)] if kept.any() else []

    def _sorted(self) -> tuple[np.ndarray, ...]:
        """All rows, sorted by code, then pane."""
        if len(self._rows) > 1:
            rows = tuple(np.concatenate(pieces) for pieces in zip(*self._rows, strict=True))
        else:
            rows = self._rows[0]
        order = np.lexsort((rows[0], rows[1]))
        self._rows = [tuple(column[order] for column in rows)]
        return self._rows[0]

    @property
    def size_bytes(self) -> int:
        return sum(column.nbytes for rows in self._rows for column in rows)


def _pieces(sizes: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of groups that together have about _ROWS_AT_ONCE rows."""
    passed = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        done = int(passed[first - 1]) if first else 0
        last = max(int(np.searchsorted(passed, done + _ROWS_AT_ONCE, side="right")), first + 1)
        yield first, last
        first = last


def spread(table: dict[str, np.ndarray], multisets: Sequence[tuple[Multiset, np.ndarray, np.ndarray, np.ndarray]]
           ) -> dict[str, np.ndarray]:
    """`table` (one row per group) with the rows of `multisets` (multiset, groups, values, weights) beside it.

    Groups are numbered as the rows of `table`; a group takes as many rows as its largest multiset.
    """
    if not multisets:
        return table
    rows = len(table["count"])
    sizes = np.maximum.reduce([np.bincount(groups, minlength=rows) for _, groups, _, _ in multisets])
    firsts = np.cumsum(sizes) - sizes
    result = {name: np.repeat(column, sizes, axis=0) for name, column in table.items()}
    result["count"] = np.zeros(int(sizes.sum()), np.int64)
    result["count"][firsts] = table["count"]
    for multiset, groups, values, weights in multisets:
        starts = starts_of(groups)
        within = np.arange(len(groups)) - np.repeat(starts, np.diff(np.append(starts, len(groups))))
        at = firsts[groups] + within
        for kind, column in (("values", values), ("weights", weights)):
            full = np.zeros(len(result["count"]), column.dtype)
            full[at] = column
            result[f"{kind}_{multiset.name}"] = full
    return result

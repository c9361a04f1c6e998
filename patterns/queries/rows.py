"""Small tools for tables of rows that are sorted by pane (or window) and key code."""

from __future__ import annotations

import numpy as np

from patterns.query import Frontier, joined
from runtime.message import Columns


def limits_of(before: Frontier, codes: np.ndarray) -> np.ndarray | int:
    """The frontier of each of `codes`: 0 for a code beyond the end of `before`."""
    if isinstance(before, int):
        return before
    limits = np.zeros(len(codes), np.int64)
    known = codes < len(before)
    limits[known] = before[codes[known]]
    return limits


def starts_of(*columns: np.ndarray) -> np.ndarray:
    """Where runs of rows that are equal in all `columns` start."""
    if not len(columns[0]):
        return np.empty(0, np.int64)
    new = np.ones(len(columns[0]), bool)
    new[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def runs_of(*columns: np.ndarray) -> list[tuple[int, int]]:
    """The half-open ranges of rows that are equal in all `columns`."""
    starts = starts_of(*columns).tolist()
    return list(zip(starts, [*starts[1:], len(columns[0])][:len(starts)], strict=True))


def expand(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows `low[i] ... high[i] - 1` of all ranges i, one after the other, and the range of each row."""
    sizes = high - low
    ranges = np.repeat(np.arange(len(low)), sizes)
    firsts = np.cumsum(sizes) - sizes
    return np.arange(int(sizes.sum())) - (firsts - low)[ranges], ranges


def select(columns: Columns, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """The rows at `chosen` (a mask or indices) of every column, copied."""
    return {name: column[chosen] for name, column in columns.items()}


class Waiting:
    """Holds back partials that lie at or beyond the frontier they came with, until it has passed them."""

    def __init__(self) -> None:
        self._held: list[Columns] = []

    def ready(self, partials: Columns, before: Frontier) -> Columns:
        """The rows of `partials`, and of what was held back, below `before`; sorted by pane, then code."""
        if self._held:
            partials = joined([*self._held, partials] if len(partials["pane"]) else self._held)
            partials = select(partials, np.lexsort((partials["code"], partials["pane"])))
            self._held = []
        below = partials["pane"] < limits_of(before, partials["code"])
        if below.all():
            return partials
        self._held = [select(partials, ~below)]
        return select(partials, below)

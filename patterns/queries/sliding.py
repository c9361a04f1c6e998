"""Two stacks of partials per key: which windows fire, and the merge of what each of them holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from patterns.queries.fields import Layout
from patterns.queries.kernels.two_stacks import NONE, advance
from patterns.query import Frontier

_OUT_ROWS = 1 << 12


class Fired(NamedTuple):
    """The windows that fired, sorted by window, then code, with the words of what they hold."""

    windows: np.ndarray
    codes: np.ndarray
    ints: np.ndarray


class TwoStacks:
    """The open windows of all keys; window k holds panes `k*per_slide ... k*per_slide + per_window - 1`.

    A merge is made a constant number of times per row, however many panes a window has.
    """

    def __init__(self, layout: Layout, per_window: int, per_slide: int) -> None:
        self._layout = layout
        self._per_window, self._per_slide = per_window, per_slide
        self._passed = 0
        self._keys = self._more_keys(0)
        self._pool: tuple[np.ndarray, ...] = (np.empty(0, np.int64), np.empty(0, np.int64), layout.blank(0),
                                              np.array([NONE, 0]))

    def relay(self, layout: Layout) -> None:
        """Go over to a wider layout."""
        panes, following, ints, free = self._pool
        self._pool = panes, following, layout.moved(ints, self._layout), free
        self._keys = *self._keys[:4], layout.moved(self._keys[4], self._layout)
        self._layout = layout

    def advance(self, panes: np.ndarray, codes: np.ndarray, ints: np.ndarray, before: Frontier) -> Fired:
        """Take in rows sorted by pane, all below `before`, and fire every window that ends at or below it."""
        if isinstance(before, int):
            passed = (before - self._per_window) // self._per_slide
            if not len(panes) and passed == self._passed:
                return self._none()
            self._passed = passed
        if len(panes):
            self._reserve(len(panes), int(codes.max()) + 1)
        common = isinstance(before, int)
        limits = np.atleast_1d(np.ascontiguousarray(before, np.int64))
        at, parts = np.zeros(2, np.int64), []
        while at[0] < len(panes) or at[1] < len(self._keys[0]):
            out = self._out(len(self._keys[0]))
            used = advance(at, panes, codes, ints, limits, common, self._per_window, self._per_slide,
                           self._keys, self._pool, self._layout.ops, out)
            parts.append([column[:used] for column in out])
        return in_order(parts) if parts else self._none()

    @property
    def starts(self) -> np.ndarray:
        """By key code: the first pane that a window still to fire may hold."""
        return self._keys[3] * self._per_slide

    def _none(self) -> Fired:
        return Fired(np.empty(0, np.int64), np.empty(0, np.int64), self._layout.blank(0))

    def _out(self, keys: int) -> tuple[np.ndarray, ...]:
        rows = max(_OUT_ROWS, keys)
        return (np.empty(rows, np.int64), np.empty(rows, np.int64),
                np.empty((rows, len(self._layout.blank_ints)), np.int64))

    def _reserve(self, rows: int, codes: int) -> None:
        """Have room for `rows` more nodes and for key codes below `codes`."""
        if codes > len(self._keys[0]):
            more = self._more_keys(max(codes, 2 * len(self._keys[0])) - len(self._keys[0]))
            self._keys = tuple(np.concatenate(pair) for pair in zip(self._keys, more, strict=True))
        panes, following, ints, free = self._pool
        if free[1] < rows:
            old, new = len(panes), max(rows, len(panes))
            chain = np.arange(old + 1, old + new + 1, dtype=np.int64)
            chain[-1] = free[0]
            free[0], free[1] = old, free[1] + new
            self._pool = (np.concatenate([panes, np.zeros(new, np.int64)]), np.concatenate([following, chain]),
                          np.concatenate([ints, self._layout.blank(new)]), free)

    def _more_keys(self, count: int) -> tuple[np.ndarray, ...]:
        nothing, zeros = np.full(count, NONE, np.int64), np.zeros(count, np.int64)
        return nothing, nothing.copy(), zeros, zeros.copy(), self._layout.blank(count)

    @property
    def size_bytes(self) -> int:
        return sum(array.nbytes for array in (*self._keys, *self._pool))


def in_order(parts: list[list[np.ndarray]]) -> Fired:
    """The rows of all parts, sorted by window, then code."""
    columns = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
    windows, codes = columns[0], columns[1]
    if len(windows) > 1:
        falls = (windows[1:] < windows[:-1]) | ((windows[1:] == windows[:-1]) & (codes[1:] < codes[:-1]))
        if falls.any():
            order = np.lexsort((codes, windows))
            columns = [column[order] for column in columns]
    return Fired(*columns)

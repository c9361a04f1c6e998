"""Two stacks of partials per key: which windows fire, and the merge of what each of them holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from patterns.queries.fields import Layout
from patterns.queries.kernels.two_stacks import BACK, DUE, FOLLOWING, FRONT, KEY_WORDS, NONE, WORDS, advance
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
        self._pool = np.empty((0, WORDS + len(layout.blank_ints)), np.int64)
        self._free = np.array([NONE, 0])

    def relay(self, layout: Layout) -> None:
        """Go over to a wider layout."""
        self._pool, self._keys = (
            np.concatenate([table[:, :words], layout.moved(table[:, words:], self._layout)], axis=1)
            for table, words in ((self._pool, WORDS), (self._keys, KEY_WORDS)))
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
        while at[0] < len(panes) or at[1] < len(self._keys):
            out = np.empty((max(_OUT_ROWS, len(self._keys)), WORDS + len(self._layout.blank_ints)), np.int64)
            used = advance(at, panes, codes, ints, limits, common, self._per_window, self._per_slide,
                           self._keys, self._pool, self._free, self._layout.ops, out)
            parts.append(out[:used])
        return in_order(parts) if parts else self._none()

    @property
    def starts(self) -> np.ndarray:
        """By key code: the first pane that a window still to fire may hold."""
        starts: np.ndarray = self._keys[:, DUE] * self._per_slide
        return starts

    def _none(self) -> Fired:
        return Fired(np.empty(0, np.int64), np.empty(0, np.int64), self._layout.blank(0))

    def _reserve(self, rows: int, codes: int) -> None:
        """Have room for `rows` more nodes and for key codes below `codes`."""
        if codes > len(self._keys):
            more = self._more_keys(max(codes, 2 * len(self._keys)) - len(self._keys))
            self._keys = np.concatenate([self._keys, more])
        if self._free[1] < rows:
            old, new = len(self._pool), max(rows, len(self._pool))
            nodes = np.zeros((new, self._pool.shape[1]), np.int64)
            nodes[:, FOLLOWING] = np.arange(old + 1, old + new + 1)
            nodes[-1, FOLLOWING] = self._free[0]
            self._free[:] = old, self._free[1] + new
            self._pool = np.concatenate([self._pool, nodes])

    def _more_keys(self, count: int) -> np.ndarray:
        keys = np.zeros((count, KEY_WORDS + len(self._layout.blank_ints)), np.int64)
        keys[:, [FRONT, BACK]] = NONE
        return keys

    @property
    def size_bytes(self) -> int:
        return self._keys.nbytes + self._pool.nbytes


def in_order(parts: list[np.ndarray]) -> Fired:
    """The rows of all parts, sorted by window, then code."""
    rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    windows, codes = rows[:, 0], rows[:, 1]
    falls = (windows[1:] < windows[:-1]) | ((windows[1:] == windows[:-1]) & (codes[1:] < codes[:-1]))
    if falls.any():
        span = int(codes.max()) + 1
        if int(windows.max()) < 2**62 // span:  # one sort of one number is faster than two
            order = np.argsort(windows * span + codes, kind="stable")
        else:
            order = np.lexsort((codes, windows))
        rows = rows[order]
    return Fired(rows[:, 0].copy(), rows[:, 1].copy(), np.ascontiguousarray(rows[:, WORDS:]))

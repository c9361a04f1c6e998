"""The kept set of one key: what no younger item dominates, with the pane that still hides it.

    pane closes ─► S ─► drop from R what S dominates ─► influence(s) = youngest pane of R that
                        dominates s (-1: none)       ─► R + S

An item of R is in the skyline of a window once its influence pane lies before the window.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patterns.queries.kernels.pane import dominates


@njit(nogil=True, cache=True)
def _merge(points: np.ndarray, panes: np.ndarray, fresh: np.ndarray, drop: np.ndarray,
           influence: np.ndarray) -> None:
    for k in range(points.shape[0]):
        for q in range(fresh.shape[0]):
            if dominates(fresh, q, points, k):
                drop[k] = True
                break
    for q in range(fresh.shape[0]):
        for k in range(points.shape[0] - 1, -1, -1):
            if dominates(points, k, fresh, q):
                influence[q] = panes[k]
                break


class KeptSet:
    """Items of one key that may still enter a skyline; panes are pushed in increasing order."""

    def __init__(self, dims: int) -> None:
        self._points = np.empty((0, dims), np.int64)
        self._rows = np.empty(0, np.int64)
        self._panes = np.empty(0, np.int64)
        self._influence = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    def push(self, pane: int, points: np.ndarray, rows: np.ndarray) -> None:
        """Take in the skyline of `pane`; what it dominates is purged."""
        drop = np.zeros(len(self._rows), np.bool_)
        influence = np.full(len(rows), -1, np.int64)
        _merge(self._points, self._panes, points, drop, influence)
        self._select(~drop)
        self._points = np.concatenate((self._points, points))
        self._rows = np.concatenate((self._rows, rows))
        self._panes = np.concatenate((self._panes, np.full(len(rows), pane, np.int64)))
        self._influence = np.concatenate((self._influence, influence))

    def purge(self, before: int) -> None:
        """Forget the items of panes below `before`."""
        if len(self._panes) and self._panes[0] < before:
            self._select(self._panes >= before)

    def members(self, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows, in order, and points of the skyline of all panes from `first` on."""
        chosen = np.flatnonzero((self._panes >= first) & (self._influence < first))
        chosen = chosen[np.argsort(self._rows[chosen], kind="stable")]
        return self._rows[chosen], self._points[chosen]

    @property
    def size_bytes(self) -> int:
        return sum(array.nbytes for array in (self._points, self._rows, self._panes, self._influence))

    def _select(self, chosen: np.ndarray) -> None:
        self._points, self._rows = self._points[chosen], self._rows[chosen]
        self._panes, self._influence = self._panes[chosen], self._influence[chosen]

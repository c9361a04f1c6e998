"""Kept sets of many small keys in one table, and the windows they fire: one call for all of them.

A stream of thousands of keys has a handful of items for each, so here nothing is clever within a key
(every pair is compared) and nothing is done in Python between keys. The rule is that of `kept`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patterns.queries.kernels.pane import dominates


@njit(nogil=True, cache=True)
def grown(array: np.ndarray, size: int) -> np.ndarray:
    """`array` with twice `size` entries."""
    larger = np.empty(2 * size, np.int64)
    larger[: array.shape[0]] = array
    return larger


@njit(nogil=True, cache=True)
def advance_keys(codes: np.ndarray, starts: np.ndarray, next_windows: np.ndarray, befores: np.ndarray,
                 points: np.ndarray, panes: np.ndarray, influence: np.ndarray, is_new: np.ndarray,
                 length: int, slide: int,
                 ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Take the new items in and fire windows, key by key.

    Key g has items `starts[g] ... starts[g+1] - 1`, its old ones first, by pane; its next window is
    `next_windows[g]` and its frontier `befores[g]`. Gives which items stay, and window, key and item of
    everything fired; `next_windows` and `influence` are brought up to date.
    """
    stays = np.zeros(panes.shape[0], np.bool_)
    kept = np.empty(panes.shape[0], np.int64)
    fired = [np.empty(64, np.int64) for _ in range(3)]
    count = 0
    for g in range(codes.shape[0]):
        low, high = starts[g], starts[g + 1]
        n, window = 0, next_windows[g]
        while low < high and not is_new[low]:
            kept[n] = low
            n += 1
            low += 1
        while True:
            # The windows that end before the next new pane, or (after the last one) by the frontier.
            limit = min(panes[low], befores[g]) if low < high else befores[g]
            while n and window * slide + length <= limit:
                for at in range(n):
                    if influence[kept[at]] < window * slide:
                        if count == fired[0].shape[0]:
                            for column in range(3):
                                fired[column] = grown(fired[column], count)
                        fired[0][count], fired[1][count], fired[2][count] = window, codes[g], kept[at]
                        count += 1
                window += 1
                left = 0
                while left < n and panes[kept[left]] < window * slide:
                    left += 1
                for at in range(left, n):
                    kept[at - left] = kept[at]
                n -= left
            if low == high:
                break
            end = low
            while end < high and panes[end] == panes[low]:
                end += 1
            if n == 0:  # leap over the windows that hold nothing
                window = max(window, (panes[low] - length) // slide + 1)
            if panes[low] >= window * slide:  # else: between hopping windows
                n = _push(points, panes, influence, kept, n, low, end)
            low = end
        next_windows[g] = window
        for at in range(n):
            stays[kept[at]] = True
    return stays, fired[0][:count], fired[1][:count], fired[2][:count]


@njit(nogil=True, cache=True)
def _push(points: np.ndarray, panes: np.ndarray, influence: np.ndarray, kept: np.ndarray, n: int,
          low: int, high: int) -> int:
    """Put the items `low ... high - 1` of one pane into the kept set of size `n`; returns its new size."""
    left = 0
    for at in range(n):
        dead = False
        for i in range(low, high):
            if dominates(points, i, points, kept[at]):
                dead = True
                break
        kept[left] = kept[at]
        left += not dead
    for i in range(low, high):
        influence[i] = -1
        for at in range(left - 1, -1, -1):
            if dominates(points, kept[at], points, i):
                influence[i] = panes[kept[at]]
                break
    for i in range(low, high):
        kept[left] = i
        left += 1
    return left

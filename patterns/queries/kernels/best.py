"""The k best of sliding windows, for all keys in one call.

Of every key only those items are kept that fewer than k better ones have followed (or came with) so far:
about k times the logarithm of the panes of a window, instead of k for each pane. `place` orders items,
smaller is better; ties go to the smaller row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patterns.queries.kernels.flat import grown


@njit(nogil=True, cache=True)
def _before(places: np.ndarray, rows: np.ndarray, a: int, b: int) -> bool:
    return places[a] < places[b] or (places[a] == places[b] and rows[a] < rows[b])


@njit(nogil=True, cache=True)
def first_of_groups(bounds: np.ndarray, k: int) -> np.ndarray:
    """Which rows are among the first k of their group."""
    keep = np.zeros(bounds[-1], np.bool_)
    for g in range(bounds.shape[0] - 1):
        keep[bounds[g]:min(bounds[g] + k, bounds[g + 1])] = True
    return keep


@njit(nogil=True, cache=True)
def advance_best(codes: np.ndarray, starts: np.ndarray, n_old: np.ndarray, next_windows: np.ndarray,
                 befores: np.ndarray, places: np.ndarray, rows: np.ndarray, panes: np.ndarray, beaten: np.ndarray,
                 length: int, slide: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Take new items in and fire windows, key by key.

    Key g has items `starts[g] ... starts[g+1] - 1`: the first `n_old[g]` are kept from before, best first;
    the others are new, by pane, best first within a pane, k of a pane at the most. Gives the items that
    stay, grouped by key and best first, how many of each key, and window, key and item of what fired.
    """
    stay = np.empty(panes.shape[0], np.int64)
    counts = np.zeros(codes.shape[0], np.int64)
    kept, merged = np.empty(panes.shape[0], np.int64), np.empty(panes.shape[0], np.int64)
    windows, keys, items = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    fired = total = 0
    for g in range(codes.shape[0]):
        low, high = starts[g] + n_old[g], starts[g + 1]
        n, window = n_old[g], next_windows[g]
        for at in range(n):
            kept[at] = starts[g] + at
        while True:
            # The windows that end before the next new pane, or (after the last one) by the frontier.
            limit = min(panes[low], befores[g]) if low < high else befores[g]
            while n and window * slide + length <= limit:
                for at in range(min(n, k)):
                    if fired == windows.shape[0]:
                        windows, keys, items = grown(windows, fired), grown(keys, fired), grown(items, fired)
                    windows[fired], keys[fired], items[fired] = window, codes[g], kept[at]
                    fired += 1
                window += 1
                left = 0
                for at in range(n):
                    if panes[kept[at]] >= window * slide:
                        kept[left] = kept[at]
                        left += 1
                n = left
            if low == high:
                break
            end = low
            while end < high and panes[end] == panes[low]:
                end += 1
            if n == 0:  # leap over the windows that hold nothing
                window = max(window, (panes[low] - length) // slide + 1)
            if panes[low] >= window * slide:  # else: between hopping windows
                n = _merge(places, rows, beaten, kept, n, merged, low, end, k)
                kept, merged = merged, kept
            low = end
        next_windows[g] = window
        counts[g] = n
        for at in range(n):
            stay[total + at] = kept[at]
        total += n
    return stay[:total], counts, windows[:fired], keys[:fired], items[:fired]


@njit(nogil=True, cache=True)
def _merge(places: np.ndarray, rows: np.ndarray, beaten: np.ndarray, kept: np.ndarray, n: int, merged: np.ndarray,
           low: int, high: int, k: int) -> int:
    """Merge a pane's items into the kept ones, both best first; old ones that k newer ones beat are left out."""
    size = at = new = 0
    while at < n or low + new < high:
        if at < n and (low + new == high or _before(places, rows, kept[at], low + new)):
            old = kept[at]
            at += 1
            beaten[old] += new
            if beaten[old] < k:
                merged[size] = old
                size += 1
        else:
            beaten[low + new] = 0
            merged[size] = low + new
            size += 1
            new += 1
    return size

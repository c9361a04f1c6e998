"""The skyline of each group of items: what is left of a pane."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def dominates(a: np.ndarray, i: int, b: np.ndarray, k: int) -> bool:
    """Whether row `i` of `a` is no worse than row `k` of `b` in every dimension and better in one."""
    better = False
    for j in range(a.shape[1]):
        if a[i, j] > b[k, j]:
            return False
        better |= a[i, j] < b[k, j]
    return better


@njit(nogil=True, cache=True)
def equal(a: np.ndarray, i: int, b: np.ndarray, k: int) -> bool:
    for j in range(a.shape[1]):
        if a[i, j] != b[k, j]:
            return False
    return True


@njit(nogil=True, cache=True)
def skyline_of_groups(points: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Which rows no row of their own group dominates; group g is rows `starts[g] ... starts[g+1] - 1`."""
    keep = np.zeros(points.shape[0], np.bool_)
    kept = np.empty(points.shape[0], np.int64)
    for g in range(starts.shape[0] - 1):
        low, high = starts[g], starts[g + 1]
        score = np.zeros(high - low, np.float64)
        for i in range(low, high):
            for j in range(points.shape[1]):
                score[i - low] += points[i, j]
        n = 0
        for i in np.argsort(score):
            i += low
            dead = copy = False
            for k in range(n):
                if keep[kept[k]] and dominates(points, kept[k], points, i):
                    dead = True
                    break
                if equal(points, kept[k], points, i):
                    copy = True
                    break
                if dominates(points, i, points, kept[k]):  # only where rounding made the scores equal
                    keep[kept[k]] = False
            keep[i] = not dead
            if not dead and not copy:
                kept[n] = i
                n += 1
        # Copies of an item share its fate, also when a later one struck it out.
        for i in range(low, high):
            if keep[i]:
                for k in range(n):
                    if dominates(points, kept[k], points, i):
                        keep[i] = False
                        break
    return keep

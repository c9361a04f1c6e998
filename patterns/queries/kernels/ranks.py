"""Eight-bit ranks: a monotone and coarse copy of the coordinates, for tests that decide most pairs.

If `a` dominates `b`, every rank of `a` is at most that of `b`, whatever the thresholds are. So ranks that
fit badly (the data drifted) let more pairs through to the exact test, and never change an answer.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patterns.queries.kernels.lanes import count_below_16

LEVELS = 256
_STEP = 16


def fit_thresholds(points: np.ndarray, sample: int = 2048) -> np.ndarray:
    """`(dims, 17, 16)` thresholds: quantiles of about `sample` of the points, evenly spread over them.

    Row 0 of a dimension holds every sixteenth threshold, rows 1 to 16 all of them: a rank is found with
    two vector comparisons, one in row 0 and one in the row that it points to.
    """
    chosen = points[:: max(len(points) // sample, 1)]
    ordered = np.sort(np.ascontiguousarray(chosen.T), axis=1)
    at = (np.arange(1, LEVELS) * len(chosen)) // LEVELS
    highest = np.iinfo(np.int64).max
    thresholds = np.full((points.shape[1], LEVELS), highest, np.int64)
    thresholds[:, : LEVELS - 1] = ordered[:, at]
    table = np.empty((points.shape[1], _STEP + 1, _STEP), np.int64)
    table[:, 1:] = thresholds.reshape(-1, _STEP, _STEP)
    table[:, 0] = thresholds[:, _STEP - 1 :: _STEP]
    return table


@njit(nogil=True, cache=True)
def rank_points(points: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """uint8 `(items, dims)`: how many thresholds of the dimension lie below the coordinate."""
    n, dims = points.shape
    ranks = np.empty((n, dims), np.uint8)
    for j in range(dims):
        base = j * (_STEP + 1) * _STEP
        for i in range(n):
            value = points[i, j]
            upper = count_below_16(thresholds, base, value)
            lower = count_below_16(thresholds, base + _STEP * (upper + 1), value)
            ranks[i, j] = upper * _STEP + lower
    return ranks


def spread_table(dims: int) -> np.ndarray:
    """For each rank its upper bits, `dims` places apart: or-ed over the dimensions they make a Z-order key."""
    bits = min(8, 64 // dims)
    table = np.zeros(LEVELS, np.uint64)
    for bit in range(bits):
        wanted = (np.arange(LEVELS, dtype=np.uint64) >> np.uint64(7 - bit)) & np.uint64(1)
        table |= wanted << np.uint64(63 - bit * dims)
    return table


@njit(nogil=True, cache=True)
def z_order_cell(ranks: np.ndarray, i: int, spread: np.ndarray, bits: int) -> np.int64:
    """The first `bits` bits of the key that brings items near each other that are near in all dimensions."""
    key = np.uint64(0)
    for j in range(ranks.shape[1]):
        key |= spread[ranks[i, j]] >> np.uint64(j)
    return np.int64(key >> np.uint64(64 - bits)) if bits else np.int64(0)

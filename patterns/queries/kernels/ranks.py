"""Eight-bit ranks: a monotone and coarse copy of the coordinates, for tests that decide most pairs.

If `a` dominates `b`, every rank of `a` is at most that of `b`, whatever the thresholds are. So ranks that
fit badly (the data drifted) let more pairs through to the exact test, and never change an answer.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LEVELS = 256


def fit_thresholds(points: np.ndarray, sample: int = 2048) -> np.ndarray:
    """`(dims, 256)` thresholds: quantiles of about `sample` of the points, evenly spread over them."""
    chosen = points[:: max(len(points) // sample, 1)]
    ordered = np.sort(np.ascontiguousarray(chosen.T), axis=1)
    at = (np.arange(1, LEVELS) * len(chosen)) // LEVELS
    thresholds = np.full((points.shape[1], LEVELS), np.iinfo(np.int64).max, np.int64)
    thresholds[:, : LEVELS - 1] = ordered[:, at]
    return thresholds


@njit(nogil=True, cache=True)
def rank_points(points: np.ndarray, thresholds: np.ndarray, tag: tuple[int, ...]) -> np.ndarray:
    """uint8 `(items, dims)`: how many thresholds are at most the coordinate, without the last one."""
    n = points.shape[0]
    ranks = np.empty((n, len(tag)), np.uint8)
    for i in range(n):
        for j in range(len(tag)):
            value = points[i, j]
            at = 0
            step = LEVELS // 2
            while step:
                at += step if thresholds[j, at + step - 1] <= value else 0
                step //= 2
            ranks[i, j] = at
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
def z_order_keys(ranks: np.ndarray, spread: np.ndarray, tag: tuple[int, ...]) -> np.ndarray:
    """uint64 keys that bring items near to each other that are near in all dimensions."""
    keys = np.zeros(ranks.shape[0], np.uint64)
    for i in range(ranks.shape[0]):
        for j in range(len(tag)):
            keys[i] |= spread[ranks[i, j]] >> np.uint64(j)
    return keys

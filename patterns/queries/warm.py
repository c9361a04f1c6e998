"""Kernels compiled (or read from the cache) before a stream starts, never while it runs."""

from __future__ import annotations

import logging
import time
from functools import cache

import numpy as np

from patterns.queries.kernels.best import advance_best, first_of_groups
from patterns.queries.kernels.flat import advance_keys
from patterns.queries.kernels.k_dominance import LargestK
from patterns.queries.kernels.kept import KeptSet
from patterns.queries.kernels.keys import points_of
from patterns.queries.kernels.pane import PaneSkyline

_log = logging.getLogger(__name__)

#: From this time on it is worth a line in the log.
_NOTICEABLE_S = 1.0


def warm_up(dims: int) -> None:
    """Have all kernels for `dims` dimensions ready in this process.

    States do this for themselves when they are made; call it to take the time beforehand.
    """
    warm_panes(dims)
    warm_windows(dims)
    warm_largest_k(dims)


@cache
def warm_panes(dims: int) -> None:
    """The kernels of the first stage."""
    begin = time.perf_counter()
    for column in (np.arange(64.0), np.arange(64)):
        for writeable in (True, False):  # columns in shared memory are read-only, which is another type
            column.flags.writeable = writeable
            points = points_of({f"{j}": column for j in range(dims)}, [f"{j}" for j in range(dims)], ["0"])
    PaneSkyline(dims).keep(points, np.array([0, 3, 64], np.int64))
    _tell("panes", dims, begin)


@cache
def warm_windows(dims: int) -> None:
    """The kernels of the second stage."""
    begin = time.perf_counter()
    points = np.arange(8 * dims, dtype=np.int64).reshape(8, dims)
    numbers, one = np.arange(8), np.array([0])
    kept = KeptSet(dims)
    kept.adopt(numbers, points, numbers, np.full(8, -1))
    kept.push(9, points, numbers)
    kept.members(0)
    advance_keys(one, np.array([0, 8]), one.copy(), one + 8, points, numbers, numbers - 9, numbers >= 0, 2, 1)
    _tell("windows", dims, begin)


@cache
def warm_largest_k(dims: int) -> None:
    """The kernels of k-dominance."""
    begin = time.perf_counter()
    points = np.arange(8 * dims, dtype=np.int64).reshape(8, dims)
    LargestK(dims).of_groups(points, np.array([0, 8]), 1, 1)
    _tell("k-dominance", dims, begin)


@cache
def warm_best() -> None:
    """The kernels of the k best, which know no dimensions."""
    begin = time.perf_counter()
    numbers, one = np.arange(8), np.array([0])
    for column in (np.arange(8.0), np.arange(8)):
        points_of({"score": column}, ["score"], [])
    first_of_groups(np.array([0, 8]), 3)
    advance_best(one, np.array([0, 8]), one.copy(), one.copy(), one + 8, numbers, numbers, numbers, numbers, 2, 1, 3)
    _tell("the k best", 1, begin)


def _tell(stage: str, dims: int, begin: float) -> None:
    spent_s = time.perf_counter() - begin
    if spent_s > _NOTICEABLE_S:
        _log.info("kernels of %d dimensions for %s took %.1f s to compile: next time they come from the cache",
                  dims, stage, spent_s)

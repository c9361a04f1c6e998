"""Runs of equal values in sorted columns: the groups that kernels work on."""

from __future__ import annotations

import numpy as np


def bounds_of(*columns: np.ndarray) -> np.ndarray:
    """Where each run of rows that are equal in all `columns` starts, and the end of the last one."""
    if not len(columns[0]):
        return np.zeros(1, np.int64)
    changes = np.zeros(len(columns[0]) - 1, np.bool_)
    for column in columns:
        changes |= column[1:] != column[:-1]
    return np.concatenate(([0], np.flatnonzero(changes) + 1, [len(columns[0])])).astype(np.int64)


def runs(values: np.ndarray) -> list[tuple[int, int]]:
    """The half-open ranges of equal values in a sorted array."""
    bounds = bounds_of(values).tolist()
    return list(zip(bounds[:-1], bounds[1:], strict=True))


def in_order(values: np.ndarray) -> bool:
    """Whether no value is less than the one before it."""
    return not np.any(values[1:] < values[:-1])

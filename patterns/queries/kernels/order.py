"""Which value has a given rank in a window: rows (code, value, pane, weight) that stay sorted by code and value.

A window's value is found in one pass over the rows of its key, without sorting: rows of panes outside of
the window are stepped over. New rows are merged in, old ones left out, in one pass over all rows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Columns of a row.
CODE, VALUE, PANE, WEIGHT = range(4)


@njit(nogil=True, cache=True)
def _kept(rows: np.ndarray, row: int, starts: np.ndarray, result: np.ndarray, used: int) -> int:
    """Write the row to `result` if it is needed; how many rows there are then."""
    if rows[row, PANE] >= starts[rows[row, CODE]]:
        for column in range(4):
            result[used, column] = rows[row, column]
        used += 1
    return used


@njit(nogil=True, cache=True)
def merge(rows: np.ndarray, more: np.ndarray, starts: np.ndarray, result: np.ndarray) -> int:
    """Write `rows` and `more`, both sorted by code, then value, to `result`, but not what no window needs any more.

    A row is needed if its pane is at or after `starts[code]`. Returns the number of rows.
    """
    k, used = 0, 0
    for i in range(rows.shape[0] + 1):
        while k < more.shape[0] and (i == rows.shape[0] or more[k, CODE] < rows[i, CODE] or (
                more[k, CODE] == rows[i, CODE] and more[k, VALUE] < rows[i, VALUE])):
            used = _kept(more, k, starts, result, used)
            k += 1
        if i < rows.shape[0]:
            used = _kept(rows, i, starts, result, used)
    return used


@njit(nogil=True, cache=True)
def selected(rows: np.ndarray, low: np.ndarray, high: np.ndarray, first_panes: np.ndarray, per_window: int,
             ranks: np.ndarray, values: np.ndarray) -> None:
    """Write the value of each rank of `ranks[i]` (ascending, from 1) to `values[i]`.

    Window i holds the rows `low[i] ... high[i] - 1` with panes `first_panes[i] ... first_panes[i] + per_window - 1`.
    """
    for i in range(low.shape[0]):
        passed, place = 0, 0
        for row in range(low[i], high[i]):
            pane = rows[row, PANE] - first_panes[i]
            if 0 <= pane < per_window:
                passed += rows[row, WEIGHT]
                while place < ranks.shape[1] and passed >= ranks[i, place]:
                    values[i, place] = rows[row, VALUE]
                    place += 1
                if place == ranks.shape[1]:
                    break

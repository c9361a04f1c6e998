"""Sliding windows over partials, key by key, at a constant number of merges per pane (amortised).

Every key has two stacks of rows in a common pool of nodes, linked by `following`:

    front:  oldest ──► ... ──►          a node holds the merge of itself and all younger front nodes
    back:   youngest ──► ... ──► oldest     a node holds itself; `ints` of the key is their merge

The window is merge(top of front, merge of back). A pane leaves from the front; when the front is used
up, the back is turned over once, merging on the way. One way for all fields, least and greatest
included, which cannot be subtracted. Panes without items have no node: gaps and quiet
keys cost nothing. Reference: Tangwongsan, Hirzel and Schneider, "Low-latency sliding-window aggregation
in worst-case constant time", 2017, section 3.1.

Arguments that go together are tuples of arrays:

    keys   front, back, oldest (pane at the bottom of back), due (first window not fired), ints
    pool   pane, following, ints, free (top of the list of free nodes, and their number)
    out    windows, codes, ints

`ops` says what to do with every word when two rows are merged.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NONE = -1
#: What to do with a word of two rows: add, keep the least, keep the greatest.
ADD, LEAST, GREATEST = range(3)


@njit(nogil=True, cache=True)
def merge(ops: np.ndarray, ints: np.ndarray, i: int, more: np.ndarray, k: int) -> None:
    """Add row k of the second table to row i of the first."""
    for j in range(ints.shape[1]):
        if ops[j] == ADD:
            ints[i, j] += more[k, j]
        elif ops[j] == LEAST:
            ints[i, j] = min(ints[i, j], more[k, j])
        else:
            ints[i, j] = max(ints[i, j], more[k, j])


@njit(nogil=True, cache=True)
def copy(ints: np.ndarray, i: int, source: np.ndarray, k: int) -> None:
    for j in range(ints.shape[1]):
        ints[i, j] = source[k, j]


@njit(nogil=True, cache=True)
def purge(code: int, start: int, keys: tuple, pool: tuple, ops: np.ndarray) -> None:
    """Free the nodes of panes below `start`; turn the back over if the front is used up."""
    front, back, oldest = keys[0], keys[1], keys[2]
    panes, following, ints, free = pool
    node = front[code]
    while node != NONE and panes[node] < start:
        after = following[node]
        following[node] = free[0]
        free[0] = node
        free[1] += 1
        node = after
    if node == NONE and back[code] != NONE and oldest[code] < start:
        rest, back[code] = back[code], NONE
        while rest != NONE and panes[rest] >= start:
            after = following[rest]
            if node != NONE:
                merge(ops, ints, rest, ints, node)
            following[rest] = node
            node, rest = rest, after
        while rest != NONE:
            after = following[rest]
            following[rest] = free[0]
            free[0] = rest
            free[1] += 1
            rest = after
    front[code] = node


@njit(nogil=True, cache=True)
def fire(code: int, before: int, per_window: int, per_slide: int, keys: tuple, pool: tuple, ops: np.ndarray,
         out: tuple, used: int) -> tuple:
    """Write the windows of `code` whose panes lie below `before` to `out`: rows used, and whether all fitted.

    What no later window needs has always been purged; so the first window that holds the oldest pane
    and is still due begins at or before it, and holds an item.
    """
    front, back, oldest, due, key_ints = keys
    windows, codes, out_ints = out
    while front[code] != NONE or back[code] != NONE:
        pane = pool[0][front[code]] if front[code] != NONE else oldest[code]
        window = max(due[code], (pane - per_window) // per_slide + 1)
        if window * per_slide + per_window > before:
            break
        if used == windows.shape[0]:
            return used, False
        windows[used], codes[used] = window, code
        if front[code] == NONE:
            copy(out_ints, used, key_ints, code)
        else:
            copy(out_ints, used, pool[2], front[code])
            if back[code] != NONE:
                merge(ops, out_ints, used, key_ints, code)
        used += 1
        due[code] = window + 1
        purge(code, (window + 1) * per_slide, keys, pool, ops)
    return used, True


@njit(nogil=True, cache=True)
def push(code: int, pane: int, ints: np.ndarray, row: int,
         keys: tuple, pool: tuple, ops: np.ndarray) -> None:
    """Put a row on top of the key's back; a row of the pane that is there already is merged with it."""
    front, back, oldest, due, key_ints = keys
    top = back[code]
    if top == NONE:
        oldest[code] = pane
        copy(key_ints, code, ints, row)
    else:
        merge(ops, key_ints, code, ints, row)
        if pool[0][top] == pane:
            merge(ops, pool[2], top, ints, row)
            return
    node = pool[3][0]
    pool[3][0] = pool[1][node]
    pool[3][1] -= 1
    pool[0][node] = pane
    pool[1][node] = top
    copy(pool[2], node, ints, row)
    back[code] = node


@njit(nogil=True, cache=True)
def advance(at: np.ndarray, panes: np.ndarray, codes: np.ndarray, ints: np.ndarray,
            before: np.ndarray, common: bool, per_window: int, per_slide: int,
            keys: tuple, pool: tuple, ops: np.ndarray, out: tuple) -> int:
    """Take in rows sorted by pane, then fire what lies below `before`; returns the rows written to `out`.

    `at` is where to go on: (next row, next key code); the work is done when it is at the end of both,
    else `out` was full. `before` has one entry for all keys (`common`), or one per key code.
    """
    used, fitted = 0, True
    while at[0] < panes.shape[0]:
        row = at[0]
        pane, code = panes[row], codes[row]
        if ints[row, 0] > 0 and (per_slide <= per_window or pane % per_slide < per_window):
            used, fitted = fire(code, pane, per_window, per_slide, keys, pool, ops, out, used)
            if not fitted:
                return used
            push(code, pane, ints, row, keys, pool, ops)
        at[0] += 1
    front, back = keys[0], keys[1]
    while at[1] < front.shape[0]:
        code = at[1]
        # A call is dear, and most of many keys may have nothing: look here.
        if (front[code] != NONE or back[code] != NONE) and (common or code < before.shape[0]):
            limit = before[0] if common else before[code]
            used, fitted = fire(code, limit, per_window, per_slide, keys, pool, ops, out, used)
            if not fitted:
                return used
        at[1] += 1
    return used

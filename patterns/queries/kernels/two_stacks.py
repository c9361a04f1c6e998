"""Sliding windows over partials, key by key, at a constant number of merges per pane (amortised).

Every key has two stacks of rows in a common pool of nodes, linked by `following`:

    front:  oldest ──► ... ──►          a node holds the merge of itself and all younger front nodes
    back:   youngest ──► ... ──► oldest     a node holds itself; `ints`, `floats` of the key their merge

The window is merge(top of front, merge of back). A pane leaves from the front; when the front is used
up, the back is turned over once, merging on the way. Nothing is ever subtracted, so that a huge value
that leaves the window takes its rounding errors along. Panes without items have no node: gaps and quiet
keys cost nothing. Reference: Tangwongsan, Hirzel and Schneider, "Low-latency sliding-window aggregation
in worst-case constant time", 2017, section 3.1.

Arguments that go together are tuples of arrays:

    keys   front, back, oldest (pane at the bottom of back), due (first window not fired), ints, floats
    pool   pane, following, ints, floats, free (top of the list of free nodes, and their number)
    ops    what to do with every word of ints and floats when two rows are merged
    out    windows, codes, ints, floats
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patterns.queries.kernels.doubles import add_pairs, multiply_pairs, two_sum

NONE = -1
#: What to do with a word: nothing (the word before takes care of it), add, add a pair, keep least or greatest, ...
SKIP, ADD, PAIR, LEAST, GREATEST, MOMENTS = range(6)
_SIGN = np.int64(-(2**63))


@njit(nogil=True, cache=True)
def merge_moments(a: np.ndarray, i: int, n_a: int, b: np.ndarray, k: int, n_b: int, word: int) -> None:
    """Add the moments of row k of `b` to row i of `a`, moved to the shift of `a`."""
    if n_b == 0:
        return
    if n_a == 0:
        for j in range(word, word + 5):
            a[i, j] = b[k, j]
        return
    away, away_rest = two_sum(b[k, word], -a[i, word])
    moved, moved_rest = multiply_pairs(float(n_b), 0.0, away, away_rest)
    cross, cross_rest = add_pairs(2.0 * b[k, word + 1], 2.0 * b[k, word + 2], moved, moved_rest)
    cross, cross_rest = multiply_pairs(cross, cross_rest, away, away_rest)
    total, rest = add_pairs(b[k, word + 1], b[k, word + 2], moved, moved_rest)
    a[i, word + 1], a[i, word + 2] = add_pairs(a[i, word + 1], a[i, word + 2], total, rest)
    total, rest = add_pairs(b[k, word + 3], b[k, word + 4], cross, cross_rest)
    a[i, word + 3], a[i, word + 4] = add_pairs(a[i, word + 3], a[i, word + 4], total, rest)


@njit(nogil=True, cache=True)
def merge(ops: tuple, ints: np.ndarray, floats: np.ndarray, i: int,
          more_ints: np.ndarray, more_floats: np.ndarray, k: int) -> None:
    """Add row k of the second table to row i of the first."""
    for j in range(floats.shape[1]):
        op = ops[1][j]
        if op == PAIR:
            floats[i, j], floats[i, j + 1] = add_pairs(floats[i, j], floats[i, j + 1],
                                                       more_floats[k, j], more_floats[k, j + 1])
        elif op == LEAST:
            floats[i, j] = min(floats[i, j], more_floats[k, j])
        elif op == GREATEST:
            floats[i, j] = max(floats[i, j], more_floats[k, j])
        elif op == MOMENTS:
            merge_moments(floats, i, ints[i, 0], more_floats, k, more_ints[k, 0], j)
    for j in range(ints.shape[1]):
        op = ops[0][j]
        if op == ADD:
            ints[i, j] += more_ints[k, j]
        elif op == PAIR:
            low = ints[i, j] + more_ints[k, j]
            ints[i, j + 1] += more_ints[k, j + 1] + np.int64((low ^ _SIGN) < (ints[i, j] ^ _SIGN))
            ints[i, j] = low
        elif op == LEAST:
            ints[i, j] = min(ints[i, j], more_ints[k, j])
        elif op == GREATEST:
            ints[i, j] = max(ints[i, j], more_ints[k, j])


@njit(nogil=True, cache=True)
def copy(ints: np.ndarray, floats: np.ndarray, i: int, from_ints: np.ndarray, from_floats: np.ndarray, k: int) -> None:
    for j in range(ints.shape[1]):
        ints[i, j] = from_ints[k, j]
    for j in range(floats.shape[1]):
        floats[i, j] = from_floats[k, j]


@njit(nogil=True, cache=True)
def purge(code: int, start: int, keys: tuple, pool: tuple, ops: tuple) -> None:
    """Free the nodes of panes below `start`; turn the back over if the front is used up."""
    front, back, oldest = keys[0], keys[1], keys[2]
    panes, following, ints, floats, free = pool
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
                merge(ops, ints, floats, rest, ints, floats, node)
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
def fire(code: int, before: int, per_window: int, per_slide: int, keys: tuple, pool: tuple, ops: tuple,
         out: tuple, used: int) -> tuple:
    """Write the windows of `code` whose panes lie below `before` to `out`: rows used, and whether all fitted.

    What no later window needs has always been purged; so the first window that holds the oldest pane
    and is still due begins at or before it, and holds an item.
    """
    front, back, oldest, due, key_ints, key_floats = keys
    windows, codes, out_ints, out_floats = out
    while front[code] != NONE or back[code] != NONE:
        pane = pool[0][front[code]] if front[code] != NONE else oldest[code]
        window = max(due[code], (pane - per_window) // per_slide + 1)
        if window * per_slide + per_window > before:
            break
        if used == windows.shape[0]:
            return used, False
        windows[used], codes[used] = window, code
        if front[code] == NONE:
            copy(out_ints, out_floats, used, key_ints, key_floats, code)
        else:
            copy(out_ints, out_floats, used, pool[2], pool[3], front[code])
            if back[code] != NONE:
                merge(ops, out_ints, out_floats, used, key_ints, key_floats, code)
        used += 1
        due[code] = window + 1
        purge(code, (window + 1) * per_slide, keys, pool, ops)
    return used, True


@njit(nogil=True, cache=True)
def push(code: int, pane: int, ints: np.ndarray, floats: np.ndarray, row: int,
         keys: tuple, pool: tuple, ops: tuple) -> None:
    """Put a row on top of the key's back; a row of the pane that is there already is merged with it."""
    front, back, oldest, due, key_ints, key_floats = keys
    top = back[code]
    if top == NONE:
        oldest[code] = pane
        copy(key_ints, key_floats, code, ints, floats, row)
    else:
        merge(ops, key_ints, key_floats, code, ints, floats, row)
        if pool[0][top] == pane:
            merge(ops, pool[2], pool[3], top, ints, floats, row)
            return
    node = pool[4][0]
    pool[4][0] = pool[1][node]
    pool[4][1] -= 1
    pool[0][node] = pane
    pool[1][node] = top
    copy(pool[2], pool[3], node, ints, floats, row)
    back[code] = node


@njit(nogil=True, cache=True)
def advance(at: np.ndarray, panes: np.ndarray, codes: np.ndarray, ints: np.ndarray, floats: np.ndarray,
            before: np.ndarray, common: bool, per_window: int, per_slide: int,
            keys: tuple, pool: tuple, ops: tuple, out: tuple) -> int:
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
            push(code, pane, ints, floats, row, keys, pool, ops)
        at[0] += 1
    while at[1] < keys[0].shape[0]:
        code = at[1]
        if common or code < before.shape[0]:
            limit = before[0] if common else before[code]
            used, fitted = fire(code, limit, per_window, per_slide, keys, pool, ops, out, used)
            if not fitted:
                return used
        at[1] += 1
    return used

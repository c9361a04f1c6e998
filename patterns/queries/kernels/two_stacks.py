"""Sliding windows over partials, key by key, at a constant number of merges per pane (amortised).

Every key has two stacks of rows in a common pool of nodes:

    front:  oldest ──► ... ──►          a node holds the merge of itself and all younger front nodes
    back:   youngest ──► ... ──► oldest     a node holds itself; the key holds their merge

The window is merge(top of front, merge of back). A pane leaves from the front; when the front is used
up, the back is turned over once, merging on the way. One way for all fields, least and greatest
included, which cannot be subtracted. Panes without items have no node: gaps and quiet
keys cost nothing. Reference: Tangwongsan, Hirzel and Schneider, "Low-latency sliding-window aggregation
in worst-case constant time", 2017, section 3.1.

All tables are matrices of int64, whose rows end in the words of a partial:

    keys   front, back, oldest (pane at the bottom of back), due (first window not fired), words ...
    pool   pane, following (the next node of its stack, or of the free ones), words ...
    out    window, code, words ...

`ops` says what to do with every word when two rows are merged, `free` has the top of the free nodes and
their number.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NONE = -1
#: What to do with a word of two rows: add, keep the least, keep the greatest.
ADD, LEAST, GREATEST = range(3)
#: Columns of `keys`, of `pool`, and where their words begin (that of `out`: as in `pool`).
FRONT, BACK, OLDEST, DUE, KEY_WORDS = range(5)
PANE, FOLLOWING, WORDS = range(3)


@njit(nogil=True, cache=True)
def merge(ops: np.ndarray, ints: np.ndarray, i: int, at: int, more: np.ndarray, k: int, more_at: int) -> None:
    """Add the words of row k of the second table, from `more_at` on, to those of row i of the first."""
    for j in range(ops.shape[0]):
        word = more[k, more_at + j]
        if ops[j] == ADD:
            ints[i, at + j] += word
        elif ops[j] == LEAST:
            ints[i, at + j] = min(ints[i, at + j], word)
        else:
            ints[i, at + j] = max(ints[i, at + j], word)


@njit(nogil=True, cache=True)
def copy(ops: np.ndarray, ints: np.ndarray, i: int, at: int, source: np.ndarray, k: int, source_at: int) -> None:
    for j in range(ops.shape[0]):
        ints[i, at + j] = source[k, source_at + j]


@njit(nogil=True, cache=True)
def purge(code: int, start: int, keys: np.ndarray, pool: np.ndarray, free: np.ndarray, ops: np.ndarray) -> None:
    """Free the nodes of panes below `start`; turn the back over if the front is used up."""
    node = keys[code, FRONT]
    while node != NONE and pool[node, PANE] < start:
        after = pool[node, FOLLOWING]
        pool[node, FOLLOWING] = free[0]
        free[0] = node
        free[1] += 1
        node = after
    if node == NONE and keys[code, BACK] != NONE and keys[code, OLDEST] < start:
        rest = keys[code, BACK]
        keys[code, BACK] = NONE
        while rest != NONE and pool[rest, PANE] >= start:
            after = pool[rest, FOLLOWING]
            if node != NONE:
                merge(ops, pool, rest, WORDS, pool, node, WORDS)
            pool[rest, FOLLOWING] = node
            node, rest = rest, after
        while rest != NONE:
            after = pool[rest, FOLLOWING]
            pool[rest, FOLLOWING] = free[0]
            free[0] = rest
            free[1] += 1
            rest = after
    keys[code, FRONT] = node


@njit(nogil=True, cache=True)
def fire(code: int, before: int, per_window: int, per_slide: int, keys: np.ndarray, pool: np.ndarray,
         free: np.ndarray, ops: np.ndarray, out: np.ndarray, used: int) -> int:
    """Write the windows of `code` whose panes lie below `before` to `out`: rows used, or -1 - rows if it is full.

    What no later window needs has always been purged; so the first window that holds the oldest pane
    and is still due begins at or before it, and holds an item.
    """
    while keys[code, FRONT] != NONE or keys[code, BACK] != NONE:
        front = keys[code, FRONT]
        pane = pool[front, PANE] if front != NONE else keys[code, OLDEST]
        window = max(keys[code, DUE], (pane - per_window) // per_slide + 1)
        if window * per_slide + per_window > before:
            break
        if used == out.shape[0]:
            return -1 - used
        out[used, 0] = window
        out[used, 1] = code
        if front == NONE:
            copy(ops, out, used, WORDS, keys, code, KEY_WORDS)
        else:
            copy(ops, out, used, WORDS, pool, front, WORDS)
            if keys[code, BACK] != NONE:
                merge(ops, out, used, WORDS, keys, code, KEY_WORDS)
        used += 1
        keys[code, DUE] = window + 1
        purge(code, (window + 1) * per_slide, keys, pool, free, ops)
    return used


@njit(nogil=True, cache=True)
def push(code: int, pane: int, ints: np.ndarray, row: int, keys: np.ndarray, pool: np.ndarray, free: np.ndarray,
         ops: np.ndarray) -> None:
    """Put a row on top of the key's back; a row of the pane that is there already is merged with it."""
    top = keys[code, BACK]
    if top == NONE:
        keys[code, OLDEST] = pane
        copy(ops, keys, code, KEY_WORDS, ints, row, 0)
    else:
        merge(ops, keys, code, KEY_WORDS, ints, row, 0)
        if pool[top, PANE] == pane:
            merge(ops, pool, top, WORDS, ints, row, 0)
            return
    node = free[0]
    free[0] = pool[node, FOLLOWING]
    free[1] -= 1
    pool[node, PANE] = pane
    pool[node, FOLLOWING] = top
    copy(ops, pool, node, WORDS, ints, row, 0)
    keys[code, BACK] = node


@njit(nogil=True, cache=True)
def advance(at: np.ndarray, panes: np.ndarray, codes: np.ndarray, ints: np.ndarray,
            before: np.ndarray, common: bool, per_window: int, per_slide: int,
            keys: np.ndarray, pool: np.ndarray, free: np.ndarray, ops: np.ndarray, out: np.ndarray) -> int:
    """Take in rows sorted by pane, then fire what lies below `before`; returns the rows written to `out`.

    `at` is where to go on: (next row, next key code); the work is done when it is at the end of both,
    else `out` was full. `before` has one entry for all keys (`common`), or one per key code.
    """
    used = 0
    while at[0] < panes.shape[0]:
        row = at[0]
        pane, code = panes[row], codes[row]
        if ints[row, 0] > 0 and (per_slide <= per_window or pane % per_slide < per_window):
            used = fire(code, pane, per_window, per_slide, keys, pool, free, ops, out, used)
            if used < 0:
                return -1 - used
            push(code, pane, ints, row, keys, pool, free, ops)
        at[0] += 1
    while at[1] < keys.shape[0]:
        code = at[1]
        # Most of many keys may have nothing: look before the call.
        if (keys[code, FRONT] != NONE or keys[code, BACK] != NONE) and (common or code < before.shape[0]):
            limit = before[0] if common else before[code]
            used = fire(code, limit, per_window, per_slide, keys, pool, free, ops, out, used)
            if used < 0:
                return -1 - used
        at[1] += 1
    return used

"""One pass over a batch of items: find each item's cell (pane and key) and add the item to it.

A cell is one row of two matrices of 64-bit words, `ints` and `floats`. Column 0 of `ints` is the number
of items in the cell; the other columns belong to the fields of the query (`patterns.queries.fields`):

    sum of integers   ints    low, high             128 bits, exact
    sum of floats     floats  sum, rest             double-double: sum + rest is the value
    least, greatest   ints or floats, one word
    moments           floats  shift, sum, rest, squares, rest    of the differences from `shift`

The tables come in two shapes. Dense: `slots[s]` is the pane of slot s (-1: free), the cell is
`s*width + code`; a pane lives at slot `pane mod slots`, or in the next free one. Sparse: open addressing
on (pane, code), the cell is the place in the table. In both, a kernel that finds no room returns the
number of the item it stopped at; the caller makes room and goes on from there.

Items are located by their ordinate (an event time or a position): pane = (ordinate - origin) // length.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FREE = -1
_SIGN = np.int64(-(2**63))
_SPLIT = 134217729.0


@njit(nogil=True, cache=True)
def find_slot(slots: np.ndarray, pane: int) -> int:
    """The slot of `pane`, taken if need be; -1 if a slot is to be taken and only one is free."""
    mask = slots.shape[0] - 1
    slot = pane & mask
    while slots[slot] != pane:
        if slots[slot] == FREE:
            free = 0
            for other in range(slots.shape[0]):
                free += slots[other] == FREE
            if free < 2:
                return -1
            slots[slot] = pane
            return slot
        slot = (slot + 1) & mask
    return slot


@njit(nogil=True, cache=True)
def locate_dense(start, codes, ordinates, place, slots, width, ints, cells):  # type: ignore[no-untyped-def]
    """Count items in their cells and write the cells down (-1: in no window), from item `start` on.

    `place` is (origin, pane length, panes per slide, panes per window); panes between hopping windows
    are skipped. Returns the item it stopped at and the number of items skipped.
    """
    origin, length, per_slide, per_window = place
    low, high, base, skipped = 1, 0, 0, 0
    for i in range(start, ordinates.shape[0]):
        at = ordinates[i]
        if at < low or at >= high:
            pane = (at - origin) // length
            base = 0
            if pane < 0 or (per_slide > per_window and pane % per_slide >= per_window):
                base = -1
            else:
                slot = find_slot(slots, pane)
                if slot < 0:
                    return i, skipped
                base = slot * width
            low = origin + pane * length
            high = low + length
        if base < 0:
            cells[i] = -1
            skipped += 1
            continue
        code = codes[i]
        if code >= width:
            return i, skipped
        ints[base + code, 0] += 1
        cells[i] = base + code
    return ordinates.shape[0], skipped


@njit(nogil=True, cache=True)
def add_dense(start, codes, ordinates, place, slots, width, ints, floats, values, column):  # type: ignore[no-untyped-def]
    """`locate_dense` and the sum of one float column (words `column`, `column + 1`) in a single pass."""
    origin, length, per_slide, per_window = place
    low, high, base, skipped = 1, 0, 0, 0
    for i in range(start, ordinates.shape[0]):
        at = ordinates[i]
        if at < low or at >= high:
            pane = (at - origin) // length
            base = 0
            if pane < 0 or (per_slide > per_window and pane % per_slide >= per_window):
                base = -1
            else:
                slot = find_slot(slots, pane)
                if slot < 0:
                    return i, skipped
                base = slot * width
            low = origin + pane * length
            high = low + length
        if base < 0:
            skipped += 1
            continue
        code = codes[i]
        if code >= width:
            return i, skipped
        cell = base + code
        ints[cell, 0] += 1
        value, old = values[i], floats[cell, column]
        total = old + value
        moved = total - old
        floats[cell, column] = total
        floats[cell, column + 1] += (old - (total - moved)) + (value - moved)
    return ordinates.shape[0], skipped

"""One pass over a batch of items: find each item's cell (pane and key) and add the item to it.

A cell is one row of a matrix of int64 words, `ints`. Word 0 is the number of items in the cell; the others
belong to the fields of the query (`patterns.queries.fields`).

Cells come in two tables. Dense: `slots[s]` is the pane of slot s (FREE: none) and the cell is
`s*width + code`; a pane lives in slot `pane mod slots`, or in the next free one. Sparse: open addressing
on (pane, code), the cell is the place in the table. A kernel that finds no room returns the number of
the item it stopped at; the caller makes room and goes on from there.

Items are located by their ordinate (an event time, a position, or already a pane): `place` is (origin,
pane length, panes per slide, panes per window), and the pane is `(ordinate - origin) // pane length`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: The pane of a free slot or place: below every pane that an event time can give.
FREE = -(2**62)
#: In place of a slot: the pane is in no window, or there is no slot for it.
OUTSIDE, NO_ROOM = -1, -2
_MIX_PANE = np.int64(-7046029254386353131)
_MIX_CODE = np.int64(-4417276706812531889)


@njit(nogil=True, cache=True)
def slot_of(slots: np.ndarray, pane: int) -> int:
    """The slot of `pane`, taken if it has none; NO_ROOM if no more than one slot is free."""
    mask = slots.shape[0] - 1
    slot = pane & mask
    while slots[slot] != pane:
        if slots[slot] == FREE:
            free = 0
            for other in range(slots.shape[0]):
                free += slots[other] == FREE
            if free < 2:
                return NO_ROOM
            slots[slot] = pane
            break
        slot = (slot + 1) & mask
    return slot


@njit(nogil=True, cache=True, error_model="numpy")
def outside(pane: int, per_slide: int, per_window: int) -> bool:
    """Whether `pane` lies before the origin or between two hopping windows."""
    return pane < 0 or (per_slide > per_window and pane % per_slide >= per_window)


@njit(nogil=True, cache=True, error_model="numpy")
def enter(at: int, place: tuple, slots: np.ndarray) -> tuple:
    """Where the pane of ordinate `at` begins and ends, and its slot, OUTSIDE or NO_ROOM.

    Division is slow and panes come in runs, so this is called only when an item leaves the last pane.
    """
    origin, length, per_slide, per_window = place
    pane = (at - origin) // length
    low = origin + pane * length
    slot = pane & (slots.shape[0] - 1)
    if slots[slot] != pane:
        slot = OUTSIDE if outside(pane, per_slide, per_window) else slot_of(slots, pane)
    return low, low + length, slot


@njit(nogil=True, cache=True, error_model="numpy")
def locate_dense(start: int, codes: np.ndarray, ordinates: np.ndarray, place: tuple, slots: np.ndarray,
                 width: int, ints: np.ndarray, cells: np.ndarray) -> tuple:
    """Count the items from `start` on in their cells and write the cells down (-1: the item is in no window).

    Returns the item it stopped at and how many items are in no window.
    """
    low, high, base, skipped = 1, 0, 0, 0
    for i in range(start, ordinates.shape[0]):
        at = ordinates[i]
        if at < low or at >= high:
            low, high, slot = enter(at, place, slots)
            if slot == NO_ROOM:
                return i, skipped
            base = slot * width
        if base < 0:
            cells[i] = -1
            skipped += 1
            continue
        code = codes[i]
        if code >= width:
            return i, skipped
        cells[i] = base + code
        ints[base + code, 0] += 1
    return ordinates.shape[0], skipped


@njit(nogil=True, cache=True)
def find_sparse(panes: np.ndarray, codes: np.ndarray, pane: int, code: int) -> int:
    """The place of (pane, code) in the table, or the free place where it belongs."""
    mixed = pane * _MIX_PANE ^ code * _MIX_CODE
    mask = panes.shape[0] - 1
    cell = (mixed ^ (mixed >> 32)) & mask
    while panes[cell] != FREE and (panes[cell] != pane or codes[cell] != code):
        cell = (cell + 1) & mask
    return cell


@njit(nogil=True, cache=True, error_model="numpy")
def locate_sparse(start: int, codes: np.ndarray, ordinates: np.ndarray, place: tuple, panes: np.ndarray,
                  keys: np.ndarray, room: int, ints: np.ndarray, cells: np.ndarray) -> tuple:
    """`locate_dense` for a table that holds only cells with items; it takes at most `room` new cells.

    Also returns the room that is left.
    """
    low, high, pane, skipped = 1, 0, 0, 0
    for i in range(start, ordinates.shape[0]):
        at = ordinates[i]
        if at < low or at >= high:
            pane = (at - place[0]) // place[1]
            low = place[0] + pane * place[1]
            high = low + place[1]
            if outside(pane, place[2], place[3]):
                pane = FREE
        if pane == FREE:
            cells[i] = -1
            skipped += 1
            continue
        cell = find_sparse(panes, keys, pane, codes[i])
        if panes[cell] == FREE:
            if room == 0:
                return i, skipped, room
            room -= 1
            panes[cell] = pane
            keys[cell] = codes[i]
        cells[i] = cell
        ints[cell, 0] += 1
    return ordinates.shape[0], skipped, room


@njit(nogil=True, cache=True)
def settle_sparse(panes: np.ndarray, codes: np.ndarray, new_panes: np.ndarray, new_codes: np.ndarray,
                  cells: np.ndarray) -> None:
    """Put the different pairs (new_panes, new_codes) into the table and write their places down."""
    for i in range(new_panes.shape[0]):
        cell = find_sparse(panes, codes, new_panes[i], new_codes[i])
        panes[cell] = new_panes[i]
        codes[cell] = new_codes[i]
        cells[i] = cell


@njit(nogil=True, cache=True)
def add_least(cells: np.ndarray, values: np.ndarray, ints: np.ndarray, word: int) -> None:
    for i in range(cells.shape[0]):
        if cells[i] >= 0 and values[i] < ints[cells[i], word]:
            ints[cells[i], word] = values[i]


@njit(nogil=True, cache=True)
def add_greatest(cells: np.ndarray, values: np.ndarray, ints: np.ndarray, word: int) -> None:
    for i in range(cells.shape[0]):
        if cells[i] >= 0 and values[i] > ints[cells[i], word]:
            ints[cells[i], word] = values[i]

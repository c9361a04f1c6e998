"""Tables of cells: one row of words per pane and key that is open, dense where possible.

`DenseCells` has a cell for every key in every open pane: no search, the fastest when most keys have
items in most panes (time windows). `SparseCells` has only cells with items: for many keys that are
rarely seen, and for count windows, where every key is at a pane of its own. `DenseCells.room` turns a
table that would be mostly empty into a sparse one, so that neither a jump over a long gap nor a million
quiet keys allocates what it does not use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from patterns.queries.fields import Layout
from patterns.queries.kernels.aggregates import FREE, locate_dense, locate_sparse, settle_sparse
from patterns.query import Frontier

#: A dense table of more cells than this becomes sparse when less than one cell in _SPARSE_SHARE is used.
_DENSE_ANYWAY = 1 << 15
_SPARSE_SHARE = 16

#: Where items lie: origin, pane length, panes per slide, panes per window.
Placing = tuple[int, int, int, int]


class Closed(NamedTuple):
    """Rows of cells that left a table, sorted by pane, then code."""

    panes: np.ndarray
    codes: np.ndarray
    ints: np.ndarray


class DenseCells:
    """Cell `slot*width + code`; a slot per open pane, a power of two of them, one always free."""

    def __init__(self, layout: Layout, slots: int = 4, width: int = 1) -> None:
        self._layout = layout
        self.slots = np.full(slots, FREE, np.int64)
        self.width = width
        self.ints = layout.blank(slots * width)

    def locate(self, start: int, codes: np.ndarray, ordinates: np.ndarray, place: Placing,
               cells: np.ndarray) -> tuple[int, int]:
        """Count items from `start` on into their cells; the item it stopped at, and how many are in no window."""
        stop, outside = locate_dense(start, codes, ordinates, place, self.slots, self.width, self.ints, cells)
        return stop, outside

    def room(self, codes: np.ndarray) -> DenseCells | SparseCells:
        """A table with the same contents and room for the first of `codes`: a larger one, or a sparse one."""
        slots, width = len(self.slots), self.width
        if codes[0] >= width:
            while width <= codes.max():
                width *= 2
        else:
            slots *= 2
        wanted = int(np.count_nonzero(self.ints[:, 0])) + len(codes)
        if slots * width > _DENSE_ANYWAY and wanted * _SPARSE_SHARE < slots * width:
            return self._sparse()
        return self._copy(self._layout, slots, width)

    def relaid(self, layout: Layout) -> DenseCells:
        """The same contents in a wider layout."""
        return self._copy(layout, len(self.slots), self.width)

    def take(self, before: Frontier) -> Closed:
        """The cells with items in panes below `before`; they are blank afterwards."""
        used = self.slots != FREE
        if isinstance(before, int):
            used &= self.slots < before
        order = np.flatnonzero(used)
        order = order[np.argsort(self.slots[order])]
        if not len(order):
            return Closed(order, order, self._layout.blank(0))
        counts = self.ints.reshape(len(self.slots), self.width, -1)[order, :, 0]
        full = counts > 0
        if not isinstance(before, int):
            limits = np.zeros(self.width, np.int64)
            limits[:min(len(before), self.width)] = before[:self.width]
            full &= self.slots[order][:, None] < limits
        rows, codes = np.nonzero(full)
        cells = order[rows] * self.width + codes
        closed = Closed(self.slots[order[rows]], codes.astype(np.int64), self.ints[cells])
        self.ints[cells] = self._layout.blank_ints
        self._free(order)
        return closed

    def _free(self, candidates: np.ndarray) -> None:
        """Free those slots of `candidates` that are empty; what does not sit in its own slot is moved."""
        counts = self.ints.reshape(len(self.slots), self.width, -1)[candidates, :, 0]
        self.slots[candidates[~counts.any(axis=1)]] = FREE
        taken = np.flatnonzero(self.slots != FREE)
        if (self.slots[taken] & (len(self.slots) - 1) != taken).any():
            moved = self._copy(self._layout, len(self.slots), self.width)
            self.slots, self.ints = moved.slots, moved.ints

    def _copy(self, layout: Layout, slots: int, width: int) -> DenseCells:
        copy = DenseCells(layout, slots, width)
        for old in np.flatnonzero(self.slots != FREE):
            new = int(self.slots[old]) & (slots - 1)
            while copy.slots[new] != FREE:
                new = (new + 1) & (slots - 1)
            copy.slots[new] = self.slots[old]
            rows = self.ints[old * self.width:][:self.width]
            copy.ints[new * width:][:self.width] = rows if layout is self._layout else layout.moved(rows, self._layout)
        return copy

    def _sparse(self) -> SparseCells:
        cells = np.flatnonzero(self.ints[:, 0])
        return SparseCells(self._layout, Closed(self.slots[cells // self.width], cells % self.width,
                                                self.ints[cells]))

    @property
    def size_bytes(self) -> int:
        return self.slots.nbytes + self.ints.nbytes


class SparseCells:
    """Cells in a hash table on (pane, code) that is at most half full."""

    def __init__(self, layout: Layout, contents: Closed) -> None:
        self._layout = layout
        self._fill(contents, 1 << 10)

    def _fill(self, contents: Closed, least: int) -> None:
        """A fresh table of at least `least` places that holds `contents` and is at most a quarter full."""
        self.used = len(contents.panes)
        size = max(least, 1 << (4 * self.used).bit_length())
        self.panes, self.codes = np.full(size, FREE, np.int64), np.zeros(size, np.int64)
        self.ints = self._layout.blank(size)
        cells = np.empty(self.used, np.int64)
        settle_sparse(self.panes, self.codes, contents.panes, contents.codes, cells)
        self.ints[cells] = contents.ints

    def locate(self, start: int, codes: np.ndarray, ordinates: np.ndarray, place: Placing,
               cells: np.ndarray) -> tuple[int, int]:
        """As `DenseCells.locate`."""
        room = len(self.panes) // 2 - self.used
        stop, outside, left = locate_sparse(start, codes, ordinates, place, self.panes, self.codes, room,
                                            self.ints, cells)
        self.used += room - left
        return stop, outside

    def room(self, codes: np.ndarray) -> SparseCells:
        """This table with room for more."""
        self._fill(self._rows(np.flatnonzero(self.panes != FREE)), 2 * len(self.panes))
        return self

    def relaid(self, layout: Layout) -> SparseCells:
        """The same contents in a wider layout."""
        contents = self._rows(np.flatnonzero(self.panes != FREE))
        return SparseCells(layout, contents._replace(ints=layout.moved(contents.ints, self._layout)))

    def take(self, before: Frontier) -> Closed:
        """As `DenseCells.take`."""
        cells = np.flatnonzero(self.panes != FREE)
        if isinstance(before, int):
            ready = self.panes[cells] < before
        else:
            limits = np.zeros(int(self.codes.max()) + 1, np.int64)
            limits[:min(len(before), len(limits))] = before[:len(limits)]
            ready = self.panes[cells] < limits[self.codes[cells]]
        taken = cells[ready]
        closed = self._rows(taken[np.lexsort((self.codes[taken], self.panes[taken]))])
        if len(taken) == len(cells):
            self.panes[taken], self.used = FREE, 0
            self.ints[taken] = self._layout.blank_ints
        elif len(taken):
            self._fill(self._rows(cells[~ready]), len(self.panes) // 2)
        return closed

    def _rows(self, cells: np.ndarray) -> Closed:
        return Closed(self.panes[cells], self.codes[cells], self.ints[cells])

    @property
    def size_bytes(self) -> int:
        return self.panes.nbytes + self.codes.nbytes + self.ints.nbytes

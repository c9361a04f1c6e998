"""The kept set of one key: what no younger item dominates, with the pane that still hides it.

    pane closes ─► S ─► drop from R what S dominates ─► influence(s) = youngest pane of R that
                        dominates s (-1: none)       ─► R + S

An item of R is in the skyline of a window once its influence pane lies before the window.

R lies in blocks of 64 (see `lanes`), and for every block there are the least and the greatest rank of
each dimension, its *corners*, again in blocks of 64: one comparison of an item of S with a block of lower
corners says which of 64 blocks can hold a dominator at all, and upper corners which can hold something it
dominates. New items are appended; now and then all are sorted anew along a Z-order of their ranks, older
first within a cell, so that corners lie close together, and what died or expired is purged.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patterns.queries.kernels.lanes import LANES, above, aligned_blocks, at_least, at_most, dims_tag, highest, lowest
from patterns.queries.kernels.pane import dominates
from patterns.queries.kernels.ranks import fit_thresholds, rank_points, spread_table, z_order_cell

_ONE = np.uint64(1)
_NONE = np.uint64(0)

#: R is sorted anew when this share of it, and so many items more, were appended since or are dead, or when
#: this share of its panes has left. Measured: sorting more often costs more than it saves, and less often too.
_SORT_SHARE = 0.25
_SORT_SLACK = 6000

#: Ranks are fitted anew when more pairs than this for each new item pass them in vain.
_VAIN = 8


@njit(nogil=True, cache=True)
def _prune(points: np.ndarray, ranks: np.ndarray, upper: np.ndarray, alive: np.ndarray, n_blocks: int,
           fresh: np.ndarray, fresh_ranks: np.ndarray, figures: np.ndarray, tag: tuple[int, ...]) -> int:
    """Strike out what an item of `fresh` dominates; returns how many."""
    struck = tests = passed = 0
    for q in range(fresh.shape[0]):
        for corner in range(-(-n_blocks // LANES)):
            blocks = at_least(upper, corner, fresh_ranks, q, tag)
            while blocks != _NONE:
                b = corner * LANES + lowest(blocks)
                blocks &= blocks - _ONE
                if b >= n_blocks:
                    break
                tests += 1
                hits = at_least(ranks, b, fresh_ranks, q, tag) & alive[b]
                while hits != _NONE:
                    lane = lowest(hits)
                    hits &= hits - _ONE
                    passed += 1
                    if dominates(fresh, q, points, b * LANES + lane):
                        alive[b] &= ~(_ONE << np.uint64(lane))
                        struck += 1
    figures[0] += tests
    figures[1] += passed
    figures[2] += struck
    return struck


@njit(nogil=True, cache=True)
def _influence(points: np.ndarray, ranks: np.ndarray, lower: np.ndarray, alive: np.ndarray, n_blocks: int,
               panes: np.ndarray, newest: np.ndarray, fresh: np.ndarray, fresh_ranks: np.ndarray,
               first: int, out: np.ndarray, figures: np.ndarray, tag: tuple[int, ...]) -> None:
    """For each item of `fresh` the youngest pane that holds a dominator, `first - 1` if none from `first` on."""
    tests = passed = true = 0
    for q in range(fresh.shape[0]):
        best = first - 1
        for corner in range(-(-n_blocks // LANES) - 1, -1, -1):
            blocks = at_most(lower, corner, fresh_ranks, q, tag) & above(newest, corner, best)
            while blocks != _NONE:
                place = highest(blocks)
                blocks ^= _ONE << np.uint64(place)
                b = corner * LANES + place
                if newest[b] <= best:
                    continue
                tests += 1
                hits = at_most(ranks, b, fresh_ranks, q, tag) & alive[b]
                while hits != _NONE:
                    lane = highest(hits)
                    hits ^= _ONE << np.uint64(lane)
                    k = b * LANES + lane
                    if panes[k] > best:
                        passed += 1
                        if dominates(points, k, fresh, q):
                            best = panes[k]
                            true += 1
        out[q] = best
    figures[0] += tests
    figures[1] += passed
    figures[2] += true


@njit(nogil=True, cache=True)
def _append(points: np.ndarray, ranks: np.ndarray, lower: np.ndarray, upper: np.ndarray, alive: np.ndarray,
            rows: np.ndarray, panes: np.ndarray, influence: np.ndarray, newest: np.ndarray, size: int,
            order: np.ndarray, new_points: np.ndarray, new_ranks: np.ndarray, new_rows: np.ndarray,
            new_panes: np.ndarray, new_influence: np.ndarray, tag: tuple[int, ...]) -> None:
    """Put the items `order` of the new ones behind the first `size` slots."""
    for place in range(order.shape[0]):
        i, k = order[place], size + place
        b, lane = k // LANES, k % LANES
        corner, at = b // LANES, b % LANES
        first = lane == 0
        if first:
            alive[b] = _NONE
            newest[b] = new_panes[i]
        alive[b] |= _ONE << np.uint64(lane)
        newest[b] = max(newest[b], new_panes[i])
        for j in range(len(tag)):
            rank = new_ranks[i, j]
            points[k, j] = new_points[i, j]
            ranks[b, j, lane] = rank
            lower[corner, j, at] = rank if first else min(lower[corner, j, at], rank)
            upper[corner, j, at] = rank if first else max(upper[corner, j, at], rank)
        rows[k], panes[k], influence[k] = new_rows[i], new_panes[i], new_influence[i]


@njit(nogil=True, cache=True)
def _in_z_order(ranks: np.ndarray, spread: np.ndarray, bits: int) -> np.ndarray:
    """A stable order of the items along the cells of a Z-order of `bits` bits."""
    n = ranks.shape[0]
    counts = np.zeros((1 << bits) + 1, np.int64)
    cells = np.empty(n, np.int64)
    for i in range(n):
        cells[i] = z_order_cell(ranks, i, spread, bits)
        counts[cells[i] + 1] += 1
    for cell in range(1 << bits):
        counts[cell + 1] += counts[cell]
    order = np.empty(n, np.int64)
    for i in range(n):
        order[counts[cells[i]]] = i
        counts[cells[i]] += 1
    return order


@njit(nogil=True, cache=True)
def _remaining(alive: np.ndarray, panes: np.ndarray, size: int, first: int) -> np.ndarray:
    """Slots of what is neither dead nor older than pane `first`."""
    found = np.empty(size, np.int64)
    n = 0
    for k in range(size):
        if (alive[k // LANES] >> np.uint64(k % LANES)) & _ONE and panes[k] >= first:
            found[n] = k
            n += 1
    return found[:n]


@njit(nogil=True, cache=True)
def _members(alive: np.ndarray, panes: np.ndarray, influence: np.ndarray, size: int, first: int) -> np.ndarray:
    """Slots of the skyline of the panes from `first` on."""
    found = np.empty(size, np.int64)
    n = 0
    for k in range(size):
        seen = influence[k] < first <= panes[k]
        found[n] = k
        n += seen and (alive[k // LANES] >> np.uint64(k % LANES)) & _ONE != _NONE
    return found[:n]


def _bits(items: int) -> int:
    """Bits of Z-order that leave about a block in each cell."""
    return max(min((items // LANES).bit_length(), 16), 0)


class KeptSet:
    """Items of one key that may still enter a skyline; panes are pushed in increasing order.

    `figures` counts, for pruning and for influence: blocks tested, lanes that the ranks let through, and
    those of them where the coordinates agreed.
    """

    def __init__(self, dims: int) -> None:
        self._dims, self._tag = dims, dims_tag(dims)
        self._spread = spread_table(dims)
        self._thresholds: np.ndarray | None = None
        self._fitted_on = 0
        self._first, self._youngest = 0, -1  # panes below `first` have left every window
        self.figures = np.zeros(6, np.int64)
        self._make_room(0)

    @property
    def empty(self) -> bool:
        """Whether no item is left (the youngest pane's items are never dominated)."""
        return self._youngest < self._first

    def push(self, pane: int, points: np.ndarray, rows: np.ndarray) -> None:
        """Take in the skyline of `pane`; what it dominates is purged."""
        if self._thresholds is None:
            self._fit(points)
        ranks, order = self._ranked(points)
        points, ranks, rows = points[order], ranks[order], rows[order]
        vain = self._vain()
        n_blocks = -(-self._size // LANES)
        self._dead += _prune(self._points, self._ranks, self._upper, self._alive, n_blocks, points, ranks,
                             self.figures[:3], self._tag)
        influence = np.empty(len(rows), np.int64)
        _influence(self._points, self._ranks, self._lower, self._alive, n_blocks, self._panes, self._newest,
                   points, ranks, self._first, influence, self.figures[3:], self._tag)
        if self._size + len(rows) > len(self._rows):
            self._sort(self._size + len(rows))
            ranks, _ = self._ranked(points)
        self._put(np.arange(len(rows)), points, ranks, rows, np.full(len(rows), pane, np.int64), influence)
        self._youngest = pane
        if self._vain() - vain > _VAIN * (len(rows) + LANES):
            self._fitted_on = 0
            self._sort()
        elif self._is_untidy():
            self._sort()

    def adopt(self, panes: np.ndarray, points: np.ndarray, rows: np.ndarray, influence: np.ndarray) -> None:
        """Take over the items of another kept set, in order of pane; this one must be new."""
        self._fit(points)
        self._make_room(len(rows) * 3 // 2)
        ranks, order = self._ranked(points)
        self._put(order, points, ranks, rows, panes, influence)
        self._sorted, self._youngest = self._size, int(panes[-1])

    def purge(self, before: int) -> None:
        """Forget the items of panes below `before`."""
        self._first = max(self._first, before)
        if self.empty and self._size:
            self._make_room(0)

    def members(self, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the skyline of all panes from `first` on, and the slots that hold them until the next push."""
        chosen = _members(self._alive, self._panes, self._influence, self._size, first)
        return self._rows[chosen], chosen

    def points(self, slots: np.ndarray) -> np.ndarray:
        return self._points[slots]

    @property
    def size_bytes(self) -> int:
        return sum(array.nbytes for array in (self._points, self._ranks, self._lower, self._upper, self._alive,
                                              self._rows, self._panes, self._influence, self._newest))

    # -- ranks ----------------------------------------------------------------------------------

    def _fit(self, points: np.ndarray) -> None:
        self._thresholds = fit_thresholds(points)
        self._fitted_on = len(points)

    def _ranked(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert self._thresholds is not None
        ranks = rank_points(points, self._thresholds)
        return ranks, _in_z_order(ranks, self._spread, _bits(len(points)))

    def _vain(self) -> int:
        """Pairs so far that the ranks let through and the coordinates did not confirm."""
        return int(self.figures[1] - self.figures[2] + self.figures[4] - self.figures[5])

    # -- memory ---------------------------------------------------------------------------------

    def _make_room(self, items: int) -> None:
        blocks = -(-items // LANES)
        corners = -(-blocks // LANES)
        slots = blocks * LANES
        self._ranks = aligned_blocks(blocks, self._dims)
        self._lower, self._upper = aligned_blocks(corners, self._dims), aligned_blocks(corners, self._dims)
        self._alive = np.zeros(corners * LANES, np.uint64)
        self._newest = np.full(corners * LANES, -1, np.int64)
        self._points = np.empty((slots, self._dims), np.int64)
        self._rows, self._panes, self._influence = (np.empty(slots, np.int64) for _ in range(3))
        self._size = self._sorted = self._dead = 0
        self._sorted_first = self._first

    def _put(self, order: np.ndarray, points: np.ndarray, ranks: np.ndarray, rows: np.ndarray, panes: np.ndarray,
             influence: np.ndarray) -> None:
        _append(self._points, self._ranks, self._lower, self._upper, self._alive, self._rows, self._panes,
                self._influence, self._newest, self._size, order, points, ranks, rows, panes, influence, self._tag)
        self._size += len(order)

    def _is_untidy(self) -> bool:
        loose = self._size - self._sorted + self._dead
        left = (self._first - self._sorted_first) / (self._youngest + 1 - self._sorted_first)
        return loose > _SORT_SHARE * self._size + _SORT_SLACK or (left > _SORT_SHARE and self._size > _SORT_SLACK)

    def _sort(self, room: int = 0) -> None:
        """Purge, sort along the Z-order into arrays of the right size, and fit the ranks if that is due."""
        slots = _remaining(self._alive, self._panes, self._size, self._first)
        points, rows = self._points[slots], self._rows[slots]
        panes, influence = self._panes[slots], self._influence[slots]
        if len(points) > 2 * self._fitted_on:
            self._fit(points)
        ranks, order = self._ranked(points)
        self._make_room(max(room, len(slots)) * 3 // 2 + LANES)
        self._put(order, points, ranks, rows, panes, influence)
        self._sorted = self._size

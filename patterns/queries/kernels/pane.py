"""The skyline of each group of items: what is left of a pane.

Items are taken in the order of the sum of their ranks, so that whoever can dominate an item comes before
it, items of the same cell of ranks aside; each one is held against the survivors so far, 64 at a time
(`lanes`), and only where the ranks say "perhaps" the coordinates themselves are compared.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patterns.queries.kernels.lanes import LANES, aligned_blocks, at_most, dims_tag, lowest
from patterns.queries.kernels.ranks import LEVELS, fit_thresholds, rank_points

#: Groups up to this size are compared pair by pair.
_SMALL = 16

#: How many pairs per item may pass the ranks in vain before the ranks are fitted anew.
_VAIN, _FAR_TOO_VAIN = 4, 50

_ONE = np.uint64(1)
_NONE = np.uint64(0)


@njit(nogil=True, cache=True)
def dominates(a: np.ndarray, i: int, b: np.ndarray, k: int) -> bool:
    """Whether row `i` of `a` is no worse than row `k` of `b` in every dimension and better in one."""
    better = False
    for j in range(a.shape[1]):
        if a[i, j] > b[k, j]:
            return False
        better |= a[i, j] < b[k, j]
    return better


@njit(nogil=True, cache=True)
def equal(a: np.ndarray, i: int, b: np.ndarray, k: int) -> bool:
    for j in range(a.shape[1]):
        if a[i, j] != b[k, j]:
            return False
    return True


class PaneSkyline:
    """Finds skylines of groups; the thresholds of its ranks follow the data.

    `tests`, `passed` and `exact` count what was done: items held against a block of 64 survivors, lanes
    that the ranks let through, and those of them where the coordinates agreed.
    """

    def __init__(self, dims: int) -> None:
        self._dims, self._tag = dims, dims_tag(dims)
        self._thresholds: np.ndarray | None = None
        self._fitted_on = 0
        self._blocks = aligned_blocks(0, dims)
        self.figures = np.zeros(3, np.int64)

    def keep(self, points: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Which rows no row of their own group dominates; group g is rows `starts[g] ... starts[g+1] - 1`."""
        keep = np.zeros(len(points), np.bool_)
        if self._dims == 1:
            keep_least(points, starts, keep)
            return keep
        if self._dims == 2:
            keep_staircase(points, starts, keep)
            return keep
        largest = int(np.diff(starts).max(initial=0))
        if largest > _SMALL and (self._thresholds is None or 2 * self._fitted_on < min(len(points), LEVELS * 4)):
            self._fit(points)
        # Ranks that let too much through are fitted anew for the next time, or (far too much) at once.
        vain = self._vain()
        if not self._try(points, starts, keep, largest, _FAR_TOO_VAIN * (len(points) + LANES)):
            self._fit(points)
            self._try(points, starts, keep, largest, 2**62)
        if self._vain() - vain > _VAIN * (len(points) + LANES):
            self._fitted_on = 0
        return keep

    def _vain(self) -> int:
        return int(self.figures[1] - self.figures[2])

    def _fit(self, points: np.ndarray) -> None:
        self._thresholds = fit_thresholds(points)
        self._fitted_on = len(points)

    def _try(self, points: np.ndarray, starts: np.ndarray, keep: np.ndarray, largest: int, limit: int) -> bool:
        blocks = -(-largest // LANES)
        if len(self._blocks) < blocks:
            self._blocks = aligned_blocks(max(blocks, 2 * len(self._blocks)), self._dims)
        thresholds = self._thresholds if self._thresholds is not None else np.empty((0, 17, 16), np.int64)
        ranks = rank_points(points, thresholds) if largest > _SMALL else np.empty((0, self._dims), np.uint8)
        return bool(keep_of_groups(points, ranks, starts, keep, self._blocks, self.figures, limit, self._tag))


@njit(nogil=True, cache=True)
def keep_of_groups(points: np.ndarray, ranks: np.ndarray, starts: np.ndarray, keep: np.ndarray,
                   blocks: np.ndarray, figures: np.ndarray, limit: int, tag: tuple[int, ...]) -> bool:
    """Fill `keep` for every group; False if more than `limit` pairs passed the ranks in vain."""
    n_blocks = blocks.shape[0]
    alive = np.empty(n_blocks, np.uint64)
    slots = np.empty(n_blocks * LANES, np.int64)
    order = np.empty(n_blocks * LANES, np.int64)
    sums = np.empty(n_blocks * LANES, np.int64)
    leader = np.empty(n_blocks * LANES, np.int64)
    counts = np.empty(len(tag) * LEVELS + 1, np.int64)
    for g in range(starts.shape[0] - 1):
        low, high = starts[g], starts[g + 1]
        if high - low <= _SMALL:
            _keep_small(points, low, high, keep)
            continue
        _order_by_sum(ranks, low, high, sums, counts, order, tag)
        if not _keep_large(points, ranks, low, high, keep, blocks, alive, slots, order, sums, leader,
                           figures, limit, tag):
            return False
    return True


@njit(nogil=True, cache=True)
def _keep_small(points: np.ndarray, low: int, high: int, keep: np.ndarray) -> None:
    for i in range(low, high):
        keep[i] = True
        for k in range(low, high):
            if dominates(points, k, points, i):
                keep[i] = False
                break


@njit(nogil=True, cache=True)
def _order_by_sum(ranks: np.ndarray, low: int, high: int, sums: np.ndarray, counts: np.ndarray,
                  order: np.ndarray, tag: tuple[int, ...]) -> None:
    """Counting sort of the group's rows (from 0) by the sum of their ranks."""
    counts[:] = 0
    for i in range(low, high):
        total = np.int64(0)
        for j in range(len(tag)):
            total += ranks[i, j]
        sums[i - low] = total
        counts[total + 1] += 1
    for value in range(1, counts.shape[0]):
        counts[value] += counts[value - 1]
    for i in range(high - low):
        order[counts[sums[i]]] = i
        counts[sums[i]] += 1


@njit(nogil=True, cache=True)
def _keep_large(points: np.ndarray, ranks: np.ndarray, low: int, high: int, keep: np.ndarray,
                blocks: np.ndarray, alive: np.ndarray, slots: np.ndarray, order: np.ndarray, sums: np.ndarray,
                leader: np.ndarray, figures: np.ndarray, limit: int, tag: tuple[int, ...]) -> bool:
    n = tests = passed = true = 0
    for place in range(high - low):
        i = order[place]
        fate = i  # itself: kept; another item: an equal one, whose fate it shares; -1: dominated
        b, used = 0, -(-n // LANES)
        while b < used and fate == i:
            mask = at_most(blocks, b, ranks, low + i, tag) & alive[b]
            while mask != _NONE:
                lane = lowest(mask)
                mask &= mask - _ONE
                k = slots[b * LANES + lane]
                passed += 1
                if dominates(points, low + k, points, low + i):
                    fate = -1
                    true += 1
                    break
                if sums[k] == sums[i]:  # the same cell of ranks: the order says nothing
                    if equal(points, low + k, points, low + i):
                        fate = k
                        break
                    if dominates(points, low + i, points, low + k):
                        keep[low + k] = False
                        alive[b] &= ~(_ONE << np.uint64(lane))
            b += 1
        tests += b
        keep[low + i] = fate == i
        leader[i] = fate
        if fate == i:
            b, lane = n // LANES, n % LANES
            if lane == 0:
                alive[b] = _NONE
            alive[b] |= _ONE << np.uint64(lane)
            for j in range(len(tag)):
                blocks[b, j, lane] = ranks[low + i, j]
            slots[n] = i
            n += 1
        if passed - true > limit:
            return False
    for i in range(high - low):
        if leader[i] >= 0:
            keep[low + i] = keep[low + leader[i]]
    figures[0] += tests
    figures[1] += passed
    figures[2] += true
    return True


@njit(nogil=True, cache=True)
def keep_least(points: np.ndarray, starts: np.ndarray, keep: np.ndarray) -> None:
    """One dimension: all copies of each group's least value."""
    for g in range(starts.shape[0] - 1):
        low, high = starts[g], starts[g + 1]
        least = points[low, 0]
        for i in range(low, high):
            least = min(least, points[i, 0])
        for i in range(low, high):
            keep[i] = points[i, 0] == least


@njit(nogil=True, cache=True)
def keep_staircase(points: np.ndarray, starts: np.ndarray, keep: np.ndarray) -> None:
    """Two dimensions: a sweep along the first, with the least of the second so far."""
    for g in range(starts.shape[0] - 1):
        low, high = starts[g], starts[g + 1]
        order = np.argsort(points[low:high, 0])
        place = 0
        seen, best = False, np.int64(0)
        while place < high - low:
            x = points[low + order[place], 0]
            end = place
            least = points[low + order[place], 1]
            while end < high - low and points[low + order[end], 0] == x:
                least = min(least, points[low + order[end], 1])
                end += 1
            if not seen or least < best:
                for step in range(place, end):
                    keep[low + order[step]] = points[low + order[step], 1] == least
                seen, best = True, least
            place = end

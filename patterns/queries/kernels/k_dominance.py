"""The largest k at which each item of a skyline is k-dominated: what both k-dominance queries rest on.

`a` k-dominates `b` if it is no worse in k dimensions or more and better in one. So with
`no_worse(a, b)` the number of dimensions in which `a` is no worse, and `a` better in at least one, the
largest k at which some item k-dominates `b` is the largest `no_worse(a, b)`. Items that are dominated
need not be looked at: whoever dominates them k-dominates whatever they do.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patterns.queries.kernels.lanes import LANES, aligned_blocks, dims_tag, lowest, often_at_most
from patterns.queries.kernels.ranks import fit_thresholds, rank_points

#: How many pairs per item may pass the ranks in vain before the ranks are fitted anew.
_VAIN = 16

_ONE = np.uint64(1)
_NONE = np.uint64(0)


class LargestK:
    """Finds, for every item of a skyline, the largest k at which it is k-dominated by another one (0: never)."""

    def __init__(self, dims: int) -> None:
        self._dims, self._tag = dims, dims_tag(dims)
        self._thresholds: np.ndarray | None = None
        self._fitted_on = 0
        self._figures = np.zeros(2, np.int64)  # pairs that passed the ranks, and those of them in vain

    def of_groups(self, points: np.ndarray, bounds: np.ndarray, wanted: int, enough: int) -> np.ndarray:
        """The largest k of all items of group g, rows `bounds[g] ... bounds[g+1] - 1`, each group a skyline.

        An item that reaches `enough`, or is beyond the `wanted` best of its group already, gets a figure
        that says so and may be less than the true one; no other figure is affected.
        """
        largest = np.zeros(len(points), np.int64)
        size = int(np.diff(bounds).max(initial=0))
        if size > 1:
            if len(points) > 2 * self._fitted_on:
                self._thresholds, self._fitted_on = fit_thresholds(points), len(points)
            assert self._thresholds is not None
            ranks = rank_points(points, self._thresholds)
            blocks = aligned_blocks(-(-size // LANES), self._dims)
            # Without domination nobody is no worse in all dimensions: one less is the most there is.
            enough = min(enough, max(self._dims - 1, 1))
            self._figures[:] = 0
            _largest_k_of_groups(points, ranks, bounds, blocks, wanted, enough, largest, self._figures, self._tag)
            if self._figures[1] > _VAIN * len(points):
                self._fitted_on = 0
        return largest


@njit(nogil=True, cache=True)
def _largest_k_of_groups(points: np.ndarray, ranks: np.ndarray, bounds: np.ndarray, blocks: np.ndarray, wanted: int,
                         enough: int, largest: np.ndarray, figures: np.ndarray, tag: tuple[int, ...]) -> None:
    for g in range(bounds.shape[0] - 1):
        _fill_blocks(ranks, bounds[g], bounds[g + 1], blocks, tag)
        _largest_k(points, ranks, bounds[g], bounds[g + 1], blocks, wanted, enough, largest, figures, tag)


@njit(nogil=True, cache=True)
def _fill_blocks(ranks: np.ndarray, low: int, high: int, blocks: np.ndarray, tag: tuple[int, ...]) -> None:
    for i in range(high - low):
        for j in range(len(tag)):
            blocks[i // LANES, j, i % LANES] = ranks[low + i, j]


@njit(nogil=True, cache=True)
def _largest_k(points: np.ndarray, ranks: np.ndarray, low: int, high: int, blocks: np.ndarray, wanted: int,
               enough: int, largest: np.ndarray, figures: np.ndarray, tag: tuple[int, ...]) -> None:
    finished = np.zeros(len(tag) + 1, np.int64)  # how many items have each figure
    limit = enough  # a figure of `limit` or more is out of the question
    for i in range(low, high):
        # Most items reach the limit, so that is looked for first, then one less, and so on.
        figure = limit
        while figure > 0:
            found = _no_worse_in(points, ranks, low, high, blocks, i, figure, largest, figures, tag)
            if found >= 0:
                figure = found
                break
            figure -= 1
        largest[i] = figure
        finished[figure] += 1
        better_ones = 0
        for lower in range(limit):
            better_ones += finished[lower]
            if better_ones >= wanted:  # with `wanted` items at `lower` or less, worse ones are out
                limit = lower + 1
                break


@njit(nogil=True, cache=True)
def _no_worse_in(points: np.ndarray, ranks: np.ndarray, low: int, high: int, blocks: np.ndarray, i: int, least: int,
                 largest: np.ndarray, figures: np.ndarray, tag: tuple[int, ...]) -> int:
    """`least` if an item is no worse than item `i` in so many dimensions, and better in one; -1 if none is.

    If a copy of the item is found on the way, and has its figure already, that one.
    """
    n = high - low
    n_blocks = -(-n // LANES)
    full = _NONE - _ONE
    last = full if n % LANES == 0 else (_ONE << np.uint64(n % LANES)) - _ONE
    for b in range(n_blocks):
        hits = often_at_most(blocks, b, ranks, i, least, tag) & (last if b == n_blocks - 1 else full)
        while hits != _NONE:
            k = low + b * LANES + lowest(hits)
            hits &= hits - _ONE
            no_worse, better = 0, 0
            for j in range(len(tag)):
                no_worse += points[k, j] <= points[i, j]
                better += points[k, j] < points[i, j]
            figures[0] += 1
            if better and no_worse >= least:
                return least
            figures[1] += 1
            if no_worse == len(tag) and k < i:
                return largest[k]
    return -1

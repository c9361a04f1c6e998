"""Queries on k-dominance: for windows of many dimensions, whose skyline is most of the window.

The panes hand on their skylines and windows are merged as skylines, because an item that is k-dominated
may still k-dominate others; the figure that decides (the largest k at which an item is k-dominated) is
taken over each window's skyline when it fires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from patterns.queries.kernels.k_dominance import LargestK
from patterns.queries.runs import bounds_of
from patterns.queries.dominance import OnDimensions
from patterns.queries.skyline_windows import SkylineWindows
from patterns.queries.warm import warm_largest_k
from patterns.query import Frontier, WindowState
from runtime.errors import SpecError
from runtime.message import Columns


def check_number(value: object, parameter: str, query: str, most: int | None = None) -> None:
    """Raise SpecError unless `value` is a whole number from 1 to `most`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or int(value) < 1 or (most is not None and int(value) > most):  # type: ignore[call-overload]
        rule = "of at least 1" if most is None else f"from 1 to the number of dimensions ({most})"
        raise SpecError(f"`{parameter}` of {query} must be a whole number {rule}, got {value!r}")


@dataclass(frozen=True, init=False, repr=False)
class KDominant(OnDimensions):
    """The items of a window that no other one k-dominates: no worse in k dimensions, better in one of them.

    With `k` equal to the number of dimensions this is the skyline; the smaller `k`, the fewer items stay,
    down to none. Smaller is better, except in the dimensions of `maximize`.

    >>> KDominant(2, "price", "distance", maximize=["rating"])
    KDominant(2, 'price', 'distance', 'rating', maximize=('rating',))
    """

    k: int

    def __init__(self, k: int, *dims: str, maximize: Iterable[str] = ()) -> None:
        super().__init__(dims, maximize)
        check_number(k, "k", "KDominant", len(self.dims))
        object.__setattr__(self, "k", int(k))

    def __repr__(self) -> str:
        return self._shown(self.k)

    def window_state(self, panes_per_window: int, panes_per_slide: int, *,
                     final: bool = True, split: bool = False) -> WindowState:
        skylines = SkylineWindows(len(self.dims), panes_per_window, panes_per_slide, final=False, split=split)
        return ChosenOfSkylines(skylines, len(self.dims), self._choose) if final else skylines

    def _choose(self, finder: LargestK, fired: Columns, bounds: np.ndarray) -> Columns:
        largest = finder.of_groups(fired["point"], bounds, len(fired["row"]) + 1, self.k)
        keep = largest < self.k
        return {name: fired[name][keep] for name in ("window", "code", "row")}


@dataclass(frozen=True, init=False, repr=False)
class TopDelta(OnDimensions):
    """The `delta` items of a window that are k-dominated least: a skyline cut to a size one can look at.

    Items are ordered by the largest k at which another item k-dominates them, then by arrival; the column
    `rank` (1, 2, ...) tells the order. A skyline of `delta` items or fewer is reported whole.

    >>> TopDelta(100, "price", "distance", maximize=["rating"])
    TopDelta(100, 'price', 'distance', 'rating', maximize=('rating',))
    """

    delta: int

    def __init__(self, delta: int, *dims: str, maximize: Iterable[str] = ()) -> None:
        super().__init__(dims, maximize)
        check_number(delta, "delta", "TopDelta")
        object.__setattr__(self, "delta", int(delta))

    def __repr__(self) -> str:
        return self._shown(self.delta)

    @property
    def outputs(self) -> tuple[str, ...]:
        return ("rank",)

    def window_state(self, panes_per_window: int, panes_per_slide: int, *,
                     final: bool = True, split: bool = False) -> WindowState:
        skylines = SkylineWindows(len(self.dims), panes_per_window, panes_per_slide, final=False, split=split)
        return ChosenOfSkylines(skylines, len(self.dims), self._choose) if final else skylines

    def _choose(self, finder: LargestK, fired: Columns, bounds: np.ndarray) -> Columns:
        largest = finder.of_groups(fired["point"], bounds, self.delta, len(self.dims) + 1)
        group = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        order = np.lexsort((fired["row"], largest, group))
        rank = np.arange(1, len(order) + 1) - bounds[group]  # sorted by group: its rows stand where they stood
        keep = rank <= self.delta
        chosen = order[keep]
        return {**{name: fired[name][chosen] for name in ("window", "code", "row")}, "rank": rank[keep]}


class ChosenOfSkylines:
    """Second stage: some items of every window's skyline, as `choose` picks them when it fires."""

    def __init__(self, skylines: SkylineWindows, dims: int,
                 choose: Callable[[LargestK, Columns, np.ndarray], Columns]) -> None:
        warm_largest_k(dims)
        self._skylines, self._finder, self._choose = skylines, LargestK(dims), choose

    def advance(self, partials: Columns, before: Frontier) -> Columns:
        fired = self._skylines.advance(partials, before)
        return self._choose(self._finder, fired, bounds_of(fired["window"], fired["code"]))

    @property
    def size_bytes(self) -> int:
        return self._skylines.size_bytes

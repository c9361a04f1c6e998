"""The skyline of every window: the items that no item of the window dominates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from patterns.queries.kernels.keys import points_of
from patterns.queries.kernels.pane import PaneSkyline
from patterns.queries.rows import limits_of, select
from patterns.queries.runs import bounds_of
from patterns.queries.skyline_windows import SkylineWindows
from patterns.queries.warm import warm_panes
from patterns.query import Frontier, empty_columns, joined
from runtime.errors import SpecError
from runtime.message import Columns

MAX_DIMS = 32

#: Open panes are reduced to their skylines whenever this many items have come on top of what was left.
_REDUCE_EVERY = 1 << 15

#: More pieces of open panes than this are put together.
_MANY = 8


def dimensions(dims: tuple[str, ...], maximize: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All dimensions (those that only `maximize` names come last), and those to maximise."""
    wanted = (maximize,) if isinstance(maximize, str) else tuple(maximize)
    for name in (*dims, *wanted):
        if not isinstance(name, str) or not name:
            raise SpecError(f"`dims` must be names of columns, got {name!r}")
    for names, parameter in ((dims, "dims"), (wanted, "maximize")):
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise SpecError(f"`{parameter}` must name each column once, got {twice[0]!r} more than once")
    every = dims + tuple(name for name in wanted if name not in dims)
    if not 1 <= len(every) <= MAX_DIMS:
        raise SpecError(f"`dims` must be 1 to {MAX_DIMS} columns, got {len(every)}")
    return every, wanted


def check_numeric(dims: Iterable[str], dtypes: Mapping[str, np.dtype]) -> None:
    """Raise SpecError unless every dimension is a numeric column."""
    for name in dims:
        if name not in dtypes:
            known = ", ".join(dtypes)
            raise SpecError(f"`dims` must be columns of the stream, got {name!r}: there are {known}")
        if dtypes[name].kind not in "iuf" or dtypes[name].itemsize > 8:
            raise SpecError(f"`dims` must be integers or floats of at most 64 bits, got {name!r} of type "
                            f"{'text' if dtypes[name].kind == 'U' else dtypes[name]}: cast the column")


@dataclass(frozen=True, init=False, repr=False)
class OnDimensions:
    """What the queries on dominance have in common: dimensions, and skylines of panes for a first stage."""

    dims: tuple[str, ...]
    maximize: tuple[str, ...]

    def __init__(self, dims: tuple[str, ...], maximize: Iterable[str]) -> None:
        every, wanted = dimensions(dims, maximize)
        object.__setattr__(self, "dims", every)
        object.__setattr__(self, "maximize", wanted)

    def _shown(self, *first: object) -> str:
        parts = [repr(part) for part in (*first, *self.dims)]
        return f"{type(self).__name__}({', '.join(parts + [f'maximize={self.maximize}'] * bool(self.maximize))})"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.dims

    @property
    def decomposable(self) -> bool:
        return True

    @property
    def costly_panes(self) -> bool:
        """The first stage costs about as much as the second: on two cores each may have a node of its own."""
        return True

    @property
    def selects(self) -> bool:
        return True

    @property
    def outputs(self) -> tuple[str, ...]:
        return ()

    def check(self, dtypes: Mapping[str, np.dtype]) -> None:
        check_numeric(self.dims, dtypes)

    def pane_state(self) -> SkylinePanes:
        return SkylinePanes(self.dims, self.maximize)


@dataclass(frozen=True, init=False, repr=False)
class Skyline(OnDimensions):
    """The items of a window that no other one dominates: no worse in all dimensions, better in one.

    Smaller is better, except in the dimensions of `maximize`, which need not be listed twice. Equal
    items do not dominate each other: all copies are reported.

    >>> Skyline("price", "distance", maximize=["rating"])
    Skyline('price', 'distance', 'rating', maximize=('rating',))
    """

    def __init__(self, *dims: str, maximize: Iterable[str] = ()) -> None:
        super().__init__(dims, maximize)

    def __repr__(self) -> str:
        return self._shown()

    def window_state(self, panes_per_window: int, panes_per_slide: int, *,
                     final: bool = True, split: bool = False) -> SkylineWindows:
        return SkylineWindows(len(self.dims), panes_per_window, panes_per_slide, final=final, split=split)


class SkylinePanes:
    """First stage: the skyline of every pane and key, as columns `pane`, `code`, `row` and `point`.

    `point` has one row of int64 keys per item (see `kernels.keys`), all dimensions to be minimised.
    """

    def __init__(self, dims: tuple[str, ...], maximize: tuple[str, ...]) -> None:
        warm_panes(len(dims))
        self._dims, self._maximize = dims, maximize
        self._skyline = PaneSkyline(len(dims))
        self._none = {**empty_columns(("pane", "code", "row")), "point": np.empty((0, len(dims)), np.int64)}
        self._open: list[Columns] = []
        self._size = self._reduced = 0

    def add(self, codes: np.ndarray, panes: np.ndarray, columns: Columns) -> None:
        points = points_of(columns, self._dims, self._maximize)
        self._hold({"pane": panes.copy(), "code": codes.copy(), "row": columns["row"].copy(), "point": points})
        if self._size > 2 * self._reduced + _REDUCE_EVERY:
            reduced, self._open, self._size = self._reduce(self._open), [], 0
            self._hold(reduced)
            self._reduced = self._size

    def close(self, before: Frontier) -> Columns:
        ready: list[Columns] = []
        held, self._open, self._size = self._open, [], 0
        for items in held:
            closed = np.broadcast_to(items["pane"] < limits_of(before, items["code"]), items["pane"].shape)
            if closed.all():
                ready.append(items)
            elif not closed.any():
                self._hold(items)
            else:
                ready.append(select(items, closed))
                self._hold(select(items, ~closed))
        if len(self._open) > _MANY:
            self._open = [joined(self._open)]
        self._reduced = min(self._reduced, self._size)
        return self._reduce(ready) if ready else self._none

    def _hold(self, items: Columns) -> None:
        self._open.append(items)
        self._size += len(items["row"])

    def _reduce(self, parts: list[Columns]) -> Columns:
        """The skylines of all panes and keys in `parts`, sorted by pane, then code."""
        items = joined(parts)
        panes, codes = items["pane"], items["code"]
        if np.any((panes[1:] < panes[:-1]) | ((panes[1:] == panes[:-1]) & (codes[1:] < codes[:-1]))):
            items = select(items, np.lexsort((codes, panes)))
        keep = self._skyline.keep(items["point"], bounds_of(items["pane"], items["code"]))
        return select(items, keep)

"""The skyline of every window: the items that no item of the window dominates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from patterns.queries.kernels.keys import points_of
from patterns.queries.kernels.pane import PaneSkyline
from patterns.queries.rows import limits_of
from patterns.queries.runs import bounds_of, in_order, runs
from patterns.queries.skyline_windows import SkylineWindows
from patterns.queries.warm import warm_panes
from patterns.query import Frontier, empty_columns
from runtime.errors import SpecError
from runtime.message import Columns

MAX_DIMS = 32

#: An open pane is reduced to its skyline whenever this many items have come on top of what was left.
_REDUCE_EVERY = 1 << 15


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
                            f"{dtypes[name]}: cast the column")


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
        self._open: dict[int, _OpenPane] = {}

    def add(self, codes: np.ndarray, panes: np.ndarray, columns: Columns) -> None:
        points = points_of(columns, self._dims, self._maximize)
        rows = columns["row"]
        if not in_order(panes):
            order = np.argsort(panes, kind="stable")
            codes, panes, rows, points = codes[order], panes[order], rows[order], points[order]
        for low, high in runs(panes):
            pane = self._open.setdefault(int(panes[low]), _OpenPane(self._skyline))
            pane.add(codes[low:high].copy(), rows[low:high].copy(), points[low:high])

    def close(self, before: Frontier) -> Columns:
        pieces = [(pane, *self._open[pane].take(before, pane)) for pane in sorted(self._open)
                  if not isinstance(before, int) or pane < before]
        self._open = {pane: rest for pane, rest in self._open.items() if rest.size}
        pieces = [piece for piece in pieces if len(piece[1])]
        if not pieces:
            none = np.empty((0, len(self._dims)), np.int64)
            return {**empty_columns(("pane", "code", "row")), "point": none}
        numbers, codes, rows, points = zip(*pieces, strict=True)
        return {"pane": np.repeat(np.array(numbers, np.int64), [len(part) for part in codes]),
                "code": np.concatenate(codes), "row": np.concatenate(rows), "point": np.concatenate(points)}


class _OpenPane:
    """Items of one pane, of all keys, that may still be in its skylines."""

    def __init__(self, skyline: PaneSkyline) -> None:
        self.size = 0
        self._skyline = skyline
        self._reduced = 0
        self._chunks: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, codes: np.ndarray, rows: np.ndarray, points: np.ndarray) -> None:
        self._chunks.append((codes, rows, points))
        self.size += len(codes)
        if self.size > 2 * self._reduced + _REDUCE_EVERY:
            self._reduce()

    def take(self, before: Frontier, pane: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Codes, rows and points of the skylines that are complete, sorted by code; they are purged here."""
        self._reduce()
        codes, rows, points = self._chunks[0]
        self._chunks, self.size = [], 0
        ready = np.broadcast_to(pane < limits_of(before, codes), codes.shape)
        if not ready.all():
            self.add(codes[~ready], rows[~ready], points[~ready])
            codes, rows, points = codes[ready], rows[ready], points[ready]
        return codes, rows, points

    def _reduce(self) -> None:
        codes, rows, points = self._chunks[0] if len(self._chunks) == 1 else (
            np.concatenate(parts) for parts in zip(*self._chunks, strict=True))
        if not in_order(codes):
            order = np.argsort(codes, kind="stable")
            codes, rows, points = codes[order], rows[order], points[order]
        keep = self._skyline.keep(points, bounds_of(codes))
        self._chunks = [(codes[keep], rows[keep], points[keep])]
        self.size = self._reduced = len(self._chunks[0][0])

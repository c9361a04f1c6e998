"""The skyline of every window: the items that no item of the window dominates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from patterns.queries.kernels.kept import KeptSet
from patterns.queries.kernels.keys import points_of
from patterns.queries.kernels.pane import skyline_of_groups
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
class Skyline:
    """The items of a window that no other one dominates: no worse in all dimensions, better in one.

    Smaller is better, except in the dimensions of `maximize`, which need not be listed twice. Equal
    items do not dominate each other: all copies are reported.

    >>> Skyline("price", "distance", maximize=["rating"])
    Skyline('price', 'distance', 'rating', maximize=('rating',))
    """

    dims: tuple[str, ...]
    maximize: tuple[str, ...]

    def __init__(self, *dims: str, maximize: Iterable[str] = ()) -> None:
        every, wanted = dimensions(dims, maximize)
        object.__setattr__(self, "dims", every)
        object.__setattr__(self, "maximize", wanted)

    def __repr__(self) -> str:
        parts = [repr(name) for name in self.dims]
        return f"Skyline({', '.join(parts + [f'maximize={self.maximize}'] * bool(self.maximize))})"

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

    def window_state(self, panes_per_window: int, panes_per_slide: int, *,
                     final: bool = True, split: bool = False) -> SkylineWindows:
        return SkylineWindows(len(self.dims), panes_per_window, panes_per_slide, final=final, split=split)


class SkylinePanes:
    """First stage: the skyline of every pane and key, as columns `pane`, `code`, `row` and `point`.

    `point` has one row of int64 keys per item (see `kernels.keys`), all dimensions to be minimised.
    """

    def __init__(self, dims: tuple[str, ...], maximize: tuple[str, ...]) -> None:
        self._dims, self._maximize = dims, maximize
        self._open: dict[int, _OpenPane] = {}

    def add(self, codes: np.ndarray, panes: np.ndarray, columns: Columns) -> None:
        points = points_of(columns, self._dims, self._maximize)
        rows = columns["row"]
        if len(panes) and (panes[0] != panes[-1] or panes.min() != panes.max()):
            order = np.argsort(panes, kind="stable")
            codes, panes, rows, points = codes[order], panes[order], rows[order], points[order]
        for low, high in runs(panes):
            pane = self._open.setdefault(int(panes[low]), _OpenPane())
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

    def __init__(self) -> None:
        self.size = 0
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
        ready = below(before, codes, pane)
        if not ready.all():
            self.add(codes[~ready], rows[~ready], points[~ready])
            codes, rows, points = codes[ready], rows[ready], points[ready]
        return codes, rows, points

    def _reduce(self) -> None:
        codes, rows, points = (np.concatenate(parts) for parts in zip(*self._chunks, strict=True))
        if codes.min() != codes.max():
            order = np.argsort(codes, kind="stable")
            codes, rows, points = codes[order], rows[order], points[order]
        keep = skyline_of_groups(points, starts_of(codes))
        self._chunks = [(codes[keep], rows[keep], points[keep])]
        self.size = self._reduced = len(self._chunks[0][0])


class SkylineWindows:
    """Second stage: one `KeptSet` per key, from which every window's skyline is read off."""

    def __init__(self, dims: int, panes_per_window: int, panes_per_slide: int, *,
                 final: bool = True, split: bool = False) -> None:
        self._dims, self._length, self._slide = dims, panes_per_window, panes_per_slide
        self._final, self._split = final, split
        self._keys: dict[int, _KeyWindows] = {}
        self._waiting: dict[str, np.ndarray] | None = None

    def advance(self, partials: Columns, before: Frontier) -> Columns:
        arrived = self._ready(partials, before)
        if len(arrived["code"]) and arrived["code"].min() != arrived["code"].max():
            order = np.argsort(arrived["code"], kind="stable")
            arrived = {name: column[order] for name, column in arrived.items()}
        fresh = {int(arrived["code"][low]): (low, high) for low, high in runs(arrived["code"])}
        for code in fresh:
            self._keys.setdefault(code, _KeyWindows(self._dims, self._length, self._slide))
        fired: list[tuple[int, int, np.ndarray, np.ndarray]] = []
        for code, key in list(self._keys.items()):
            low, high = fresh.get(code, (0, 0))
            part = {name: column[low:high] for name, column in arrived.items()}
            for window, rows, points in key.advance(part, frontier_of(before, code), self._split):
                fired.append((window, code, rows, points))
            if not len(key):
                del self._keys[code]
        return self._results(fired)

    @property
    def size_bytes(self) -> int:
        waiting = sum(column.nbytes for column in self._waiting.values()) if self._waiting else 0
        return waiting + sum(key.size_bytes for key in self._keys.values())

    def _ready(self, partials: Columns, before: Frontier) -> dict[str, np.ndarray]:
        """What `before` lets in; partials of later panes wait."""
        names = ("pane", "code", "row", "point")
        arrived = {name: partials[name] for name in names}
        if self._waiting is not None:
            arrived = {name: np.concatenate((self._waiting[name], arrived[name])) for name in names}
            self._waiting = None
        ready = below(before, arrived["code"], arrived["pane"])
        if not ready.all():
            self._waiting = {name: column[~ready] for name, column in arrived.items()}
            arrived = {name: column[ready] for name, column in arrived.items()}
        return arrived

    def _results(self, fired: list[tuple[int, int, np.ndarray, np.ndarray]]) -> Columns:
        fired.sort(key=lambda result: result[:2])
        sizes = [len(result[2]) for result in fired]
        columns = {"window": np.repeat(np.array([result[0] for result in fired], np.int64), sizes),
                   "code": np.repeat(np.array([result[1] for result in fired], np.int64), sizes),
                   "row": np.concatenate([np.empty(0, np.int64), *(result[2] for result in fired)])}
        if not self._final:
            none = np.empty((0, self._dims), np.int64)
            columns["point"] = np.concatenate([none, *(result[3] for result in fired)])
        return columns


class _KeyWindows:
    """The windows of one key."""

    def __init__(self, dims: int, length: int, slide: int) -> None:
        self._kept = KeptSet(dims)
        self._length, self._slide = length, slide
        self._next = 0  # the next window to fire
        self._youngest = -1

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size_bytes(self) -> int:
        return self._kept.size_bytes

    def advance(self, part: Columns, before: int,
                split: bool) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Take in the partials of this key; window, rows and points of each window that ends by `before`."""
        panes, rows, points = part["pane"], part["row"], part["point"]
        if np.any(panes[1:] < panes[:-1]):
            order = np.argsort(panes, kind="stable")
            panes, rows, points = panes[order], rows[order], points[order]
        for low, high in runs(panes):
            pane = int(panes[low])
            yield from self._fire(pane)
            if not len(self._kept):  # leap over the windows that hold nothing
                self._next = max(self._next, (pane - self._length) // self._slide + 1)
            if pane < self._next * self._slide:  # between hopping windows
                continue
            pane_points, pane_rows = points[low:high], rows[low:high]
            if split:
                whole = np.array([0, high - low], np.int64)
                keep = skyline_of_groups(np.ascontiguousarray(pane_points), whole)
                pane_points, pane_rows = pane_points[keep], pane_rows[keep]
            self._kept.push(pane, np.ascontiguousarray(pane_points), pane_rows)
            self._youngest = pane
        yield from self._fire(before)

    def _fire(self, before: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        while len(self._kept) and self._next * self._slide + self._length <= before:
            yield (self._next, *self._kept.members(self._next * self._slide))
            self._next += 1
            self._kept.purge(self._next * self._slide)


def frontier_of(before: Frontier, code: int) -> int:
    """The frontier of one key."""
    if isinstance(before, int):
        return before
    return int(before[code]) if code < len(before) else 0


def below(before: Frontier, codes: np.ndarray, panes: np.ndarray | int) -> np.ndarray:
    """Which of the panes lie below the frontier of their key."""
    limits: np.ndarray | int = before
    if not isinstance(before, int):
        limits = np.zeros(len(codes), np.int64)
        known = codes < len(before)
        limits[known] = before[codes[known]]
    return np.broadcast_to(np.less(panes, limits), codes.shape)


def starts_of(values: np.ndarray) -> np.ndarray:
    """Where each run of equal values starts, and the end of the last one."""
    if not len(values):
        return np.zeros(1, np.int64)
    if values[0] == values[-1]:  # sorted: all equal
        return np.array([0, len(values)], np.int64)
    inner = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.concatenate(([0], inner, [len(values)])).astype(np.int64)


def runs(values: np.ndarray) -> list[tuple[int, int]]:
    """The half-open ranges of equal values in a sorted array."""
    starts = starts_of(values).tolist()
    return list(zip(starts[:-1], starts[1:], strict=True))

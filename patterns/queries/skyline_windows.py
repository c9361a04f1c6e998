"""The second stage of a skyline: kept sets by key, from which every window's skyline is read off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from patterns.queries.kernels.flat import advance_keys
from patterns.queries.kernels.kept import KeptSet
from patterns.queries.kernels.pane import PaneSkyline
from patterns.queries.rows import Waiting, limits_of
from patterns.queries.runs import bounds_of, in_order, runs
from patterns.queries.warm import warm_windows
from patterns.query import Frontier
from runtime.message import Columns

_NAMES = ("pane", "code", "row", "point")

#: A key with more items than this gets a kept set of its own; the others share one table.
_LARGE = 512


class SkylineWindows:
    """All keys' windows: large keys one by one, small ones together."""

    def __init__(self, dims: int, panes_per_window: int, panes_per_slide: int, *,
                 final: bool = True, split: bool = False) -> None:
        warm_windows(dims)
        self._dims, self._length, self._slide = dims, panes_per_window, panes_per_slide
        self._final = final
        self._merge = PaneSkyline(dims) if split else None
        self._large: dict[int, LargeKey] = {}
        self._small = SmallKeys(dims, panes_per_window, panes_per_slide)
        self._waiting = Waiting()

    def advance(self, partials: Columns, before: Frontier) -> Columns:
        ready = self._waiting.ready(partials, before)
        arrived = self._by_key({name: ready[name] for name in _NAMES})
        arrived["point"] = np.require(arrived["point"], requirements=("C", "W"))
        codes = arrived["code"]
        small = np.ones(len(codes), np.bool_)
        fresh: dict[int, tuple[int, int]] = {}
        for low, high in self._large_runs(codes, arrived["pane"]):
            fresh[int(codes[low])] = low, high
            small[low:high] = False
        if not small.all():
            fired = [self._small.advance({name: arrived[name][small] for name in _NAMES}, before)]
        else:
            fired = [self._small.advance(arrived, before)]
        for code in list(self._large):
            low, high = fresh.get(code, (0, 0))
            part = {name: arrived[name][low:high] for name in _NAMES}
            limit = int(np.max(limits_of(before, np.array([code]))))
            fired += self._large[code].advance(part, limit, with_points=not self._final)
            if self._large[code].empty:
                del self._large[code]
        return self._results(fired)

    @property
    def size_bytes(self) -> int:
        return self._small.size_bytes + sum(key.size_bytes for key in self._large.values())

    def _by_key(self, arrived: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """`arrived` by key, then pane; parts of one pane made into one."""
        codes, panes = arrived["code"], arrived["pane"]
        if not in_order(codes) or not in_order(panes):
            order = np.lexsort((panes, codes))
            arrived = {name: column[order] for name, column in arrived.items()}
        if self._merge is None or not len(codes):
            return arrived
        codes, panes = arrived["code"], arrived["pane"]
        keep = self._merge.keep(np.require(arrived["point"], requirements=("C", "W")), bounds_of(codes, panes))
        return {name: column[keep] for name, column in arrived.items()}

    def _large_runs(self, codes: np.ndarray, panes: np.ndarray) -> Iterator[tuple[int, int]]:
        """Where the items of large keys are; a key that has become large leaves the table of the small ones."""
        if not self._large and len(codes) + len(self._small) <= _LARGE:
            return
        starts = bounds_of(codes)
        # What counts is the size of a window: of items that cover several windows only a share is there at once.
        span = panes[starts[1:] - 1] - panes[starts[:-1]] + 1
        sizes = np.diff(starts) * np.minimum(self._length / span, 1.0) + self._small.sizes(codes[starts[:-1]])
        for g in np.flatnonzero((sizes > _LARGE) | np.isin(codes[starts[:-1]], list(self._large))):
            code = int(codes[starts[g]])
            if code not in self._large:
                self._large[code] = LargeKey(self._dims, self._length, self._slide, *self._small.release(code))
            yield int(starts[g]), int(starts[g + 1])

    def _results(self, fired: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]) -> Columns:
        """Window, code and row of all that fired, by window, then code; points too if they go on."""
        fired = [part for part in fired if len(part[0])] or fired[:1]
        names = ("window", "code", "row", "point")[: 3 if self._final else 4]
        columns = {name: np.concatenate([part[at] for part in fired]) if len(fired) > 1 else fired[0][at]
                   for at, name in enumerate(names)}
        windows, codes = columns["window"], columns["code"]
        if np.any((windows[1:] < windows[:-1]) | ((windows[1:] == windows[:-1]) & (codes[1:] < codes[:-1]))):
            order = np.lexsort((codes, windows))
            return {name: column[order] for name, column in columns.items()}
        return columns


Fired = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # window, code, row, point


class SmallKeys:
    """The kept sets of all small keys as one table, by code, then pane."""

    def __init__(self, dims: int, length: int, slide: int) -> None:
        self._length, self._slide = length, slide
        none = np.empty(0, np.int64)
        self._table = {"code": none, "pane": none, "row": none, "influence": none,
                       "point": np.empty((0, dims), np.int64)}
        self._codes, self._next = none, none  # the keys of the table, and the next window of each

    def __len__(self) -> int:
        return len(self._table["code"])

    @property
    def size_bytes(self) -> int:
        return sum(column.nbytes for column in self._table.values()) + 2 * self._next.nbytes

    def sizes(self, codes: np.ndarray) -> np.ndarray:
        """How many items each of `codes` has."""
        held = self._table["code"]
        return np.searchsorted(held, codes, "right") - np.searchsorted(held, codes, "left")

    def release(self, code: int) -> tuple[int, int, dict[str, np.ndarray]]:
        """The code, next window and items of a key, which is not in the table any more."""
        at = int(np.searchsorted(self._codes, code))
        known = at < len(self._codes) and self._codes[at] == code
        window = int(self._next[at]) if known else 0
        mine = self._table["code"] == code
        items = {name: column[mine] for name, column in self._table.items()}
        self._table = {name: column[~mine] for name, column in self._table.items()}
        if known:
            self._codes, self._next = np.delete(self._codes, at), np.delete(self._next, at)
        return code, window, items

    def advance(self, part: dict[str, np.ndarray], before: Frontier) -> Fired:
        """Take in items (by code, then pane) and fire what `before` closes."""
        fresh = len(part["code"])
        table = {**{name: self._table[name] for name in _NAMES}, "influence": self._table["influence"]}
        is_new = np.zeros(len(self) + fresh, np.bool_)
        is_new[len(self):] = True
        if fresh:
            influence = np.full(fresh, -1, np.int64)
            table = {name: np.concatenate((table[name], {**part, "influence": influence}[name])) for name in table}
            order = np.argsort(table["code"], kind="stable")
            table, is_new = {name: column[order] for name, column in table.items()}, is_new[order]
        starts = bounds_of(table["code"])
        codes = table["code"][starts[:-1]]
        windows = np.zeros(len(codes), np.int64)
        windows[np.searchsorted(codes, self._codes)] = self._next
        befores = np.zeros(len(codes), np.int64) + limits_of(before, codes)
        stays, fired, keys, items = advance_keys(
            codes, starts, windows, befores, table["point"], table["pane"], table["influence"], is_new,
            self._length, self._slide)
        result = fired, keys, table["row"][items], table["point"][items]
        self._table = table if stays.all() else {name: column[stays] for name, column in table.items()}
        left = np.isin(codes, self._table["code"])
        self._codes, self._next = codes[left], windows[left]
        return result


class LargeKey:
    """The windows of one key with a kept set of its own."""

    def __init__(self, dims: int, length: int, slide: int, code: int, window: int, items: Columns) -> None:
        self._length, self._slide, self._code = length, slide, code
        self._next = window
        self._kept = KeptSet(dims)
        if len(items["row"]):
            self._kept.adopt(items["pane"], items["point"], items["row"], items["influence"])

    @property
    def empty(self) -> bool:
        return self._kept.empty

    @property
    def size_bytes(self) -> int:
        return self._kept.size_bytes

    def advance(self, part: Columns, before: int, *, with_points: bool) -> Iterator[Fired]:
        """Take in the partials of this key, by pane; what each window that ends by `before` holds."""
        panes, rows, points = part["pane"], part["row"], part["point"]
        for low, high in runs(panes):
            pane = int(panes[low])
            yield from self._fire(pane, with_points)
            if self._kept.empty:  # leap over the windows that hold nothing
                self._next = max(self._next, (pane - self._length) // self._slide + 1)
            if pane >= self._next * self._slide:  # else: between hopping windows
                self._kept.push(pane, points[low:high], rows[low:high])
        yield from self._fire(before, with_points)

    def _fire(self, before: int, with_points: bool) -> Iterator[Fired]:
        while not self._kept.empty and self._next * self._slide + self._length <= before:
            rows, slots = self._kept.members(self._next * self._slide)
            yield (np.full(len(rows), self._next, np.int64), np.full(len(rows), self._code, np.int64), rows,
                   self._kept.points(slots) if with_points else slots)
            self._next += 1
            self._kept.purge(self._next * self._slide)

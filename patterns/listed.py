"""Windows evaluated one by one from the items they hold: for listed windows and for agnostic workers.

A window is a row `(code, window, low, high, last_row)`: it holds the items of its key (code -1: of every
key) with `low <= ordinate < high` that came no later than row `last_row`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from patterns.engine import AT, CODE, ROW, codes_of, tell, with_rows
from patterns.lifetime import LiveItems
from patterns.progress import ProgressTracker, is_progress
from patterns.query import Query
from patterns.triggers import is_listing
from patterns.window import CountWindow, SlideByTuple, Window, by_key
from patterns.worker import STAMP, count_windows
from runtime.message import Batch, Columns, Message
from runtime.node import Emit, Node

ALL_KEYS = -1


@dataclass(frozen=True, slots=True)
class Listed:
    """Some windows, as columns; `high` and `last_row` None: no bound."""

    codes: np.ndarray
    windows: np.ndarray
    low: np.ndarray
    high: np.ndarray | None = None
    last_row: np.ndarray | None = None

    @classmethod
    def of(cls, columns: Columns) -> Listed:
        return cls(columns[CODE], columns["window"], columns["low"], columns.get("high"), columns.get("last_row"))

    def slice(self, start: int, stop: int) -> Listed:
        return Listed(*(None if column is None else column[start:stop] for column in self._all()))  # type: ignore

    @property
    def reached(self) -> np.ndarray:
        """Progress of the keys once these windows are done: no later window of theirs reaches below."""
        return self.low.astype(np.float64) if self.high is None else self.high

    def packed(self) -> list[tuple[str, bytes] | None]:
        """As plain values, to go along in a message."""
        return [None if column is None else (column.dtype.str, column.tobytes()) for column in self._all()]

    @classmethod
    def unpacked(cls, packed: Sequence[tuple[str, bytes] | None]) -> Listed:
        return cls(*(None if pair is None else np.frombuffer(pair[1], pair[0]) for pair in packed))  # type: ignore

    def _all(self) -> tuple[np.ndarray | None, ...]:
        return self.codes, self.windows, self.low, self.high, self.last_row

    def __len__(self) -> int:
        return len(self.windows)


@dataclass(frozen=True, slots=True)
class ListedBounds:
    """The windows `listed`, numbered from `first` on."""

    listed: Listed
    first: int
    model: Window

    def window(self, number: int) -> tuple[int, Any, Any]:
        place = number - self.first
        wid, low = int(self.listed.windows[place]), self.listed.low[place].item()
        if isinstance(self.model, CountWindow):
            return wid, None, None
        if self.listed.high is not None:
            return wid, low, self.listed.high[place].item()
        # The trigger of a slide-by-tuple window belongs to it, that of a delta window does not.
        return wid, low, low + self.model.length + (1 if isinstance(self.model, SlideByTuple) else 0)

    def holding(self, pane: int) -> int:
        return int(self.listed.windows[pane - self.first])


class Evaluator:
    """Answers listed windows: each becomes a pane of its own, and that pane a window."""

    def __init__(self, query: Query, window: Window) -> None:
        self._window = window
        self._panes = query.pane_state()
        self._windows = query.window_state(1, 1)
        self._next = 0

    def evaluate(self, listed: Listed, chunks: Iterable[Columns]) -> Columns:
        """Results of `listed` in their order; `chunks` have all the items that they may hold."""
        first, self._next = self._next, self._next + len(listed)
        tell(ListedBounds(listed, first, self._window), self._panes, self._windows)
        for items in chunks:
            numbers, places = memberships(listed, items)
            if not len(places):
                continue
            held = dict(items if is_whole(places, len(items[AT])) else select(items, places))
            if ROW in held:
                held["row"] = held[ROW]
            codes = held.get(CODE)
            self._panes.add(np.zeros(len(places), np.int64) if codes is None else codes, numbers + first, held)
        fired = dict(self._windows.advance(self._panes.close(self._next), self._next))
        fired["window"] = listed.windows[fired["window"] - first]
        return fired

    @property
    def size_bytes(self) -> int:
        return self._windows.size_bytes


def memberships(listed: Listed, items: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (number of a window, place of an item that it holds), by window, then place."""
    at, rows = items[AT], items.get(ROW)
    codes = items.get(CODE)
    by_place, bounds = _places_by_code(codes, len(at), int(listed.codes.max(initial=ALL_KEYS)))
    held = []
    for number in range(len(listed)):
        code = int(listed.codes[number])
        places = by_place if code == ALL_KEYS or bounds is None else by_place[bounds[code]:bounds[code + 1]]
        inside = at[places] >= listed.low[number]
        if listed.high is not None:
            inside &= at[places] < listed.high[number]
        if listed.last_row is not None:
            assert rows is not None
            inside &= rows[places] <= listed.last_row[number]
        held.append(places[inside])
    sizes = [len(places) for places in held]
    return np.repeat(np.arange(len(listed)), sizes), np.concatenate(held) if held else np.empty(0, np.int64)


def is_whole(places: np.ndarray, size: int) -> bool:
    """Whether `places` are all of 0 ... size-1 in order, so that nothing has to be copied."""
    return len(places) == size and places[0] == 0 and bool((np.diff(places) == 1).all())


def _places_by_code(codes: np.ndarray | None, count: int, greatest: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Places of the `count` items, grouped by key code if that matters, and where each code's group begins."""
    if codes is None or greatest == ALL_KEYS:
        return np.arange(count), None
    order = np.argsort(codes, kind="stable")
    return order, np.searchsorted(codes[order], np.arange(greatest + 2))


def select(columns: Columns, chosen: np.ndarray) -> Columns:
    """The rows of `columns` at `chosen`."""
    return {name: column[chosen] for name, column in columns.items()}


def together(parts: Sequence[Columns]) -> Columns:
    """The rows of all `parts`, one at the least, in order."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class ListedWorker(Node):
    """Keeps items while a window may hold them and answers every window that is listed."""

    def __init__(self, query: Query, window: Window) -> None:
        self._evaluator = Evaluator(query, window)
        self._progress = ProgressTracker(1, by_key(window))
        self._items: LiveItems[Columns] = LiveItems(window, select, together)
        self._fired = 0

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        if is_progress(message):
            if not self._progress.update(message, port):
                return ()
            self._items.purge(self._progress.value)
            return (Emit(self._progress.common(message)),)
        assert isinstance(message, Batch)
        if is_listing(message):
            return self._answer(message)
        message = with_rows(message)
        kept = {name: column.copy() for name, column in message.columns.items()}
        self._items.add(kept, codes_of(message), kept[AT])
        return ()

    def _answer(self, listing: Batch) -> Iterable[Emit]:
        columns = self._evaluator.evaluate(Listed.of(listing.columns), self._items)
        rows = len(columns["window"])
        if not rows:
            return ()
        self._fired += count_windows(columns["window"], columns["code"])
        stamp = np.full(rows, listing.stamp_ns, np.int64)
        return (Emit(Batch({**columns, STAMP: stamp}, listing.stamp_ns)),)

    def gauges(self) -> dict[str, int]:
        held = sum(column.nbytes for part in self._items for column in part.values())
        return {"windows": self._fired, "state_bytes": held + self._evaluator.size_bytes}

"""Lines: where each item lies on the line of ordinates of a window model, and what follows it downstream.

A line of event times, one of arrival positions, and one on which items trigger windows. All state per key
that a window model needs is here, at the first emitter.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from patterns.engine import CODE
from patterns.progress import grown, reached_message
from patterns.triggers import attribute_values, triggers
from patterns.window import ContextAware, CountWindow, DeltaWindow, SlideByTuple, TimeWindow, Window
from runtime.message import Batch, Message, Punctuation


class Extents:
    """Where windows that are not on a grid of times begin and end, by key code and window id."""

    def __init__(self) -> None:
        self._known: tuple[list[tuple[np.ndarray, ...]], list[tuple[np.ndarray, ...]]] = [], []

    def note_starts(self, codes: np.ndarray, windows: np.ndarray, bounds: np.ndarray) -> None:
        self._known[0].append((codes, windows, bounds))

    def note_ends(self, codes: np.ndarray, windows: np.ndarray, bounds: np.ndarray) -> None:
        self._known[1].append((codes, windows, bounds))

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes and ids of all windows whose end is known."""
        if not self._known[1]:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        codes, windows = (np.concatenate([part[place] for part in self._known[1]]) for place in range(2))
        return codes, windows

    def lookup(self, windows: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Start and end of window `windows[i]` of key `codes[i]`."""
        if not len(windows):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        starts, ends = (_find(parts, windows, codes) for parts in self._known)
        return starts, ends


def _find(parts: list[tuple[np.ndarray, ...]], windows: np.ndarray, codes: np.ndarray) -> np.ndarray:
    code, window, bound = (np.concatenate([part[place] for part in parts]) for place in range(3))
    span = max(int(window.max()), int(windows.max())) + 1
    order = np.argsort(code * span + window)
    found: np.ndarray = bound[order][np.searchsorted((code * span + window)[order], codes * span + windows)]
    return found


class Line(Protocol):
    """Lays items on the line, counts those `outside` every window; `behind` says what to send after them."""

    extents: Extents
    outside: int

    def lay(self, codes: np.ndarray, times: np.ndarray, batch: pa.RecordBatch) -> np.ndarray:
        """The ordinates of the items, which came in this order."""

    def behind(self, codes: np.ndarray, ordinates: np.ndarray, times: np.ndarray, first_row: int,
               watermark: int, stamp_ns: int) -> list[Message]:
        """Windows that the items trigger, if that is what they do, and the progress they make."""

    def end(self) -> None:
        """The stream has ended: settle the extents of windows that are still open."""


def line(window: Window, unit_us: int) -> Line:
    """The line of `window`; `unit_us` is the resolution of the time column in microseconds."""
    if isinstance(window, TimeWindow):
        return TimeLine(window)
    return CountLine(window) if isinstance(window, CountWindow) else TriggerLine(window, unit_us)


class TimeLine:
    """Ordinates are event times; the watermark is progress for all keys."""

    def __init__(self, window: TimeWindow) -> None:
        self.extents, self.outside = Extents(), 0
        self._grid = window.grid()

    def lay(self, codes: np.ndarray, times: np.ndarray, batch: pa.RecordBatch) -> np.ndarray:
        self.outside += self._grid.count_outside(times)
        return times

    def behind(self, codes: np.ndarray, ordinates: np.ndarray, times: np.ndarray, first_row: int,
               watermark: int, stamp_ns: int) -> list[Message]:
        return [Punctuation(watermark, stamp_ns)]

    def end(self) -> None:
        pass


class CountLine:
    """Ordinates are arrival positions within a key, from 0; the number of arrivals is a key's progress."""

    def __init__(self, window: CountWindow) -> None:
        self.extents, self.outside = Extents(), 0
        self._grid = window.grid()
        self._counts = np.zeros(0, np.int64)
        self._last_times = np.zeros(0, np.int64)

    def lay(self, codes: np.ndarray, times: np.ndarray, batch: pa.RecordBatch) -> np.ndarray:
        if not len(codes):
            return np.empty(0, np.int64)
        self._counts = grown(self._counts, int(codes.max()) + 1)
        order = np.argsort(codes, kind="stable")
        grouped = codes[order]
        starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
        sizes = np.diff(np.r_[starts, len(codes)])
        within = np.arange(len(codes), dtype=np.int64) - np.repeat(starts, sizes)
        positions = np.empty(len(codes), np.int64)
        positions[order] = within + self._counts[grouped]
        self._counts[grouped[starts]] += sizes
        self.outside += self._grid.count_outside(positions)
        return positions

    def behind(self, codes: np.ndarray, ordinates: np.ndarray, times: np.ndarray, first_row: int,
               watermark: int, stamp_ns: int) -> list[Message]:
        self._last_times = grown(self._last_times, len(self._counts))
        self._last_times[codes] = times  # the last one of each key stays
        for note, shift in ((self.extents.note_starts, 0), (self.extents.note_ends, self._grid.length - 1)):
            at = (ordinates >= shift) & ((ordinates - shift) % self._grid.slide == 0)
            if at.any():
                note(codes[at], (ordinates[at] - shift) // self._grid.slide, times[at])
        present = np.unique(codes)
        return [reached_message(present, self._counts[present], stamp_ns)]

    def end(self) -> None:
        """Windows that are still open end with the last item of their key."""
        for code, count in enumerate(self._counts.tolist()):
            first_open = max((count - self._grid.length) // self._grid.slide + 1, 0)
            windows = np.arange(first_open, -(-count // self._grid.slide), dtype=np.int64)
            size = len(windows)
            self.extents.note_ends(np.full(size, code), windows, np.full(size, self._last_times[code]))


class TriggerLine:
    """Ordinates are event times or values of an attribute; windows are listed as their triggers arrive."""

    def __init__(self, window: ContextAware, unit_us: int) -> None:
        self.extents, self.outside = Extents(), 0
        self._window, self._unit_us = window, unit_us
        self._triggers = triggers(window)

    def lay(self, codes: np.ndarray, times: np.ndarray, batch: pa.RecordBatch) -> np.ndarray:
        if isinstance(self._window, SlideByTuple):
            return times
        column = batch.column(self._window.attribute)
        return attribute_values(self._window, column)

    def behind(self, codes: np.ndarray, ordinates: np.ndarray, times: np.ndarray, first_row: int,
               watermark: int, stamp_ns: int) -> list[Message]:
        messages: list[Message] = []
        listing = self._triggers.take(codes, ordinates, first_row, stamp_ns)
        if listing is not None:
            self._note_extents(listing, ordinates, first_row)
            messages.append(listing)
        return [*messages, self._triggers.progress(watermark, codes, stamp_ns)]

    def _note_extents(self, listing: Batch, ordinates: np.ndarray, first_row: int) -> None:
        codes, windows = listing.columns[CODE], listing.columns["window"]
        last = listing.columns["last_row"] - first_row
        # Extents are half open. A delta window ends at its trigger, the row after its last one; a
        # slide-by-tuple window holds its trigger, so it ends one unit later.
        ends = ordinates[last + 1] if isinstance(self._window, DeltaWindow) else ordinates[last] + self._unit_us
        self.extents.note_starts(codes, windows, listing.columns["low"])
        self.extents.note_ends(codes, windows, ends)

    def end(self) -> None:
        pass

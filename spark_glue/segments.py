"""Ordered Arrow segments on disk: what Spark's tasks write and the runtime maps.

    task 0 ─► 000000-0000.arrow ─┐   each sorted by time; ties in the order of the file
    task 1 ─► 000001-0000.arrow ─┼─► merge: time, then split, then row ─► record batches
              000001-0001.arrow ─┘

A task writes under a temporary name and renames at the end, so a task that Spark runs twice leaves one
segment. The merge maps the files: where only one segment has rows in a stretch of time, they are handed
on without a copy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from runtime.errors import BadInputError

#: Rows of a segment are read in pieces of this size: it bounds what a merge of many segments holds at a time.
PIECE_ROWS = 1 << 14


@dataclass(frozen=True)
class SegmentFile:
    """A segment: its file's name in the folder, its rows, and the times (in the column's unit) it spans."""

    name: str
    rows: int
    first: int
    last: int


def raw_times(column: pa.ChunkedArray | pa.Array, name: str) -> np.ndarray:
    """The times as int64 in their own unit."""
    try:
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        return np.asarray(column.cast(pa.int64()).to_numpy())
    except pa.ArrowInvalid as error:
        raise BadInputError(f"column `{name}` must hold times of at most 64 bits, got {error}") from None


def write_segment(table: pa.Table, time: str, folder: Path, name: str) -> SegmentFile:
    """Sort `table` by its column `time` (equal times keep their order) and write it as one segment."""
    times = raw_times(table.column(time).combine_chunks(), time)
    if len(times) > 1 and bool((times[1:] < times[:-1]).any()):
        order = np.argsort(times, kind="stable")
        table, times = table.combine_chunks().take(pa.array(order)), times[order]
    partial = folder / f".{name}.{os.getpid()}"
    with pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, PIECE_ROWS)
    os.replace(partial, folder / name)
    return SegmentFile(name, len(times), int(times[0]), int(times[-1]))


def merged(folder: Path, segments: Sequence[SegmentFile], time: str) -> Iterator[pa.RecordBatch]:
    """The rows of all `segments` by time, equal times in the order of `segments`, then of their rows."""
    waiting = sorted(enumerate(segments), key=lambda pair: (pair[1].first, pair[0]))
    waiting.reverse()
    active: list[_Cursor] = []
    while active or waiting:
        # Below `limit` nothing can come any more that is not in an active cursor's hands.
        limits = [cursor.last for cursor in active if cursor.has_more]
        if waiting:
            limits.append(waiting[-1][1].first)
        limit = min(limits) if limits else None
        pieces = [cursor.take(limit) for cursor in active]
        pieces = [piece for piece in pieces if len(piece[0])]
        if pieces:
            yield from _merge(pieces)
            active = [cursor for cursor in active if cursor.has_rows]
            continue
        for cursor in active:
            if cursor.has_more and cursor.last == limit:
                cursor.extend()
        while waiting and waiting[-1][1].first == limit:
            number, segment = waiting.pop()
            active.append(_Cursor(folder / segment.name, number, time))
            active.sort(key=lambda cursor: cursor.number)


def _merge(pieces: list[tuple[np.ndarray, list[pa.RecordBatch]]]) -> Iterator[pa.RecordBatch]:
    if len(pieces) == 1:
        yield from pieces[0][1]
        return
    times = np.concatenate([times for times, _ in pieces])
    rows = pa.concat_batches([batch for _, batches in pieces for batch in batches])
    # Runs that are sorted already: a stable sort of them is a merge.
    yield rows.take(pa.array(np.argsort(times, kind="stable")))


class _Cursor:
    """A place in one segment: the rows from here on that have been looked at, with their times."""

    def __init__(self, path: Path, number: int, time: str) -> None:
        self.number, self._time = number, time
        self._reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self._next = 0
        self._held: list[pa.RecordBatch] = []
        self._times = np.empty(0, np.int64)
        self.extend()

    @property
    def has_more(self) -> bool:
        return self._next < self._reader.num_record_batches

    @property
    def has_rows(self) -> bool:
        return len(self._times) > 0 or self.has_more

    @property
    def last(self) -> int:
        return int(self._times[-1])

    def extend(self) -> None:
        """Look at one more piece."""
        batch = self._reader.get_batch(self._next)
        self._next += 1
        self._held.append(batch)
        self._times = np.concatenate((self._times, raw_times(batch.column(self._time), self._time)))

    def take(self, limit: int | None) -> tuple[np.ndarray, list[pa.RecordBatch]]:
        """Times and rows below `limit` (all if None); they are handed over."""
        count = len(self._times) if limit is None else int(np.searchsorted(self._times, limit, "left"))
        times, self._times = self._times[:count], self._times[count:]
        taken: list[pa.RecordBatch] = []
        while count:
            batch = self._held[0]
            size = min(count, batch.num_rows)
            taken.append(batch.slice(0, size))
            if size == batch.num_rows:
                self._held.pop(0)
            else:
                self._held[0] = batch.slice(size)
            count -= size
        if not len(self._times) and self.has_more:
            self.extend()
        return times, taken

"""Columns as raw memory: how they are laid out, written in one pass and read in place.

    | column 0 | pad | column 1 | pad | ...        each begins on a 64-byte boundary

What stays the same from batch to batch (names, types, the shape of a row) is a `Schema`; it travels as a
short text that a reader looks up, so that in the steady state nothing is parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

import msgpack
import numpy as np

from runtime.errors import SpecError

Columns = Mapping[str, np.ndarray]

#: Every column begins on such a boundary.
ALIGN = 64


def up(size: int) -> int:
    """`size` rounded up to a multiple of `ALIGN`."""
    return -(-size // ALIGN) * ALIGN


class Schema:
    """Names, types and row shapes of columns; `blob` is the same as bytes.

    `fit` remembers where columns of the same number of rows went last: batches of one stream mostly have
    the same size.
    """

    __slots__ = ("_fields", "_names", "_shapes", "blob", "places", "rows", "size_bytes")

    def __init__(self, fields: Sequence[tuple[str, str, tuple[int, ...]]]) -> None:
        self._names = [name for name, _, _ in fields]
        self._fields = [(name, np.dtype(dtype), tuple(tail), np.dtype(dtype).itemsize * int(np.prod(tail, dtype=int)))
                        for name, dtype, tail in fields]
        self._shapes: list[tuple[int, ...]] = []
        self.blob: bytes = msgpack.packb(fields)
        self.rows: tuple[int, ...] = (-1,) * len(fields)    # of each column, those that `fit` was last asked for
        self.places: list[int] = []
        self.size_bytes = 0

    @classmethod
    def of(cls, columns: Columns) -> Schema:
        """The schema of `columns`. SpecError if one of them is not of a fixed-width type."""
        for column in columns.values():
            if column.dtype.hasobject:
                raise SpecError(f"a column must have a fixed-width type, got {column.dtype}: convert it first")
            if column.ndim == 0:
                raise SpecError("a column must have a row per item, got a single value: use an array of one")
        return cls([(name, column.dtype.str, column.shape[1:]) for name, column in columns.items()])

    def __len__(self) -> int:
        return len(self._names)

    def fits(self, columns: Columns) -> bool:
        """Whether `columns` have this schema; if so, their `rows`, `places` and `size_bytes` are set."""
        if list(columns) != self._names:
            return False
        same = True
        for column, field, shape in zip_longest(columns.values(), self._fields, self._shapes):
            if column.dtype is not field[1] and column.dtype != field[1]:
                return False
            if column.shape != shape:
                same = False
                if column.shape[1:] != field[2]:
                    return False
        if not same:
            self.fit(tuple(len(column) for column in columns.values()))
        return True

    def fit(self, rows: tuple[int, ...]) -> None:
        """Set `places` and `size_bytes` for columns of so many `rows`."""
        place, self.places, self._shapes = 0, [], []
        for count, (_, _, tail, row_bytes) in zip(rows, self._fields, strict=True):
            self.places.append(place)
            self._shapes.append((count, *tail))
            place += up(count * row_bytes)
        self.rows, self.size_bytes = rows, place

    def views(self, memory: memoryview, place: int) -> list[np.ndarray]:
        """Arrays over the columns at `place` of `memory`."""
        return [np.ndarray(shape, field[1], memory, place + distance if shape[0] else 0)
                for field, shape, distance in zip(self._fields, self._shapes, self.places)]

    def write(self, columns: Columns, memory: memoryview, place: int) -> None:
        """Put `columns`, which `fits` was just asked for, into `memory` from `place` on."""
        for column, view in zip(columns.values(), self.views(memory, place)):
            view[...] = column

    def read(self, rows: tuple[int, ...], memory: memoryview, place: int) -> dict[str, np.ndarray]:
        """The columns at `place` of `memory`, as views."""
        if rows != self.rows:
            self.fit(rows)
        return dict(zip(self._names, self.views(memory, place)))


class Schemas:
    """The schemas that a reader has met, by their text."""

    def __init__(self) -> None:
        self._known: dict[bytes, Schema] = {}

    def __getitem__(self, blob: bytes) -> Schema:
        schema = self._known.get(blob)
        if schema is None:
            schema = self._known[blob] = Schema(msgpack.unpackb(blob, use_list=False))
        return schema

"""What travels between nodes: batches of columns, punctuations, feedback, barriers.

A message becomes bytes in two parts: a small msgpack header and the raw columns. Channels between
processes move the columns as memory, so that a receiver can look at them without a copy; `encode`
and `decode` are the only place that knows the header's layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np

Columns = Mapping[str, np.ndarray]

#: A watermark that no event time reaches: nothing will be admitted any more.
END_OF_TIME = 2**63 - 1
#: A watermark below every event time: nothing is known yet.
START_OF_TIME = -(2**63)


@dataclass(frozen=True, slots=True)
class Batch:
    """Many items (or many results) as columns of equal length.

    `columns` are NumPy arrays of fixed-width types, C-contiguous when they cross a process; the first
    dimension is the item. `stamp_ns` is the monotonic clock at which the newest item entered the
    runtime (0: unknown); `first_row` the source position of the first item when the rows are
    consecutive (-1: they are not, or nobody needs to know). `meta` holds small plain values.
    """

    columns: Columns
    stamp_ns: int = 0
    first_row: int = -1
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        for column in self.columns.values():
            return len(column)
        return 0

    def select(self, chosen: np.ndarray | slice) -> Batch:
        """The items at `chosen` (a mask, indices or a slice), in order; columns are copied unless sliced."""
        return Batch({name: column[chosen] for name, column in self.columns.items()}, self.stamp_ns, -1, self.meta)

    @property
    def size_bytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values())


@dataclass(frozen=True, slots=True)
class Punctuation:
    """No item with an event time below `watermark` (microseconds) follows on this channel."""

    watermark: int
    stamp_ns: int = 0


@dataclass(frozen=True, slots=True)
class Feedback:
    """A worker tells its emitter what it has done; `meta` holds small plain values."""

    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Barrier:
    """Everything before this point belongs to snapshot number `snapshot`."""

    snapshot: int


Message = Batch | Punctuation | Feedback | Barrier

_BATCH, _PUNCTUATION, _FEEDBACK, _BARRIER = range(4)


def encode(message: Message) -> tuple[bytes, list[np.ndarray]]:
    """The header and the columns of `message`; the columns are C-contiguous."""
    if isinstance(message, Batch):
        arrays = [np.ascontiguousarray(column) for column in message.columns.values()]
        layout = [(name, array.dtype.str, array.shape)
                  for name, array in zip(message.columns, arrays, strict=True)]
        return _pack((_BATCH, layout, message.stamp_ns, message.first_row, dict(message.meta))), arrays
    if isinstance(message, Punctuation):
        return _pack((_PUNCTUATION, message.watermark, message.stamp_ns)), []
    if isinstance(message, Feedback):
        return _pack((_FEEDBACK, dict(message.meta))), []
    return _pack((_BARRIER, message.snapshot)), []


def decode(header: bytes | memoryview, buffers: Sequence[memoryview]) -> Message:
    """The message of which `encode` made `header` and, one per column, `buffers`; columns are views."""
    kind, *rest = msgpack.unpackb(header, use_list=False)
    if kind == _BATCH:
        layout, stamp_ns, first_row, meta = rest
        columns = {name: np.frombuffer(buffer, dtype).reshape(shape)
                   for (name, dtype, shape), buffer in zip(layout, buffers, strict=True)}
        return Batch(columns, stamp_ns, first_row, meta)
    if kind == _PUNCTUATION:
        return Punctuation(*rest)
    if kind == _FEEDBACK:
        return Feedback(*rest)
    return Barrier(*rest)


def column_sizes(header: bytes | memoryview) -> list[int]:
    """The size in bytes of each column that `header` announces, in order."""
    kind, *rest = msgpack.unpackb(header, use_list=False)
    if kind != _BATCH:
        return []
    return [int(np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64))) for _, dtype, shape in rest[0]]


def _pack(parts: tuple[Any, ...]) -> bytes:
    packed: bytes = msgpack.packb(parts)
    return packed

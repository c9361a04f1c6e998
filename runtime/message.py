"""What travels between nodes: batches of columns, punctuations, feedback, barriers.

A message becomes bytes in two parts: a small msgpack head and the raw columns (`runtime.columns`).
Channels between processes move the columns as memory, so that a receiver can look at them without a
copy; `encode` and `decode` are the only place that knows what the head holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import msgpack
import numpy as np

from runtime.columns import Columns as Columns

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


class Ref(NamedTuple):
    """Where a chunk of columns lies: the number of its arena, its slab, which writing of it, its rows."""

    arena: int
    start: int
    serial: int
    rows: int


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks of columns that lie in the sender's arena, written once and read in place.

    The sender fills `refs` (from `Arena.write`) and `meta`; who receives it finds the columns of each in
    `chunks`, read-only and good until `process` returns. Between machines the columns themselves travel.
    """

    refs: tuple[Ref, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    stamp_ns: int = 0
    chunks: Sequence[Columns] = ()

    def __len__(self) -> int:
        if self.refs:
            return sum(ref.rows for ref in self.refs)
        return sum(len(next(iter(columns.values()), ())) for columns in self.chunks)


@dataclass(frozen=True, slots=True)
class Shared:
    """A batch for several readers that was written once, into the sender's arena; nodes see the batch."""

    ref: Ref
    stamp_ns: int = 0
    first_row: int = -1
    meta: Mapping[str, Any] = field(default_factory=dict)


Message = Batch | Punctuation | Feedback | Barrier | Chunks | Shared

_BATCH, _PUNCTUATION, _FEEDBACK, _BARRIER, _CHUNKS, _SHARED = range(6)
_NO_COLUMNS: Columns = {}


def encode(message: Message) -> tuple[bytes, Columns]:
    """The head of `message`, and its columns."""
    if isinstance(message, Batch):
        return _pack((_BATCH, message.stamp_ns, message.first_row, message.meta)), message.columns
    if isinstance(message, Punctuation):
        return _pack((_PUNCTUATION, message.watermark, message.stamp_ns)), _NO_COLUMNS
    if isinstance(message, Feedback):
        return _pack((_FEEDBACK, message.meta)), _NO_COLUMNS
    if isinstance(message, Shared):
        return _pack((_SHARED, message.ref, message.stamp_ns, message.first_row, message.meta)), _NO_COLUMNS
    if isinstance(message, Chunks):
        head = (_CHUNKS, message.refs, message.meta, message.stamp_ns, [len(columns) for columns in message.chunks])
        return _pack(head), {f"{number} {name}": column for number, columns in enumerate(message.chunks)
                             for name, column in columns.items()}
    return _pack((_BARRIER, message.snapshot)), _NO_COLUMNS


def decode(head: bytes | memoryview, columns: dict[str, np.ndarray]) -> Message:
    """The message of which `encode` made `head` and `columns`."""
    kind, *rest = msgpack.unpackb(head, use_list=False)
    if kind == _BATCH:
        return Batch(columns, *rest)
    if kind == _PUNCTUATION:
        return Punctuation(*rest)
    if kind == _FEEDBACK:
        return Feedback(*rest)
    if kind == _SHARED:
        ref, *others = rest
        return Shared(Ref(*ref), *others)
    if kind == _CHUNKS:
        refs, meta, stamp_ns, counts = rest
        left = iter(columns.items())
        chunks = [{name.partition(" ")[2]: column for name, column in islice(left, count)} for count in counts]
        return Chunks(tuple(Ref(*ref) for ref in refs), meta, stamp_ns, chunks)
    return Barrier(*rest)


def _pack(parts: tuple[Any, ...]) -> bytes:
    packed: bytes = msgpack.packb(parts, default=_plain)
    return packed


def _plain(value: object) -> object:
    """What msgpack does not know but means the same as something that it knows."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"`meta` must hold plain values, got {type(value).__name__}: convert it first")

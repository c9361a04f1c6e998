"""The arena: chunks of columns in shared memory, written once, read in place by many, given back without locks.

    owner's process                                        readers' processes
    ---------------                                        ------------------
    write ──► slab ─ ref ─ Chunks ──ring──► reader 0 ─ views ─ process ─┐
       ▲        │         └────────ring──► reader 1 ─ views ─ process ─┐│
       │        ▼                                                      ││
    free list ◄─ count of holds, private ◄── free ring 1 ◄─────────────┘│
                                         ◄── free ring 0 ◄──────────────┘

    slab:  | front size | columns | rows of each | schema | pad | column 0 | pad | column 1 | ...
                                                                 64-byte aligned

A slab holds one chunk. Only the owner allocates, counts and frees, so the free list and the counts are
plain private Python: there is no lock and no shared counter. A slab has one hold of the node that wrote
it and one for every message in which it was lent; a reader that is done pushes the slab's place into
its own free ring (single producer, single consumer), the owner drains the rings when it needs room.
Holds may end in any order. In the steady state nothing is asked from the operating system: slabs come
from, and go back to, one piece of memory of fixed size.

*Bounds.* The arena never grows: without room `write` raises and `room` says no, until readers have given
back; the owner's bell rings then. A free ring cannot overflow, because no more slabs are lent at a time
than one ring has slots (`credit`); a message that would exceed it waits at the sender like one for a
full channel. So a reader may also pass its hold on to another reader, who then gives the slab back
through its own ring: a batch that a worker sends on unchanged travels as a ref, it is not copied again.

*Order.* The slab is written before the message with its ref is published with release order, and read
after the message was received with acquire order; the reader's last look at it comes before the free
ring's release store, the owner's next writing after its acquire load. Wake-ups follow the bell's pattern
(`runtime.channel.atomics`).

Reference: M. Torquati et al., "On dynamic memory allocation in sliding-window parallel patterns for
streaming analytics", Journal of Supercomputing 2017 (one queue per consumer back to the allocating
thread; reference counts against copies for multicast); J. Bonwick, "The slab allocator", USENIX 1994.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from runtime.columns import Columns, Schema, Schemas, up
from runtime.errors import FullError, SpecError, StateError
from runtime.extents import Extents
from runtime.message import Ref

_SLAB = 512
_PREFIX = struct.Struct("<q")
#: The views of how many slabs are remembered.
_REMEMBERED = 1024


class WayBack(Protocol):
    """A reader's end of its free ring; see `runtime.channel.segment.FreeRing`."""

    def push(self, starts: Sequence[int]) -> None: ...


class WaysBack(Protocol):
    """The owner's end of all free rings; see `runtime.channel.segment.FreeRings`."""

    def drain(self, arm: bool) -> list[int]: ...


class NoWaysBack:
    """For an arena whose readers are all in its owner's process."""

    def drain(self, arm: bool) -> list[int]:
        return []


@dataclass(slots=True)
class _Slab:
    size: int
    serial: int
    holds: int


class _Memory:
    """Reading of slabs, the same for owner and readers."""

    def __init__(self, memory: memoryview) -> None:
        self._readable = memory.toreadonly()
        self.extent = np.frombuffer(self._readable, np.uint8)       # all of it, to tell whose a view is
        self._known: dict[int, tuple[bytes, Columns]] = {}
        self._schemas = Schemas()

    def view(self, ref: Ref) -> Columns:
        """The columns of `ref`, read-only views; dead once the slab was given back."""
        memory, start = self._readable, ref.start
        size, = _PREFIX.unpack_from(memory, start)
        front = memory[start + _PREFIX.size:start + size].tobytes()
        # Slabs are used again and again for chunks of the same shape: their views can be, too.
        known = self._known.get(start)
        if known is not None and known[0] == front:
            return known[1]
        count, = _PREFIX.unpack_from(front)
        rows = struct.unpack_from(f"<{count}q", front, _PREFIX.size)
        columns = self._schemas[front[_PREFIX.size + 8 * count:]].read(rows, memory, start + up(size))
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[start] = front, columns
        return columns


class ArenaReader(_Memory):
    """A reader's side: looks at slabs and gives them back."""

    def __init__(self, memory: memoryview, way_back: WayBack) -> None:
        super().__init__(memory)
        self._way_back = way_back

    def give_back(self, refs: Sequence[Ref]) -> None:
        """This process looks at `refs` no more, for one message in which they were lent."""
        self._way_back.push([ref.start for ref in refs])


class Arena(_Memory):
    """The owner's side. A node uses `room`, `write`, `free` and `view`; the rest is its host's.

    `ways_back` are the free rings of other processes, each with `slots`; readers in the owner's own
    process call `give_back`.
    """

    def __init__(self, number: int, memory: memoryview, ways_back: WaysBack, slots: int = 0) -> None:
        super().__init__(memory)
        self._number, self._writable, self._ways_back = number, memory, ways_back
        self._free = Extents(len(memory) // _SLAB * _SLAB)
        self._slabs: dict[int, _Slab] = {}
        self._dropped: list[Ref] = []
        self._schema = Schema(())                   # of the last chunk
        self._lent = 0
        self._slots, self._serial = slots, 0
        self.capacity_bytes = self._free.size
        self.peak_bytes = 0

    @classmethod
    def local(cls, number: int, size_bytes: int) -> Arena:
        """An arena for nodes that all run in this process."""
        return cls(number, memoryview(mmap.mmap(-1, max(size_bytes, _SLAB))), NoWaysBack())

    # -- for the node ---------------------------------------------------------------------------

    def need(self, columns: Columns) -> int:
        """How many bytes `write(columns)` takes."""
        return self._plan(columns)[1]

    def room(self, size_bytes: int) -> bool:
        """Whether a chunk that needs `size_bytes` can be written now; if not, the bell rings when slabs come back."""
        size_bytes = -(-size_bytes // _SLAB) * _SLAB
        if self._free.largest() >= size_bytes:
            return True
        self._check_size(size_bytes)
        self.collect(arm=True)
        return self._free.largest() >= size_bytes

    def write(self, columns: Columns) -> Ref:
        """Copy `columns` into a slab of their own, which the node holds until it calls `free`.

        FullError if there is no room now, SpecError if there never can be.
        """
        front, size = self._plan(columns)
        if not self.room(size):
            raise FullError(f"the arena of {self.capacity_bytes} bytes has no {size} bytes in one piece now "
                            f"({self._free.free} are free): ask `room` first, or give the node more `arena_bytes`")
        return self._put(columns, front, size)

    def try_write(self, columns: Columns) -> Ref | None:
        """As `write`, but None if there is no room now, or never."""
        front, size = self._plan(columns)
        if size > self.capacity_bytes or not self.room(size):
            return None
        return self._put(columns, front, size)

    def _put(self, columns: Columns, front: bytes, size: int) -> Ref:
        self.collect()      # what came back last is still in the processor's cache: use it again first
        start, rows = self._free.take(size), self._schema.rows
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        self._writable[start:start + len(front)] = front
        self._schema.write(columns, self._writable, start + up(len(front)))
        self._serial += 1
        self._slabs[start] = _Slab(size, self._serial, 1)
        return Ref(self._number, start, self._serial, rows[0] if rows else 0)

    def free(self, ref: Ref) -> None:
        """Let go of `ref`: its slab is used again when nobody else holds it.

        Takes effect when the node's call is over and what it emitted was taken, so that a chunk may be
        written, emitted and let go in one call.
        """
        self._dropped.append(ref)

    # -- for the host ---------------------------------------------------------------------------

    def lend(self, refs: Iterable[Ref]) -> None:
        """A message with `refs` goes out to one reader."""
        for ref in refs:
            self._slab(ref).holds += 1

    def credit(self, count: int) -> bool:
        """Whether `count` slabs more may be lent; if not, the bell rings when some come back."""
        if count > self._slots:
            raise SpecError(f"a message must not name more than {self._slots} chunks, got {count}: use larger chunks")
        if self._lent + count <= self._slots:
            return True
        self.collect(arm=True)
        return self._lent + count <= self._slots

    def sent(self, count: int) -> None:
        """A message with `count` refs was sent to another process."""
        self._lent += count

    def give_back(self, refs: Iterable[Ref]) -> None:
        """A reader in this process is done with `refs`, or they were not sent after all."""
        for ref in refs:
            self._slab(ref)
            self._end_hold(ref.start)

    def settle(self) -> None:
        """Let go of what the node has called `free` for."""
        for ref in self._dropped:
            self._slab(ref)
            self._end_hold(ref.start)
        self._dropped.clear()

    def collect(self, arm: bool = False) -> int:
        """Take in what readers have given back; returns how many holds ended."""
        starts = self._ways_back.drain(arm)
        self._lent -= len(starts)
        for start in starts:
            self._end_hold(start)
        return len(starts)

    @property
    def used_bytes(self) -> int:
        """Bytes in slabs, as far as the owner knows: `collect` first to know more."""
        return self.capacity_bytes - self._free.free

    # -- inside ---------------------------------------------------------------------------------

    def _plan(self, columns: Columns) -> tuple[bytes, int]:
        """What stands at the front of the slab, and the slab's size; leaves the schema in `_schema`."""
        schema = self._schema
        if not schema.fits(columns):
            schema = self._schema = Schema.of(columns)
            schema.fits(columns)
        rows, blob = schema.rows, schema.blob
        front = struct.pack(f"<qq{len(rows)}q", 16 + 8 * len(rows) + len(blob), len(rows), *rows) + blob
        return front, -(-(up(len(front)) + schema.size_bytes) // _SLAB) * _SLAB

    def _check_size(self, size: int) -> None:
        if size > self.capacity_bytes:
            raise SpecError(f"a chunk must not need more than the arena's {self.capacity_bytes} bytes, got {size}: "
                            "write smaller chunks, or give the node more `arena_bytes`")

    def _slab(self, ref: Ref) -> _Slab:
        slab = self._slabs.get(ref.start)
        if ref.arena != self._number or slab is None or slab.serial != ref.serial:
            raise StateError(f"{ref} is not, or no more, in arena {self._number}: it was let go before")
        return slab

    def _end_hold(self, start: int) -> None:
        slab = self._slabs[start]
        slab.holds -= 1
        if slab.holds == 0:
            del self._slabs[start]
            self._free.put(start, slab.size)

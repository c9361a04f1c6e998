"""The arena: chunks of columns in shared memory, written once, read in place by many, given back without locks.

    owner's process                                        readers' processes
    ---------------                                        ------------------
    write ──► slab ─ ref ─ Chunks ──ring──► reader 0 ─ views ─ process ─┐
       ▲        │         └────────ring──► reader 1 ─ views ─ process ─┐│
       │        ▼                                                      ││
    free list ◄─ count of holds, private ◄── free ring 1 ◄─────────────┘│
                                         ◄── free ring 0 ◄──────────────┘

    slab:  | header size | msgpack: names, types, shapes | pad | column 0 | pad | column 1 | ...
                                                              64-byte aligned

A slab holds one chunk. Only the owner allocates, counts and frees, so the free list and the counts are
plain private Python: there is no lock and no shared counter. A slab has one hold of the node that wrote
it and one for every message in which it was lent; a reader that is done pushes the slab's place into
its own free ring (single producer, single consumer), the owner drains the rings when it needs room.
Holds may end in any order. In the steady state nothing is asked from the operating system: slabs come
from, and go back to, one piece of memory of fixed size.

*Bounds.* The arena never grows: without room `write` raises and `room` says no, until readers have given
back; the owner's bell rings then. A free ring cannot overflow, because a reader is lent no more slabs at
a time than its ring has slots (`credit`); a message that would exceed it waits at the sender like one
for a full channel.

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgpack
import numpy as np

from runtime.errors import FullError, SpecError, StateError
from runtime.extents import Extents
from runtime.message import Columns, Ref, put_together, raw_bytes, taken_apart

_ALIGN, _SLAB = 64, 512
_SIZE = struct.Struct("<q")
#: How many resolved chunks a reader remembers: overlapping windows name the same ones again and again.
_REMEMBERED = 512


class Returns(Protocol):
    """The way back from one reader; see `runtime.channel.segment.FreeRing`."""

    def push(self, starts: Sequence[int]) -> None: ...

    def drain(self, arm: bool) -> list[int]: ...


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
        self._known: dict[int, Columns] = {}

    def view(self, ref: Ref) -> Columns:
        """The columns of `ref`, read-only views; dead once the slab was given back."""
        columns = self._known.get(ref.serial)
        if columns is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            columns = self._known[ref.serial] = self._read(ref.start)
        return columns

    def _read(self, start: int) -> Columns:
        memory = self._readable
        size, = _SIZE.unpack_from(memory, start)
        layout, sizes = msgpack.unpackb(memory[start + 8:start + 8 + size], use_list=False)
        place, buffers = start + _up(8 + size), []
        for size in sizes:
            buffers.append(memory[place:place + size])
            place += _up(size)
        return put_together(layout, buffers)


class ArenaReader(_Memory):
    """A reader's side: looks at slabs and gives them back."""

    def __init__(self, memory: memoryview, returns: Returns) -> None:
        super().__init__(memory)
        self._returns = returns

    def give_back(self, refs: Sequence[Ref]) -> None:
        """This process looks at `refs` no more, for one message in which they were lent."""
        self._returns.push([ref.start for ref in refs])


class Arena(_Memory):
    """The owner's side. A node uses `room`, `write`, `free` and `view`; the rest is its host's.

    `returns` are the ways back by reader; readers in the owner's own process call `give_back`.
    """

    def __init__(self, number: int, memory: memoryview, returns: Mapping[int, Returns],
                 slots: int = 0) -> None:
        super().__init__(memory)
        self._number, self._writable, self._returns = number, memory, returns
        self._free = Extents(len(memory) // _SLAB * _SLAB)
        self._slabs: dict[int, _Slab] = {}
        self._dropped: list[Ref] = []
        self._lent = dict.fromkeys(returns, 0)
        self._slots, self._serial = slots, 0
        self.capacity_bytes = self._free.size
        self.peak_bytes = 0

    @classmethod
    def local(cls, number: int, size_bytes: int) -> Arena:
        """An arena for nodes that all run in this process."""
        return cls(number, memoryview(mmap.mmap(-1, max(size_bytes, _SLAB))), {})

    # -- for the node ---------------------------------------------------------------------------

    def need(self, columns: Columns) -> int:
        """How many bytes `write(columns)` takes."""
        layout, arrays = taken_apart(columns)
        sizes = [array.nbytes for array in arrays]
        return _slab_size(_header(layout, sizes), sizes)

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
        layout, arrays = taken_apart(columns)
        sizes = [array.nbytes for array in arrays]
        header = _header(layout, sizes)
        size = _slab_size(header, sizes)
        start = self._allocate(size)
        memory, place = self._writable, start + _up(len(header))
        memory[start:start + len(header)] = header
        for array, nbytes in zip(arrays, sizes, strict=True):
            if nbytes:
                memory[place:place + nbytes] = raw_bytes(array)
            place += _up(nbytes)
        self._serial += 1
        self._slabs[start] = _Slab(size, self._serial, 1)
        return Ref(self._number, start, self._serial, len(arrays[0]) if arrays else 0)

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

    def credit(self, reader: int, count: int) -> bool:
        """Whether `reader` may be lent `count` slabs more; if not, the bell rings when some come back."""
        if count > self._slots:
            raise SpecError(f"a message must not name more than {self._slots} chunks, got {count}: use larger chunks")
        if self._lent[reader] + count <= self._slots:
            return True
        self.collect(arm=True)
        return self._lent[reader] + count <= self._slots

    def sent(self, reader: int, count: int) -> None:
        """A message with `count` refs was sent to `reader`."""
        self._lent[reader] += count

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
        count = 0
        for reader, returns in self._returns.items():
            starts = returns.drain(arm)
            self._lent[reader] -= len(starts)
            count += len(starts)
            for start in starts:
                self._end_hold(start)
        return count

    @property
    def used_bytes(self) -> int:
        """Bytes in slabs, as far as the owner knows: `collect` first to know more."""
        return self.capacity_bytes - self._free.free

    # -- inside ---------------------------------------------------------------------------------

    def _allocate(self, size: int) -> int:
        if not self.room(size):
            raise FullError(f"the arena of {self.capacity_bytes} bytes has no {size} bytes in one piece now "
                            f"({self._free.free} are free): ask `room` first, or give the node more `arena_bytes`")
        start = self._free.take(size)
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return start

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


def _header(layout: object, sizes: Sequence[int]) -> bytes:
    packed: bytes = msgpack.packb((layout, sizes))
    return _SIZE.pack(len(packed)) + packed


def _slab_size(header: bytes, sizes: Sequence[int]) -> int:
    return -(-(_up(len(header)) + sum(map(_up, sizes))) // _SLAB) * _SLAB


def _up(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN

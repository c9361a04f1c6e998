"""One piece of shared memory per run and machine: bells, statistics words, rings and arenas.

    +---------+--------------------------+     +----------------+     +--------+     +-------------------------+
    | control | node 0: bell | words ... | ... | ring 0: header | ... | data 0 | ... | free rings 0 | memory 0 | ...
    +---------+--------------------------+     +----------------+     +--------+     +-------------------------+
      magic, token, abort                                                              arena 0

The memory has no name in any file system: it is a `memfd`, other processes of the same user open it
through `/proc/<creator>/fd/<n>`. The kernel frees it when the last process that maps it is gone,
however that process ends, so nothing can be left behind. Its size is sealed: nobody can cut it off
under a reader.

Addresses inside the segment are relative to where each process has mapped it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from runtime.channel import atomics
from runtime.channel.contract import AnyBell
from runtime.errors import ClosedError, SpecError

if TYPE_CHECKING:
    from runtime.arena import Arena, ArenaReader
    from runtime.channel.ring import RingReceiver, RingSender

_MAGIC, _VERSION = 0x6D72_6166_776F_6477, 1
_CONTROL_BYTES, _ABORT = 4096, 128
_CONTROL = struct.Struct("<qqqq")                   # magic, version, token, size
_LINE, _PAGE = 128, 4096
_LEAST_CAPACITY = 1024
_FREE_RING = atomics.FREE_HEADER + 8 * atomics.FREE_SLOTS


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass(frozen=True)
class RingSpec:
    """A ring from node `producer` to node `consumer` that holds up to `capacity_bytes` (rounded up to 64)."""

    producer: int
    consumer: int
    capacity_bytes: int

    def __post_init__(self) -> None:
        if self.capacity_bytes < _LEAST_CAPACITY:
            raise SpecError(f"`capacity_bytes` of a ring must be at least {_LEAST_CAPACITY}, "
                            f"got {self.capacity_bytes}: give it a larger one")


@dataclass(frozen=True)
class ArenaSpec:
    """An arena of node `owner` (`capacity_bytes`, rounded up to a page) with a free ring for each of `readers`."""

    owner: int
    readers: tuple[int, ...]
    capacity_bytes: int

    def __post_init__(self) -> None:
        if self.capacity_bytes < _PAGE:
            raise SpecError(f"`capacity_bytes` of an arena must be at least {_PAGE}, "
                            f"got {self.capacity_bytes}: give it a larger one")


@dataclass(frozen=True)
class SegmentLayout:
    """What a segment holds: `nodes` bells, each with `words` int64 statistics, `rings` and `arenas`."""

    nodes: int
    rings: tuple[RingSpec, ...]
    words: int = 64
    arenas: tuple[ArenaSpec, ...] = ()

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.words < 0:
            raise SpecError(f"`nodes` must be at least 1 and `words` at least 0, "
                            f"got {self.nodes} and {self.words}")
        for number, ring in enumerate(self.rings):
            if not (0 <= ring.producer < self.nodes and 0 <= ring.consumer < self.nodes):
                raise SpecError(f"ring {number} must join nodes below `nodes` = {self.nodes}, "
                                f"got {ring.producer} -> {ring.consumer}")
        for number, arena in enumerate(self.arenas):
            if not all(0 <= node < self.nodes for node in (arena.owner, *arena.readers)):
                raise SpecError(f"arena {number} must join nodes below `nodes` = {self.nodes}, "
                                f"got {arena.owner} and {arena.readers}")

    @property
    def _node_bytes(self) -> int:
        return atomics.BELL_SIZE + _up(8 * self.words, _LINE)

    def bell_offset(self, node: int) -> int:
        """Where the bell of `node` stands; its words stand right behind it."""
        if not 0 <= node < self.nodes:
            raise SpecError(f"`node` must be below {self.nodes}, got {node}")
        return _CONTROL_BYTES + node * self._node_bytes

    def ring_offset(self, ring: int) -> int:
        """Where the header of `ring` stands."""
        if not 0 <= ring < len(self.rings):
            raise SpecError(f"`ring` must be below {len(self.rings)}, got {ring}")
        return _CONTROL_BYTES + self.nodes * self._node_bytes + ring * atomics.RING_HEADER

    @cached_property
    def data_offsets(self) -> tuple[int, ...]:
        """Where the data of each ring begin, and at last where the segment ends."""
        return tuple(self._data_offsets())

    def _data_offsets(self) -> Iterator[int]:
        offset = _CONTROL_BYTES + self.nodes * self._node_bytes + len(self.rings) * atomics.RING_HEADER
        for ring in self.rings:
            offset = _up(offset, _PAGE)
            yield offset
            offset += _up(ring.capacity_bytes, atomics.ALIGN)
        yield _up(offset, _PAGE)

    @cached_property
    def arena_offsets(self) -> tuple[int, ...]:
        """Where the free rings of each arena begin (its memory stands behind them), and the segment's end."""
        offsets = [self.data_offsets[-1]]
        for arena in self.arenas:
            offsets.append(offsets[-1] + self._free_rings_bytes(arena) + _up(arena.capacity_bytes, _PAGE))
        return tuple(offsets)

    @staticmethod
    def _free_rings_bytes(arena: ArenaSpec) -> int:
        return _up(len(arena.readers) * _FREE_RING, _PAGE)

    def free_ring_offset(self, arena: int, reader: int) -> int:
        """Where the free ring from node `reader` to the owner of `arena` stands."""
        return self.arena_offsets[arena] + self.arenas[arena].readers.index(reader) * _FREE_RING

    def arena_memory(self, arena: int) -> tuple[int, int]:
        """Where the memory of `arena` begins and ends."""
        return self.arena_offsets[arena] + self._free_rings_bytes(self.arenas[arena]), self.arena_offsets[arena + 1]

    @property
    def size_bytes(self) -> int:
        return self.arena_offsets[-1]


@dataclass(frozen=True)
class SegmentAddress:
    """How another process of the same user and machine finds a segment; small, can be pickled."""

    name: str
    pid: int
    fd: int
    token: int
    layout: SegmentLayout


def holders(address: SegmentAddress) -> list[int]:
    """The other processes of this user that have the segment at `address` open."""
    name, found = f"memfd:{memory_name(address.name)} ", []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if pid != os.getpid() and any(name in os.readlink(f"/proc/{pid}/fd/{fd}")
                                          for fd in os.listdir(f"/proc/{pid}/fd")):
                found.append(pid)
        except OSError:
            continue                                # it has ended meanwhile, or is somebody else's
    return found


def memory_name(name: str) -> str:
    """What the kernel calls the memory of segment `name`."""
    return f"windowfarm-{name}"[:200]


class Bell(AnyBell):
    """The bell of one node in a segment: a futex."""

    def __init__(self, segment: Segment, node: int) -> None:
        self._segment = segment                     # keeps the memory mapped
        self._bell = segment.base + segment.layout.bell_offset(node)
        self._timespec = np.zeros(2, np.int64)
        self._timespec_at = int(self._timespec.ctypes.data)

    def ring(self) -> None:
        atomics.bell_ring(self._bell)

    def value(self) -> int:
        return atomics.bell_value(self._bell)

    def wait(self, seen: int, timeout_s: float | None) -> bool:
        if timeout_s is None:
            return atomics.bell_wait(self._bell, seen, 0) == 1
        seconds = max(timeout_s, 0.0)
        self._timespec[0] = int(seconds)
        self._timespec[1] = int((seconds - int(seconds)) * 1e9)
        return atomics.bell_wait(self._bell, seen, self._timespec_at) == 1

    @property
    def sleeps(self) -> int:
        """How often anybody went to sleep on this bell."""
        return atomics.word_get(self._bell + atomics.SLEEPS)

    @property
    def sleepers(self) -> int:
        """How many sleep on this bell now."""
        return atomics.word_get(self._bell + atomics.SLEEPERS)


class FreeRing:
    """The way back of an arena's slabs: node `reader` pushes; single producer, single consumer."""

    def __init__(self, segment: Segment, arena: int, reader: int) -> None:
        self._segment = segment                     # keeps the memory mapped
        self._ring = segment.base + segment.layout.free_ring_offset(arena, reader)
        self._values = np.zeros(atomics.FREE_SLOTS, np.int64)
        self._values_at = int(self._values.ctypes.data)

    def push(self, starts: Sequence[int]) -> None:
        """Hand the slabs at `starts` back."""
        self._values[:len(starts)] = starts
        atomics.free_push(self._ring, self._values_at, len(starts))


class FreeRings:
    """The owner's end of all free rings of an arena."""

    def __init__(self, segment: Segment, arena: int) -> None:
        self._segment = segment
        self._rings, self._count = segment.base + segment.layout.arena_offsets[arena], len(
            segment.layout.arenas[arena].readers)
        self._values = np.zeros(atomics.FREE_SLOTS, np.int64)
        self._values_at = int(self._values.ctypes.data)

    def drain(self, arm: bool) -> list[int]:
        """All slabs that were handed back; with `arm`, the next push rings the owner's bell."""
        count = atomics.free_drain(self._rings, self._count, self._values_at, arm)
        if not count:
            return []
        slabs: list[int] = self._values[:count].tolist()
        return slabs


class Segment:
    """A mapped segment. Make one with `create`, give its `address` to other processes, they `attach`."""

    def __init__(self, fd: int, address: SegmentAddress) -> None:
        self.address = address
        self.layout = address.layout
        self._fd = fd
        self.memory = mmap.mmap(fd, self.layout.size_bytes)
        self.base = int(np.frombuffer(self.memory, np.uint8).ctypes.data)

    @classmethod
    def create(cls, name: str, layout: SegmentLayout) -> Segment:
        """A new segment; it lives until its creator closes it and nobody maps it any more."""
        fd = os.memfd_create(memory_name(name), os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, layout.size_bytes)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        segment = cls(fd, SegmentAddress(name, os.getpid(), fd, secrets.randbits(62), layout))
        for number in range(len(layout.rings)):
            segment._prepare_ring(number)
        for number, arena in enumerate(layout.arenas):
            for reader in arena.readers:
                ring = layout.free_ring_offset(number, reader)
                struct.pack_into("<q", segment.memory, ring + atomics.FREE_BELL, layout.bell_offset(arena.owner) - ring)
        _CONTROL.pack_into(segment.memory, 0, _MAGIC, _VERSION, segment.address.token, layout.size_bytes)
        return segment

    @classmethod
    def attach(cls, address: SegmentAddress) -> Segment:
        """The segment at `address`, mapped into this process. ClosedError if it is there no more."""
        try:
            fd = os.open(f"/proc/{address.pid}/fd/{address.fd}", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise ClosedError(f"segment `{address.name}` is gone: process {address.pid} ended or closed it "
                              f"({error.strerror})") from error
        wanted = (_MAGIC, _VERSION, address.token, address.layout.size_bytes)
        head = os.pread(fd, _CONTROL.size, 0)
        if len(head) < _CONTROL.size or _CONTROL.unpack(head) != wanted:
            os.close(fd)
            raise ClosedError(f"segment `{address.name}` is gone: process {address.pid} is another one now")
        return cls(fd, address)

    def _prepare_ring(self, number: int) -> None:
        layout, spec, ring = self.layout, self.layout.rings[number], self.layout.ring_offset(number)
        fixed = {atomics.CAPACITY: _up(spec.capacity_bytes, atomics.ALIGN),
                 atomics.DATA: layout.data_offsets[number] - ring,
                 atomics.PRODUCER_BELL: layout.bell_offset(spec.producer) - ring,
                 atomics.CONSUMER_BELL: layout.bell_offset(spec.consumer) - ring,
                 atomics.ABORT: _ABORT - ring,
                 atomics.WANT_SPACE: atomics.NEVER}
        for place, value in fixed.items():
            struct.pack_into("<q", self.memory, ring + place, value)

    def sender(self, ring: int) -> RingSender:
        """The producer's end of `ring`, from now on this process's. StateError if a live process has it."""
        from runtime.channel.ring import RingSender
        return RingSender(self, ring)

    def receiver(self, ring: int) -> RingReceiver:
        """The consumer's end of `ring`, from now on this process's. StateError if a live process has it."""
        from runtime.channel.ring import RingReceiver
        return RingReceiver(self, ring)

    def arena(self, number: int) -> Arena:
        """The owner's side of arena `number`."""
        from runtime.arena import Arena
        return Arena(number, self.arena_memory(number), FreeRings(self, number), atomics.FREE_SLOTS)

    def arena_reader(self, number: int, node: int) -> ArenaReader:
        """The side of arena `number` that `node` reads."""
        from runtime.arena import ArenaReader
        return ArenaReader(self.arena_memory(number), FreeRing(self, number, node))

    def arena_memory(self, number: int) -> memoryview:
        """The memory of arena `number`."""
        start, end = self.layout.arena_memory(number)
        return memoryview(self.memory)[start:end]

    def queued_bytes(self, ring: int) -> int:
        """What lies in `ring`: sent and not released yet."""
        start = self.base + self.layout.ring_offset(ring)
        head = atomics.word_get(start + atomics.HEAD)           # before TAIL, so that it is never negative
        return atomics.word_get(start + atomics.TAIL) - head

    def bell(self, node: int) -> Bell:
        """The bell of `node`."""
        return Bell(self, node)

    def words(self, node: int) -> np.ndarray:
        """The statistics of `node`: int64, shared. One process writes, anybody reads."""
        start = self.layout.bell_offset(node) + atomics.BELL_SIZE
        return np.frombuffer(self.memory, np.int64, self.layout.words, start)

    def abort(self) -> None:
        """Make every send and receive in this segment raise AbortedError, and wake all who wait."""
        atomics.word_put(self.base + _ABORT, 1)
        for node in range(self.layout.nodes):
            atomics.bell_ring(self.base + self.layout.bell_offset(node))

    @property
    def aborted(self) -> bool:
        return atomics.word_get(self.base + _ABORT) != 0

    @property
    def size_bytes(self) -> int:
        return self.layout.size_bytes

    def close(self) -> None:
        """Let go of the segment. If this process created it, nobody can attach any more.

        The memory stays mapped as long as a ring's end, a bell or a received column is in use, so that
        none of them can touch memory that is gone. May be called again.
        """
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Segment:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            os.close(self._fd)

"""The two ends of a shared-memory ring: messages as a header and raw columns, read in place.

    data:  | record | record | ...free... | record | skip |
                    ^ TAIL                ^ HEAD    the rest was too short for the next record

    record, begins on a 64-byte boundary and never wraps:
    +--------+-----------+-------------+---------+--------------+------+--------+-----+----------+-----+-----
    | length | head size | schema size | columns | rows of each | head | schema | pad | column 0 | pad | ...
    +--------+-----------+-------------+---------+--------------+------+--------+-----+----------+-----+-----
      int64    int32       int32         int64     int64 each     msgpack               64-byte aligned

A record becomes visible by one store of TAIL after all of it was written: a producer that is killed in
the middle leaves nothing to see. Its memory is used again after the consumer's store of HEAD. Why this
is right on any processor, and why no wake-up is lost, is argued at the head of `atomics`.
"""

from __future__ import annotations

import struct
from typing import NoReturn

from runtime.channel import atomics
from runtime.channel.contract import AbortedError, PeerDiedError, wait_for
from runtime.channel.liveness import alive, own_identity
from runtime.channel.segment import Segment
from runtime.columns import Schema, Schemas, up
from runtime.errors import ClosedError, StateError, TooLargeError
from runtime.message import Message, decode, encode

_PREFIX = struct.Struct("<qiiq")
_ROWS = [struct.Struct(f"<{count}q") for count in range(65)]
_NO_COLUMNS = Schema(())


class _Frame:
    """A message taken apart: what stands at the front of its record, its columns, and where they go."""

    __slots__ = ("columns", "front", "place", "schema", "size_bytes")

    def __init__(self, message: Message, last: Schema) -> None:
        head, columns = encode(message)
        self.columns = columns
        if not columns:
            self.schema = last
            front = _PREFIX.size + len(head)
            self.size_bytes = up(front)
            self.front = _PREFIX.pack(self.size_bytes, len(head), 0, 0) + head
            return
        if not last.fits(columns):
            last = Schema.of(columns)
            last.fits(columns)
        self.schema, rows, blob = last, last.rows, last.blob
        self.place = up(_PREFIX.size + 8 * len(rows) + len(head) + len(blob))
        self.size_bytes = self.place + last.size_bytes
        self.front = b"".join((_PREFIX.pack(self.size_bytes, len(head), len(blob), len(rows)),
                               _rows(len(rows)).pack(*rows), head, blob))

    def write(self, memory: memoryview, start: int) -> None:
        """Put the record at `start`."""
        memory[start:start + len(self.front)] = self.front
        if self.columns:
            self.schema.write(self.columns, memory, start + self.place)


def _rows(count: int) -> struct.Struct:
    return _ROWS[count] if count < len(_ROWS) else struct.Struct(f"<{count}q")


class _End:
    """What both ends have in common: where the ring is, who is at the other end."""

    def __init__(self, segment: Segment, ring: int, own_pid: int, peer_pid: int, peer: str) -> None:
        spec = segment.layout.rings[ring]
        self._segment = segment                     # keeps the memory mapped
        self._number = ring
        self._ring = segment.base + segment.layout.ring_offset(ring)
        self._data = segment.layout.data_offsets[ring]
        self._peer_pid, self._peer = peer_pid, peer
        self._name = f"ring {ring} (node {spec.producer} -> node {spec.consumer}) of `{segment.address.name}`"
        self.capacity_bytes = self._word(atomics.CAPACITY)
        self._take(own_pid)

    def _word(self, place: int) -> int:
        return atomics.word_get(self._ring + place)

    def _take(self, place: int) -> None:
        """Write down that this process has this end: its number at `place`, its start time behind it."""
        pid, started = own_identity()
        owner, owner_started = self._word(place), self._word(place + 8)
        if owner not in (0, pid) and alive(owner, owner_started):
            raise StateError(f"this end of {self._name} belongs to process {owner}, which is alive")
        atomics.word_put(self._ring + place + 8, started)
        atomics.word_put(self._ring + place, pid)

    def _peer_died(self) -> bool:
        pid = self._word(self._peer_pid)
        return pid != 0 and not alive(pid, self._word(self._peer_pid + 8))

    def _raise_died(self) -> NoReturn:
        raise PeerDiedError(f"the {self._peer} of {self._name} is gone: "
                            f"process {self._word(self._peer_pid)} ended without a close")

    def _raise_aborted(self) -> NoReturn:
        raise AbortedError(f"{self._name} was aborted")

    @property
    def queued_bytes(self) -> int:
        head = self._word(atomics.HEAD)             # before TAIL, so that the difference is never negative
        return self._word(atomics.TAIL) - head


class RingSender(_End):
    """The producer's end of a ring; see `contract.Sender`. One thread of one process uses it."""

    def __init__(self, segment: Segment, ring: int) -> None:
        super().__init__(segment, ring, atomics.PRODUCER_PID, atomics.CONSUMER_PID, "consumer")
        self.bell = segment.bell(segment.layout.rings[ring].producer)
        self._schema = _NO_COLUMNS                  # of the last batch: the next one most likely has the same
        self._memory = memoryview(segment.memory)[self._data:self._data + self.capacity_bytes]
        self._closed = False

    def try_send(self, message: Message) -> bool:
        return self._offer(self._frame(message)) is not None

    def send(self, message: Message, timeout_s: float | None = None) -> None:
        frame = self._frame(message)
        if self._offer(frame) or wait_for(lambda: self._offer(frame), self.bell, (self,), timeout_s):
            return
        raise TimeoutError(f"{self._name} was full for {timeout_s} s: its consumer does not keep up")

    def _frame(self, message: Message) -> _Frame:
        frame = _Frame(message, self._schema)
        self._schema = frame.schema
        if 2 * frame.size_bytes > self.capacity_bytes:
            raise TooLargeError(f"a message for {self._name} must not take more than half of its "
                                f"{self.capacity_bytes} bytes, got {frame.size_bytes}: send smaller batches or "
                                f"give the ring `capacity_bytes` of {2 * frame.size_bytes} at least")
        return frame

    def _offer(self, frame: _Frame) -> bool | None:
        if self._closed:
            raise ClosedError(f"{self._name} was closed by this producer: nothing can be sent any more")
        start = atomics.ring_reserve(self._ring, frame.size_bytes)
        if start < 0:
            self._refused(start)
            return None
        frame.write(self._memory, start)
        atomics.ring_publish(self._ring, frame.size_bytes)
        return True

    def _refused(self, answer: int) -> None:
        if answer == atomics.ABORTED:
            self._raise_aborted()
        if answer == atomics.CLOSED:
            raise ClosedError(f"{self._name} was closed by its consumer: nobody receives any more")

    def check_peer(self) -> None:
        if self._word(atomics.CONSUMER_CLOSED) == 0 and self._peer_died():
            self._raise_died()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            atomics.word_put(self._ring + atomics.PRODUCER_CLOSED, 1)
            self._segment.bell(self._segment.layout.rings[self._number].consumer).ring()


class RingReceiver(_End):
    """The consumer's end of a ring; see `contract.Receiver`. One thread of one process uses it.

    A receiver that takes over from one that died begins with the first record that was not released.
    """

    def __init__(self, segment: Segment, ring: int) -> None:
        super().__init__(segment, ring, atomics.CONSUMER_PID, atomics.PRODUCER_PID, "producer")
        self.bell = segment.bell(segment.layout.rings[ring].consumer)
        self.exhausted = False
        self._schemas = Schemas()
        self._memory = memoryview(segment.memory)[self._data:self._data + self.capacity_bytes].toreadonly()
        self._closed = False
        atomics.word_put(self._ring + atomics.READ, self._word(atomics.HEAD))
        atomics.word_put(self._ring + atomics.SEEN_TAIL, self._word(atomics.HEAD))

    def try_receive(self) -> Message | None:
        start = atomics.ring_poll(self._ring)
        if start < 0:
            self._nothing(start)
            return None
        memory = self._memory
        _, head_size, schema_size, count = _PREFIX.unpack_from(memory, start)
        if not count:
            place = start + _PREFIX.size
            return decode(memory[place:place + head_size], {})
        rows = _rows(count).unpack_from(memory, start + _PREFIX.size)
        place = start + _PREFIX.size + 8 * count
        head = memory[place:place + head_size]
        place += head_size
        schema = self._schemas[memory[place:place + schema_size].tobytes()]
        return decode(head, schema.read(rows, memory, up(place + schema_size)))

    def _nothing(self, answer: int) -> None:
        if answer == atomics.ABORTED:
            self._raise_aborted()
        if answer == atomics.CLOSED:
            self.exhausted = True
            raise ClosedError(f"{self._name} is at its end: closed by its producer and drained")

    def release(self) -> None:
        atomics.ring_release(self._ring)

    def check_peer(self) -> None:
        if self.exhausted or not self._peer_died():
            return
        drained = self._word(atomics.READ) == self._word(atomics.TAIL)      # nobody moves TAIL any more
        if drained and self._word(atomics.PRODUCER_CLOSED) == 0:
            self._raise_died()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            atomics.word_put(self._ring + atomics.CONSUMER_CLOSED, 1)
            self._segment.bell(self._segment.layout.rings[self._number].producer).ring()

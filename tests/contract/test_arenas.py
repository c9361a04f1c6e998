"""Chunks between real processes: written once, read by several, given back in any order, never torn."""

from __future__ import annotations

import random

import numpy as np
import pytest

from runtime.arena import Arena
from runtime.channel.contract import wait_for
from runtime.channel.segment import ArenaSpec, RingSpec, Segment, SegmentLayout
from runtime.message import Chunks, Message, Ref
from tests.channels import PATIENCE_S, forked, reap, receive

READERS, CHUNKS = 2, 3000


@pytest.fixture
def segment() -> Segment:
    rings = tuple(RingSpec(0, reader, 1 << 14) for reader in range(1, READERS + 1))
    arena = ArenaSpec(0, tuple(range(1, READERS + 1)), 1 << 16)
    return Segment.create("arenas", SegmentLayout(READERS + 1, rings, arenas=(arena,)))


def read_all(segment: Segment, number: int) -> None:
    """Check every chunk and give chunks back late and shuffled."""
    receiver, bell, reader = segment.receiver(number - 1), segment.bell(number), segment.arena_reader(0, number)
    order, late, expected = random.Random(number), [], 0
    while expected < CHUNKS:
        message = receive(receiver, bell)
        assert isinstance(message, Chunks) and message.meta == {"n": expected}
        column = reader.view(message.refs[0])["x"]
        assert len(column) == 1 + expected * 7 % 900 and (column == expected).all(), expected
        receiver.release()
        late.append(message.refs[0])
        if len(late) > 4 or expected == CHUNKS - 1:
            order.shuffle(late)
            reader.give_back(late)
            late.clear()
        expected += 1


def write_chunk(segment: Segment, arena: Arena, number: int) -> Ref:
    columns = {"x": np.full(1 + number * 7 % 900, number)}
    need = arena.need(columns)
    assert wait_for(lambda: arena.room(need) or None, segment.bell(0), (), PATIENCE_S)
    return arena.write(columns)


def test_chunks_written_once_arrive_whole_at_every_reader(segment: Segment) -> None:
    children = [forked(lambda number=number: read_all(segment, number)) for number in range(1, READERS + 1)]
    arena, senders = segment.arena(0), [segment.sender(ring) for ring in range(READERS)]
    for number in range(CHUNKS):
        ref = write_chunk(segment, arena, number)
        message: Message = Chunks((ref,), {"n": number})
        for sender in senders:
            arena.lend([ref])
            assert wait_for(lambda: arena.credit(1) or None, segment.bell(0), (), PATIENCE_S)
            sender.send(message, PATIENCE_S)
            arena.sent(1)
        arena.free(ref)
        arena.settle()
    assert [reap(child) for child in children] == [0] * READERS
    arena.collect()
    assert arena.used_bytes == 0 and 0 < arena.peak_bytes <= 1 << 16

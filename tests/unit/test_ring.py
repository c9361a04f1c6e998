"""The shared-memory ring and its segment: layout, wrap-around, identity, abort, machine code."""

from __future__ import annotations

import os
import pickle
import threading

import numpy as np
import pytest

from runtime.channel import atomics
from runtime.channel.contract import AbortedError, receive_any
from runtime.channel.liveness import alive, own_identity, start_time
from runtime.channel.segment import RingSpec, Segment, SegmentLayout
from runtime.errors import ClosedError, SpecError
from runtime.message import Batch, Punctuation
from tests.channels import PATIENCE_S, batch, receive, ring_pair, same

LAYOUT = SegmentLayout(3, (RingSpec(0, 1, 1 << 14), RingSpec(1, 2, 5000)), words=16)


def test_layout_parts_do_not_overlap() -> None:
    parts = [(LAYOUT.bell_offset(node), atomics.BELL_SIZE + 8 * 16) for node in range(3)]
    parts += [(LAYOUT.ring_offset(ring), atomics.RING_HEADER) for ring in range(2)]
    parts += [(LAYOUT.data_offsets[0], 1 << 14), (LAYOUT.data_offsets[1], 5056)]
    parts.sort()
    assert all(start + size <= following for (start, size), (following, _) in zip(parts, parts[1:]))
    assert parts[-1][0] + parts[-1][1] <= LAYOUT.size_bytes
    assert all(start % 128 == 0 for start, _ in parts)


@pytest.mark.parametrize("build", [lambda: RingSpec(0, 1, 100), lambda: SegmentLayout(0, ()),
                                   lambda: SegmentLayout(2, (RingSpec(0, 2, 4096),)),
                                   lambda: LAYOUT.bell_offset(3), lambda: LAYOUT.ring_offset(2)])
def test_layout_impossible_is_refused(build: object) -> None:
    with pytest.raises(SpecError, match="`"):
        build()  # type: ignore[operator]


def test_segment_address_can_be_pickled_and_attached() -> None:
    with Segment.create("pickle", LAYOUT) as segment:
        address = pickle.loads(pickle.dumps(segment.address))
        assert address == segment.address
        with Segment.attach(address) as other:
            segment.words(1)[:] = np.arange(16)
            assert np.array_equal(other.words(1), np.arange(16))
            assert not other.words(0).any() and not other.words(2).any()
            assert other.size_bytes == segment.size_bytes == LAYOUT.size_bytes


def test_segment_leaves_no_file_behind() -> None:
    before = set(os.listdir("/dev/shm"))
    with Segment.create("nameless", LAYOUT) as segment:
        assert set(os.listdir("/dev/shm")) <= before
        assert "windowfarm-nameless" in os.readlink(f"/proc/self/fd/{segment.address.fd}")


def test_segment_closed_cannot_be_attached() -> None:
    segment = Segment.create("gone", LAYOUT)
    segment.close()
    segment.close()
    with pytest.raises(ClosedError, match="`gone` is gone"):
        Segment.attach(segment.address)


def test_segment_other_file_under_same_number_is_not_taken() -> None:
    with Segment.create("one", LAYOUT) as one, Segment.create("two", LAYOUT) as two:
        wrong = type(one.address)("one", one.address.pid, two.address.fd, one.address.token, LAYOUT)
        with pytest.raises(ClosedError, match="another one"):
            Segment.attach(wrong)


def test_segment_cannot_be_cut_short() -> None:
    with Segment.create("sealed", LAYOUT) as segment, pytest.raises(PermissionError):
        os.ftruncate(segment.address.fd, 100)


def test_segment_memory_outlives_close_as_long_as_views_do() -> None:
    segment = Segment.create("late", LAYOUT)
    sender, receiver = segment.sender(0), segment.receiver(0)
    sender.send(batch(5))
    received = receiver.try_receive()
    segment.close()
    del segment, sender, receiver
    assert received is not None and same(received, batch(5))


def test_ring_columns_are_aligned() -> None:
    pair = ring_pair(1 << 14)
    for rows in range(1, 40):
        pair.sender.send(batch(rows))
        received = pair.receiver.try_receive()
        assert isinstance(received, Batch)
        assert all(column.ctypes.data % 64 == 0 for column in received.columns.values())
        pair.receiver.release()


@pytest.mark.parametrize("capacity", [2048, 2112, 4096, 5000, 7040])
def test_ring_wraps_at_every_place(capacity: int) -> None:
    pair = ring_pair(capacity)
    sizes = [1, 7, 3, 12, 2, 5]
    sent = received = 0
    while received < 2000:
        while pair.sender.try_send(batch(sizes[sent % 6], sent)):
            sent += 1
        for _ in range(1 + received % 3):
            message = pair.receiver.try_receive()
            if message is None:
                break
            assert same(message, batch(sizes[received % 6], received))
            received += 1
        pair.receiver.release()


def test_ring_message_of_half_the_capacity_always_fits() -> None:
    pair = ring_pair(4096)
    for number in range(300):
        pair.sender.send(batch(1, number), timeout_s=0)             # moves the start to another place
        pair.receiver.try_receive()
        pair.receiver.release()
        message = Batch({"x": np.full(1920, number % 251, np.uint8)})     # with its header 2,048 bytes
        pair.sender.send(message, timeout_s=0)
        received = pair.receiver.try_receive()
        assert received is not None and same(received, message)
        pair.receiver.release()


def test_ring_not_published_is_not_visible() -> None:
    segment = Segment.create("half", LAYOUT)
    sender, receiver = segment.sender(0), segment.receiver(0)
    ring = segment.base + LAYOUT.ring_offset(0)
    start = LAYOUT.data_offsets[0] + atomics.ring_reserve(ring, 256)
    segment.memory[start:start + 256] = b"\xff" * 256
    assert receiver.try_receive() is None and receiver.queued_bytes == 0
    sender.send(Punctuation(3))
    assert receiver.try_receive() == Punctuation(3)


def test_ring_object_column_is_refused() -> None:
    pair = ring_pair(4096)
    with pytest.raises(SpecError, match="fixed-width"):
        pair.sender.try_send(Batch({"x": np.array([object()])}))
    assert pair.receiver.try_receive() is None


def test_ring_new_receiver_begins_with_what_was_not_released() -> None:
    segment = Segment.create("again", LAYOUT)
    sender, first = segment.sender(0), segment.receiver(0)
    for number in range(4):
        sender.send(Punctuation(number))
    assert first.try_receive() == Punctuation(0)
    first.release()
    assert first.try_receive() == Punctuation(1)
    second = segment.receiver(0)
    assert [second.try_receive() for _ in range(3)] == [Punctuation(number) for number in (1, 2, 3)]


def test_abort_ends_everything_at_once() -> None:
    segment = Segment.create("abort", LAYOUT)
    sender, receiver = segment.sender(0), segment.receiver(0)
    errors: list[BaseException] = []

    def wait() -> None:
        with pytest.raises(AbortedError, match="aborted") as caught:
            receive_any([receiver], segment.bell(1), PATIENCE_S)
        errors.append(caught.value)

    thread = threading.Thread(target=wait)
    thread.start()
    assert not segment.aborted
    segment.abort()
    thread.join()
    assert segment.aborted and len(errors) == 1
    with pytest.raises(AbortedError):
        sender.send(Punctuation(1))


def test_bell_rung_before_wait_is_not_missed() -> None:
    bell = Segment.create("bell", LAYOUT).bell(0)
    seen = bell.value()
    bell.ring()
    assert bell.wait(seen, PATIENCE_S)
    assert not bell.wait(bell.value(), 0.001)
    assert bell.sleepers == 0


def test_bell_wakes_all_sleepers() -> None:
    bell = Segment.create("bell", LAYOUT).bell(0)
    woken: list[bool] = []
    seen = bell.value()
    threads = [threading.Thread(target=lambda: woken.append(bell.wait(seen, PATIENCE_S))) for _ in range(3)]
    for thread in threads:
        thread.start()
    bell.ring()
    for thread in threads:
        thread.join()
    assert woken == [True] * 3


def test_ring_busy_consumer_is_not_rung() -> None:
    pair = ring_pair(1 << 14)
    assert pair.receiver.try_receive() is None                      # says that it found nothing
    before = pair.consumer_bell.value()
    for number in range(5):
        pair.sender.send(Punctuation(number))
    assert pair.consumer_bell.value() == before + 1                 # one ring for five messages
    for number in range(5):
        assert receive(pair.receiver, pair.consumer_bell) == Punctuation(number)
        pair.receiver.release()
    assert pair.producer_bell.value() == 0                          # the producer never waited for space


def test_liveness_tells_own_process_and_no_process() -> None:
    pid, started = own_identity()
    assert started > 0 and alive(pid, started)
    assert not alive(pid, started + 1)
    assert start_time(2**30) == 0 and not alive(2**30, 0)

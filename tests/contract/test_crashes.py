"""Processes that die at any moment: nothing half-written is seen, and the other side learns of it."""

from __future__ import annotations

import os
import pickle
import random
import resource
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from runtime.channel import atomics, contract, ring
from runtime.channel.contract import PeerDiedError, receive_any
from runtime.channel.segment import RingSpec, Segment, SegmentLayout
from runtime.errors import ClosedError, StateError
from runtime.message import Batch, Punctuation
from tests.channels import PATIENCE_S, batch, forked, other_process, reap, receive, same

CAPACITY = 1 << 14


@pytest.fixture
def segment() -> Segment:
    return Segment.create("crash", SegmentLayout(2, (RingSpec(0, 1, CAPACITY),)))


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deaths are noticed sooner, so that many can be tried."""
    monkeypatch.setattr(contract, "SLICE_S", 0.02)


@pytest.fixture
def endless_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wake-up that is lost is not made good by the end of a slice."""
    monkeypatch.setattr(contract, "SLICE_S", 1000 * PATIENCE_S)


@pytest.fixture
def one_core() -> Iterator[None]:
    """Both sides share a core: whoever waits can only go on when the other side ran."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield
    os.sched_setaffinity(0, cores)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def send_for_ever(segment: Segment) -> None:
    sender, number = segment.sender(0), 0
    while True:
        sender.send(batch(number % 40, number))
        number += 1


@pytest.mark.usefixtures("short_slices")
@pytest.mark.parametrize("seed", range(100))
def test_producer_killed_at_random_moment_leaves_only_whole_messages(segment: Segment, seed: int) -> None:
    child = forked(lambda: send_for_ever(segment))
    receiver, bell, number = segment.receiver(0), segment.bell(1), 0
    moment = random.Random(seed).randrange(200)
    with pytest.raises(PeerDiedError, match=f"the producer of ring 0 .*{child} ended without a close"):
        while True:
            assert same(receive(receiver, bell), batch(number % 40, number))
            receiver.release()
            number += 1
            if number == moment + 1:
                os.kill(child, signal.SIGKILL)
    assert number > moment
    assert reap(child) == -signal.SIGKILL


@pytest.mark.usefixtures("short_slices")
@pytest.mark.parametrize("written", [0, 1, 15, 16, 63, 64, 500, 1000])
def test_producer_killed_in_mid_message_leaves_nothing_of_it(segment: Segment, written: int,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ring._Frame.write

    def torn(frame: ring._Frame, memory: memoryview, start: int) -> None:
        if len(frame.columns) == 1:
            memory[start:start + written] = b"\xff" * written
            die()
        whole(frame, memory, start)

    def work() -> None:
        sender = segment.sender(0)
        sender.send(batch(3))
        sender.send(Batch({"x": np.arange(200)}))

    monkeypatch.setattr(ring._Frame, "write", torn)
    child = forked(work)
    receiver, bell = segment.receiver(0), segment.bell(1)
    assert same(receive(receiver, bell), batch(3))
    with pytest.raises(PeerDiedError, match="producer"):
        receive(receiver, bell)
    assert reap(child) == -signal.SIGKILL


@pytest.mark.usefixtures("short_slices")
def test_producer_killed_between_publish_and_ring_is_received(segment: Segment,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    def publish_and_die(ring_at: int, need: int) -> None:
        atomics.word_put(ring_at + atomics.TAIL, atomics.word_get(ring_at + atomics.RESERVED) + need)
        die()

    monkeypatch.setattr(atomics, "ring_publish", publish_and_die)
    receiver, bell = segment.receiver(0), segment.bell(1)
    assert receiver.try_receive() is None
    child = forked(lambda: segment.sender(0).send(batch(9)))
    assert same(receive(receiver, bell), batch(9))
    with pytest.raises(PeerDiedError):
        receive(receiver, bell)
    reap(child)


@pytest.mark.usefixtures("short_slices")
def test_producer_that_closed_before_it_died_is_not_missed(segment: Segment) -> None:
    def work() -> None:
        sender = segment.sender(0)
        sender.send(Punctuation(1))
        sender.close()
        die()

    child = forked(work)
    receiver, bell = segment.receiver(0), segment.bell(1)
    assert receive(receiver, bell) == Punctuation(1)
    with pytest.raises(ClosedError, match="at its end"):
        receive(receiver, bell)
    reap(child)


@pytest.mark.usefixtures("short_slices")
@pytest.mark.parametrize("seed", range(30))
def test_consumer_killed_at_random_moment_stops_its_sender(segment: Segment, seed: int) -> None:
    moment = random.Random(seed).randrange(100)

    def work() -> None:
        receiver, bell = segment.receiver(0), segment.bell(1)
        for _ in range(moment):
            receive(receiver, bell)
            receiver.release()
        die()

    child = forked(work)
    sender = segment.sender(0)
    with pytest.raises(PeerDiedError, match="the consumer of ring 0"):
        for number in range(10**6):
            sender.send(batch(20, number), PATIENCE_S)
    reap(child)


@pytest.mark.usefixtures("short_slices")
def test_receive_any_raises_for_a_dead_producer_among_idle_ones() -> None:
    segment = Segment.create("three", SegmentLayout(3, (RingSpec(0, 2, CAPACITY), RingSpec(1, 2, CAPACITY))))
    alive = segment.sender(0)

    def work() -> None:
        segment.sender(1).send(Punctuation(1))
        die()

    child = forked(work)
    receivers, bell = [segment.receiver(0), segment.receiver(1)], segment.bell(2)
    assert receive_any(receivers, bell, PATIENCE_S) == (1, Punctuation(1))
    with pytest.raises(PeerDiedError, match="ring 1"):
        receive_any(receivers, bell, PATIENCE_S)
    alive.send(Punctuation(2))
    assert receive_any(receivers, bell, PATIENCE_S) == (0, Punctuation(2))
    reap(child)


def test_end_of_ring_has_one_live_owner_and_can_be_taken_over(segment: Segment) -> None:
    ready, done = os.pipe(), os.pipe()

    def work() -> None:
        sender = segment.sender(0)
        sender.send(Punctuation(1))
        os.write(ready[1], b"x")
        os.read(done[0], 1)
        die()

    child = forked(work)
    os.read(ready[0], 1)
    with pytest.raises(StateError, match=f"belongs to process {child}"):
        segment.sender(0)
    os.write(done[1], b"x")
    reap(child)
    segment.sender(0).send(Punctuation(2))
    receiver = segment.receiver(0)
    assert [receiver.try_receive() for _ in range(2)] == [Punctuation(1), Punctuation(2)]
    for end in (*ready, *done):
        os.close(end)


@pytest.mark.usefixtures("short_slices")
def test_creator_killed_leaves_memory_to_who_has_it(segment: Segment) -> None:
    """A segment lives on in who attached it, and cannot be attached afresh."""
    code = ("own = Segment.create('child', SegmentLayout(2, (RingSpec(0, 1, 4096),)))\n"
            "own.sender(0).send(Punctuation(7))\n"
            "sys.stdout.buffer.write(pickle.dumps(own.address).hex().encode() + b'\\n'); sys.stdout.flush()\n"
            "sys.stdin.read()\n")
    with other_process(code, segment.address) as process:
        assert process.stdout is not None
        address = pickle.loads(bytes.fromhex(process.stdout.readline().decode()))
        attached = Segment.attach(address)
        process.kill()
        process.wait()
    receiver, bell = attached.receiver(0), attached.bell(1)
    assert receive(receiver, bell) == Punctuation(7)
    with pytest.raises(PeerDiedError):
        receive(receiver, bell)
    with pytest.raises(ClosedError, match="`child` is gone"):
        Segment.attach(address)


def test_idle_receiver_sleeps_and_does_not_spin(segment: Segment) -> None:
    receiver, bell = segment.receiver(0), segment.bell(1)
    sleeps, before = bell.sleeps, resource.getrusage(resource.RUSAGE_THREAD)
    assert receive_any([receiver], bell, 1.2) is None
    after = resource.getrusage(resource.RUSAGE_THREAD)
    assert 1 <= bell.sleeps - sleeps <= 6                           # slices of half a second, or longer
    assert after.ru_nvcsw - before.ru_nvcsw <= 50


def test_idle_blocked_sender_sleeps_and_does_not_spin(segment: Segment) -> None:
    sender, bell = segment.sender(0), segment.bell(0)
    while sender.try_send(batch(20)):
        pass
    sleeps = bell.sleeps
    with pytest.raises(TimeoutError):
        sender.send(batch(20), 1.2)
    assert 1 <= bell.sleeps - sleeps <= 6


@pytest.mark.usefixtures("endless_slices", "one_core")
def test_no_wake_up_is_lost_when_both_sides_sleep_all_the_time() -> None:
    """A ring that holds two messages, and back: nearly every step goes through a sleep."""
    there_and_back = SegmentLayout(2, (RingSpec(0, 1, 1024), RingSpec(1, 0, 1024)))
    segment, rounds = Segment.create("sleepy", there_and_back), 20_000

    def echo() -> None:
        receiver, sender, bell = segment.receiver(0), segment.sender(1), segment.bell(1)
        for _ in range(rounds):
            message = receive(receiver, bell)
            sender.send(message, PATIENCE_S)
            receiver.release()

    child = forked(echo)
    sender, receiver, bell = segment.sender(0), segment.receiver(1), segment.bell(0)
    sent = 0
    for number in range(rounds):
        while sent < min(rounds, number + 1 + number % 12) and sender.try_send(Punctuation(sent)):
            sent += 1
        assert receive(receiver, bell) == Punctuation(number)
        receiver.release()
    assert bell.sleeps > 0                                          # how often is the scheduler's choice
    assert reap(child) == 0


@pytest.mark.usefixtures("endless_slices")
@pytest.mark.parametrize("rows", [0, 8])
def test_no_wake_up_is_lost_when_a_stream_fills_and_empties_a_small_ring(rows: int) -> None:
    segment, count = Segment.create("narrow", SegmentLayout(2, (RingSpec(0, 1, 2048),))), 20_000

    def produce() -> None:
        sender = segment.sender(0)
        for number in range(count):
            sender.send(batch(rows, number), PATIENCE_S)
        sender.close()

    child = forked(produce)
    receiver, bell = segment.receiver(0), segment.bell(1)
    for number in range(count):
        message = receive(receiver, bell)
        assert isinstance(message, Batch) and message.stamp_ns == number and len(message) == rows
        receiver.release()
    with pytest.raises(ClosedError, match="at its end"):
        receive(receiver, bell)
    assert reap(child) == 0

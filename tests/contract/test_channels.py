"""What every channel must do, whatever it is made of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from runtime.channel.contract import receive_any
from runtime.channel.segment import RingSpec, Segment, SegmentLayout
from runtime.errors import ClosedError, SpecError
from runtime.message import Barrier, Batch, Feedback, Message, Punctuation
from tests.channels import (
    PATIENCE_S, Pair, batch, eventually, local_pair, other_process, receive, remote_pair, ring_pair, same)

CAPACITY = 1 << 14
MESSAGES: list[Message] = [
    batch(5), batch(0), Batch({}), Punctuation(17, 3), Punctuation(-(2**63)), Barrier(9),
    Feedback({"done": 3, "who": "w"}), Feedback(),
    Batch({"time": np.array(["2020-01-01", "2021-02-03"], "M8[us]"), "text": np.array(["a", "bcd"]),
           "flag": np.array([True, False]), "big": np.array([1, 2], ">i4")}, 5, 6, {"pane": 4, "of": (1, 2)}),
]


FORMS = [local_pair, ring_pair, remote_pair]


@pytest.fixture(params=FORMS)
def pair(request: pytest.FixtureRequest) -> Pair:
    make: Callable[[int], Pair] = request.param
    return make(CAPACITY)


def fill(pair: Pair, message: Message) -> int:
    """Send until it is full; how many went in."""
    count = 0
    while pair.sender.try_send(message):
        count += 1
    return count


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_channel_any_message_arrives_unchanged(pair: Pair, message: Message) -> None:
    pair.sender.send(message)
    assert same(receive(pair.receiver, pair.consumer_bell), message)


def test_channel_messages_arrive_in_order(pair: Pair) -> None:
    for number in range(1000):
        pair.sender.send(batch(number % 20, number))
        received = receive(pair.receiver, pair.consumer_bell)
        assert same(received, batch(number % 20, number))
        pair.receiver.release()


def test_channel_nothing_sent_gives_none(pair: Pair) -> None:
    assert pair.receiver.try_receive() is None


def test_channel_columns_received_are_read_only(pair: Pair) -> None:
    pair.sender.send(batch(4))
    received = receive(pair.receiver, pair.consumer_bell)
    assert isinstance(received, Batch)
    with pytest.raises(ValueError):
        received.columns["id"][0] = 1


def test_channel_strided_columns_arrive(pair: Pair) -> None:
    table = np.arange(40.0).reshape(10, 4)
    pair.sender.send(Batch({"a": table[:, 1], "b": table[::-2]}))
    received = receive(pair.receiver, pair.consumer_bell)
    assert isinstance(received, Batch)
    assert np.array_equal(received.columns["a"], table[:, 1])
    assert np.array_equal(received.columns["b"], table[::-2])


def test_channel_full_refuses_until_released(pair: Pair) -> None:
    count = fill(pair, batch(20))
    assert count > 2
    assert 0 < pair.sender.queued_bytes <= pair.sender.capacity_bytes
    assert eventually(lambda: pair.receiver.queued_bytes == pair.sender.queued_bytes)
    for _ in range(count):
        receive(pair.receiver, pair.consumer_bell)
    assert pair.receiver.try_receive() is None
    assert not pair.sender.try_send(batch(20))
    pair.receiver.release()
    assert eventually(lambda: pair.sender.queued_bytes == 0)
    assert fill(pair, batch(20)) >= count - 1


def test_channel_views_stay_until_release(pair: Pair) -> None:
    pair.sender.send(batch(7, 100))
    first = receive(pair.receiver, pair.consumer_bell)
    fill(pair, batch(20))
    assert same(first, batch(7, 100))


def test_channel_release_of_nothing_is_harmless(pair: Pair) -> None:
    pair.receiver.release()
    pair.sender.send(Punctuation(1))
    pair.receiver.release()
    assert receive(pair.receiver, pair.consumer_bell) == Punctuation(1)


def test_channel_message_too_large_is_refused_with_sizes(pair: Pair) -> None:
    with pytest.raises(SpecError, match=r"half of its 16384 bytes, got \d+"):
        pair.sender.try_send(batch(1000))
    with pytest.raises(SpecError):
        pair.sender.send(batch(1000))
    pair.sender.send(batch(3))                      # and nothing is broken
    receive(pair.receiver, pair.consumer_bell)


def test_channel_send_into_full_times_out(pair: Pair) -> None:
    fill(pair, batch(20))
    with pytest.raises(TimeoutError, match="full"):
        pair.sender.send(batch(20), timeout_s=0.01)


def test_channel_closed_by_producer_is_drained_first(pair: Pair) -> None:
    pair.sender.send(Punctuation(1))
    pair.sender.close()
    pair.sender.close()
    assert not pair.receiver.exhausted
    assert receive(pair.receiver, pair.consumer_bell) == Punctuation(1)
    for _ in range(2):
        with pytest.raises(ClosedError, match="end"):
            receive(pair.receiver, pair.consumer_bell)
        assert pair.receiver.exhausted


def test_channel_send_after_close_raises(pair: Pair) -> None:
    pair.sender.close()
    with pytest.raises(ClosedError, match="this producer"):
        pair.sender.try_send(Punctuation(1))


def test_channel_closed_by_consumer_stops_sender(pair: Pair) -> None:
    pair.sender.send(Punctuation(1))
    pair.receiver.close()
    pair.receiver.close()
    with pytest.raises(ClosedError, match="its consumer"):
        eventually(lambda: pair.sender.try_send(Punctuation(2)) is None)     # full is no answer
    with pytest.raises(ClosedError, match="its consumer"):
        pair.sender.send(Punctuation(2))


def test_channel_blocked_sender_goes_on_when_released(pair: Pair) -> None:
    count = fill(pair, batch(20))
    thread = threading.Thread(target=lambda: [pair.sender.send(batch(20), PATIENCE_S) for _ in range(200)])
    thread.start()
    for _ in range(count + 200):
        assert same(receive(pair.receiver, pair.consumer_bell), batch(20))
        pair.receiver.release()
    thread.join()


def test_channel_blocked_sender_learns_of_close(pair: Pair) -> None:
    fill(pair, batch(20))
    errors: list[BaseException] = []

    def send() -> None:
        with pytest.raises(ClosedError) as caught:
            pair.sender.send(batch(20), PATIENCE_S)
        errors.append(caught.value)

    thread = threading.Thread(target=send)
    thread.start()
    pair.receiver.close()
    thread.join()
    assert len(errors) == 1


def test_channel_blocked_receiver_learns_of_close(pair: Pair) -> None:
    thread = threading.Thread(target=pair.sender.close)
    thread.start()
    with pytest.raises(ClosedError):
        receive(pair.receiver, pair.consumer_bell)
    thread.join()


def many(make: Callable[[int], Pair], count: int) -> list[Pair]:
    return [make(CAPACITY) for _ in range(count)]


@pytest.mark.parametrize("make", FORMS)
def test_receive_any_serves_all_inputs_in_turn(make: Callable[[int], Pair]) -> None:
    pairs = many(make, 3)
    receivers, bell = [pair.receiver for pair in pairs], pairs[0].consumer_bell
    for pair in pairs:
        for number in range(3):
            pair.sender.send(Punctuation(number))
    assert eventually(lambda: all(pair.receiver.queued_bytes == pair.sender.queued_bytes for pair in pairs))
    order = [receive_any(receivers, bell, 0) for _ in range(9)]
    assert [found[0] for found in order if found] == [0, 1, 2] * 3
    assert receive_any(receivers, bell, 0) is None
    assert receive_any(receivers, bell, 0.001) is None


@pytest.mark.parametrize("make", FORMS)
def test_receive_any_skips_exhausted_inputs_until_all_are(make: Callable[[int], Pair]) -> None:
    pairs = many(make, 3)
    receivers, bell = [pair.receiver for pair in pairs], pairs[0].consumer_bell
    pairs[1].sender.close()
    pairs[2].sender.send(Punctuation(5))
    assert receive_any(receivers, bell, None) == (2, Punctuation(5))
    pairs[0].sender.close()
    pairs[2].sender.send(Punctuation(6))
    pairs[2].sender.close()
    assert receive_any(receivers, bell, None) == (2, Punctuation(6))
    with pytest.raises(ClosedError, match="all inputs"):
        receive_any(receivers, bell, None)


# ------------------------------------------------------------------------- across real processes

ECHO = """
receiver, sender, bell = segment.receiver(0), segment.sender(1), segment.bell(1)
try:
    while True:
        message = receive(receiver, bell)
        sender.send(message, PATIENCE_S)
        receiver.release()
except ClosedError:
    sender.close()
"""


@pytest.fixture
def echo() -> Iterator[Pair]:
    """A channel to another process and back."""
    layout = SegmentLayout(2, (RingSpec(0, 1, CAPACITY), RingSpec(1, 0, CAPACITY)))
    with Segment.create("echo", layout) as segment, other_process(
            "from runtime.errors import ClosedError\n" + ECHO, segment.address):
        yield Pair(segment.sender(0), segment.receiver(1), segment.bell(0), segment.bell(0))


def test_process_every_message_returns_unchanged_and_ends(echo: Pair) -> None:
    for message in MESSAGES:
        echo.sender.send(message, PATIENCE_S)
        assert same(receive(echo.receiver, echo.consumer_bell), message)
        echo.receiver.release()
    echo.sender.close()
    with pytest.raises(ClosedError, match="end"):
        receive(echo.receiver, echo.consumer_bell)


def test_process_stream_returns_complete_and_in_order(echo: Pair) -> None:
    sent = returned = 0
    while returned < 3000:
        while sent < 3000 and echo.sender.try_send(batch(sent % 50, sent)):
            sent += 1
        assert same(receive(echo.receiver, echo.consumer_bell), batch(returned % 50, returned))
        returned += 1
        echo.receiver.release()


def test_process_consumer_that_closes_stops_sender() -> None:
    with Segment.create("closer", SegmentLayout(2, (RingSpec(0, 1, CAPACITY),))) as segment, other_process(
            "receiver = segment.receiver(0); receive(receiver, segment.bell(1)); receiver.close()",
            segment.address):
        sender = segment.sender(0)
        with pytest.raises(ClosedError, match="its consumer"):
            while True:
                sender.send(batch(20), PATIENCE_S)

"""Channels against a model that is a plain queue, under any order of calls (hypothesis)."""

from __future__ import annotations

from collections import deque

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from runtime.errors import ClosedError
from runtime.message import Message, Punctuation
from tests.channels import batch, local_pair, ring_pair, same


class ChannelMachine(RuleBasedStateMachine):
    """Sends, receives, releases and closes; the model holds what must come out."""

    make = staticmethod(local_pair)

    @initialize(capacity=st.sampled_from([2048, 2112, 4096, 6400]))
    def start(self, capacity: int) -> None:
        self.pair = self.make(capacity)
        self.queue: deque[Message] = deque()
        self.held: list[tuple[Message, Message]] = []       # came out and not released, with what it must be
        self.sent = 0
        self.sender_closed = self.receiver_closed = False

    @rule(rows=st.integers(0, 14))
    def send_batch(self, rows: int) -> None:
        self.send(batch(rows, self.sent))

    @rule()
    def send_punctuation(self) -> None:
        self.send(Punctuation(self.sent))

    def send(self, message: Message) -> None:
        if self.sender_closed or self.receiver_closed:
            with pytest.raises(ClosedError):
                self.pair.sender.try_send(message)
            return
        empty = not self.queue and not self.held
        accepted = self.pair.sender.try_send(message)
        assert accepted or not empty, "an empty channel must take what fits at all"
        if accepted:
            self.queue.append(message)
            self.sent += 1

    @rule()
    def receive(self) -> None:
        if self.sender_closed and not self.queue:
            with pytest.raises(ClosedError):
                self.pair.receiver.try_receive()
            assert self.pair.receiver.exhausted
            return
        message = self.pair.receiver.try_receive()
        assert (message is None) == (not self.queue)
        if message is not None:
            self.held.append((message, self.queue.popleft()))

    @rule()
    def release(self) -> None:
        self.pair.receiver.release()
        self.held.clear()

    @precondition(lambda self: self.sent > 10)
    @rule()
    def close_sender(self) -> None:
        self.pair.sender.close()
        self.sender_closed = True

    @precondition(lambda self: self.sent > 10)
    @rule()
    def close_receiver(self) -> None:
        self.pair.receiver.close()
        self.receiver_closed = True

    @invariant()
    def what_is_held_is_whole(self) -> None:
        for got, wanted in getattr(self, "held", ()):
            assert same(got, wanted)

    @invariant()
    def sizes_are_bounded(self) -> None:
        if hasattr(self, "pair"):
            queued = self.pair.sender.queued_bytes
            assert 0 <= queued <= self.pair.sender.capacity_bytes
            assert queued == self.pair.receiver.queued_bytes
            assert queued == 0 or self.queue or self.held


class RingMachine(ChannelMachine):
    make = staticmethod(ring_pair)


TestLocalChannel = ChannelMachine.TestCase
TestRing = RingMachine.TestCase
TestLocalChannel.settings = TestRing.settings = settings(max_examples=60, stateful_step_count=60)

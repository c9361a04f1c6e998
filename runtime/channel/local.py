"""The channel of nodes that share a process: same contract, no bytes, no copies.

It is bounded by a number of messages (and of bytes, if asked for). Its ends may be used by two
threads. Columns are handed over as read-only views of the sender's arrays.
"""

from __future__ import annotations

import sys
import threading
from collections import deque

import numpy as np

from runtime.channel.contract import AnyBell, wait_for
from runtime.errors import ClosedError, SpecError, TooLargeError
from runtime.message import Batch, Message


class LocalBell(AnyBell):
    """A bell among threads."""

    def __init__(self) -> None:
        self._rings = 0
        self._changed = threading.Condition()

    def ring(self) -> None:
        with self._changed:
            self._rings += 1
            self._changed.notify_all()

    def value(self) -> int:
        return self._rings

    def wait(self, seen: int, timeout_s: float | None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._rings != seen, timeout_s)


class LocalChannel:
    """A queue of at most `capacity` messages; `sender` and `receiver` are its ends."""

    def __init__(self, producer: AnyBell, consumer: AnyBell, capacity: int = 64,
                 capacity_bytes: int = sys.maxsize, name: str = "local channel") -> None:
        if capacity < 1:
            raise SpecError(f"`capacity` of a channel must be at least 1, got {capacity}")
        self.name, self.capacity, self.capacity_bytes = name, capacity, capacity_bytes
        self.producer, self.consumer = producer, consumer
        self.queue: deque[Message] = deque()
        self.held: deque[int] = deque()             # sizes of the messages that were received, not released
        self.queued_bytes = 0
        self.sender_closed = self.receiver_closed = False
        self.lock = threading.Lock()
        self.sender = LocalSender(self)
        self.receiver = LocalReceiver(self)


class LocalSender:
    """The producer's end of a local channel; see `contract.Sender`."""

    def __init__(self, channel: LocalChannel) -> None:
        self._channel = channel
        self.bell = channel.producer

    def try_send(self, message: Message) -> bool:
        channel, size = self._channel, _size_bytes(message)
        if 2 * size > channel.capacity_bytes:
            raise TooLargeError(f"a message for {channel.name} must not take more than half of its "
                                f"{channel.capacity_bytes} bytes, got {size} bytes: send smaller batches")
        if isinstance(message, Batch):
            message = Batch({name: _read_only(column) for name, column in message.columns.items()},
                            message.stamp_ns, message.first_row, message.meta)
        with channel.lock:
            if channel.sender_closed or channel.receiver_closed:
                side = "this producer" if channel.sender_closed else "its consumer"
                raise ClosedError(f"{channel.name} was closed by {side}: nothing can be sent any more")
            full = (len(channel.queue) + len(channel.held) >= channel.capacity
                    or channel.queued_bytes + size > channel.capacity_bytes)
            if full:
                return False
            channel.queue.append(message)
            channel.queued_bytes += size
        channel.consumer.ring()
        return True

    def send(self, message: Message, timeout_s: float | None = None) -> None:
        if wait_for(lambda: self.try_send(message) or None, self.bell, (), timeout_s):
            return
        raise TimeoutError(f"{self._channel.name} was full for {timeout_s} s: its consumer does not keep up")

    def check_peer(self) -> None:
        """The peer lives in this process."""

    def close(self) -> None:
        self._channel.sender_closed = True
        self._channel.consumer.ring()

    @property
    def capacity_bytes(self) -> int:
        return self._channel.capacity_bytes

    @property
    def queued_bytes(self) -> int:
        return self._channel.queued_bytes


class LocalReceiver:
    """The consumer's end of a local channel; see `contract.Receiver`."""

    def __init__(self, channel: LocalChannel) -> None:
        self._channel = channel
        self.bell = channel.consumer
        self.exhausted = False

    def try_receive(self) -> Message | None:
        channel = self._channel
        with channel.lock:
            if channel.queue:
                message = channel.queue.popleft()
                channel.held.append(_size_bytes(message))
                return message
            if not channel.sender_closed:
                return None
        self.exhausted = True
        raise ClosedError(f"{channel.name} is at its end: closed by its producer and drained")

    def release(self) -> None:
        channel = self._channel
        if channel.held:
            with channel.lock:
                channel.queued_bytes -= sum(channel.held)
                channel.held.clear()
            channel.producer.ring()

    def check_peer(self) -> None:
        """The peer lives in this process."""

    def close(self) -> None:
        self._channel.receiver_closed = True
        self._channel.producer.ring()

    @property
    def queued_bytes(self) -> int:
        return self._channel.queued_bytes


def _size_bytes(message: Message) -> int:
    return message.size_bytes if isinstance(message, Batch) else 0


def _read_only(column: np.ndarray) -> np.ndarray:
    view = column.view()
    view.flags.writeable = False
    return view

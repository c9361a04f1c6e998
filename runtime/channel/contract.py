"""The contract of all channels: one producer, one consumer, bounded, in order, nothing lost or doubled.

    node A                                              node B
    Sender  --- messages, first in first out, bounded ---> Receiver
       ^  waits on A's bell for space                         |  waits on B's bell for messages
       +--------------------- release -----------------------+

Every node is single-threaded and owns one bell. The bell is rung when a message arrives on one of the
node's inputs, when space gets free on one of its outputs, when a peer closes, and on abort. So to wait
for any of many things is: remember the bell's value, look at all of them, and if there is nothing to
do, wait for the bell to move on from that value (`wait_for`).

Owner of the memory: a sender gives its arrays away, it must not write into them after `send`; a
receiver gets read-only columns, which are good until it calls `release`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from runtime.errors import ClosedError
from runtime.message import Message

#: A wait is cut into slices of this length; at most once per slice the peers are checked for life.
SLICE_S = 0.5

Result = TypeVar("Result")


class AbortedError(ClosedError):
    """The whole run was aborted; the channel ends before its stream does."""


class PeerDiedError(ClosedError):
    """The process at the other end of the channel is gone, and it did not close."""


class AnyBell(ABC):
    """What a node waits on.

    `turn` (whose turn it is, see `receive_any`) and `checked_s` (when the peers were last checked for
    life, see `wait_for`) are notes of the node that owns it.
    """

    turn: int = 0
    checked_s: float = 0.0

    @abstractmethod
    def ring(self) -> None:
        """Wake the owner, now or when it goes to sleep on a value read before."""

    @abstractmethod
    def value(self) -> int:
        """A number that every ring changes."""

    @abstractmethod
    def wait(self, seen: int, timeout_s: float | None) -> bool:
        """Sleep until the value is not `seen` any more; False if time is over (or a signal came) before."""


class Peer(Protocol):
    """One end of a channel, as seen by who waits for the other end."""

    def check_peer(self) -> None:
        """PeerDiedError: the other end died without a close, and nothing is left to receive."""


class Sender(Peer, Protocol):
    """The producer's end."""

    def try_send(self, message: Message) -> bool:
        """False: full now. TooLargeError: can never fit. ClosedError: receiver gone, or this end closed."""

    def send(self, message: Message, timeout_s: float | None = None) -> None:
        """Send, and wait for space if need be, at most `timeout_s` (TimeoutError)."""

    def close(self) -> None:
        """End of stream. What was sent before is still delivered. May be called again."""

    @property
    def capacity_bytes(self) -> int:
        """A message of more than half of this is refused."""

    @property
    def queued_bytes(self) -> int:
        """Sent and not released yet."""


class Receiver(Peer, Protocol):
    """The consumer's end."""

    def try_receive(self) -> Message | None:
        """None: nothing now. ClosedError: closed by the producer and drained; AbortedError on abort."""

    def release(self) -> None:
        """The memory of all messages received so far may be used again; their columns are dead."""

    def close(self) -> None:
        """The consumer goes away: its sender gets ClosedError. May be called again."""

    @property
    def exhausted(self) -> bool:
        """True once `try_receive` has found the end of the stream (and then always)."""

    @property
    def queued_bytes(self) -> int:
        """Sent and not released yet."""


def wait_for(attempt: Callable[[], Result | None], bell: AnyBell, peers: Sequence[Peer],
             timeout_s: float | None) -> Result | None:
    """What `attempt` returns, tried again after each ring until it is not None; None if time is over.

    `bell` must be rung by whatever lets `attempt` succeed, once `attempt` has failed. `peers` are
    checked for life at most every `SLICE_S`, so that a death is noticed by who waits for the dead.
    """
    deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        seen = bell.value()
        result = attempt()
        if result is not None:
            return result
        now_s = time.monotonic()
        if now_s - bell.checked_s >= SLICE_S:
            bell.checked_s = now_s
            for peer in peers:
                peer.check_peer()
        if deadline_s is None:
            bell.wait(seen, SLICE_S)
        elif now_s < deadline_s:
            bell.wait(seen, min(SLICE_S, deadline_s - now_s))
        else:
            return None


def receive_any(receivers: Sequence[Receiver], bell: AnyBell,
                timeout_s: float | None = None) -> tuple[int, Message] | None:
    """The next message of any of `receivers`, with its receiver's number; None if time is over.

    Fair: the search begins behind the receiver that was served last (`bell.turn`). Exhausted receivers
    are left out; ClosedError when all are exhausted. Nothing is released here.
    """
    found = _scan(receivers, bell)
    if found is not None or timeout_s == 0:
        return found
    return wait_for(lambda: _scan(receivers, bell), bell, receivers, timeout_s)


def _scan(receivers: Sequence[Receiver], bell: AnyBell) -> tuple[int, Message] | None:
    count = len(receivers)
    exhausted = 0
    for step in range(bell.turn, bell.turn + count):
        index = step % count
        receiver = receivers[index]
        if receiver.exhausted:
            exhausted += 1
            continue
        try:
            message = receiver.try_receive()
        except ClosedError:
            if not receiver.exhausted:
                raise                               # aborted: not the end of this stream
            exhausted += 1
            continue
        if message is not None:
            bell.turn = index + 1
            return index, message
    if exhausted == count:
        raise ClosedError("end of stream: all inputs were closed by their producers and are drained")
    return None

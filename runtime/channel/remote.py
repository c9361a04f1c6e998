"""The channel between machines: same contract, messages through a mailbox, bounded by credit.

    producer ── put (numbered) ──► mailbox ── take ──► consumer          all calls are the executor's (Ray)
       ▲                              │                   │
       └──── released so far ◄────────┴──── release ◄─────┘

The mailbox lives on the consumer's machine. The producer has `capacity_bytes` of credit: what it sends is
taken off, what the consumer releases is given back, so that no more than that is ever under way or kept
anywhere. Calls may overtake each other; messages are numbered and handed out in order. Each end has one
thread that waits for the mailbox and rings its node's bell; the ends themselves never wait.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from runtime.channel.contract import AbortedError, AnyBell, PeerDiedError, wait_for
from runtime.columns import Columns, up
from runtime.errors import ClosedError, TooLargeError
from runtime.message import Message, decode, encode

#: A call that waits for something returns after so long at the latest, and is made again.
POLL_S = 5.0


class Item(NamedTuple):
    """A message on its way, and the credit it takes."""

    head: bytes
    columns: Columns
    size_bytes: int


class Mailbox:
    """Where the messages of one channel wait for their consumer; threads call it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._early: dict[int, Item] = {}           # came before one that was sent before it
        self._ready: deque[Item] = deque()
        self._next, self._end = 0, -1
        self._released, self._receiver_closed = 0, False

    def put(self, number: int, item: Item) -> None:
        """Message `number`, counted from 0."""
        with self._changed:
            self._early[number] = item
            while self._next in self._early:
                self._ready.append(self._early.pop(self._next))
                self._next += 1
            self._changed.notify_all()

    def end(self, count: int) -> None:
        """The producer has closed; it has sent `count` messages."""
        with self._changed:
            self._end = count
            self._changed.notify_all()

    def take(self, timeout_s: float = POLL_S) -> tuple[list[Item], bool]:
        """All messages that are there, in order, and whether they are the last; waits for one."""
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._next == self._end, timeout_s)
            items = list(self._ready)
            self._ready.clear()
            return items, self._next == self._end

    def release(self, size_bytes: int, closed: bool = False) -> None:
        """The consumer is done with `size_bytes` more, and with everything if `closed`."""
        with self._changed:
            self._released += size_bytes
            self._receiver_closed |= closed
            self._changed.notify_all()

    def released(self, known: int, timeout_s: float = POLL_S) -> tuple[int, bool]:
        """Bytes released so far, and whether the consumer has closed; waits until it is more than `known`."""
        with self._changed:
            self._changed.wait_for(lambda: self._released > known or self._receiver_closed, timeout_s)
            return self._released, self._receiver_closed


class Link(Protocol):
    """How an end reaches its mailbox. `put`, `end` and `release` do not wait; what `put` was given is copied."""

    def put(self, number: int, item: Item) -> None: ...

    def end(self, count: int) -> None: ...

    def take(self) -> tuple[list[Item], bool]: ...

    def release(self, size_bytes: int, closed: bool = False) -> None: ...

    def released(self, known: int) -> tuple[int, bool]: ...


class _FarEnd:
    """What both ends have in common: a thread that waits for the mailbox, and what it found."""

    def __init__(self, link: Link, bell: AnyBell, capacity_bytes: int, aborted: Callable[[], bool], name: str) -> None:
        self._link, self.bell, self.capacity_bytes, self._name = link, bell, capacity_bytes, name
        self._aborted, self._closed, self._lost = aborted, False, ""
        self._thread = threading.Thread(target=self._watch, name=f"windowfarm-{name}", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        try:
            while not self._closed and not self._aborted() and self._look():
                self.bell.ring()
        except Exception as error:                  # whatever the executor's calls raise: the way is broken
            self._lost = str(error)
        self.bell.ring()

    def _look(self) -> bool:
        """Wait for the mailbox and note what came; False if nothing can follow."""
        raise NotImplementedError

    def _check(self) -> None:
        if self._aborted():
            raise AbortedError(f"{self._name} was aborted")
        if self._lost:
            raise PeerDiedError(f"the way of {self._name} is broken: {self._lost}")

    def join(self, timeout_s: float = 2 * POLL_S) -> None:
        """Wait until the thread has ended: after a close, an abort, or the end of the mailbox."""
        self._thread.join(timeout_s)

    def check_peer(self) -> None:
        if self._lost:
            self._check()


class RemoteSender(_FarEnd):
    """The producer's end; see `contract.Sender`."""

    def __init__(self, link: Link, bell: AnyBell, capacity_bytes: int, aborted: Callable[[], bool] = lambda: False,
                 name: str = "remote channel") -> None:
        self._count = self._sent = self._released = 0
        self._receiver_closed = False
        super().__init__(link, bell, capacity_bytes, aborted, f"{name}, sender")

    def _look(self) -> bool:
        self._released, self._receiver_closed = self._link.released(self._released)
        return not self._receiver_closed

    def try_send(self, message: Message) -> bool:
        self._check()
        if self._closed or self._receiver_closed:
            side = "this producer" if self._closed else "its consumer"
            raise ClosedError(f"{self._name} was closed by {side}: nothing can be sent any more")
        head, columns = encode(message)
        size = up(64 + len(head)) + sum(up(column.nbytes) for column in columns.values())
        if 2 * size > self.capacity_bytes:
            raise TooLargeError(f"a message for {self._name} must not take more than half of its "
                                f"{self.capacity_bytes} bytes, got {size} bytes: send smaller batches")
        if self._sent - self._released + size > self.capacity_bytes:
            return False
        self._link.put(self._count, Item(head, columns, size))
        self._count += 1
        self._sent += size
        return True

    def send(self, message: Message, timeout_s: float | None = None) -> None:
        if not wait_for(lambda: self.try_send(message) or None, self.bell, (self,), timeout_s):
            raise TimeoutError(f"{self._name} was full for {timeout_s} s: its consumer does not keep up")

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._link.end(self._count)

    @property
    def queued_bytes(self) -> int:
        return self._sent - self._released


class RemoteReceiver(_FarEnd):
    """The consumer's end; see `contract.Receiver`."""

    def __init__(self, link: Link, bell: AnyBell, capacity_bytes: int, aborted: Callable[[], bool] = lambda: False,
                 name: str = "remote channel") -> None:
        self._items: deque[Item] = deque()
        self._ended = False
        self._arrived = self._read = self._handed_back = 0
        self.exhausted = False
        super().__init__(link, bell, capacity_bytes, aborted, f"{name}, receiver")

    def _look(self) -> bool:
        items, ended = self._link.take()
        self._arrived += sum(item.size_bytes for item in items)
        self._items.extend(items)
        self._ended = ended                         # after the items: who sees it sees them
        return not ended

    def try_receive(self) -> Message | None:
        if self._aborted():
            self._check()
        ended = self._ended
        if self._items:
            item = self._items.popleft()
            self._read += item.size_bytes
            columns = dict(item.columns)
            for name, column in columns.items():
                if column.flags.writeable:
                    columns[name] = column.view()
                    columns[name].flags.writeable = False
            return decode(item.head, columns)
        if ended:
            self.exhausted = True
            raise ClosedError(f"{self._name} is at its end: closed by its producer and drained")
        self._check()
        return None

    def release(self) -> None:
        done = self._read - self._handed_back
        if done and not self._closed:
            self._handed_back = self._read
            self._link.release(done)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._link.release(0, closed=True)

    @property
    def queued_bytes(self) -> int:
        return self._arrived - self._handed_back

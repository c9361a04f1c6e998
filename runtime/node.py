"""The contract of a node: a plain state object that takes a message and returns what to send on.

A node knows no clock, no channel, no process. Hosts (`runtime.host`) carry messages to it and take its
outputs away, inline or in a Ray actor, so that the same object can be read, tested and replayed alone.
Ports are numbers: the n-th edge that the graph declares into (or out of) the node has port n.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from runtime.arena import Arena
from runtime.message import Message

#: Names of the two places of every graph that the driver fills.
SOURCE, SINK = "source", "sink"


@dataclass(frozen=True, slots=True)
class Emit:
    """Send `message` to the output ports `to` (None: to all of them)."""

    message: Message
    to: Sequence[int] | None = None


class Node:
    """A node that does nothing; patterns override what they need.

    Columns of a batch may be views of memory that is reused after `process` returns: a node copies
    what it keeps. It may emit views: they are written out before the memory is reused.
    """

    def attach(self, arena: Arena) -> None:
        """Get the arena that the node's spec asks for (`arena_bytes`), before the first message."""

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        """Take one message from input port `port`; returns what to send, in order."""
        raise NotImplementedError

    def end(self) -> Iterable[Emit]:
        """All forward inputs have closed; returns the last things to send (feedback may still come)."""
        return ()

    @property
    def in_flight(self) -> int:
        """How many tasks sent out still wait for their feedback: the node is not done before it is 0."""
        return 0

    @property
    def accepts(self) -> bool:
        """False while the node wants no forward input, only feedback (every worker is busy)."""
        return True

    def gauges(self) -> dict[str, int]:
        """Figures of the node's own for the statistics (see `runtime.statistics.WORDS`)."""
        return {}

    def snapshot(self) -> bytes:
        """The state, so that `restore` on a fresh node of the same spec gives the same node."""
        return pickle.dumps(self.__dict__, protocol=5)

    def restore(self, state: bytes) -> None:
        self.__dict__.update(pickle.loads(state))


class Sink(Node):
    """The end of the graph: hands every message to `take`."""

    def __init__(self, take: Callable[[Message], None]) -> None:
        self._take = take

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        self._take(message)
        return ()

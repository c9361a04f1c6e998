"""The parts of a host: a node with its ports, its arena and its row of statistics."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runtime.arena import Arena
from runtime.channel.contract import Receiver, Sender
from runtime.message import Batch, Chunks, Message, Ref, Shared
from runtime.node import Node

#: A batch with fewer rows is copied to each of its readers: that costs less than to count them down.
LEAST_SHARED_ROWS = 64


@dataclass
class Outlet:
    """One output port: a sender to another process, or a cell and port in this one.

    `reader` is the number of the process at the other end if it shares memory with this one, else -1. Up to
    `overflow_bytes` may wait here without blocking the host.
    """

    sender: Sender | None = None
    cell: Cell | None = None
    port: int = 0
    feedback: bool = False
    reader: int = -1
    overflow_bytes: int = 0
    waiting: deque[Message] = field(default_factory=deque)
    waiting_bytes: int = 0

    @property
    def blocks(self) -> bool:
        """Whether so much waits for room that the host must not take more input."""
        return bool(self.waiting) and self.waiting_bytes > self.overflow_bytes


@dataclass
class Inlet:
    """One input port that is fed from another process."""

    receiver: Receiver
    cell: Cell
    port: int
    feedback: bool = False
    open: bool = True


class Cell:
    """A node in its host, with its outlets and its row of statistics (`row`: the same words, quick to change)."""

    def __init__(self, name: str, node: Node, words: np.ndarray, open_inputs: int = 0,
                 feedback_ports: frozenset[int] = frozenset(), arena: Arena | None = None,
                 multicast: bool = False) -> None:
        self.name, self.node, self.words = name, node, words
        self.row: Any = memoryview(words)  # type: ignore[arg-type]
        self.outlets: list[Outlet] = []
        self.open_inputs, self.feedback_ports = open_inputs, feedback_ports
        self.arena, self.multicast = arena, multicast
        self.ended = self.finished = False

    @property
    def runs(self) -> bool:
        """Whether nothing that it sends can meet an outlet that is blocked, also through cells beside it."""
        return all(outlet.cell.runs if outlet.cell is not None else not outlet.blocks
                   for outlet in self.outlets if not outlet.feedback)

    def shared(self, message: Message, ports: Iterable[int]) -> Shared | None:
        """`message` written once for all of `ports` that are in other processes, or None if it is to be copied."""
        arena = self.arena
        if not self.multicast or arena is None or not isinstance(message, Batch):
            return None
        if len(message) < LEAST_SHARED_ROWS:
            return None
        readers = len([port for port in ports if self.outlets[port].reader >= 0])
        if not readers:
            return None
        ref = arena.try_write(message.columns)
        if ref is None:
            return None     # copied instead: an arena without room never blocks a batch
        arena.lend([ref] * readers)
        arena.free(ref)
        return Shared(ref, message.stamp_ns, message.first_row, message.meta)


def refs_of(message: Message) -> tuple[Ref, ...]:
    """The chunks that `message` names."""
    if isinstance(message, Chunks):
        return message.refs
    return (message.ref,) if isinstance(message, Shared) else ()


def fitting(message: Message, capacity_bytes: int) -> Sequence[Message]:
    """`message` in slices that a channel of `capacity_bytes` takes (a quarter of it each at the most)."""
    if not isinstance(message, Batch):
        return (message,)
    limit, size = capacity_bytes // 4, message.size_bytes
    if size <= limit or len(message) < 2:
        return (message,)
    step = max(len(message) * limit // size, 1)
    return [Batch({name: column[start:start + step] for name, column in message.columns.items()}, message.stamp_ns,
                  message.first_row + start if message.first_row >= 0 else -1, message.meta)
            for start in range(0, len(message), step)]


def copied(batch: Batch) -> Batch:
    """`batch` with columns of its own."""
    return Batch({name: column.copy() for name, column in batch.columns.items()},
                 batch.stamp_ns, batch.first_row, batch.meta)

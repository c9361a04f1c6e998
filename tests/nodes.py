"""Small nodes for the tests of hosts, arenas and executors."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator

import numpy as np

from runtime.arena import Arena
from runtime.message import Batch, Chunks, Feedback, Message, Ref
from runtime.node import Emit, Node


def numbers(batches: int, rows: int = 64, width: int = 1) -> Iterator[Batch]:
    """`batches` of consecutive numbers, repeated over `width` columns."""
    for start in range(0, batches * rows, rows):
        column = np.arange(start, start + rows)
        yield Batch({f"c{place}": column for place in range(width)}, first_row=start)


class Forward(Node):
    """Sends everything on."""

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        return (Emit(message),)


class ToAll(Forward):
    """Sends everything to every worker, and takes their feedback without an answer."""

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        return () if isinstance(message, Feedback) else (Emit(message),)


class InTurn(Node):
    """Hands batches to `degree` workers in turn and waits for as many feedbacks."""

    def __init__(self, degree: int) -> None:
        self._degree, self._turn, self._open = degree, 0, 0

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        if isinstance(message, Feedback):
            self._open -= 1
            return ()
        self._turn += 1
        self._open += 1
        return (Emit(message, (self._turn % self._degree,)),)

    @property
    def in_flight(self) -> int:
        return self._open


class Summing(Node):
    """Adds the sum of a batch's (or of each chunk's) first column to the stream; port 1, if any, is the feedback."""

    def __init__(self, feedback: bool = False) -> None:
        self._feedback = feedback

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        if isinstance(message, Chunks):
            sums = [int(next(iter(columns.values())).sum()) for columns in message.chunks]
            yield Emit(Batch({"sum": np.array(sums, np.int64)}, meta=message.meta), (0,))
        elif isinstance(message, Batch):
            yield Emit(Batch({"sum": np.array([int(next(iter(message.columns.values())).sum())])}), (0,))
        if self._feedback:
            yield Emit(Feedback(dict(getattr(message, "meta", {}))), (1,))


class FailAt(Forward):
    """Raises, or kills or stops its own process, when `count` batches have come."""

    def __init__(self, count: int, how: str = "raise") -> None:
        self._count, self._how = count, how

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        if isinstance(message, Batch):
            self._count -= 1
            if self._count <= 0:
                if self._how == "raise":
                    raise ValueError("the apple is rotten")
                os.kill(os.getpid(), getattr(signal, self._how))
        return super().process(message, port)


class ChunkEmitter(Node):
    """Keeps the last `span` chunks in its arena and hands the range to workers in turn, one task in flight each.

    A small agnostic emitter: every chunk is written once and read in `span` tasks, by different workers.
    """

    def __init__(self, degree: int, span: int, need_bytes: int) -> None:
        self._degree, self._span, self._need = degree, span, need_bytes
        self._arena: Arena | None = None
        self._recent: list[Ref] = []
        self._task, self._open = 0, 0

    def attach(self, arena: Arena) -> None:
        self._arena = arena

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        assert self._arena is not None
        if isinstance(message, Feedback):
            self._open -= 1
            return
        assert isinstance(message, Batch)
        self._recent.append(self._arena.write(message.columns))
        if len(self._recent) > self._span:
            self._arena.free(self._recent.pop(0))
        if len(self._recent) == self._span:
            self._task += 1
            self._open += 1
            yield Emit(Chunks(tuple(self._recent), {"task": self._task}), (self._task % self._degree,))

    def end(self) -> Iterable[Emit]:
        assert self._arena is not None
        for ref in self._recent:
            self._arena.free(ref)
        self._recent = []
        return ()

    @property
    def in_flight(self) -> int:
        return self._open

    @property
    def accepts(self) -> bool:
        assert self._arena is not None
        return self._arena.room(self._need)


class Where(Node):
    """Does what `kind(*arguments)` does and writes into every batch where it did it."""

    def __init__(self, kind: type[Node], *arguments: object) -> None:
        self._node = kind(*arguments)

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        for emit in self._node.process(message, port):
            if isinstance(emit.message, Batch):
                old = emit.message
                pids = [*old.meta.get("pids", ()), os.getpid()]
                meta = {"pids": pids, "nice": os.nice(0), "cores": sorted(os.sched_getaffinity(0)),
                        "preload": os.environ.get("LD_PRELOAD", "")}
                emit = Emit(Batch(old.columns, old.stamp_ns, old.first_row, meta), emit.to)
            yield emit

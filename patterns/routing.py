"""Which worker gets which item: one small rule each, without state beyond a turn counter.

A rule takes a batch and yields (batch, ports); ports None means all of them. Never the built-in
`hash()`: it differs from process to process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from patterns.engine import AT, by_residue, codes_of, with_rows
from patterns.window import Grid
from runtime.message import Batch

Routed = Iterable[tuple[Batch, Sequence[int] | None]]


class Routing(Protocol):
    def route(self, batch: Batch) -> Routed:
        """`batch` in parts, each with the ports it goes to."""


@dataclass(frozen=True)
class ToAll:
    """Everything to every worker."""

    def route(self, batch: Batch) -> Routed:
        yield batch, None


@dataclass(frozen=True)
class ByKey:
    """Each key to one worker: code modulo degree, so that few keys are spread evenly."""

    degree: int

    def route(self, batch: Batch) -> Routed:
        return ((part, (worker,)) for part, worker in by_residue(batch, codes_of(batch), self.degree))


@dataclass(frozen=True)
class ByWindow:
    """Each item to the workers whose windows hold it; window i of a key belongs to worker (code + i) mod degree.

    Without `keyed` the key has no part in it: window i of every key belongs to worker i mod degree.
    """

    grid: Grid
    degree: int
    keyed: bool = True

    def route(self, batch: Batch) -> Routed:
        at = batch.columns[AT]
        if not len(at):
            return
        oldest = self.grid.first_window(at.min(keepdims=True))
        if self.grid.length >= self.grid.slide * self.degree and int(oldest[0]) > 0:
            yield batch, None  # every item lies in at least `degree` windows in a row
            return
        first, last = self.grid.first_window(at), self.grid.last_window(at)
        held = last - first
        batch, shift = with_rows(batch), first + codes_of(batch) if self.keyed else first
        for worker in range(self.degree):
            mine = (worker - shift) % self.degree <= held
            if mine.all():
                yield batch, (worker,)
            elif mine.any():
                yield batch.select(mine), (worker,)


@dataclass(frozen=True)
class ByPane:
    """Each pane to one worker, in turn."""

    grid: Grid
    degree: int

    def route(self, batch: Batch) -> Routed:
        panes = self.grid.pane_of(batch.columns[AT])
        numbers, inside = panes + codes_of(batch), self.grid.inside(panes)
        if not inside.all():
            batch, numbers = with_rows(batch).select(inside), numbers[inside]
        return ((part, (worker,)) for part, worker in by_residue(batch, numbers, self.degree))


@dataclass
class InTurn:
    """Items to workers in circular order, whatever their key and time."""

    degree: int
    turn: int = 0

    def route(self, batch: Batch) -> Routed:
        batch = with_rows(batch)
        for worker in range(self.degree):
            part = batch.select(slice((worker - self.turn) % self.degree, None, self.degree))
            if len(part):
                yield part, (worker,)
        self.turn = (self.turn + len(batch)) % self.degree


@dataclass(frozen=True)
class Nested:
    """An outer rule chooses replicas, each replica's inner rule its workers: two emitters in one node.

    `inner` has a rule and a number of workers for each replica; ports are counted through.
    """

    outer: Routing
    inner: tuple[tuple[Routing, int], ...]

    def route(self, batch: Batch) -> Routed:
        first_ports = [0, *accumulate(degree for _, degree in self.inner)]
        for part, replicas in self.outer.route(batch):
            for replica in range(len(self.inner)) if replicas is None else replicas:
                rule, degree = self.inner[replica]
                for piece, workers in rule.route(part):
                    ports = range(degree) if workers is None else workers
                    yield piece, [first_ports[replica] + port for port in ports]

"""Collectors: per key, results leave in increasing window id, whichever worker was faster."""

from __future__ import annotations

from collections.abc import Iterable

from patterns.engine import pane_frontier
from patterns.progress import Progress, by_code, has_ended, is_progress
from patterns.window import Grid
from patterns.worker import STAMP, ProgressingNode, in_order, take_ready
from runtime.message import Batch, Columns, Message
from runtime.node import Emit


class Collector(ProgressingNode):
    """Holds results back until every input has passed the end of their window."""

    def __init__(self, grid: Grid, by_key: bool, *, inputs: int) -> None:
        super().__init__(inputs, by_key)
        self._grid = grid
        self._held: list[Columns] = []

    def add(self, batch: Batch) -> None:
        self._held.append({name: column.copy() for name, column in batch.columns.items()})

    def advance(self, progress: Progress) -> Columns:
        if has_ended(progress):
            ready, self._held = self._held, []
            return in_order(ready, ("window", "code")) if ready else {}
        ready, rest = [], []
        for columns in self._held:
            closed = self._grid.ends(columns["window"]) <= by_code(progress, columns["code"])
            if closed.any():
                ready.append({name: column[closed] for name, column in columns.items()})
            if not closed.all():
                rest.append({name: column[~closed] for name, column in columns.items()})
        self._held = list(rest)
        return in_order(ready, ("window", "code")) if ready else {}

    def _closed(self, progress: Progress) -> list[Emit]:
        columns = self.advance(progress)
        if not columns or not len(columns["window"]):
            return []
        return [Emit(Batch(columns, int(columns[STAMP].max()) if STAMP in columns else 0))]


class UnorderedCollector(ProgressingNode):
    """Hands results on as they come; where each key has one worker, that is their order already."""

    def __init__(self, by_key: bool, *, inputs: int) -> None:
        super().__init__(inputs, by_key)

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        if not is_progress(message):
            return (Emit(message),)
        return (Emit(self._progress.common(message)),) if self._progress.update(message, port) else ()

    def end(self) -> Iterable[Emit]:
        return ()


class PartialCollector(ProgressingNode):
    """Between two stages: partials of all inputs in the order of their panes, once their pane is complete."""

    def __init__(self, grid: Grid, by_key: bool, *, inputs: int) -> None:
        super().__init__(inputs, by_key)
        self._grid = grid
        self._held: list[Columns] = []

    def add(self, batch: Batch) -> None:
        self._held.append({name: column.copy() for name, column in batch.columns.items() if name != STAMP})

    def advance(self, progress: Progress) -> Columns:
        ready, self._held = take_ready(self._held, pane_frontier(self._grid, progress))
        return in_order(ready, ("pane", "code")) if ready else {}

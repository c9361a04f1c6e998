"""The collector: per key, results leave in increasing window id, whichever worker was faster."""

from __future__ import annotations

from patterns.progress import Progress, by_code, has_ended
from patterns.window import Grid
from patterns.worker import STAMP, ProgressingNode, in_order
from runtime.message import Batch, Columns
from runtime.node import Emit


class Collector(ProgressingNode):
    """Holds results back until every input has passed the end of their window."""

    def __init__(self, grid: Grid, counted: bool, *, inputs: int) -> None:
        super().__init__(inputs, counted)
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
            ends = self._grid.origin + columns["window"] * self._grid.slide + self._grid.length
            closed = ends <= by_code(progress, columns["code"])
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

"""Workers: the nodes that hold windows. Each keeps private state and fires on progress.

`WindowWorker` runs both stages of a query (WinSeq, the farms, the map side); `PaneWorker` only the
first (PLQ); `MergeWorker` only the second (WLQ, the reduce side).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from patterns.engine import Engine, GridBounds, add_items, by_residue, codes_of, pane_frontier, tell
from patterns.progress import Progress, ProgressTracker, by_code, is_progress
from patterns.query import Frontier, Query, joined
from patterns.window import Grid
from runtime.message import END_OF_TIME, Batch, Columns, Message
from runtime.node import Emit, Node

STAMP = "__stamp"


class ProgressingNode(Node):
    """A node that collects items and, whenever its inputs' common progress moves, gives out what that closed."""

    def __init__(self, inputs: int, by_key: bool) -> None:
        self._progress = ProgressTracker(inputs, by_key)
        self._ended_inputs = 0
        self._windows = 0
        self._outside = 0

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        if not is_progress(message):
            assert isinstance(message, Batch)
            self.add(message)
            return ()
        if not self._progress.update(message, port):
            return ()
        return [*self._closed(self._progress.value), Emit(self._progress.common(message))]

    def end(self) -> Iterable[Emit]:
        return self._closed(END_OF_TIME)

    def add(self, batch: Batch) -> None:
        raise NotImplementedError

    def advance(self, progress: Progress) -> Columns:
        """The columns that `progress` closes; empty columns if it closes nothing."""
        raise NotImplementedError

    def _closed(self, progress: Progress) -> list[Emit]:
        columns = self.advance(progress)
        rows = len(next(iter(columns.values()))) if columns else 0
        if not rows:
            return []
        if "window" in columns:
            self._windows += count_windows(columns["window"], columns["code"])
        stamp = np.full(rows, self._progress.stamp_ns, np.int64)
        return [Emit(Batch({**columns, STAMP: stamp}, self._progress.stamp_ns))]

    def gauges(self) -> dict[str, int]:
        return {"windows": self._windows, "outside": self._outside}


def count_windows(windows: np.ndarray, codes: np.ndarray) -> int:
    """How many windows `windows` and `codes`, sorted together, speak of."""
    if not len(windows):
        return 0
    return 1 + int(np.count_nonzero((np.diff(windows) != 0) | (np.diff(codes) != 0)))


class WindowWorker(ProgressingNode):
    """Holds the windows of `replica` out of `degree`: (code + window) mod degree == replica, or all of them.

    In a farm, keys of one residue share a grid; so the worker has one engine per residue of the key
    code, each on its own share of the windows.
    """

    def __init__(self, query: Query, grid: Grid, by_key: bool, *, replica: int = 0, degree: int = 1,
                 keyed: bool = False, final: bool = True) -> None:
        super().__init__(1, by_key)
        residues = range(degree if keyed else 1)
        self._final = final
        self._engines = [Engine(query, grid.share((replica - residue) % degree, degree), final=final,
                                counted=by_key) for residue in residues]

    def add(self, batch: Batch) -> None:
        if len(self._engines) == 1:
            self._outside += self._engines[0].add(batch)
            return
        for part, residue in by_residue(batch, codes_of(batch), len(self._engines)):
            self._outside += self._engines[residue].add(part)

    def advance(self, progress: Progress) -> Columns:
        fired = [engine.advance(progress) for engine in self._engines]
        columns = in_order(fired, ("window", "code")) if len(fired) > 1 else fired[0]
        if self._final:
            return columns
        return {"pane": columns["window"], **{name: column for name, column in columns.items() if name != "window"}}

    def gauges(self) -> dict[str, int]:
        return {**super().gauges(), "state_bytes": sum(engine.size_bytes for engine in self._engines)}


class PaneWorker(ProgressingNode):
    """The first stage alone: partials of the panes that it was given."""

    def __init__(self, query: Query, grid: Grid, by_key: bool) -> None:
        super().__init__(1, by_key)
        self._grid, self._state = grid, query.pane_state()
        tell(GridBounds(grid, by_key), self._state)

    def add(self, batch: Batch) -> None:
        self._outside += add_items(self._state, self._grid, batch)

    def advance(self, progress: Progress) -> Columns:
        return self._state.close(pane_frontier(self._grid, progress))


class MergeWorker(ProgressingNode):
    """The second stage alone: partials from `inputs` producers, windows of `replica` out of `degree`.

    `grid` is the base grid in whose panes the partials are counted; `split`: several producers may
    hold parts of one pane.
    """

    def __init__(self, query: Query, grid: Grid, by_key: bool, *, inputs: int, replica: int = 0,
                 degree: int = 1, split: bool = False, final: bool = True) -> None:
        super().__init__(inputs, by_key)
        self._grid, self._shift = grid, replica * grid.panes_per_slide
        self._ids = Grid(1, 1, 0, grid.first_id + replica * grid.id_step, grid.id_step * degree)
        per_slide = grid.panes_per_slide * degree
        self._hopping = per_slide > grid.panes_per_window
        self._per_window, self._per_slide = grid.panes_per_window, per_slide
        self._state = query.window_state(grid.panes_per_window, per_slide, final=final, split=split)
        tell(GridBounds(self._ids, counted=True), self._state)
        self._nothing = query.pane_state().close(0)
        self._held: list[Columns] = []

    def add(self, batch: Batch) -> None:
        panes = batch.columns["pane"] - self._shift
        mine = panes >= 0
        if self._hopping:
            mine &= panes % self._per_slide < self._per_window
        columns = {name: column[mine] for name, column in batch.columns.items() if name != STAMP}
        columns["pane"] = panes[mine]
        if len(columns["pane"]):
            self._held.append(columns)

    def advance(self, progress: Progress) -> Columns:
        before = self._before(pane_frontier(self._grid, progress))
        partials, self._held = take_ready(self._held, before)
        arrived = in_order(partials, ("pane", "code")) if partials else self._nothing
        fired = dict(self._state.advance(arrived, before))
        fired["window"] = self._ids.global_ids(fired["window"])
        return fired

    def _before(self, frontier: Frontier) -> Frontier:
        if isinstance(frontier, int):
            return max(frontier - self._shift, 0) if frontier < 2**61 else frontier
        return np.maximum(frontier - self._shift, 0)

    def gauges(self) -> dict[str, int]:
        return {**super().gauges(), "state_bytes": self._state.size_bytes}


def take_ready(held: Sequence[Columns], before: Frontier) -> tuple[list[Columns], list[Columns]]:
    """Partials of `held` whose pane lies below `before`, and the rest."""
    ready, rest = [], []
    for columns in held:
        below = columns["pane"] < by_code(before, columns["code"])
        if below.all():
            ready.append(columns)
        elif not below.any():
            rest.append(columns)
        else:
            ready.append({name: column[below] for name, column in columns.items()})
            rest.append({name: column[~below] for name, column in columns.items()})
    return ready, rest


def in_order(parts: Sequence[Columns], by: tuple[str, str]) -> Columns:
    """Rows of all `parts` (one at the least) together, sorted by the two columns `by`; equal rows keep their order."""
    parts = [part for part in parts if len(part[by[0]])] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    whole = joined(parts)
    order = np.lexsort((whole[by[1]], whole[by[0]]))
    return {name: column[order] for name, column in whole.items()}

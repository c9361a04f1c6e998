"""Both stages of a query on one grid of windows: items in, results of closed windows out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from patterns.progress import Progress, has_ended
from patterns.queries.kernels.coding import by_owner, frozen
from patterns.query import AT as AT
from patterns.query import CODE as CODE
from patterns.query import ROW as ROW
from patterns.query import END_OF_PANES, Bounds, ContextState, Frontier, PlacingState, Query
from patterns.window import Grid
from runtime.message import Batch, Columns


def codes_of(batch: Batch) -> np.ndarray:
    """Key codes of the items; all 0 when the stream has no key."""
    codes = batch.columns.get(CODE)
    return np.zeros(len(batch), np.int64) if codes is None else codes


def with_rows(batch: Batch) -> Batch:
    """`batch` with the items' source positions as a column, so that it can be taken apart."""
    if batch.first_row < 0 or ROW in batch.columns:
        return batch
    rows = np.arange(batch.first_row, batch.first_row + len(batch), dtype=np.int64)
    return Batch({**batch.columns, ROW: rows}, batch.stamp_ns, -1, batch.meta)


def by_residue(batch: Batch, numbers: np.ndarray, degree: int) -> Iterator[tuple[Batch, int]]:
    """The items of each residue of `numbers` modulo `degree`; numbers are not negative. Items keep their order."""
    order, starts = by_owner(frozen(numbers), degree)
    batch = with_rows(batch).select(order)
    for residue in range(degree):
        if starts[residue + 1] > starts[residue]:
            yield batch.select(slice(starts[residue], starts[residue + 1])), residue


def pane_frontier(grid: Grid, progress: Progress) -> Frontier:
    """How many panes of `grid` are complete at `progress`."""
    if has_ended(progress):
        return END_OF_PANES
    if isinstance(progress, int):
        return grid.frontier(progress)
    frontier: np.ndarray = np.maximum((progress - grid.origin) // grid.pane, 0)
    return frontier


def add_items(state: object, grid: Grid, batch: Batch) -> int:
    """Put the items of `batch` into the pane state; returns how many lie in no window of the grid."""
    columns = with_rows(batch).columns
    at = columns[AT]
    if isinstance(state, PlacingState):
        return state.add_times(columns.get(CODE), at, grid, columns)
    panes = grid.pane_of(at)
    codes = codes_of(batch)
    inside = grid.inside(panes) if grid.slide > grid.length or (len(at) and at.min() < grid.origin) else None
    if inside is not None and not inside.all():
        columns = {name: column[inside] for name, column in columns.items()}
        codes, panes = codes[inside], panes[inside]
    rows = columns.get(ROW)
    if rows is not None:
        columns = {**columns, "row": rows}
    state.add(codes, panes, columns)  # type: ignore[attr-defined]
    return len(at) - len(panes)


@dataclass(frozen=True, slots=True)
class GridBounds:
    """The windows of a grid; `counted`: their bounds are times of items, not positions."""

    grid: Grid
    counted: bool = False

    def window(self, number: int) -> tuple[int, Any, Any]:
        grid = self.grid
        start = grid.origin + number * grid.slide
        wid = grid.first_id + number * grid.id_step
        return (wid, None, None) if self.counted else (wid, start, start + grid.length)

    def holding(self, pane: int) -> int:
        number = max((pane - self.grid.panes_per_window) // self.grid.panes_per_slide + 1, 0)
        return self.grid.first_id + number * self.grid.id_step


def tell(bounds: Bounds, *states: object) -> None:
    """Tell those `states` that want to know which windows they work for."""
    for state in states:
        if isinstance(state, ContextState):
            state.in_context(bounds)


class Engine:
    """The windows of one grid, for all keys: what `WinSeq` and the workers of a farm run.

    `final=False` gives partials by window instead of results (the map side of a map-reduce).
    """

    def __init__(self, query: Query, grid: Grid, *, final: bool = True, counted: bool = False) -> None:
        self.grid, self._final = grid, final
        self._panes = query.pane_state()
        self._windows = query.window_state(grid.panes_per_window, grid.panes_per_slide, final=final)
        tell(GridBounds(grid, counted), self._panes, self._windows)

    def add(self, batch: Batch) -> int:
        """Take in items; returns how many lie in no window."""
        return add_items(self._panes, self.grid, batch)

    def advance(self, progress: Progress) -> Columns:
        """Results of the windows that `progress` closes, sorted by window and code.

        `window` is the global id in final results, the grid's own number in partials.
        """
        before = pane_frontier(self.grid, progress)
        fired = dict(self._windows.advance(self._panes.close(before), before))
        if self._final:
            fired["window"] = self.grid.global_ids(fired["window"])
        return fired

    @property
    def size_bytes(self) -> int:
        return self._windows.size_bytes

"""What a query is: a spec that makes two small state objects, one for panes and one for windows.

Every pattern runs every query through the same two stages, so that all of them give the same answer:

    items ──► PaneState ──► partials ──► WindowState ──► results
              (PLQ, map)    rows with     (WLQ, reduce)   rows with
                            pane, code                    window, code

A *partial* is what is left of the items of one pane and one key: a table with the columns `pane` and
`code` (both int64) and whatever the query wants to hand on. A sum has one row per pane and key, a
skyline one row per surviving item; a query that cannot be decomposed hands on the items themselves.
The sequential pattern fuses both stages in one node, `PaneFarm` puts them into different nodes,
`WinMapReduce` runs both in the map workers and the second one again, over window ids, in the reducer.

Keys are dense integer codes here (0, 1, 2, ... in order of first appearance; 0 when there is no key).
Panes and windows are counted from 0 on the grid of the node (`patterns.window.Grid`). No state object
knows a clock, a channel or an actor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from patterns.window import Grid
from runtime.message import Columns

#: Columns of the runtime's own, beside those that the query reads: the ordinate, the key's code and (if the
#: query has `needs_keys`) value, the source position, and (`needs_times`, count windows) the event time.
AT, CODE, KEY, ROW, TS = "__at", "__code", "__key", "__row", "__ts"

#: A frontier beyond every pane: the stream has ended, everything that is left fires.
END_OF_PANES = 2**62

#: All panes below it are complete: one number for all keys (time windows), or one per key code
#: (count windows; a code beyond the array's end has frontier 0).
Frontier = int | np.ndarray


class PaneState(Protocol):
    """Collects items into panes; items may come in any order, panes close in order."""

    def add(self, codes: np.ndarray, panes: np.ndarray, columns: Columns) -> None:
        """Take in items: `codes` and `panes` are int64, `columns` at least those that the query reads.

        The arrays may be views of memory that is reused after the call: copy what is kept.
        """

    def close(self, before: Frontier) -> Columns:
        """The partials of all panes below `before`, sorted by pane, then code; they are purged here."""


@runtime_checkable
class PlacingState(Protocol):
    """A pane state that finds the panes of items itself, which saves a pass over them."""

    def add_times(self, codes: np.ndarray | None, times: np.ndarray, grid: Grid, columns: Columns) -> int:
        """Take in items by event time (or position) on `grid`; returns how many of them are in no window.

        `codes` None: all items have code 0. The arrays may be views, as for `PaneState.add`.
        """


class Bounds(Protocol):
    """Which windows the numbers of a state stand for."""

    def window(self, number: int) -> tuple[int, Any, Any]:
        """Id, start and end of the state's window `number`; start and end are None where its items tell them."""

    def holding(self, pane: int) -> int:
        """The id of the first window that holds the state's pane `pane`."""


@runtime_checkable
class ContextState(Protocol):
    """A pane or window state that wants to know which windows it works for, to hand it on to a user's function."""

    def in_context(self, bounds: Bounds) -> None:
        """Called before the first item, and again where the numbers get another meaning."""


class WindowState(Protocol):
    """Turns partials into the results of windows, firing each window once, in order."""

    def advance(self, partials: Columns, before: Frontier) -> Columns:
        """Take in `partials` and fire every window whose panes all lie below `before`.

        `partials` are sorted by pane (then code); per key no pane is older than one seen before. With
        `before` = END_OF_PANES every window that holds an item fires. Returns rows sorted by window,
        then code, with the columns `window` and `code` (int64) and the query's own; windows without
        items do not appear. What no later window needs is purged. `partials` may be views: copy what
        is kept.
        """

    @property
    def size_bytes(self) -> int:
        """Memory held, for the statistics."""


@runtime_checkable
class Query(Protocol):
    """A frozen, picklable spec of what is asked of every window."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The input columns that the query reads, each once."""

    @property
    def decomposable(self) -> bool:
        """Whether partials of panes (or of any partition of a window) suffice for the window's result."""

    @property
    def selects(self) -> bool:
        """True: results are items of the window, given by the column `row`; the whole item is reported.

        False: results are values, given by the columns named in `outputs`.
        """

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the value columns of a result; where `selects`, those that go beside the item (a `rank`)."""

    def check(self, dtypes: Mapping[str, np.dtype]) -> None:
        """Raise SpecError if a column is missing or of a type that the query cannot read."""

    def pane_state(self) -> PaneState:
        """A fresh state for the first stage. Where `selects`, the items come with a column `row` (int64)."""

    def window_state(self, panes_per_window: int, panes_per_slide: int, *,
                     final: bool = True, split: bool = False) -> WindowState:
        """A fresh state for the second stage: window k holds panes `k*slide ... k*slide + window - 1`.

        `final=False`: the results are partials again (column `window` in the place of `pane`), to be
        merged by a later stage. `split=True`: several partials of one pane and key may come in one
        call, made from disjoint parts of its items, and are merged here.
        """


def empty_columns(names: Sequence[str]) -> dict[str, np.ndarray]:
    """Columns without rows: what a state returns when nothing closed or fired."""
    return {name: np.empty(0, np.int64) for name in names}


def joined(parts: Sequence[Columns]) -> Columns:
    """The rows of all `parts` (one at the least), one after the other.

    A column with several numbers per row may be wider in one part than in another: what is missing is 0.
    """
    if len(parts) == 1:
        return parts[0]
    return {name: _concatenated([part[name] for part in parts]) for name in parts[0]}


def _concatenated(columns: Sequence[np.ndarray]) -> np.ndarray:
    if columns[0].ndim == 2:
        width = max(column.shape[1] for column in columns)
        columns = [column if column.shape[1] == width else np.pad(column, ((0, 0), (0, width - column.shape[1])))
                   for column in columns]
    return np.concatenate(columns)

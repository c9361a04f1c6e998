"""The two stages of the built-in aggregates: cells of panes, then windows of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from patterns.queries.cells import DenseCells, Placing, SparseCells
from patterns.queries.fields import (COUNT, Field, Layout, Place, encoded, layout_of_partials, range_of,
                                     range_of_one, summands)
from patterns.queries.kernels import aggregates as kernels
from patterns.queries.kernels import exact, split
from patterns.queries.kernels.coding import frozen
from patterns.queries.multisets import Multiset, MultisetPanes, MultisetWindows, spread
from patterns.queries.ordered_values import OrderedWindows
from patterns.queries.rows import Waiting, starts_of
from patterns.queries.sliding import Fired, TwoStacks
from patterns.query import Frontier, empty_columns
from patterns.window import Grid
from runtime.message import Columns

#: Items whose ordinate is their pane already.
_BY_PANE: Placing = (0, 1, 1, 1)
#: A word of a sum has room for more than this many items.
_CARRY_EVERY = 1 << 28
#: Rows of parts are used from so many items per cell on.
_ITEMS_PER_SETTLING = 4


class Finish(Protocol):
    """How a result is made from what was kept of a window."""

    @property
    def output(self) -> str: ...

    @property
    def multiset(self) -> Multiset | None: ...

    def result(self, layout: Layout, ints: np.ndarray) -> np.ndarray: ...

    def ranks(self, counts: np.ndarray) -> np.ndarray: ...


class _Values(NamedTuple):
    """The values of a field's column as kernels take them; `magnitudes` and `cuts` only of floats to be summed."""

    words: np.ndarray
    magnitudes: tuple[int, int] | None = None
    cuts: split.Cuts | None = None

    @classmethod
    def of(cls, field: Field, column: np.ndarray) -> _Values:
        if not field.summed:
            return cls(frozen(encoded(column)))
        words = summands(column)
        if column.dtype.kind != "f":
            return cls(words)
        magnitudes = exact.magnitudes(words)
        return cls(words, magnitudes, split.cuts_of(*magnitudes))

    @property
    def floats(self) -> np.ndarray:
        return self.words.view(np.float64)


class AggregatePanes:
    """First stage: fields of every pane and key, one pass per batch; partials have one column per field."""

    def __init__(self, fields: Sequence[Field], multisets: Sequence[Multiset] = ()) -> None:
        self._fields = tuple(fields)
        self._layout: Layout | None = None
        self._cells: DenseCells | SparseCells
        self._fused = False  # counts and the sum of one column of floats: a single pass, no cells written down
        self._since = 0
        self._found = np.empty(0, np.int64)
        self._parts = np.zeros((0, split.WIDTH))
        self._zeros = np.empty(0, np.int64)
        self._multisets = [MultisetPanes(multiset) for multiset in multisets]

    def add(self, codes: np.ndarray | None, panes: np.ndarray, columns: Columns) -> None:
        """Take in items by pane; `codes` None means that all items have code 0."""
        self._add(codes, panes, _BY_PANE, columns)
        for multiset in self._multisets:
            multiset.add(codes, panes, columns)

    def add_times(self, codes: np.ndarray | None, times: np.ndarray, grid: Grid, columns: Columns) -> int:
        """Take in items by event time (or position) on `grid`; returns how many of them are in no window.

        Saves the caller the array of panes: the fastest way in.
        """
        place = grid.origin, grid.pane, grid.panes_per_slide, grid.panes_per_window
        outside = self._add(codes, times, place, columns)
        if self._multisets:
            panes = grid.pane_of(times)
            inside = grid.inside(panes)
            panes, codes = panes[inside], None if codes is None else codes[inside]
            for multiset in self._multisets:
                column = multiset.multiset.column
                multiset.add(codes, panes, {column: columns[column][inside]})
        return outside

    def close(self, before: Frontier) -> Columns:
        """The partials of all panes below `before`, sorted by pane, then code."""
        closed = None if self._layout is None else self._cells.take(before)
        if closed is None or not len(closed.panes):
            return empty_columns(("pane", "code", *(field.name for field in self._fields)))
        assert self._layout is not None
        partials = {"pane": closed.panes, "code": closed.codes, **self._layout.to_columns(closed.ints)}
        parts = []
        for multiset in self._multisets:
            panes, codes, values, weights = multiset.close(before)
            starts = starts_of(panes, codes)
            groups = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(panes))))
            parts.append((multiset.multiset, groups, values, weights))
        return spread(partials, parts)

    @property
    def size_bytes(self) -> int:
        held = sum(multiset.size_bytes for multiset in self._multisets)
        return held + (0 if self._layout is None else self._cells.size_bytes)

    def _add(self, codes: np.ndarray | None, ordinates: np.ndarray, place: Placing, columns: Columns) -> int:
        """Take in items; returns how many are in no window. A full table is enlarged on the way."""
        items = len(ordinates)
        if not items:
            return 0
        values = [_Values.of(field, columns[field.column]) for field in self._fields if field is not COUNT]
        layout = self._bound(columns, values)
        codes = self._code_zero(items) if codes is None else frozen(codes)
        ordinates = frozen(ordinates)
        start, outside = 0, 0
        while start < items:
            end = min(start + split.AT_ONCE, items)
            stop, skipped = self._pass(layout, start, codes[:end], ordinates[:end], place, values)
            outside += skipped
            if stop < end:
                self._cells = self._cells.room(codes[stop:])
            start = stop
        self._since += items
        if self._since > _CARRY_EVERY:
            layout.carry(self._cells.ints)
            self._since = 0
        return outside

    def _pass(self, layout: Layout, start: int, codes: np.ndarray, ordinates: np.ndarray, place: Placing,
              values: list[_Values]) -> tuple[int, int]:
        """Add the items from `start` on, as far as there is room: where it stopped, and how many are in no window."""
        cells, size = self._cells, len(self._cells.ints)
        # Rows of parts pay where a cell gets several items: each of them has to be settled.
        parts = self._parts_of(size) if _ITEMS_PER_SETTLING * size <= len(ordinates) - start else None
        if self._fused and isinstance(cells, DenseCells) and parts is not None and values[0].cuts is not None:
            cuts, where = values[0].cuts, layout.places[1]
            stop, outside = split.add_dense(start, codes, ordinates, place, cells.slots, cells.width,
                                            values[0].floats, cuts.first, cuts.second, cuts.in_two, parts)
            split.settle(parts, cuts.places, cuts.units, cells.ints, where.first, where.words, where.low)
            return stop, outside
        if len(self._found) < len(ordinates):
            self._found = np.empty(len(ordinates), np.int64)
        stop, outside = cells.locate(start, codes, ordinates, place, self._found)
        for where, column in zip(layout.places[1:], values, strict=True):
            _add_field(where, self._found[start:stop], column, start, stop, cells.ints, parts)
        return stop, outside

    def _parts_of(self, size: int) -> np.ndarray:
        """Rows of parts, all zero, for `size` cells."""
        if len(self._parts) != size:
            self._parts = np.zeros((size, split.WIDTH))
        return self._parts

    def _bound(self, columns: Columns, values: list[_Values]) -> Layout:
        """The layout for the types and the ranges of `columns`; the first batch decides on the types."""
        fields = [field for field in self._fields if field is not COUNT]
        dtypes = {field.name: columns[field.column].dtype for field in fields}
        ranges = {field.name: found for field, column in zip(fields, values, strict=True)
                  if column.magnitudes and (found := range_of(field, column.magnitudes)) is not None}
        if self._layout is None:
            begin = {field.name: range_of_one(field) for field in fields if field.summed}
            self._layout = Layout(self._fields, dtypes, {**begin, **ranges})
            self._cells = DenseCells(self._layout)
            places = self._layout.places
            self._fused = len(places) == 2 and places[1].field.kind == "sum" and places[1].floating
        else:
            self._layout.check(dtypes)
            wider = self._layout.wider(ranges)
            if wider is not None:
                self._layout, self._cells = wider, self._cells.relaid(wider)
        return self._layout

    def _code_zero(self, items: int) -> np.ndarray:
        if len(self._zeros) < items:
            self._zeros = frozen(np.zeros(items, np.int64))
        return self._zeros[:items]


class AggregateWindows:
    """Second stage: the fields and multisets of every window, and `specs`' results (None: partials again)."""

    def __init__(self, fields: Sequence[Field], multisets: Sequence[Multiset], per_window: int, per_slide: int,
                 specs: Sequence[Finish] | None) -> None:
        self._fields, self._specs = tuple(fields), specs
        self._per_window, self._per_slide = per_window, per_slide
        self._waiting = Waiting()
        self._layout: Layout | None = None
        self._stacks: TwoStacks
        self._wholes = [MultisetWindows(multiset, per_window, per_slide) for multiset in multisets if specs is None]
        self._ordered = [OrderedWindows(multiset, per_window, per_slide) for multiset in multisets if specs]
        self._held: list[MultisetWindows | OrderedWindows] = [*self._wholes, *self._ordered]

    def advance(self, partials: Columns, before: Frontier) -> Columns:
        partials = self._waiting.ready(partials, before)
        rows = len(partials["pane"])
        if rows:
            self._bind(partials)
        if self._layout is None:
            return self._nothing()
        ints = self._layout.to_words(partials) if rows else self._layout.blank(0)
        for multiset in self._held:
            if rows:
                multiset.add(partials)
        fired = self._stacks.advance(frozen(partials["pane"]), frozen(partials["code"]), ints, before)
        return self._fired(self._layout, fired) if len(fired.windows) else self._nothing()

    def _bind(self, partials: Columns) -> None:
        layout = layout_of_partials(self._fields, partials, self._layout)
        if self._layout is None:
            self._stacks = TwoStacks(layout, self._per_window, self._per_slide)
        elif layout is not self._layout:
            self._stacks.relay(layout)
        self._layout = layout

    def _fired(self, layout: Layout, fired: Fired) -> Columns:
        names = {"window": fired.windows, "code": fired.codes}
        if self._specs is None:
            parts = []
            for multiset in self._wholes:
                pieces = list(multiset.windows(fired.windows, fired.codes))
                groups, values, weights = map(np.concatenate, zip(*pieces, strict=True))
                parts.append((multiset.multiset, groups, values, weights))
                multiset.purge(self._stacks.starts)
            return spread({**names, **layout.to_columns(fired.ints)}, parts)
        held = self._of_values(self._specs, fired)
        return {**names, **{spec.output: held[spec.output] if spec.output in held
                            else spec.result(layout, fired.ints) for spec in self._specs}}

    def _of_values(self, specs: Sequence[Finish], fired: Fired) -> dict[str, np.ndarray]:
        """The results that are taken from multisets."""
        found = {}
        for ordered in self._ordered:
            asking = [spec for spec in specs if spec.multiset == ordered.multiset]
            ranks = np.column_stack([spec.ranks(fired.ints[:, 0]) for spec in asking])
            values = ordered.values(fired.windows, fired.codes, ranks, self._stacks.starts)
            found.update({spec.output: values[:, place] for place, spec in enumerate(asking)})
        return found

    def _nothing(self) -> Columns:
        if self._specs is None:
            return empty_columns(("window", "code", *(field.name for field in self._fields)))
        return empty_columns(("window", "code", *(spec.output for spec in self._specs)))

    @property
    def size_bytes(self) -> int:
        held = sum(multiset.size_bytes for multiset in self._held)
        return held + (0 if self._layout is None else self._stacks.size_bytes)


def _add_field(place: Place, cells: np.ndarray, column: _Values, start: int, stop: int, ints: np.ndarray,
               parts: np.ndarray | None) -> None:
    """Add the items `start ... stop - 1` of `column` to their cells; `parts`: rows for parts of floats, if they pay."""
    kind, unsigned, values = place.field.kind, place.dtype == np.uint64, column.words[start:stop]
    if kind == "least":
        kernels.add_least(cells, values, ints, place.first)
    elif kind == "greatest":
        kernels.add_greatest(cells, values, ints, place.first)
    elif kind == "sum" and parts is not None and column.cuts is not None:
        cuts = column.cuts
        split.add(cells, column.floats[start:stop], cuts.first, cuts.second, cuts.in_two, parts)
        split.settle(parts, cuts.places, cuts.units, ints, place.first, place.words, place.low)
    elif kind == "sum" and place.floating:
        exact.add_floats(cells, values, ints, place.first, place.low)
    elif kind == "sum":
        exact.add_ints(cells, values, unsigned, ints, place.first)
    elif place.floating:
        exact.add_float_squares(cells, values, ints, place.first, place.low)
    else:
        exact.add_int_squares(cells, values, unsigned, ints, place.first)

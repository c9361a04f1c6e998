"""Results on their way out: from window ids and row numbers to a table that a user can read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patterns.empty_windows import Spans, empty_rows, missing_windows
from patterns.intake import Intake
from patterns.payload import Payload
from patterns.progress import ProgressTracker, is_progress
from patterns.queries.function_values import check_alike
from patterns.queries.runs import bounds_of
from patterns.query import Query
from patterns.window import ContextAware, DeltaWindow, TimeWindow, Window, by_key
from patterns.worker import STAMP
from runtime.message import Batch, Message

_OWN = ("window", "code", "row", STAMP)


class Results:
    """The sink: takes result batches, has the rows kept, counts windows and latencies."""

    def __init__(self, query: Query, window: Window, intake: Intake, schema: pa.Schema,
                 emit_empty: bool = False) -> None:
        self._query, self._window, self._intake, self._schema = query, window, intake, schema
        self.payload = Payload(window)
        self._progress = ProgressTracker(1, by_key(window))
        self._parts: list[dict[str, np.ndarray]] = []
        self._latencies: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.selects, self._emit_empty = query.selects, emit_empty
        #: Where keys begin and end, if windows without items are wanted, and if their place is known without a trigger.
        self.spans = Spans(window.grid()) if emit_empty and not isinstance(window, ContextAware) else None
        self.windows = 0
        self.rows = 0

    def take(self, message: Message, now_ns: int) -> None:
        """Take one message of the graph's output, which came out at `now_ns`."""
        if is_progress(message):
            if self._query.selects and self._progress.update(message, 0):
                self.payload.purge(self._progress.value)
            return
        assert isinstance(message, Batch)
        columns = {name: np.array(column) for name, column in message.columns.items()}
        self._parts.append(columns)
        if self._query.selects:
            self.payload.report(columns["row"])
        self.rows += len(message)
        self._note_latency(columns, now_ns)

    def _note_latency(self, columns: dict[str, np.ndarray], now_ns: int) -> None:
        begins = bounds_of(columns["window"], columns["code"])[:-1]
        stamps, windows = columns.pop(STAMP)[begins], columns["window"][begins]
        if len(stamps) and (stamps == stamps[0]).all():  # as they mostly are: what closes together leaves together
            stamps, first, counts = stamps[:1], np.zeros(1, np.int64), np.array([len(begins)])
        else:
            stamps, first, counts = np.unique(stamps, return_index=True, return_counts=True)
        self.windows += len(begins)
        self._latencies.append((now_ns - stamps, counts, windows[first]))

    def latency_ms(self) -> dict[str, float | None]:
        """Median and 99th percentile over windows, from the closing item's arrival to the result."""
        if not self._latencies:
            return {"p50": None, "p99": None}
        values, counts, _ = (np.concatenate(column) for column in zip(*self._latencies, strict=True))
        order = np.argsort(values)
        reached = np.cumsum(counts[order])
        at = {name: int(np.searchsorted(reached, share * reached[-1])) for name, share in (("p50", .5), ("p99", .99))}
        return {name: round(float(values[order][place]) / 1e6, 3) for name, place in at.items()}

    def latencies(self) -> pa.Table:
        """How long results took in the course of the run: the first window of those that closed together, how many
        they were, and the time from the closing item's arrival to their results."""
        nothing = (np.empty(0, np.int64),) * 3
        columns = zip(*(nothing, *self._latencies), strict=True)
        values, counts, windows = (np.concatenate(column) for column in columns)
        return pa.table({"window_id": windows, "windows": counts, "latency_ms": values / 1e6})

    # -- the table ------------------------------------------------------------------------------

    def table(self) -> pa.Table:
        """All results, ordered by key, window, time, arrival."""
        if not self._parts:
            none = np.empty(0, np.int64)
            beside = dict.fromkeys(self._query.outputs, none) if self._query.selects else {}
            table = self._assemble(none, none, self._empty_rows(), beside)
            return self._with_empty(table, none, none) if self._emit_empty else table
        for part in self._parts[1:]:
            check_alike(self._parts[0], part)
        columns = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        reported = self.payload.reported() if self._query.selects else None
        places = places_of(columns["row"], reported[0]) if reported is not None else None
        order = self._order(columns, reported[1] if reported is not None else None, places)
        values = {name: column[order] for name, column in columns.items() if name not in _OWN}
        rows = reported[1].take(pa.array(places[order])) if reported is not None and places is not None else None
        windows, codes = columns["window"][order], columns["code"][order]
        table = self._assemble(windows, codes, rows, values)
        return self._with_empty(table, windows, codes) if self._emit_empty else table

    def _with_empty(self, table: pa.Table, windows: np.ndarray, codes: np.ndarray) -> pa.Table:
        """`table`, whose rows are of `windows` and `codes`, and a row for each window without results.

        On a grid: those between a key's first and last window with items. Else: all that were triggered.
        """
        every = self.spans.windows() if self.spans is not None else self._intake.line.extents.ends()
        more_codes, more_windows = missing_windows(every, codes, windows)
        known = self._extent_columns(more_windows, more_codes)
        extra = empty_rows(table.schema, known, getattr(self._query, "of_nothing", {}), len(more_codes))
        codes, windows = np.r_[codes, more_codes], np.r_[windows, more_windows]
        rank = _ranks(self._key_values())
        order = order_by([rank[codes] if len(rank) else codes, windows])
        return pa.concat_tables([table, extra]).take(pa.array(order))

    def _order(self, columns: dict[str, np.ndarray], rows: pa.Table | None, places: np.ndarray | None) -> np.ndarray:
        """By key, window, and within a window event time, then arrival, or the rank that the query gave."""
        rank = _ranks(self._key_values())
        by = [rank[columns["code"]] if len(rank) else columns["code"], columns["window"]]
        if rows is not None and places is not None:
            times = self._intake.spec.time.microseconds(rows.column(self._intake.spec.time.name).combine_chunks())
            turn = np.empty(len(times), np.int64)
            turn[np.argsort(times, kind="stable")] = np.arange(len(times))  # rows lie in order of arrival
            by.append(columns["rank"] if "rank" in columns else turn[places])
        return order_by(by)

    def _empty_rows(self) -> pa.Table | None:
        return self._schema.empty_table() if self._query.selects else None

    def _assemble(self, windows: np.ndarray, codes: np.ndarray, rows: pa.Table | None,
                  values: dict[str, np.ndarray]) -> pa.Table:
        extent = self._extent_columns(windows, codes)
        keys = {"key": extent.pop("key")} if "key" in extent else {}
        if rows is None:
            values = values or {name: np.empty(0) for name in self._query.outputs}
            return pa.table({**keys, **extent, **{name: pa.array(column) for name, column in values.items()}})
        inputs = {name: rows.column(name) for name in rows.column_names if name not in keys}
        return pa.table({**extent, **keys, **{name: pa.array(column) for name, column in values.items()}, **inputs})

    def _extent_columns(self, windows: np.ndarray, codes: np.ndarray) -> dict[str, pa.Array]:
        """Ids, bounds and (in a keyed stream) keys of windows."""
        time = self._intake.spec.time
        kind = self._schema.field(time.name).type
        starts, ends = self._bounds(windows, codes)
        if isinstance(self._window, DeltaWindow):
            bounds = pa.array(starts), pa.array(ends)
        else:
            bounds = time.from_microseconds(starts, kind), time.from_microseconds(ends, kind)
        extent = {"window_id": pa.array(windows), "window_start": bounds[0], "window_end": bounds[1]}
        return {**extent, "key": self._key_column(codes)} if self._intake.spec.key is not None else extent

    def _key_column(self, codes: np.ndarray) -> pa.Array:
        return self._key_values().take(pa.array(codes))

    def _key_values(self) -> pa.Array:
        """The key of every code; empty if the stream has no keys."""
        if self._intake.spec.key is None:
            return pa.array([], pa.null())
        kind = self._schema.field(self._intake.spec.key).type
        return pa.array(self._intake.keys, kind.value_type if pa.types.is_dictionary(kind) else kind)

    def _bounds(self, windows: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Start and end of each window, in microseconds (delta windows: on the line of the attribute)."""
        if isinstance(self._window, TimeWindow):
            grid = self._window.grid()
            starts = grid.origin + windows * grid.slide
            return starts, starts + grid.length
        return self._intake.line.extents.lookup(windows, codes)


def places_of(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Where each of `rows` stands in `known`, which is ascending and has all of them."""
    span = int(known[-1] - known[0]) + 1
    if span > 8 * len(rows):
        return np.searchsorted(known, rows)
    lookup = np.empty(span, np.int32)
    lookup[known - known[0]] = np.arange(len(known))
    return lookup[rows - known[0]]


def order_by(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The order of the rows by the first of `columns`, then the second, ...; all are integers from 0 on."""
    spans = [int(column.max(initial=0)) + 1 for column in columns]
    if math.prod(spans) >= 2**63:
        return np.lexsort(columns[::-1])
    key = columns[0]
    for column, span in zip(columns[1:], spans[1:], strict=True):
        key = key * span + column  # one number for all of them: sorts several times faster
    return np.argsort(key, kind="stable")


def _ranks(keys: pa.Array) -> np.ndarray:
    """The place of each key code in the sorted order of the keys."""
    if not len(keys):
        return np.empty(0, np.int64)
    place = pc.sort_indices(keys).to_numpy()
    ranks = np.empty(len(keys), np.int64)
    ranks[place] = np.arange(len(keys))
    return ranks

"""The fluent API: a stream, its windows, a query, and a run.

    >>> import numpy as np
    >>> from patterns import Stream, TimeWindow, WinFarm
    >>> from patterns.queries import Skyline
    >>> offers = {"ts": np.arange(6) * 500_000, "price": [5., 3., 4., 2., 9., 1.], "distance": [1., 2., 1., 4., 1., 3.]}
    >>> report = (Stream.of(offers, time="ts").window(TimeWindow("2s", slide="1s"))
    ...           .apply(Skyline("price", "distance"), pattern=WinFarm(workers=2)).run(executor="inline"))
    >>> report.results.select(["window_id", "price", "distance"]).to_pydict()["price"]
    [3.0, 4.0, 2.0, 4.0, 1.0, 9.0, 1.0]

Every call returns a new, frozen spec; nothing runs before `run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from patterns.build import Job, at_level, build
from patterns.execute import Options, execute
from patterns.intake import EXACT_DIGITS, IntakeSpec, check_columns, check_rows
from patterns.plan import Choice, Known, choose, look_at
from patterns.query import Query
from patterns.report import Report
from patterns.source import TimeColumn, batches_of, column_names, first_values, is_table, ordered, to_table
from patterns.specs import Pattern, check_degree, has_degrees, parse_pattern
from patterns.triggers import attribute_type
from patterns.window import ContextAware, CountWindow, DeltaWindow, SlideByTuple, TimeWindow, Window
from runtime.errors import SpecError, WindowfarmError
from runtime.topology import Graph, graph


@dataclass(frozen=True, eq=False)
class Stream:
    """A source of items with event times, and optionally a key."""

    source: Any
    time: TimeColumn
    key: str | None = None
    disorder: str | None = None
    on_bad_row: str = "fail"

    @classmethod
    def of(cls, source: Any, time: str, *, time_unit: str = "us", disorder: str | None = None,
           on_bad_row: str = "fail") -> Stream:
        """A stream of `source`: pandas, Arrow, a dict of columns, a Spark DataFrame, or an iterator of those.

        `time` names the event times: timestamps, or integers of `time_unit`. `disorder` says what to do
        with items that are not in order of time: "sort" (the default for what lies in memory),
        "in-order" (the default for an iterator: an item behind the newest one is late) or
        "bounded:200ms".
        """
        return cls(source, TimeColumn(time, time_unit), None, disorder, on_bad_row)

    def key_by(self, column: str) -> Stream:
        """The same stream in groups: windows are formed for each value of `column`."""
        if not isinstance(column, str):
            raise SpecError(f"`key_by` must name one column, got {column!r}: make a column of what belongs together")
        return replace(self, key=column)

    def window(self, window: Window, *, emit_empty: bool = False) -> Windowed:
        """Windows on the stream; `emit_empty` reports those without items too, between a key's first and last."""
        if not isinstance(window, Window):
            raise SpecError("`window` must be a window model such as TimeWindow(\"1s\", slide=\"200ms\"), "
                            f"got {window!r}")
        return Windowed(self, window, emit_empty)


@dataclass(frozen=True, eq=False)
class Windowed:
    """A stream with windows on it."""

    stream: Stream
    model: Window
    emit_empty: bool = False

    def apply(self, query: Query | Sequence[Query], pattern: Pattern | str = "auto", *,
              workers: int | None = None) -> Plan:
        """Ask `query` of every window; `pattern` says how to run it and never changes the answer."""
        return Plan(self.stream, self.model, as_query(query, self.stream.source), pattern, workers, self.emit_empty)


def as_query(query: Any, source: Any) -> Query:
    """One query: a list of aggregates becomes one that answers all of them, a function one of all columns."""
    if callable(query) and not isinstance(query, Query | type):
        from patterns.queries.functions import Function
        return Function(query, column_names(source))
    if isinstance(query, list | tuple):
        from patterns.queries.aggregates import Aggregates
        return Aggregates(tuple(query))
    if not isinstance(query, Query):
        raise SpecError(f"`query` must be a query such as Skyline(\"price\", \"distance\"), got {query!r}")
    return query


@dataclass(frozen=True, eq=False)
class Plan:
    """A query on the windows of a stream: all that `run` needs to know."""

    stream: Stream
    model: Window
    query: Query
    pattern: Pattern | str = "auto"
    workers: int | None = None
    emit_empty: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str | Pattern):
            raise SpecError(f"`pattern` must be a pattern such as WinFarm(workers=2), or its name, "
                            f"got {self.pattern!r}")
        if self.workers is not None:
            check_degree(self.workers, "workers", "a plan")
            if not isinstance(self.pattern, str) or has_degrees(self.pattern):
                raise SpecError(f"`workers` must be left out beside a pattern that has its own degrees, got "
                                f"{self.workers} and {self.pattern}")

    def job(self) -> Job:
        return Job(self.query, self.model, self.stream.key is not None)

    def choice(self) -> Choice:
        """The pattern that will run, and why."""
        if isinstance(self.pattern, str):
            if self.pattern == "auto":
                return choose(self.job(), self.workers, self._known())
            return Choice(parse_pattern(self.pattern, self.workers), "as asked")
        return Choice(self.pattern, "as asked")

    def _known(self) -> Known:
        """What the first items tell about the stream, if they lie in memory."""
        keys, times = (first_values(self.stream.source, name) for name in (self.stream.key, self.stream.time.name))
        try:
            known = times.drop_null() if times is not None else None
            microseconds = self.stream.time.microseconds(known) if known is not None else np.empty(0, np.int64)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, WindowfarmError):
            return Known()  # what is wrong with the times is said when the run starts
        if keys is None or pa.types.is_nested(keys.type):
            return look_at(None, microseconds, self.model)
        return look_at(keys.dictionary_encode().indices.fill_null(0).to_numpy(), microseconds, self.model)

    def graph(self, pattern: Pattern | None = None) -> Graph:
        """The nodes and edges that will run (or would with another `pattern`), checked."""
        return graph(build(pattern or self.choice().pattern, self.job()))

    def explain(self) -> str:
        """The choice of pattern in a sentence, and the graph: before its transformation, if that does anything."""
        choice = self.choice()
        plain, final = (self.graph(pattern).explain() for pattern in (at_level(choice.pattern, 0), choice.pattern))
        drawn = final if plain == final else f"as written:\n{plain}\n\nas it runs:\n{final}"
        return f"{choice.pattern}: {choice.why}\n{drawn}"

    def run(self, executor: str = "ray", **options: Any) -> Report:
        """Run to the end of the stream on `executor` ("ray" or "inline"); options as in `Options`."""
        known = [field.name for field in fields(Options)]
        for name in options:
            if name not in known:
                raise SpecError(f"`run` must be given options that it has ({', '.join(known)}), got {name!r}")
        return run_plan(self, Options(executor=executor, **options))


def run_plan(plan: Plan, options: Options) -> Report:
    """Check everything that can be checked, then run."""
    stream = plan.stream
    choice = plan.choice()
    closed = plan.graph(choice.pattern)
    disorder = stream.disorder or ("sort" if is_table(stream.source) else "in-order")
    if is_table(stream.source):
        table = to_table(stream.source)
        spec = intake_spec(plan, table.schema)
        if disorder == "sort":
            given, table = table, ordered(table, stream.time)
            if table is not given and stream.on_bad_row == "fail":
                check_rows(given, spec)  # here rows still have the numbers that the user knows
        batches = iter(table.to_batches(max_chunksize=options.rows_of_batch(table.num_rows)))
        schema, total = table.schema, table.num_rows
    else:
        schema, batches, total = _opened(stream.source)
        if disorder == "sort" and not getattr(stream.source, "ordered", False):
            raise SpecError("`disorder` sort needs all items at once, got an iterator: give a table, or use in-order "
                            "or bounded:DURATION")
        spec = intake_spec(plan, schema)
    return execute(plan.query, plan.model, closed, spec, schema, batches, disorder, options, emit_empty=plan.emit_empty,
                   pattern=str(choice.pattern), choice=choice.why, total_rows=total)


def _opened(source: Any) -> tuple[pa.Schema, Any, int | None]:
    """Schema, record batches and (if known) number of rows of an iterator; its first batch tells the schema."""
    if hasattr(source, "schema") and hasattr(source, "batches"):
        return source.schema, source.batches(), getattr(source, "rows", None)
    if not hasattr(source, "__iter__"):
        to_table(source)  # raises, saying what a stream can be made of
    batches = batches_of(source)
    first = next(batches, None)
    if first is None:
        return pa.schema([]), iter(()), 0
    return first.schema, _again(first, batches), None


def _again(first: pa.RecordBatch, rest: Any) -> Any:
    yield first
    yield from rest


def intake_spec(plan: Plan, schema: pa.Schema) -> IntakeSpec:
    """What to read of the rows, checked against their `schema`."""
    stream, query = plan.stream, plan.query
    listed = isinstance(plan.model, ContextAware)
    spec = IntakeSpec(stream.time, stream.key, tuple(query.columns), query.selects or listed,
                      getattr(query, "needs_times", False) and isinstance(plan.model, CountWindow), stream.on_bad_row,
                      (plan.model.attribute,) if isinstance(plan.model, DeltaWindow) else (),
                      getattr(query, "needs_keys", False))
    if not len(schema):
        return spec  # an iterator without a single batch
    types = {field.name: field.type for field in schema}
    check_columns(types, spec.read)
    stream.time.check(types[stream.time.name])
    if isinstance(plan.model, TimeWindow):
        grid = plan.model.grid()
        stream.time.check_grid((grid.length, grid.slide, grid.origin), types[stream.time.name])
    if isinstance(plan.model, SlideByTuple):
        stream.time.check_grid((plan.model.length,), types[stream.time.name])  # type: ignore[arg-type]
    if isinstance(plan.model, DeltaWindow):
        attribute_type(plan.model, types[plan.model.attribute])
    if stream.key is not None and pa.types.is_nested(types[stream.key]):
        raise SpecError(f"the key `{stream.key}` must be a plain value, got {types[stream.key]}: "
                        "key by one of its parts, or by a text made of them")
    reserved = {"window_id", "window_start", "window_end", *query.outputs} & set(types) if query.selects else set()
    if reserved:
        raise SpecError(f"the data must not have columns named like those of the results, got {sorted(reserved)}: "
                        "rename them")
    if query.selects and stream.key not in (None, "key") and "key" in types:
        raise SpecError(f"the results name the value of `{stream.key}` `key`, but the data have another column "
                        "`key`: rename it")
    query.check({name: _dtype(types[name], name) for name in spec.columns})
    return spec


def _dtype(kind: pa.DataType, name: str) -> np.dtype[Any]:
    if pa.types.is_decimal(kind):
        if kind.precision > EXACT_DIGITS:
            raise SpecError(f"column `{name}` must be a decimal of at most {EXACT_DIGITS} digits, which a float tells "
                            f"apart, got {kind}: cast it to fewer digits, or to a float")
        return np.dtype(np.float64)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.dtype(np.str_)
    try:
        return np.dtype(kind.to_pandas_dtype())
    except NotImplementedError:
        raise SpecError(f"column `{name}` must hold plain values, got {kind}") from None

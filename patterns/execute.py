"""A run from the first batch to the report, on whichever executor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from patterns.admission import admission
from patterns.intake import Intake, IntakeSpec
from patterns.lines import line
from patterns.plan import cores
from patterns.query import Query
from patterns.report import Report
from patterns.results import Results
from patterns.window import Window
from runtime.errors import SpecError, UserFunctionError
from runtime.inline import run_inline
from runtime.message import Message
from runtime.node import SOURCE
from runtime.placement import ActorOptions, placed
from runtime.statistics import NodeStats, Stats
from runtime.topology import Graph


@dataclass(frozen=True)
class Options:
    """How to run. None of it changes the answer.

    `executor` "ray" or "inline"; `batch_rows` items per message at the most (None: by the number of items,
    16,384 to 65,536); `seed` shuffles the inline schedule; `fuse` puts emitters and collectors into the
    driver's process ("auto": if there are more nodes than cores); `name` is the run's, as the dashboard
    shows it; `on_progress(rows, total)` is called now and then; `actors` says how actor processes run
    (pinned, nice, with another allocator).
    """

    executor: str = "ray"
    batch_rows: int | None = None
    seed: int | None = None
    fuse: bool | str = "auto"
    name: str = "windowfarm"
    stall_s: float = 300.0
    actors: ActorOptions | None = None
    on_progress: Callable[[int, int | None], None] | None = None
    on_start: Callable[[str | None], None] | None = None

    def __post_init__(self) -> None:
        if self.executor not in ("ray", "inline"):
            raise SpecError(f"`executor` must be ray or inline, got {self.executor!r}")
        if self.batch_rows is not None and (not isinstance(self.batch_rows, int) or self.batch_rows < 1):
            raise SpecError(f"`batch_rows` must be at least 1, got {self.batch_rows!r}")

    def rows_of_batch(self, total: int | None) -> int:
        """Items per message: large messages cost less, but several should be under way at a time."""
        return self.batch_rows or min(max((total or 0) // 64, 16_384), 65_536)


class Feed:
    """The driver's end of a run: record batches in, results out, and when each thing happened."""

    def __init__(self, intake: Intake, results: Results, batches: Iterator[pa.RecordBatch | None],
                 options: Options, total: int | None) -> None:
        self._intake, self._results, self._batches = intake, results, batches
        self._options, self._total = options, total
        self.first_ns = self.last_ns = 0

    def messages(self) -> Iterator[Message | None]:
        rows = self._options.rows_of_batch(self._total)
        for batch in self._batches:
            if batch is None:
                yield None  # the source has nothing yet
                continue
            for start in range(0, max(batch.num_rows, 1), rows):
                yield from self._one(batch.slice(start, rows))
        self._intake.line.end()

    def _one(self, batch: pa.RecordBatch) -> Iterator[Message]:
        now_ns = time.monotonic_ns()
        self.first_ns = self.first_ns or now_ns
        taken = self._intake.take(batch, now_ns)
        if self._results.selects:
            self._results.payload.keep(taken)
        if self._results.spans is not None:
            self._results.spans.note(taken.codes, taken.ordinates)
        yield from taken.messages
        if self._options.on_progress is not None:
            self._options.on_progress(self._intake.items, self._total)

    def take(self, message: Message) -> None:
        self._results.take(message, time.monotonic_ns())
        self.last_ns = time.monotonic_ns()


def execute(query: Query, window: Window, graph: Graph, spec: IntakeSpec, schema: pa.Schema,
            batches: Iterator[pa.RecordBatch | None], disorder: str, options: Options, *,
            pattern: str, choice: str, total_rows: int | None, emit_empty: bool = False) -> Report:
    """Push `batches` through `graph` and gather the report."""
    begin_ns = time.monotonic_ns()
    unit_us = spec.time.unit_us(schema.field(spec.time.name).type) if len(schema) else 1
    intake = Intake(spec, admission(disorder), line(window, unit_us))
    results = Results(query, window, intake, schema, emit_empty)
    feed = Feed(intake, results, batches, options, total_rows)
    graph = placed(graph, options.fuse, cores())
    nodes, shared_bytes, dashboard = _run(graph, feed, options, pattern)
    end_ns = max(feed.last_ns, feed.first_ns)
    run_s = (end_ns - feed.first_ns) / 1e9
    stats = Stats(
        items_in=intake.items + intake.bad, items_late=intake.late, items_bad=intake.bad,
        items_outside=intake.line.outside, windows=results.windows, result_rows=results.rows,
        startup_s=round(((feed.first_ns or time.monotonic_ns()) - begin_ns) / 1e9, 3), run_s=round(run_s, 6),
        items_per_s=round(intake.items / run_s, 1) if run_s else 0.0, latency_ms=results.latency_ms(),
        pattern=pattern, executor=options.executor, shared_memory_bytes=shared_bytes,
        nodes=tuple(node for node in nodes if node.name != SOURCE))
    return Report(results.table() if len(schema) else pa.table({}), stats, _table(intake.late_rows, schema),
                  _table(intake.bad_rows, schema), graph.explain(), choice, dashboard, results.latencies())


def _run(graph: Graph, feed: Feed, options: Options, pattern: str) -> tuple[tuple[NodeStats, ...], int, str | None]:
    try:
        return _run_on(graph, feed, options, pattern)
    except UserFunctionError as error:
        raise error.at(f"pattern `{pattern}`") from None


def _run_on(graph: Graph, feed: Feed, options: Options, pattern: str
            ) -> tuple[tuple[NodeStats, ...], int, str | None]:
    if options.executor == "inline":
        return run_inline(graph, feed.messages(), feed.take, seed=options.seed), 0, None
    from runtime.actors import run_on_ray  # Ray takes a second to import: only when it is needed
    return run_on_ray(graph, feed.messages(), feed.take, name=options.name, pattern=pattern.split("(")[0],
                      stall_s=options.stall_s, on_start=options.on_start, actor_options=options.actors)


def _table(parts: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(parts) if parts else schema.empty_table()

"""From options to a report: what every program does between its arguments and its printing."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import dataclass, replace

import pyarrow as pa

from apps.common_engines import Engines
from apps.common_options import check_apart
from apps.common_view import View
from patterns import Stream
from patterns.query import Query
from patterns.report import Report
from patterns.stream import Plan, intake_spec
from patterns.window import Window
from runtime.statistics import Stats
from spark_glue.handoff import OrderedSource
from spark_glue.ingest import ingest, open_inputs
from spark_glue.tasks import Inputs


@dataclass(frozen=True)
class Job:
    """A plan and its input, checked as far as possible without starting anything."""

    inputs: Inputs
    plan: Plan
    options: Namespace


@dataclass(frozen=True)
class Outcome:
    """The report of a run, its figures with start-up and bad rows of the input, and those rows."""

    report: Report
    stats: Stats
    bad: pa.Table


def prepare(options: Namespace, query: Query, window: Window) -> Job:
    """Open the input and check all that the files' heads can tell."""
    inputs = open_inputs(options.input, options.time, key=options.key, numeric=query.columns,
                         on_bad_row=options.on_bad_row)
    check_apart((head.file.path for head in inputs.heads), output=options.output, stats=options.stats,
                plot=options.plot)
    stream = Stream.of(inputs, options.time, time_unit=options.time_unit, disorder="sort",
                       on_bad_row=options.on_bad_row)
    if options.key:
        stream = stream.key_by(options.key)
    plan = stream.window(window).apply(query, options.pattern, workers=options.workers)
    plan.graph()
    intake_spec(plan, inputs.schema)
    return Job(inputs, plan, options)


def run(job: Job, engines: Engines, view: View, began_s: float, name: str) -> Outcome:
    """Start what is needed, Spark and Ray side by side, read, run; `began_s` is when the program did."""
    options = job.options
    on_ray = options.executor == "ray"
    view.stage(f"starting Spark{' and Ray' if on_ray else ''}, reading {len(job.inputs.heads)} files")
    reading = engines.on_spark(lambda spark: ingest(spark, job.inputs, engines.folder / "segments"),
                               ui=options.spark_ui, keep=options.spark_ui)
    if on_ray:
        engines.start_ray()
    source = reading.result().limited(options.limit)
    view.stage(f"running {job.plan.choice().pattern}")
    return _run(job, source, view, began_s, name)


def _run(job: Job, source: OrderedSource, view: View, began_s: float, name: str) -> Outcome:
    plan = replace(job.plan, stream=replace(job.plan.stream, source=source))
    started_s = time.monotonic()

    def on_start(address: str | None) -> None:
        from runtime.actors.session import dashboard_token
        view.dashboard(address, dashboard_token())

    report = plan.run(executor=job.options.executor, name=name, on_progress=view.progress, on_start=on_start)
    stats = replace(report.stats, items_in=report.stats.items_in + source.bad,
                    items_bad=report.stats.items_bad + source.bad,
                    startup_s=round(report.stats.startup_s + started_s - began_s, 3))
    return Outcome(report, stats, source.bad_rows())

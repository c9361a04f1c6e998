"""Active against agnostic window farms under a steady and a bursty stream, and all patterns on one stream.

Bandwidth is windows per second of the run, calculation time the busy time of all workers per window,
balance the busiest worker's share of the mean (1 is even), fragmentation the chunks that an agnostic worker
reads for a window. Every run's answer is compared with that of the sequential pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from apps.offers import arrivals_us
from patterns import SlideByTuple, Stream, TimeWindow
from patterns.queries import Skyline
from patterns.report import Report

REPEATS = 5
DIMS = ("a", "b", "c", "d")
TIME, ON_ITEMS = TimeWindow("1s", slide="100ms"), SlideByTuple("1s", slide=2_000)
FARMS = ("win_seq", "win_farm(2)", "win_farm(2,agnostic)", "win_farm(4)", "win_farm(4,agnostic)")
ALL = ("pane_farm(1,1)", "pane_farm(2,1)", "win_mapreduce(2,1)", "win_farm(pane_farm(1,1),2)")


def stream(count: int, dispersion: float) -> Stream:
    """`count` items in 4 dimensions, 20,000 a second on average, with this index of dispersion of arrivals."""
    rng = np.random.default_rng(3)
    times = (arrivals_us(count, 20_000, dispersion, rng) if dispersion > 1
             else np.cumsum(rng.exponential(50, count)).astype(np.int64))
    return Stream.of({"ts": times, **{name: rng.random(count) for name in DIMS}}, time="ts")


def run(quick: bool) -> Iterator[dict[str, Any]]:
    executor, count = ("inline", 4_000) if quick else ("ray", 400_000)
    for case, dispersion, window, patterns in (
            ("steady", 1.0, TIME, FARMS + ALL), ("bursty", 4_000.0, TIME, FARMS),
            ("bursty, slide by tuple", 4_000.0, ON_ITEMS, ("win_seq", "win_farm(2,agnostic)", "win_farm(4,agnostic)"))):
        plan = stream(count, dispersion).window(window)
        expected = plan.apply(Skyline(*DIMS), pattern="win_seq").run("inline").results
        for repeat in range(1 if quick else REPEATS):
            for pattern in patterns:
                report = plan.apply(Skyline(*DIMS), pattern=pattern).run(executor, batch_rows=4_096)
                if not report.results.equals(expected):
                    raise AssertionError(f"{pattern} gives another answer than win_seq")
                for metric, value, unit in figures(report):
                    yield {"bench": "patterns", "case": f"{case}, {pattern}", "subject": "windowfarm",
                           "metric": metric, "value": value, "unit": unit, "repeat": repeat}


def figures(report: Report) -> Iterator[tuple[str, float, str]]:
    workers = [node for node in report.stats.nodes if "worker" in node.name]
    stages = [node for node in report.stats.nodes if not node.name.startswith(("source", "sink"))]
    busy = [node.busy_s for node in workers]
    yield "bandwidth", report.stats.windows / report.stats.run_s, "windows/s"
    yield "throughput", report.stats.items_per_s, "items/s"
    yield "calculation time", 1e3 * sum(node.busy_s for node in stages) / report.stats.windows, "ms"
    if report.stats.latency_ms["p99"] is not None:
        yield "latency p99", report.stats.latency_ms["p99"], "ms"
    if len(workers) > 1 and max(busy) > 0:
        yield "balance", max(busy) / (sum(busy) / len(busy)), "of the mean"
    chunks = sum(node.chunks for node in workers)
    if chunks:
        yield "fragmentation", chunks / report.stats.windows, "chunks"

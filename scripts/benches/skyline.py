"""Sliding skylines: the product on Ray actors against a plain algorithm and libraries, on the same streams.

`plain` is one core and one process: panes sorted by the sum of the coordinates, compared row by row, and
merged with influence panes; no packed comparisons, no blocks, no corners. The libraries have no windows,
so each computes whole windows from scratch, and their rate is that of a slide's items per such window.
Answers are checked: full windows, members over all of them and the sum of the members' coordinates must
be those of `plain`, and the libraries' windows those of the product. The product's rate is taken on a stream
that is as long as that of `plain` or longer: its share of full windows, which cost most, is no smaller. And
peers are timed by the processor time they take, the product by the clock: a busy machine counts against it only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from patterns import Stream, TimeWindow
from patterns.queries import Skyline, TopDelta

REPEATS = 5

Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A stream and the windows on it; `plain_s` of it are enough for the slow one."""

    dims: int
    data: str
    rate: int
    slide_us: int
    seconds: float
    plain_s: float
    window_us: int = 1_000_000

    @property
    def name(self) -> str:
        return (f"d={self.dims} {self.data}, {self.rate // 1000}K items/s, w={self.window_us / 1e6:g} s, "
                f"s={self.slide_us / 1e6:g} s")


CASES = (Case(6, "independent", 300_000, 10_000, 3.0, 3.0), Case(6, "anticorrelated", 300_000, 10_000, 2.2, 1.5),
         Case(8, "independent", 100_000, 200_000, 5.0, 3.0), Case(8, "anticorrelated", 100_000, 200_000, 3.0, 2.0))
QUICK = (Case(6, "independent", 300_000, 2_000, 0.06, 0.06, 20_000),
         Case(8, "anticorrelated", 100_000, 10_000, 0.06, 0.06, 20_000))
PACED = Case(6, "independent", 300_000, 10_000, 5.0, 0.0)


def run(quick: bool) -> Iterator[Record]:
    """Throughput of every case and peer; if not `quick` also the clock-paced stream and top-delta."""
    executor = "inline" if quick else "ray"
    for case in QUICK if quick else CASES:
        yield from throughput(case, executor, 1 if quick else REPEATS)
    yield from top_delta(Case(8, "independent", 100_000, 100_000, 0.2 if quick else 2.0, 0, 100_000),
                         1 if quick else REPEATS)
    if not quick:
        for repeat in range(3):
            yield from paced(repeat)


# -- streams ---------------------------------------------------------------------------------------

def points(case: Case, seconds: float, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Event times in microseconds (sorted) and coordinates `(n, dims)` of a Poisson stream."""
    rng = np.random.default_rng(seed)
    n = int(case.rate * seconds)
    ts = np.cumsum(rng.exponential(1e6 / case.rate, n)).astype(np.int64)
    if case.data == "independent":
        return ts, rng.random((n, case.dims))
    level = np.clip(rng.normal(0.5, 0.05, (n, 1)), 0.05, 0.95)
    x = rng.random((n, case.dims))
    return ts, np.clip(level + x - x.mean(axis=1, keepdims=True), 0, 1)


def columns_of(ts: np.ndarray, x: np.ndarray) -> dict[str, np.ndarray]:
    return {"ts": ts, **{f"x{j}": np.ascontiguousarray(x[:, j]) for j in range(x.shape[1])}}


# -- throughput ------------------------------------------------------------------------------------

def throughput(case: Case, executor: str, repeats: int) -> Iterator[Record]:
    """The product, `plain` on the same items, and the libraries on a few whole windows."""
    ts, x = points(case, case.plain_s)
    plain_digest, rate = plain(ts, x, case)
    yield record(case.name, "plain", "throughput", rate, "items/s", 0)
    digest, _ = product_digest(case, ts, x, executor)
    if digest[:2] != plain_digest[:2] or not np.isclose(digest[2], plain_digest[2]):
        raise AssertionError(f"{case.name}: the product found {digest}, the plain algorithm {plain_digest}")
    ts, x = points(case, case.seconds)
    for repeat in range(repeats):
        _, report = product_digest(case, ts, x, executor)
        yield record(case.name, "windowfarm", "throughput", len(ts) / report.stats.run_s, "items/s", repeat)
    for name, find in libraries().items():
        yield record(case.name, name, "throughput", from_scratch(case, ts, x, report.results, find), "items/s", 0)


def product_digest(case: Case, ts: np.ndarray, x: np.ndarray, executor: str) -> tuple[tuple[int, int, float], Any]:
    """(full windows, members, sum of their coordinates) of the product's answer, and its report."""
    columns = columns_of(ts, x)
    plan = Stream.of(columns, time="ts").window(TimeWindow(case.window_us, slide=case.slide_us)) \
        .apply(Skyline(*list(columns)[1:]))
    report = plan.run(executor=executor)
    pane_us = np.gcd(case.window_us, case.slide_us)
    ends = report.results.column("window_end").to_numpy()
    full = ends <= int(ts[-1]) // pane_us * pane_us
    total = sum(float(report.results.column(f"x{j}").to_numpy()[full].sum()) for j in range(case.dims))
    return (len(np.unique(ends[full])), int(full.sum()), total), report


# -- the plain algorithm ---------------------------------------------------------------------------

@njit
def dominates(a: np.ndarray, i: int, b: np.ndarray, k: int) -> bool:
    better = False
    for j in range(a.shape[1]):
        if a[i, j] > b[k, j]:
            return False
        if a[i, j] < b[k, j]:
            better = True
    return better


@njit
def pane_skyline(x: np.ndarray) -> np.ndarray:
    order = np.argsort(x.sum(axis=1))
    kept = np.empty(x.shape[0], np.int64)
    n = 0
    for q in range(x.shape[0]):
        dead = False
        for k in range(n):
            if dominates(x, kept[k], x, order[q]):
                dead = True
                break
        if not dead:
            kept[n] = order[q]
            n += 1
    return kept[:n]


@njit
def merge(r: np.ndarray, pane_of: np.ndarray, influence: np.ndarray, n: int, s: np.ndarray, pane: int,
          panes_per_window: int) -> int:
    """Drop what expired or is dominated by `s`, find influence panes, append `s`; returns the new size."""
    m = 0
    for k in range(n):
        if pane_of[k] <= pane - panes_per_window:
            continue
        dead = False
        for q in range(s.shape[0]):
            if dominates(s, q, r, k):
                dead = True
                break
        if not dead:
            r[m], pane_of[m], influence[m] = r[k], pane_of[k], influence[k]
            m += 1
    old = m
    for q in range(s.shape[0]):
        youngest = -1
        for k in range(old - 1, -1, -1):
            if dominates(r, k, s, q):
                youngest = pane_of[k]
                break
        r[m], pane_of[m], influence[m] = s[q], pane, youngest
        m += 1
    return m


def plain(ts: np.ndarray, x: np.ndarray, case: Case) -> tuple[tuple[int, int, float], float]:
    """Its digest and items per second, compilation excluded."""
    pane_us = int(np.gcd(case.window_us, case.slide_us))
    per_window, per_slide = case.window_us // pane_us, case.slide_us // pane_us
    panes = int(ts[-1]) // pane_us
    edges = np.searchsorted(ts, np.arange(panes + 1) * pane_us)
    r = np.empty((len(x), x.shape[1]))
    pane_of, influence = np.empty(len(x), np.int64), np.empty(len(x), np.int64)
    merge(r, pane_of, influence, 0, x[:8][pane_skyline(x[:8])], 0, 1)
    n = windows = members = 0
    total = 0.0
    begin = time.process_time()
    for p in range(panes):
        pane = x[edges[p]:edges[p + 1]]
        n = merge(r, pane_of, influence, n, pane[pane_skyline(pane)], p, per_window)
        first = p - per_window + 1
        if first >= 0 and first % per_slide == 0:
            live = influence[:n] < first
            windows, members = windows + 1, members + int(live.sum())
            total += float(r[:n][live].sum())
    return (windows, members, total), float(edges[panes]) / (time.process_time() - begin)


# -- libraries -------------------------------------------------------------------------------------

def libraries() -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """What can be had from the registry: which rows of an array nobody dominates."""
    import moocore
    import paretoset
    return {"moocore": lambda x: np.asarray(moocore.is_nondominated(x, keep_weakly=True)),
            "paretoset": lambda x: np.asarray(paretoset.paretoset(x, distinct=False, use_numba=True))}


def from_scratch(case: Case, ts: np.ndarray, x: np.ndarray, results: pa.Table,
                 find: Callable[[np.ndarray], np.ndarray], budget_s: float = 15.0) -> float:
    """Items per second if every window is computed anew: as many full windows as fit into `budget_s`, one at least."""
    find(x[:50])  # compile
    ids = results.column("window_id").to_numpy()
    spent, window = 0.0, 0
    while spent < budget_s and window * case.slide_us + case.window_us <= ts[-1] and window < 5:
        low, high = np.searchsorted(ts, (window * case.slide_us, window * case.slide_us + case.window_us))
        begin = time.process_time()
        keep = find(x[low:high])
        spent += time.process_time() - begin
        found = np.sort(x[low:high][keep][:, 0])
        if not np.array_equal(found, np.sort(results.column("x0").to_numpy()[ids == window])):
            raise AssertionError(f"{case.name}: a library and the product differ in window {window}")
        window += 1
    return case.rate * case.slide_us / 1e6 * window / spent


# -- top-delta, and a stream that the clock paces --------------------------------------------------

def top_delta(case: Case, repeats: int) -> Iterator[Record]:
    """What `TopDelta(100)` costs beside the skyline, on panes of 10,000 items, in one process."""
    columns = columns_of(*points(case, case.seconds))
    names = list(columns)[1:]
    for repeat in range(repeats + 1):
        for metric, query in (("time, skyline", Skyline(*names)), ("time, top_delta(100)", TopDelta(100, *names))):
            plan = Stream.of(columns, time="ts").window(TimeWindow(case.window_us)).apply(query, pattern="win_seq")
            report = plan.run(executor="inline")
            if repeat:  # the first one warms up
                yield record("d=8 independent, panes of 10K items", "windowfarm", metric, report.stats.run_s, "s",
                             repeat - 1)


class PacedSource:
    """Hands each item over when the clock says so, in small batches; `lag_ms` is its greatest delay."""

    ordered = True

    def __init__(self, columns: dict[str, np.ndarray], every_us: int = 2_000) -> None:
        self._table = pa.table(columns)
        self.schema, self.rows = self._table.schema, self._table.num_rows
        self._ts, self._every_us = columns["ts"], every_us
        self.lag_ms = 0.0

    def batches(self) -> Iterator[pa.RecordBatch | None]:
        begin = time.perf_counter()
        done, due_us = 0, self._every_us
        while done < self.rows:
            now_us = (time.perf_counter() - begin) * 1e6
            if now_us < due_us:
                yield None
                continue
            self.lag_ms = max(self.lag_ms, (now_us - due_us) / 1e3)
            upto = int(np.searchsorted(self._ts, int(now_us)))
            due_us = int(now_us) // self._every_us * self._every_us + self._every_us
            if upto > done:
                yield self._table.slice(done, upto - done).combine_chunks().to_batches()[0]
                done = upto


def paced(repeat: int) -> Iterator[Record]:
    """300,000 items a second by the clock: from the item that closes a window to its result."""
    columns = columns_of(*points(PACED, PACED.seconds))
    source = PacedSource(columns)
    plan = Stream.of(source, time="ts").window(TimeWindow(PACED.window_us, slide=PACED.slide_us)) \
        .apply(Skyline(*list(columns)[1:]))
    stats = plan.run(executor="ray").stats
    case = f"{PACED.name}, paced by the clock"
    for share in ("p50", "p99"):
        yield record(case, "windowfarm", f"latency {share}", stats.latency_ms[share], "ms", repeat)
    yield record(case, "windowfarm", "greatest delay of the source", source.lag_ms, "ms", repeat)
    yield record(case, "windowfarm", "throughput", stats.items_per_s, "items/s", repeat)


def record(case: str, subject: str, metric: str, value: float | None, unit: str, repeat: int) -> Record:
    return {"bench": "skyline", "case": case, "subject": subject, "metric": metric, "value": value, "unit": unit,
            "repeat": repeat}

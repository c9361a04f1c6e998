"""Keyed sliding aggregates: count and sum of one float column, w = 1 s, s = 100 ms, 100 keys, data in memory.

The product runs on Ray actors with several patterns; DuckDB, Polars and pandas compute the same by panes, in
this process, with all cores. Rates are items divided by the time from the first batch to the last result
(peers: from the query to its table). All answers are compared with those of the first subject.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from patterns import KeyFarm, PaneFarm, Stream, TimeWindow, WinFarm, WinMapReduce, WinSeq
from patterns.queries import Count, Sum

ITEMS, QUICK_ITEMS, KEYS, REPEATS = 10_000_000, 200_000, 100, 5
LENGTH_US, SLIDE_US = 1_000_000, 100_000
PER_WINDOW = LENGTH_US // SLIDE_US
BATCH_ROWS = 65_536

PATTERNS = {"windowfarm": WinSeq(), "windowfarm pane_farm(1,1)": PaneFarm(1, 1),
            "windowfarm key_farm(2)": KeyFarm(workers=2), "windowfarm pane_farm(2,1)": PaneFarm(2, 1),
            "windowfarm win_farm(2)": WinFarm(workers=2), "windowfarm win_mapreduce(2,1)": WinMapReduce(2, 1)}

SQL = f"""
    WITH panes AS (SELECT key, ts // {SLIDE_US} AS pane, count(*) AS n, sum(value) AS total
                   FROM items GROUP BY key, pane),
         held AS (SELECT key, unnest(range(greatest(pane - {PER_WINDOW - 1}, 0), pane + 1)) AS wid, n, total FROM panes)
    SELECT key, wid, sum(n)::BIGINT AS n, sum(total) AS total FROM held GROUP BY key, wid"""


def run(quick: bool) -> Iterator[dict[str, Any]]:
    """One record per subject and repetition; `quick` runs a fiftieth of the items, the product inline."""
    items = QUICK_ITEMS if quick else ITEMS
    table = data(items)
    subjects: dict[str, Callable[[pa.Table], tuple[float, pd.DataFrame]]] = {
        "duckdb": with_duckdb, "polars": with_polars, "pandas": with_pandas}
    chosen = dict(list(PATTERNS.items())[:1]) if quick else PATTERNS
    for name, pattern in chosen.items():
        subjects[name] = partial(with_product, pattern=pattern, executor="inline" if quick else "ray")
    expected = in_order(with_pandas(table)[1])
    for subject in subjects.values():  # the first time compiles, starts and fills caches
        check(in_order(subject(table)[1]), expected)
    for repeat in range(1 if quick else REPEATS):
        for name, subject in subjects.items():
            spent_s, answer = subject(table)
            check(in_order(answer), expected)
            yield {"bench": "aggregates", "case": f"{items:.0e} items, {KEYS} keys, count and sum", "subject": name,
                   "metric": "rate", "value": items / spent_s, "unit": "items/s", "repeat": repeat}


def data(items: int) -> pa.Table:
    """A million items a second, in order of time."""
    random = np.random.default_rng(7)
    return pa.table({"ts": np.sort(random.integers(0, items, items)), "key": random.integers(0, KEYS, items),
                     "value": random.normal(100.0, 15.0, items)})


def with_product(table: pa.Table, pattern: Any, executor: str) -> tuple[float, pd.DataFrame]:
    report = (Stream.of(table, time="ts").key_by("key").window(TimeWindow(LENGTH_US, slide=SLIDE_US))
              .apply([Count(), Sum("value")], pattern=pattern).run(executor=executor, batch_rows=BATCH_ROWS))
    names = {"window_id": "wid", "count": "n", "sum_value": "total"}
    return report.stats.run_s, report.results.to_pandas().rename(columns=names)


def with_duckdb(table: pa.Table) -> tuple[float, pd.DataFrame]:
    with duckdb.connect() as connection:
        connection.register("items", table)
        begin = time.perf_counter()
        answer = connection.execute(SQL).to_arrow_table()
        return time.perf_counter() - begin, answer.to_pandas()


def with_polars(table: pa.Table) -> tuple[float, pd.DataFrame]:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    begin = time.perf_counter()
    panes = (frame.lazy().group_by("key", (pl.col("ts") // SLIDE_US).alias("pane"))
             .agg(pl.len().cast(pl.Int64).alias("n"), pl.col("value").sum().alias("total")))
    wids = pl.int_ranges((pl.col("pane") - (PER_WINDOW - 1)).clip(0), pl.col("pane") + 1).alias("wid")
    answer = (panes.with_columns(wids).explode("wid").group_by("key", "wid")
              .agg(pl.col("n").sum(), pl.col("total").sum()).collect())
    return time.perf_counter() - begin, answer.to_pandas()


def with_pandas(table: pa.Table) -> tuple[float, pd.DataFrame]:
    frame = table.to_pandas()
    begin = time.perf_counter()
    panes = (frame.groupby([frame["key"], (frame["ts"] // SLIDE_US).rename("pane")])["value"]
             .agg(n="count", total="sum").reset_index())
    held = pd.concat([panes.assign(wid=panes["pane"] - back) for back in range(PER_WINDOW)])
    answer = held[held["wid"] >= 0].groupby(["key", "wid"])[["n", "total"]].sum().reset_index()
    return time.perf_counter() - begin, answer


def in_order(answer: pd.DataFrame) -> pd.DataFrame:
    return answer[["key", "wid", "n", "total"]].sort_values(["key", "wid"], ignore_index=True)


def check(answer: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Raise unless both say the same: counts equal, sums to 12 digits (the peers round at every addition)."""
    pd.testing.assert_frame_equal(answer, expected, rtol=1e-12)

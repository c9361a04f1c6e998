"""Spark SQL's `groupBy(window(...), key)` and the built-in aggregates give the same rows of the same DataFrame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from patterns import Stream, TimeWindow
from patterns.queries import Count, Max, Min, Sum


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    """Items of a few minutes in 2026 in no order, with equal times and a gap longer than every window."""
    random = np.random.default_rng(11)
    count = 4_000
    times = 1_767_225_600_000_000 + random.integers(0, 120_000, count) * 1_000
    times[count // 2:] += 600_000_000
    data = pd.DataFrame({"ts": pd.to_datetime(times, unit="us"), "city": random.choice(["Ulm", "Bonn", "Kiel"], count),
                         "whole": random.integers(-(10**12), 10**12, count),
                         "half": random.integers(-99, 99, count) / 2})
    return spark.createDataFrame(data).cache()


@pytest.mark.parametrize(("length", "slide"), [("10 seconds", "2 seconds"), ("5 seconds", "5 seconds"),
                                               ("7 seconds", "3 seconds")])
def test_windows_of_spark_sql_and_built_in_aggregates_are_the_same_rows(frame: Any, length: str, slide: str) -> None:
    from pyspark.sql import functions as sql
    window = sql.window("ts", length, None if slide == length else slide)
    theirs = frame.groupBy(window.alias("w"), "city").agg(
        sql.count("*").alias("count"), sql.sum("whole").alias("sum_whole"), sql.sum("half").alias("sum_half"),
        sql.min("half").alias("min_half"), sql.max("whole").alias("max_whole"))
    wanted = theirs.select(sql.col("city").alias("key"), sql.col("w.start").alias("window_start"),
                           sql.col("w.end").alias("window_end"), "count", "sum_whole", "sum_half", "min_half",
                           "max_whole").toPandas()
    model = TimeWindow(length.replace(" seconds", "s"), slide.replace(" seconds", "s"))
    report = Stream.of(frame, time="ts").key_by("city").window(model).apply(
        [Count(), Sum("whole"), Sum("half"), Min("half"), Max("whole")], "key_farm(2)").run("inline")
    found = report.to_pandas().drop(columns="window_id")
    for bound in ("window_start", "window_end"):
        found[bound] = found[bound].dt.tz_localize(None).astype("datetime64[us]")
        wanted[bound] = wanted[bound].astype("datetime64[us]")
    by = ["key", "window_start"]
    assert len(found) > 50
    pd.testing.assert_frame_equal(found.sort_values(by, ignore_index=True), wanted.sort_values(by, ignore_index=True),
                                  check_dtype=False, check_exact=True)

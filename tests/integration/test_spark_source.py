"""Spark DataFrames: as a source, as results, and their static skyline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spark_glue
from patterns import Stream, TimeWindow
from patterns.queries import Skyline
from runtime.errors import BadInputError, SpecError
from tests import oracle


def offers(count: int, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"ts": rng.integers(0, 50, count), "id": np.arange(count),
                         "price": rng.integers(-4, 5, count).astype(float), "distance": rng.integers(0, 6, count),
                         "rating": rng.integers(0, 4, count)})


def brute_force(frame: pd.DataFrame, dims: list[str], maximize: list[str]) -> list[int]:
    points = frame[dims].to_numpy().tolist()
    return sorted(int(frame.id.iloc[place]) for place in
                  oracle.skyline(points, [dims.index(name) for name in maximize]))


@pytest.mark.parametrize("partitions", [1, 3])
def test_skyline_of_a_dataframe_equals_brute_force(partitions: int, spark: Any) -> None:
    data = offers(200)
    frame = spark.createDataFrame(data).repartition(partitions)
    best = spark_glue.skyline(frame, "price", "distance", maximize=["rating"])
    assert best.schema == frame.schema
    found = sorted(row.id for row in best.collect())
    assert found == brute_force(data, ["price", "distance", "rating"], ["rating"])


def test_skyline_of_a_dataframe_is_lazy_and_composes(spark: Any) -> None:
    broken = spark.range(3).selectExpr("id", "raise_error('computed') as price")
    with pytest.raises(SpecError, match="numeric"):
        spark_glue.skyline(broken.selectExpr("id", "'x' as price"), "price")
    lazy = spark_glue.skyline(broken.selectExpr("id", "cast(price as double) as price"), "price")  # nothing runs yet
    assert lazy.columns == ["id", "price"]
    data = offers(60)
    cheap = spark_glue.skyline(spark.createDataFrame(data).where("rating > 1"), "price", "distance").where("id >= 0")
    assert sorted(row.id for row in cheap.collect()) == brute_force(
        data[data.rating > 1], ["price", "distance"], [])


def test_skyline_of_a_dataframe_unknown_column_is_named(spark: Any) -> None:
    with pytest.raises(SpecError, match="did you mean `price`"):
        spark_glue.skyline(spark.createDataFrame(offers(3)), "prise")


@pytest.mark.parametrize("through_segments", [False, True])
def test_dataframe_as_a_source_gives_the_same_windows(through_segments: bool, spark: Any, tmp_path: Path) -> None:
    data = offers(300)
    frame = spark.createDataFrame(data).repartition(3, "id")
    source = spark_glue.ordered_source(frame, "ts", tmp_path, numeric=["price", "distance"]) \
        if through_segments else frame
    window, query = TimeWindow(10, slide=4), Skyline("price", "distance")
    found = Stream.of(source, "ts", disorder="sort").window(window).apply(query).run(executor="inline").results
    expected = Stream.of(data, "ts").window(window).apply(query).run(executor="inline").results
    order = [("window_id", "ascending"), ("id", "ascending")]
    assert found.sort_by(order).equals(expected.sort_by(order))


def test_dataframe_with_a_null_is_refused_with_its_row(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("select id as ts, if(id = 2, null, id) as price from range(0, 4, 1, 1)")
    with pytest.raises(BadInputError, match="`price`.*null in row 3 of `partition 0`"):
        spark_glue.ordered_source(frame, "ts", tmp_path, numeric=["price"])
    source = spark_glue.ordered_source(frame, "ts", tmp_path / "again", numeric=["price"], on_bad_row="drop")
    assert (source.rows, source.bad) == (3, 1)


def test_results_become_a_dataframe(spark: Any) -> None:
    table = pa.table({"window_id": [1, 2], "window_start": pa.array([1_000, 2_000], pa.timestamp("ns", "UTC"))})
    frame = spark_glue.to_dataframe(spark, table)
    assert [row.window_id for row in frame.collect()] == [1, 2] and frame.schema["window_start"] is not None

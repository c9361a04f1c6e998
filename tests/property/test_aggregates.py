"""Built-in aggregates end to end: every pattern, degree and window model gives what the oracle says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patterns import CountWindow, KeyFarm, PaneFarm, Stream, TimeWindow, WinFarm, WinMapReduce, WinSeq
from patterns.queries import Count, Max, Mean, Min, Quantile, Sum, Variance
from runtime.errors import BadInputError, SpecError
from tests import oracle

ALL = [Count(), Sum("value"), Min("value"), Max("value"), Mean("value"), Variance("value"), Quantile("value", 0.25)]
NAMES = ["count", "sum_value", "min_value", "max_value", "mean_value", "variance_value", "quantile_value_0_25"]

DEGREES = st.integers(1, 4)
TWO_STAGES = st.one_of(st.builds(PaneFarm, DEGREES, DEGREES), st.builds(WinMapReduce, DEGREES, DEGREES))
INNER = st.one_of(st.just(WinSeq()), TWO_STAGES)
UNKEYED = st.one_of(st.just(WinSeq()), TWO_STAGES, st.builds(WinFarm, INNER, DEGREES))
KEYED = st.one_of(UNKEYED, st.builds(KeyFarm, INNER, DEGREES))
WINDOWS = st.one_of(st.builds(TimeWindow, st.integers(1, 6), st.integers(1, 6), origin=st.sampled_from([0, 0, 3])),
                    st.builds(CountWindow, st.integers(1, 6), st.integers(1, 6)))
#: Steps between event times: equal times, neighbours, and gaps longer than every window.
STEPS = st.sampled_from([0, 0, 1, 1, 2, 7, 40])
FLOATS = st.one_of(st.integers(-4, 4).map(float), st.floats(-1e6, 1e6), st.sampled_from([1e16, -1e16, 0.1]))
INTS = st.integers(-(2**40), 2**40)


@st.composite
def streams(draw: Any, keyed: bool, values: Any) -> list[dict[str, Any]]:
    items, now = [], 0
    for _ in range(draw(st.integers(0, 24))):
        now += draw(STEPS)
        item = {"ts": now, "value": draw(values)}
        if keyed:  # key "rare" comes now and then: quiet and late keys
            item["key"] = draw(st.sampled_from(["a", "b", "b", "c", "a", "b", "a", "rare"]))
        items.append(item)
    return items


def table_of(items: list[dict[str, Any]], keyed: bool, kind: pa.DataType) -> pa.Table:
    columns = {"ts": pa.array([item["ts"] for item in items], pa.int64()),
               "value": pa.array([item["value"] for item in items], kind)}
    if keyed:
        columns["key"] = pa.array([item["key"] for item in items], pa.string())
    return pa.table(columns)


def expected(items: list[dict[str, Any]], model: Any) -> dict[Any, tuple[Any, ...]]:
    grid = model.grid()
    windows = (oracle.time_windows(items, grid.length, grid.slide, grid.origin) if isinstance(model, TimeWindow)
               else oracle.count_windows(items, grid.length, grid.slide)) if items else {}
    answers = {}
    for name, (_, _, held) in windows.items():
        values = [items[index]["value"] for index in held]
        answers[name] = (len(values), oracle.total(values), min(values), max(values), oracle.mean(values),
                         oracle.variance(values), oracle.quantile(values, 0.25))
    return answers


def found(results: pa.Table, keyed: bool) -> dict[Any, tuple[Any, ...]]:
    names = (["key"] if keyed else []) + ["window_id", *NAMES]
    rows = [tuple(row[name] for name in names) for row in results.to_pylist()]
    answers = {((row[0], row[1]) if keyed else (None, row[0])): row[2 if keyed else 1:] for row in rows}
    assert len(answers) == len(rows)
    return answers


@settings(max_examples=250)
@given(data=st.data(), keyed=st.booleans(), floats=st.booleans(), model=WINDOWS, seed=st.integers(0, 9),
       rows=st.integers(1, 12))
def test_aggregates_on_every_pattern_equal_the_oracle(data: Any, keyed: bool, floats: bool, model: Any, seed: int,
                                                      rows: int) -> None:
    items = data.draw(streams(keyed, FLOATS if floats else INTS))
    pattern = data.draw(KEYED if keyed else UNKEYED)
    stream = Stream.of(table_of(items, keyed, pa.float64() if floats else pa.int64()), time="ts")
    stream = stream.key_by("key") if keyed else stream
    report = stream.window(model).apply(ALL, pattern).run(executor="inline", seed=seed, batch_rows=rows)
    assert found(report.results, keyed) == expected(items, model)


def test_sum_beyond_64_bits_stops_the_run_and_says_what_to_do() -> None:
    plan = Stream.of({"ts": [1, 2], "v": np.full(2, 2**62)}, time="ts").window(TimeWindow(10)).apply(Sum("v"))
    with pytest.raises(BadInputError, match="cast the column to a float"):
        plan.run(executor="inline")


def test_text_column_is_refused_before_the_run() -> None:
    plan = Stream.of({"ts": [1, 2], "v": ["a", "b"]}, time="ts").window(TimeWindow(10)).apply(Sum("v"))
    with pytest.raises(SpecError, match="must hold integers or floats"):
        plan.run(executor="inline")


def test_result_columns_have_the_documented_names_and_order() -> None:
    plan = Stream.of({"ts": [1, 2], "k": [1, 1], "value": [1.0, 2.0]}, time="ts").key_by("k").window(TimeWindow(10))
    names = plan.apply(ALL).run(executor="inline").results.column_names
    assert names == ["key", "window_id", "window_start", "window_end", *NAMES]

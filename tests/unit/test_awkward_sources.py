"""Sources as people really have them: batches that differ, small and huge integers, odd arrays, wrong arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from patterns import Stream, TimeWindow, WinFarm
from patterns.queries import Count, Max, Skyline
from runtime.errors import BadInputError, SpecError

NAN = float("nan")


def results(source: Any, query: Any = None, key: str | None = None, **of: Any) -> dict[str, list[Any]]:
    stream = Stream.of(source, "ts", **of)
    stream = stream.key_by(key) if key else stream
    table = stream.window(TimeWindow("1h")).apply(query or [Count()]).run("inline").results
    found: dict[str, list[Any]] = table.to_pydict()
    return found


@pytest.mark.parametrize("query", [Skyline("v"), Max("v"), [Count()]])
@pytest.mark.parametrize(("later", "says"), [
    ({"ts": [1], "v": [1.5]}, "column `v` must have one type in all batches of a stream, got int64 .* double"),
    ({"ts": [1], "v": np.array([1], np.int32)}, "column `v` must have one type .* int32"),
    ({"ts": [1]}, "must have the same columns, got `v` in the first only"),
    ({"ts": [1], "v": [1], "more": [1]}, "must have the same columns, got `more` in a later one only"),
])
def test_batches_that_differ_are_refused(query: Any, later: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInputError, match=says):
        results(iter([{"ts": [0], "v": [2]}, later]), query)


def test_batches_with_columns_in_another_order_are_the_same_stream() -> None:
    first, second = {"ts": [0], "v": [2], "w": ["a"]}, {"w": [None], "v": [1], "ts": [1]}
    assert results(iter([first, second]), Skyline("v"))["v"] == [1]


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint8, np.uint16, np.int32])
def test_bounds_of_windows_may_lie_beyond_a_small_integer_column_of_times(kind: Any) -> None:
    times = np.array([np.iinfo(kind).max - 1], kind)
    found = results({"ts": times}, time_unit="s")
    assert found["window_end"] == [int(times[0]) // 3600 * 3600 + 3600]


def test_bounds_of_windows_have_the_type_of_the_times_where_they_fit() -> None:
    table = (Stream.of({"ts": np.array([5], np.int32)}, "ts", time_unit="s").window(TimeWindow("1h"))
             .apply([Count()]).run("inline").results)
    assert table.schema.field("window_end").type == pa.int32()


@pytest.mark.parametrize("query", [[Count()], Skyline("v")])
def test_keys_beyond_63_bits_are_keys_like_others(query: Any) -> None:
    source = {"ts": [0, 1, 2], "k": np.array([2**64 - 1, 2**63, 7], np.uint64), "v": [1, 2, 3]}
    assert results(source, query, "k")["key"] == [7, 2**63, 2**64 - 1]


@pytest.mark.parametrize("bad", [NAN, float("inf")])
def test_key_that_is_no_number_is_a_bad_row(bad: float) -> None:
    with pytest.raises(BadInputError, match="column `k` must hold a value in every row"):
        results({"ts": [0, 1], "k": np.array([bad, 1.0])}, key="k")
    assert results({"ts": [0, 1], "k": np.array([bad, 1.0])}, key="k", on_bad_row="drop")["key"] == [1.0]


@pytest.mark.parametrize("times", [[2**63 - 1], [-(2**62)], [0, 2**62, 5], np.array([2**63], np.uint64)])
def test_times_beyond_all_windows_are_refused(times: Any) -> None:
    with pytest.raises(BadInputError, match="time"):
        results({"ts": times})
    with pytest.raises(BadInputError, match="time"):
        results(iter([{"ts": times}]), disorder="bounded:10s")


def test_arrays_of_the_other_byte_order_are_converted() -> None:
    assert results({"ts": np.arange(2), "v": np.array([2, 1], ">i4")}, Skyline("v"))["v"] == [1]


def test_durations_may_be_of_numpy() -> None:
    assert TimeWindow(np.timedelta64(250, "ms")) == TimeWindow("250ms")
    with pytest.raises(SpecError, match="whole number of microseconds"):
        TimeWindow(np.timedelta64(250, "ns"))


STREAM = {"ts": [0, 1]}


@pytest.mark.parametrize(("call", "says"), [
    (lambda: results(pd.DataFrame([[0, 1, 2]], columns=["ts", "v", "v"])), "got `v` more than once"),
    (lambda: results({"ts": [0, 1], "v": np.zeros((2, 2))}), r"column `v` must be a plain .* got an array of shape"),
    (lambda: results({"ts": [0, 1], "v": [1, "a"]}), "column `v` must be a plain list"),
    (lambda: Stream.of(STREAM, "ts").key_by(["a", "b"]), "`key_by` must name one column"),  # type: ignore[arg-type]
    (lambda: Stream.of(STREAM, "ts").window(TimeWindow(1)).apply([Count()]).run("inline", batchrows=4),
     r"options that it has \(executor, batch_rows, .* got 'batchrows'"),
    (lambda: Stream.of(STREAM, "ts").window(TimeWindow(1)).apply([Count()], "win_farm(2)", workers=3),
     r"`workers` must be left out beside a pattern .* 3 and win_farm\(2\)"),
    (lambda: Stream.of(STREAM, "ts").window(TimeWindow(1)).apply([Count()], WinFarm(), workers=3),
     "`workers` must be left out"),
])
def test_what_cannot_be_meant_is_said_in_words(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        call()


def test_workers_count_where_a_pattern_is_spelt_without_degrees() -> None:
    plan = Stream.of(STREAM, "ts").window(TimeWindow(1)).apply([Count()], "win_farm(agnostic)", workers=3)
    assert str(plan.choice().pattern) == "win_farm(3,agnostic)"

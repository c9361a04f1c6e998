"""Corners of the API that once gave another answer than the definitions, or a raw error."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from patterns import CountWindow, DeltaWindow, SlideByTuple, Stream, TimeWindow
from patterns.queries import Count, Function, KDominant, Max, Quantile, Skyline, Sum, TopK, skyline
from patterns.report import Report
from patterns.window import duration_us
from runtime.errors import BadInputError, SpecError


def run(data: Any, window: Any, query: Any, key: str | None = None, pattern: str = "win_seq", empty: bool = False,
        **of: Any) -> Report:
    stream = Stream.of(data, time="ts", **of)
    stream = stream.key_by(key) if key else stream
    return stream.window(window, emit_empty=empty).apply(query, pattern=pattern).run(executor="inline")


def column(report: Report, name: str) -> list[Any]:
    values: list[Any] = report.results.column(name).to_pylist()
    return values


NULL_TIME = {"ts": pa.array([13, None, 2]), "v": [1.0, 5.0, 2.0]}


@pytest.mark.parametrize("pattern", ["win_seq", "auto"])
def test_row_without_a_time_does_not_keep_the_others_from_being_sorted(pattern: str) -> None:
    report = run(NULL_TIME, TimeWindow(10), Count(), pattern=pattern, on_bad_row="drop")
    assert column(report, "window_id") == [0, 1]
    assert (report.stats.items_bad, report.stats.items_late) == (1, 0)
    with pytest.raises(BadInputError, match="column `ts` must hold a value in every row, got null in row 2"):
        run(NULL_TIME, TimeWindow(10), Count(), pattern=pattern)


def test_bad_row_of_an_unsorted_table_is_named_by_its_own_number() -> None:
    with pytest.raises(BadInputError, match="got nan in row 3"):
        run({"ts": [5, 4, 3, 2], "v": [1.0, 2.0, float("nan"), 3.0]}, TimeWindow(10), Sum("v"))


def test_weights_of_top_k_work_in_double_precision() -> None:
    close = np.array([1.9, np.nextafter(np.float32(1.9), np.float32(2))], np.float32)
    assert column(run({"ts": [0, 1], "v": close}, TimeWindow(10), TopK(1, weights={"v": 0.529})), "ts") == [1]
    assert column(run({"ts": [0, 1], "v": np.float32([3e38, 1])}, TimeWindow(10), TopK(1, weights={"v": 2.0})),
                  "ts") == [0]


@pytest.mark.parametrize("text", ["780.555", "0.3", "-780.555", "999999999999999", "0.000000000000001", "0"])
def test_decimals_become_the_nearest_floats(text: str) -> None:
    decimals = pa.array([None, Decimal(text)], pa.decimal128(15, max(len(text.partition(".")[2]), 0))).slice(1)
    report = run({"ts": [0], "d": decimals}, TimeWindow(1), [Max("d"), Sum("d"), Quantile("d", .5)])
    assert report.results.to_pylist()[0] | {"max_d": float(text), "sum_d": float(text),
                                            "quantile_d_0_5": float(text)} == report.results.to_pylist()[0]
    assert skyline(pa.table({"d": decimals})).column("d").to_pylist() == [Decimal(text)]


def test_times_of_day_with_nanoseconds_are_different_keys() -> None:
    keys = pa.array([1, 2], pa.time64("ns"))
    report = run({"ts": [0, 1], "k": keys}, TimeWindow(10), Count(), key="k")
    assert column(report, "count") == [1, 1]
    assert report.results.column("key").cast(pa.int64()).to_pylist() == [1, 2]


@pytest.mark.parametrize("values", [["a", None], [5, None]])
def test_null_in_the_dictionary_of_a_key_is_a_bad_row(values: list[Any]) -> None:
    data = {"ts": [0, 1, 2], "k": pa.DictionaryArray.from_arrays(pa.array([0, 1, 1]), pa.array(values))}
    with pytest.raises(BadInputError, match="column `k` must hold a value in every row, got null in row 2"):
        run(data, TimeWindow(10), Count(), key="k")
    report = run(data, TimeWindow(10), Count(), key="k", on_bad_row="drop")
    assert (column(report, "key"), column(report, "count"), report.stats.items_bad) == (values[:1], [1], 2)


def test_functions_see_large_keys_exactly() -> None:
    data = {"ts": [0, 1, 2], "k": np.array([2**64 - 1, 2**64 - 2, 1], np.uint64), "v": [1, 2, 3]}
    report = run(data, TimeWindow(10), Function(lambda items: str(items.key), ["v"]), key="k")
    assert report.results.to_pandas().iloc[:, -1].tolist() == ["1", str(2**64 - 2), str(2**64 - 1)]


def test_empty_windows_are_reported_also_if_no_window_has_results() -> None:
    report = run({"ts": [0, 1], "a": [0, 10]}, DeltaWindow("a", 2, 1), Count(), empty=True)
    assert (column(report, "window_id"), column(report, "count")) == ([0], [0])
    data = {"ts": [0, 1, 20], "x": [1, 2, 1], "y": [2, 1, 1]}
    assert column(run(data, TimeWindow(10), KDominant(1, "x", "y"), empty=True), "window_id") == [0, 1, 2]


@pytest.mark.parametrize("pattern", ["win_seq", "win_farm(2)", "pane_farm(2,1)", "win_mapreduce(2,1)"])
def test_quantile_of_zeros_has_one_sign_with_every_pattern(pattern: str) -> None:
    data = {"ts": [0, 1, 2, 3], "f": [0.0, -0.0, -0.0, 0.0]}
    found = column(run(data, TimeWindow(4, slide=2), Quantile("f", .5), pattern=pattern), "quantile_f_0_5")
    assert [str(value) for value in found] == ["0.0", "0.0"]


def test_durations_are_exact() -> None:
    for thousandths in range(1, 100_000, 7):
        assert duration_us(f"{Fraction(thousandths, 1000).__float__():.3f}s") == thousandths * 1000
    assert TimeWindow("9007199254740993us").length == 9007199254740993
    assert TimeWindow(10, origin="5us").origin == 5


@pytest.mark.parametrize("make", [
    lambda: TimeWindow(2**63 - 1, slide=5), lambda: TimeWindow(10, origin=-2**63), lambda: SlideByTuple(2**63 - 1),
    lambda: TimeWindow(2**70), lambda: CountWindow(2**64), lambda: DeltaWindow("a", 2**70, 1),
    lambda: DeltaWindow("a", 1, 2**70)])
def test_windows_beyond_64_bits_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(SpecError, match=r"must be at most 2\*\*60"):
        make()


@pytest.mark.parametrize(("values", "length"), [
    (np.array([-5 * 10**18, 5 * 10**18]), 10), (np.array([0, 2**63], np.uint64), 10), (np.array([0, 2**53 + 1]), 1.5)])
def test_delta_attribute_beyond_its_line_is_refused(values: np.ndarray, length: float) -> None:
    with pytest.raises(BadInputError, match="the attribute `a` of a delta window must be a whole number of at most"):
        run({"ts": [0, 1], "a": values}, DeltaWindow("a", length, 1), Count())


def test_arrow_table_with_a_name_twice_is_refused() -> None:
    table = pa.table([pa.array([0]), pa.array([1]), pa.array([2])], names=["ts", "v", "v"])
    with pytest.raises(SpecError, match="got `v` more than once"):
        run(table, TimeWindow(1), Skyline("v"))

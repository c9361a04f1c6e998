"""What a user's function may be and return, and how its errors are reported."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import numba
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from patterns import Stream, TimeWindow, WinFarm, WinMapReduce
from patterns.queries import Decomposable, Function, Incremental, Sliding
from runtime.errors import SpecError, UserFunctionError

COLUMNS = {"ts": [0, 1, 2, 3, 4, 5], "k": ["a", "b"] * 3, "v": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}


def results(query: Any, pattern: Any = "win_seq", source: Any = None) -> pa.Table:
    plan = Stream.of(COLUMNS if source is None else source, time="ts").window(TimeWindow(3)).apply(query, pattern)
    return plan.run(executor="inline", batch_rows=2).results


@pytest.mark.parametrize(("returned", "rows"), [
    (7, [{"value": 7}] * 2),
    (np.float32(0.5), [{"value": 0.5}] * 2),
    (True, [{"value": True}] * 2),
    ("text", [{"value": "text"}] * 2),
    (datetime(2026, 1, 2), [{"value": datetime(2026, 1, 2)}] * 2),
    ({"low": 1, "high": 2.5}, [{"low": 1, "high": 2.5}] * 2),
    ([1, 2], [{"value": 1}, {"value": 2}] * 2),
    (np.array([1.5, 2.5]), [{"value": 1.5}, {"value": 2.5}] * 2),
    ({"x": np.array([1, 2]), "y": ["p", "q"]}, [{"x": 1, "y": "p"}, {"x": 2, "y": "q"}] * 2),
    ({"x": np.array([1, 2]), "y": 9}, [{"x": 1, "y": 9}, {"x": 2, "y": 9}] * 2),
    (pa.table({"x": [1, 2], "y": ["p", "q"]}), [{"x": 1, "y": "p"}, {"x": 2, "y": "q"}] * 2),
    (pd.DataFrame({"x": [1, 2], "y": ["p", "q"]}), [{"x": 1, "y": "p"}, {"x": 2, "y": "q"}] * 2),
    (np.array([(1, 2.5)], [("x", "i8"), ("y", "f8")]), [{"x": 1, "y": 2.5}] * 2),
    (None, []),
    ([], []),
])
def test_return_value_of_every_allowed_kind_becomes_rows(returned: Any, rows: list[dict[str, Any]]) -> None:
    table = results(Function(lambda items: returned, ["v"]))
    values = table.drop_columns(["window_id", "window_start", "window_end"]).to_pylist()
    assert values == rows


@pytest.mark.parametrize("returned", [object(), {"x": object()}, np.ones((2, 2)), {"x": [1, 2], "y": [1, 2, 3]},
                                      [[1], [2, 3]], {"x": None}, 2**70, b"bytes", {1, 2}])
def test_return_value_of_another_kind_is_an_error_that_says_what_is_allowed(returned: Any) -> None:
    with pytest.raises(UserFunctionError, match="must return a number, a text, a dict of those, arrays"):
        results(Function(lambda items: returned, ["v"]))


def test_columns_that_change_between_windows_are_an_error() -> None:
    with pytest.raises(UserFunctionError, match=r"the same columns in every window, got `b` \(numbers\) after `a`"):
        results(Function(lambda items: {"a": 1} if items.wid == 0 else {"b": 1}, ["v"]))
    with pytest.raises(UserFunctionError, match=r"got `value` \(text\) after `value` \(numbers\)"):
        results(Function(lambda items: 1 if items.wid == 0 else "x", ["v"]), WinFarm(workers=2))


def test_numbers_of_different_types_share_a_column() -> None:
    assert results(Function(lambda items: 1 if items.wid == 0 else 0.5, ["v"]))["value"].to_pylist() == [1.0, 0.5]


@pytest.mark.parametrize("name", ["key", "window_id", "row", "code"])
def test_names_of_the_results_own_columns_are_refused(name: str) -> None:
    with pytest.raises(UserFunctionError, match=f"must not return a column named `{name}`"):
        results(Function(lambda items: {name: 1}, ["v"]))
    with pytest.raises(SpecError, match="`name` of Function must be a name that the results do not have yet"):
        Function(len, ["v"], name=name)


def test_error_in_a_function_names_window_key_node_and_pattern_and_has_the_traceback() -> None:
    def ratio(items: Any) -> float:
        return 1 / (items.wid - 1)

    plan = Stream.of(COLUMNS, time="ts").key_by("k").window(TimeWindow(3)).apply(ratio, WinFarm(workers=2))
    with pytest.raises(UserFunctionError) as caught:
        plan.run(executor="inline")
    message, details = caught.value.args
    assert message.startswith("function `ratio` raised ZeroDivisionError: division by zero in window 1 of key ")
    assert "node `worker-" in message and "pattern `win_farm(2)`" in message
    assert "return 1 / (items.wid - 1)" in details


@pytest.mark.parametrize("query", [
    Incremental(lambda: 0, lambda state, items: 1 / 0, None, ["v"]),
    Incremental(lambda: 0, lambda state, items: 0, lambda state: 1 / 0, ["v"]),
    Decomposable(lambda items: 1 / 0, max, ["v"]),
    Decomposable(lambda items: 1, lambda one, other: 1 / 0, ["v"]),
    Decomposable(lambda items: 1, max, ["v"], finish=lambda value: 1 / 0),
    Sliding(lambda: 0, lambda state, items: 1 / 0, max, str, ["v"]),
    Sliding(lambda: 0, lambda state, items: 0, lambda state, items: 1 / 0, str, ["v"]),
])
def test_error_in_any_part_of_a_query_names_the_window(query: Any) -> None:
    plan = Stream.of(COLUMNS, time="ts").window(TimeWindow(3, slide=1)).apply(query, "win_seq")
    with pytest.raises(UserFunctionError, match=r"raised ZeroDivisionError: division by zero in window \d"):
        plan.run(executor="inline")


def test_plain_callable_is_given_all_columns() -> None:
    table = results(lambda items: ",".join(items))
    assert table["value"].to_pylist() == ["ts,k,v"] * 2


def test_plain_callable_on_an_iterator_asks_for_the_columns() -> None:
    with pytest.raises(SpecError, match="`columns` must be named when the stream is an iterator"):
        results(lambda items: 1, source=iter([COLUMNS]))


def test_texts_and_times_can_be_read_by_a_function() -> None:
    source = {"ts": pa.array([0, 1], pa.timestamp("us")), "name": ["long text", "b"]}
    table = results(Function(lambda items: {"names": "+".join(items["name"]), "last": items["ts"].max()},
                             ["name", "ts"]), source=source)
    assert table["names"].to_pylist() == ["long text+b"]
    assert table["last"].to_pylist() == [datetime(1970, 1, 1, 0, 0, 0, 1)]


def test_columns_that_cannot_be_given_to_a_function_are_refused_before_the_run() -> None:
    with pytest.raises(SpecError, match="column `v` must hold numbers, texts or times"):
        results(Function(len, ["v"]), source={"ts": [0], "v": [[1, 2]]})


def test_columns_are_read_only() -> None:
    def spoil(items: Any) -> int:
        items["v"][0] = 0
        return 0

    with pytest.raises(UserFunctionError, match="read-only"):
        results(Function(spoil, ["v"]))


def test_compiled_functions_are_given_the_columns_one_by_one() -> None:
    spread = numba.njit(lambda v: v.max() - v.min())
    assert results(Function(spread, ["v"]))["value"].to_pylist() == [2.0, 2.0]
    add = numba.njit(lambda state, ts, v: state + (ts * v).sum())
    assert results(Incremental(float, add, None, ["ts", "v"]))["value"].to_pylist() == [8.0, 62.0]
    pane, combine = numba.njit(lambda v: v.sum()), numba.njit(lambda one, other: one + other)
    assert results(Decomposable(pane, combine, ["v"]), WinMapReduce(2, 1))["value"].to_pylist() == [6.0, 15.0]


def test_a_combine_step_that_needs_the_order_is_refused_by_win_mapreduce() -> None:
    query = Decomposable(list, lambda older, younger: younger, ["v"], commutative=False)
    with pytest.raises(SpecError, match="does not depend on their order.*use pane_farm"):
        results(query, WinMapReduce(2, 1))


def test_a_function_that_needs_whole_windows_is_refused_by_pane_farm() -> None:
    with pytest.raises(SpecError, match="use win_farm or win_seq, or give the query a combine step"):
        results(Function(len, ["v"]), "pane_farm(2,1)")


def test_pane_values_that_cannot_travel_are_an_error() -> None:
    with pytest.raises(UserFunctionError, match="must return plain data that can be sent on, got generator"):
        results(Decomposable(lambda items: (x for x in ()), max, ["v"]))


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Function(3, ["v"]), "`function` of Function must be a function, got 3"),
    (lambda: Function(len, []), "`columns` of Function must name the columns"),
    (lambda: Function(len, ["v", "v"]), "each once"),
    (lambda: Incremental(list, None, None, ["v"]), "`add` of Incremental must be a function, got None"),
    (lambda: Decomposable(len, 1, ["v"]), "`combine` of Decomposable must be a function, got 1"),
    (lambda: Sliding(list, len, len, "x", ["v"]), "`result` of Sliding must be a function, got 'x'"),
])
def test_wrong_specs_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make()

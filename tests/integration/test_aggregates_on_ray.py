"""Aggregates and user functions on Ray actors: the same rows as inline, from lambdas and compiled functions too."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from patterns import CountWindow, Stream, TimeWindow
from patterns.queries import (Count, Decomposable, Function, Incremental, Max, Mean, Min, Quantile, Sliding, Sum,
                              Variance)
from runtime.errors import UserFunctionError

pytestmark = pytest.mark.usefixtures("ray")

TIME, COUNT = TimeWindow("100ms", slide="20ms"), CountWindow(60, slide=20)
ALL: Any = [Count(), Sum("value"), Min("value"), Max("value"), Mean("value"), Variance("value"), Quantile("value", 0.9)]
#: Sums that come out differently in another order, unless they are exact.
HARD = np.random.default_rng(3).choice([1e16, -1e16, 0.1, 1.0, 1e-9, 3e7], 4_000)


@numba.njit
def spread(value: np.ndarray) -> float:
    return value.max() - value.min()


QUERIES: dict[str, Any] = {
    "whole": Function(lambda items: {"who": items.key, "wid": items.wid, "n": len(items), "last": items["value"][-1]},
                      ["value"]),
    "compiled": Function(spread, ["value"]),
    "incremental": Incremental(float, lambda state, items: max(state, items["value"].max()), None, ["value"]),
    "sliding": Sliding(list, lambda state, items: state + items["value"].tolist(),
                       lambda state, items: state[len(items):], lambda state: {"n": len(state), "first": state[0]},
                       ["value"]),
    "decomposable": Decomposable(lambda items: items["value"].max(), max, ["value"]),
}


def stream() -> Stream:
    random = np.random.default_rng(5)
    times, keys = random.integers(0, 1_000_000, len(HARD)), random.integers(0, 7, len(HARD))
    return Stream.of({"ts": times, "key": [f"key-{number}" for number in keys], "value": HARD}, time="ts").key_by("key")


@pytest.mark.parametrize(("pattern", "window"), [
    ("win_seq", TIME), ("key_farm(2)", COUNT), ("win_farm(2)", TIME), ("pane_farm(2,2)", TIME),
    ("win_mapreduce(2,1)", TIME), ("win_farm(2,agnostic)", COUNT)])
def test_aggregates_on_ray_equal_those_inline_to_the_last_bit(pattern: str, window: Any) -> None:
    found = stream().window(window).apply(ALL, pattern).run("ray", batch_rows=700)
    expected = stream().window(window).apply(ALL, "win_seq").run("inline", batch_rows=333)
    assert found.results.num_rows > 100
    assert found.results.equals(expected.results)


@pytest.mark.parametrize(("name", "pattern"), [
    ("whole", "win_farm(2)"), ("compiled", "key_farm(2)"), ("incremental", "win_seq"), ("sliding", "key_farm(2)"),
    ("decomposable", "pane_farm(2,1)"), ("decomposable", "win_farm(win_mapreduce(2,1),1)")])
def test_functions_on_ray_give_what_they_give_inline(name: str, pattern: str) -> None:
    found = stream().window(TIME).apply(QUERIES[name], pattern).run("ray", batch_rows=700)
    expected = stream().window(TIME).apply(QUERIES[name], "win_seq").run("inline", batch_rows=333)
    assert found.results.num_rows > 100
    assert found.results.equals(expected.results)


def test_error_in_a_function_on_ray_reaches_the_caller_with_its_place_and_traceback() -> None:
    plan = stream().window(TIME).apply(lambda items: 1 / (items.wid - 7), "win_farm(2)")
    with pytest.raises(UserFunctionError) as caught:
        plan.run("ray")
    message, details = caught.value.args
    assert "division by zero in window 7 of key 'key-" in message
    assert "node `worker-" in message and "pattern `win_farm(2)`" in message
    assert "1 / (items.wid - 7)" in details

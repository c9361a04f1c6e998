"""Preference queries as specs: equal, printable, picklable, and checked before anything runs."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from patterns import Stream, TimeWindow
from patterns.queries import KDominant, Skyline, TopDelta, TopK
from patterns.report import Report
from runtime.errors import SpecError, UserFunctionError

QUERIES = (Skyline("a", maximize=["b"]), KDominant(2, "a", "b"), TopDelta(5, "a"),
           TopK(3, weights={"a": 1, "b": -0.5}, largest=False))


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_query_survives_pickling_and_prints_as_written(query: object) -> None:
    assert pickle.loads(pickle.dumps(query)) == query
    assert eval(repr(query)) == query


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Skyline(), "1 to 32 columns"), (lambda: Skyline("a", "a"), "each column once"),
    (lambda: KDominant(0, "a"), "`k` of KDominant .* got 0"),
    (lambda: KDominant(3, "a", "b"), r"dimensions \(2\), got 3"),
    (lambda: TopDelta(0, "a"), "`delta` of TopDelta"), (lambda: TopDelta(True, "a"), "`delta` of TopDelta"),
    (lambda: TopK(1), "got neither"), (lambda: TopK(1, weights={"a": 1.0}, score=len), "got both"),
    (lambda: TopK(1, weights={"a": float("nan")}), "finite numbers"), (lambda: TopK(1, weights={}), "must map names"),
    (lambda: TopK(1, score=len), "must name the columns"), (lambda: TopK(1, "a", "a", score=len), "each once")])
def test_query_with_wrong_parameters_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make()


def run(columns: dict[str, object], query: Any) -> Report:
    return Stream.of(columns, time="ts").window(TimeWindow(10)).apply(query, pattern="win_seq").run(executor="inline")


def test_data_with_a_column_named_rank_is_refused_where_the_query_has_one() -> None:
    columns = {"ts": [1, 2], "a": [1, 2], "rank": [0, 0]}
    with pytest.raises(SpecError, match="rank"):
        run(columns, TopDelta(1, "a"))


@pytest.mark.parametrize("score", [lambda columns: np.zeros(1), lambda columns: columns["b"]])
def test_score_that_fails_is_named_with_its_traceback(score: Callable[..., np.ndarray]) -> None:
    with pytest.raises(UserFunctionError, match="`score` of TopK"):
        run({"ts": [1, 2], "a": [1, 2]}, TopK(1, "a", score=score))


def test_empty_stream_has_a_rank_column_too() -> None:
    report = run({"ts": np.empty(0, np.int64), "a": np.empty(0)}, TopK(1, weights={"a": 1.0}))
    assert report.results.num_rows == 0 and "rank" in report.results.column_names

"""Every preference query on every pattern against the oracle: whole runs, inline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patterns import CountWindow, Stream, TimeWindow
from patterns.queries import KDominant, Skyline, TopDelta, TopK
from patterns.queries import skyline_windows
from tests import oracle

PATTERNS = ("win_seq", "win_farm(2)", "win_farm(3)", "pane_farm(1,1)", "pane_farm(2,2)", "win_mapreduce(2,1)",
            "win_mapreduce(3,2)", "win_farm(pane_farm(2,1),2)")
KEYED = (*PATTERNS, "key_farm(2)", "key_farm(win_mapreduce(2,1),2)")
WEIGHTS = (2, -1, 3, 1, -2, 1, 1, 1, 1, 1, 1, 1)

Rows = list[tuple[Any, int, int]]  # key, window id, number of the item


def asked(query: Any, points: list[tuple[int, ...]], maximize: list[int]) -> list[int]:
    """What the oracle answers to `query`, in the order in which it is reported."""
    if isinstance(query, Skyline):
        return oracle.skyline(points, maximize)
    if isinstance(query, KDominant):
        return oracle.k_dominant_skyline(points, query.k, maximize)
    if isinstance(query, TopDelta):
        return oracle.top_delta(points, query.delta, maximize)
    return oracle.top_k(points, query.k, WEIGHTS[:len(points[0])])


def queries(dims: int, k: int, size: int, maximize: list[int]) -> list[Any]:
    names, turned = [f"x{j}" for j in range(dims)], [f"x{j}" for j in maximize]
    weights = {name: WEIGHTS[j] for j, name in enumerate(names)}

    def score(columns: Any) -> np.ndarray:
        return np.sum([columns[name] * weight for name, weight in weights.items()], axis=0)

    return [Skyline(*names, maximize=turned), KDominant(min(k, dims), *names, maximize=turned),
            TopDelta(size, *names, maximize=turned), TopK(size, weights=weights), TopK(size, *names, score=score)]


def run(items: list[dict[str, Any]], query: Any, window: Any, pattern: str, seed: int, keyed: bool) -> Rows:
    columns = {name: np.array([item[name] for item in items]) for name in items[0]}
    stream = Stream.of({**columns, "number": np.arange(len(items))}, time="ts")
    if keyed:
        stream = stream.key_by("key")
    report = stream.window(window).apply(query, pattern=pattern).run(executor="inline", seed=seed, batch_rows=7)
    table = report.results.to_pydict()
    if "rank" in table:
        expected_rank = 0
        for place, wid in enumerate(zip(table.get("key", table["window_id"]), table["window_id"], strict=True)):
            new = place == 0 or (table.get("key", table["window_id"])[place - 1], table["window_id"][place - 1]) != wid
            expected_rank = 1 if new else expected_rank + 1
            assert table["rank"][place] == expected_rank
    keys = table["key"] if keyed else [None] * len(table["window_id"])
    return list(zip(keys, table["window_id"], table["number"], strict=True))


def expected(items: list[dict[str, Any]], query: Any, windows: oracle.Windows, maximize: list[int]) -> Rows:
    dims = len(query.columns)
    found = []
    for (key, wid), (_, _, held) in windows.items():
        in_arrival = sorted(held)
        points = [tuple(items[index][f"x{j}"] for j in range(dims)) for index in in_arrival]
        chosen = [in_arrival[place] for place in asked(query, points, maximize)]
        if isinstance(query, Skyline | KDominant):
            chosen.sort(key=lambda index: (items[index]["ts"], index))
        found += [(key, wid, index) for index in chosen]
    return sorted(found, key=lambda row: (str(row[0]), row[1]))


@st.composite
def streams(draw: Any) -> tuple[list[dict[str, Any]], int]:
    """Items in order of time, with ties in time and in all coordinates."""
    dims, top = draw(st.integers(1, 5)), draw(st.sampled_from([1, 3, 50]))
    values = st.tuples(*[st.integers(0, top)] * dims)
    rows = draw(st.lists(st.tuples(st.integers(0, 30), st.sampled_from("ab"), values), min_size=1, max_size=30))
    rows.sort(key=lambda row: row[0])
    return [{"ts": ts, "key": key, **{f"x{j}": value for j, value in enumerate(point)}}
            for ts, key, point in rows], dims


@settings(max_examples=120)
@given(st.data(), streams())
def test_queries_on_time_windows_answer_as_the_oracle_on_every_pattern(data: Any, stream: Any) -> None:
    items, dims = stream
    maximize = data.draw(st.lists(st.integers(0, dims - 1), unique=True))
    k, size = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6))
    query = data.draw(st.sampled_from(queries(dims, k, size, maximize)))
    length, slide = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    keyed = data.draw(st.booleans())
    pattern = data.draw(st.sampled_from(KEYED if keyed else PATTERNS))
    plain = items if keyed else [{name: value for name, value in item.items() if name != "key"} for item in items]
    answer = run(plain, query, TimeWindow(length, slide=slide), pattern, data.draw(st.integers(0, 3)), keyed)
    assert answer == expected(plain, query, oracle.time_windows(plain, length, slide), maximize)


@settings(max_examples=60)
@given(st.data(), streams())
def test_queries_on_count_windows_answer_as_the_oracle_on_every_pattern(data: Any, stream: Any) -> None:
    items, dims = stream
    query = data.draw(st.sampled_from(queries(dims, 2, data.draw(st.integers(1, 6)), [])))
    length, slide = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    pattern = data.draw(st.sampled_from(KEYED))
    answer = run(items, query, CountWindow(length, slide=slide), pattern, 1, True)
    assert answer == expected(items, query, oracle.count_windows(items, length, slide), [])


def values(kind: str, n: int, dims: int) -> np.ndarray:
    rng = np.random.default_rng(dims)
    x = rng.random((n, dims))
    if kind == "anticorrelated":
        x = 0.5 + x - x.mean(axis=1, keepdims=True)
    if kind == "correlated":
        x = rng.random((n, 1)) + 0.2 * x
    if kind == "drifting":
        x = x + np.arange(n)[:, None] / 50
    return np.asarray((x * 1000).astype(np.int64))


@pytest.mark.parametrize("kind", ["independent", "anticorrelated", "correlated", "drifting"])
@pytest.mark.parametrize(("dims", "pattern"), [(3, "win_seq"), (6, "pane_farm(2,1)"), (8, "win_mapreduce(2,1)"),
                                               (12, "win_farm(2)")])
def test_larger_windows_of_every_distribution_answer_as_the_oracle(kind: str, dims: int, pattern: str,
                                                                   monkeypatch: Any) -> None:
    monkeypatch.setattr(skyline_windows, "_LARGE", 30)
    n, length, slide = 260, 100, 40
    x = values(kind, n, dims)
    items = [{"ts": number, **{f"x{j}": int(x[number, j]) for j in range(dims)}} for number in range(n)]
    windows = oracle.time_windows(items, length, slide)
    for query in (Skyline(*(f"x{j}" for j in range(dims))), KDominant(dims - 1, *(f"x{j}" for j in range(dims))),
                  TopDelta(10, *(f"x{j}" for j in range(dims)))):
        if dims > 6 and not isinstance(query, Skyline):
            continue  # the oracle tries every choice of k dimensions
        answer = run(items, query, TimeWindow(length, slide=slide), pattern, 1, False)
        assert answer == expected(items, query, windows, [])

"""The two stages of the built-in aggregates, fed in every way the contract allows, against the definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patterns import Stream, TimeWindow, WinSeq
from patterns.queries.aggregates import Aggregates, Count, Max, Mean, Min, Quantile, Sum, Variance
from patterns.query import END_OF_PANES
from patterns.window import Grid
from patterns.worker import in_order
from runtime.errors import BadInputError, SpecError
from tests import oracle

Item = tuple[int, int, Any]  # code, pane, value
ALL = Aggregates((Count(), Sum("v"), Min("v"), Max("v"), Mean("v"), Variance("v"), Quantile("v", 0.3)))

FLOATS = st.one_of(st.floats(-1e9, 1e9), st.sampled_from([1e16, 1.0, -1e16, 1e150, -1e150, 1e-150, 0.1, 5e-324, -0.0]))
INTS = st.one_of(st.integers(-5, 5), st.sampled_from([2**60, -(2**60), 2**31]))


def answer(values: Sequence[Any]) -> tuple[Any, ...]:
    return (len(values), oracle.total(values), min(values), max(values), oracle.mean(values),
            oracle.variance(values), oracle.quantile(values, 0.3))


def brute(items: Sequence[Item], per_window: int, per_slide: int) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Every window's aggregates, straight from the definition."""
    found = {}
    last = max((pane for _, pane, _ in items), default=-1) // per_slide
    for code in sorted({code for code, _, _ in items}):
        for window in range(last + 1):
            low = window * per_slide
            held = [value for c, pane, value in items if c == code and low <= pane < low + per_window]
            if held:
                found[window, code] = answer(held)
    return found


def feed(state: Any, items: Sequence[Item], dtype: Any) -> None:
    codes, panes, values = zip(*items, strict=True) if items else ((), (), ())
    state.add(np.array(codes, np.int64), np.array(panes, np.int64), {"v": np.array(values, dtype)})


def rows(fired: Any) -> dict[tuple[int, int], tuple[Any, ...]]:
    columns = [fired[name].tolist() for name in ("window", "code", *ALL.outputs)]
    order = list(zip(columns[0], columns[1], strict=True))
    assert order == sorted(order)
    return {(window, code): tuple(values) for window, code, *values in zip(*columns, strict=True)}


def streams(values: Any, keys: int = 3, panes: int = 9) -> Any:
    return st.lists(st.tuples(st.integers(0, keys - 1), st.integers(0, panes), values), max_size=30)


@pytest.mark.parametrize(("values", "dtype"), [(FLOATS, np.float64), (INTS, np.int64)])
@settings(max_examples=150)
@given(data=st.data(), window=st.integers(1, 6), slide=st.integers(1, 6))
def test_windows_of_random_streams_match_the_definitions(values: Any, dtype: Any, data: Any, window: int,
                                                         slide: int) -> None:
    items = data.draw(streams(values))
    panes, windows = ALL.pane_state(), ALL.window_state(window, slide)
    found: dict[Any, Any] = {}
    reached = 0
    for before in [*sorted(data.draw(st.lists(st.integers(0, 12), max_size=4))), END_OF_PANES]:
        feed(panes, [item for item in items if reached <= item[1] < before], dtype)
        fired = rows(windows.advance(panes.close(before), before))
        assert not fired.keys() & found.keys()
        assert all(wid * slide + window <= before for wid, _ in fired)
        found |= fired
        reached = before
    assert found == brute(items, window, slide)


@settings(max_examples=100)
@given(data=st.data(), window=st.integers(1, 4), slide=st.integers(1, 4))
def test_frontiers_per_key_give_the_same_windows(data: Any, window: int, slide: int) -> None:
    items = data.draw(streams(FLOATS))
    panes, windows = ALL.pane_state(), ALL.window_state(window, slide)
    feed(panes, items, np.float64)
    found: dict[Any, Any] = {}
    frontier = np.zeros(data.draw(st.integers(0, 3)), np.int64)
    for _ in range(4):
        frontier = frontier + np.array([data.draw(st.integers(0, 4)) for _ in frontier], np.int64)
        found |= rows(windows.advance(panes.close(frontier), frontier))
    found |= rows(windows.advance(panes.close(END_OF_PANES), END_OF_PANES))
    assert found == brute(items, window, slide)


@settings(max_examples=100)
@given(data=st.data(), window=st.integers(1, 4), slide=st.integers(1, 4), parts=st.integers(1, 3))
def test_parts_of_panes_and_parts_of_windows_merge(data: Any, window: int, slide: int, parts: int) -> None:
    items = data.draw(streams(FLOATS))
    partials, mapped = [], []
    for part in range(parts):
        panes = ALL.pane_state()
        feed(panes, items[part::parts], np.float64)
        partials.append(panes.close(END_OF_PANES))
        fired = dict(ALL.window_state(window, slide, final=False).advance(partials[-1], END_OF_PANES))
        mapped.append({"pane": fired.pop("window"), **fired})
    split = ALL.window_state(window, slide, split=True)
    assert rows(split.advance(in_order(partials, ("pane", "code")), END_OF_PANES)) == brute(items, window, slide)
    reduce = ALL.window_state(1, 1, split=True)
    assert rows(reduce.advance(in_order(mapped, ("pane", "code")), END_OF_PANES)) == brute(items, window, slide)


@settings(max_examples=100)
@given(data=st.data(), window=st.integers(1, 6), slide=st.integers(1, 6))
def test_items_placed_by_their_time_in_one_pass_match_the_definitions(data: Any, window: int, slide: int) -> None:
    """Count and one sum of floats have a kernel of their own, and items may come with times and no codes."""
    items = data.draw(streams(FLOATS, keys=data.draw(st.integers(1, 3)), panes=40))
    query, grid = Aggregates((Count(), Sum("v"))), Grid(window * 10, slide * 10, origin=70)
    panes, windows = query.pane_state(), query.window_state(grid.panes_per_window, grid.panes_per_slide)
    outside = 0
    for part in (items[:7], items[7:]):
        times = np.array([10 * pane + 3 for _, pane, _ in part], np.int64)
        codes = np.array([code for code, _, _ in part], np.int64)
        outside += panes.add_times(codes if codes.any() else None, times, grid, {"v": np.array([v for *_, v in part])})
    fired = windows.advance(panes.close(END_OF_PANES), END_OF_PANES)
    inside = [(code, (10 * pane + 3 - 70) // grid.pane, v) for code, pane, v in items
              if any(grid.origin + wid * grid.slide <= 10 * pane + 3 < grid.origin + wid * grid.slide + grid.length
                     for wid in range(60))]
    wanted = brute(inside, grid.panes_per_window, grid.panes_per_slide)
    assert outside == len(items) - len(inside)
    found = zip(*(fired[name].tolist() for name in ("window", "code", "count", "sum_v")), strict=True)
    assert {(wid, code): values for wid, code, *values in found} == {
        name: list(values[:2]) for name, values in wanted.items()}


def test_early_partials_wait_for_the_frontier() -> None:
    items = [(0, 0, 1.5), (0, 3, 2.5), (0, 1, 1e150)]
    panes, windows = ALL.pane_state(), ALL.window_state(2, 1)
    feed(panes, items, np.float64)
    partials = panes.close(END_OF_PANES)
    none = {name: column[:0] for name, column in partials.items()}
    found = rows(windows.advance(partials, 1))
    assert found == {}
    for before in (2, 3, 4, END_OF_PANES):
        found |= rows(windows.advance(none, before))
    assert found == brute(items, 2, 1)


def test_a_long_silence_is_leapt_over() -> None:
    items = [(0, 0, 1.0), (1, 5, 7.0), (0, 10**12, 2.0)]
    panes, windows = ALL.pane_state(), ALL.window_state(3, 1)
    feed(panes, items, np.float64)
    fired = rows(windows.advance(panes.close(END_OF_PANES), END_OF_PANES))
    assert sorted(fired) == [(0, 0), (3, 1), (4, 1), (5, 1)] + [(10**12 - back, 0) for back in (2, 1, 0)]


def test_many_keys_of_which_few_are_live_cost_little_memory() -> None:
    query = Aggregates((Count(), Sum("v")))
    panes, windows = query.pane_state(), query.window_state(10, 1)
    for pane in range(200):
        codes = np.arange(50, dtype=np.int64) * 2000 + pane * 7
        panes.add(codes, np.full(50, pane), {"v": np.ones(50)})
        windows.advance(panes.close(pane), pane)
    assert panes.size_bytes < 1 << 20
    assert windows.size_bytes < 24 << 20  # a few words for every key that was ever seen


def test_a_window_of_many_panes_costs_a_constant_number_of_merges_per_slide() -> None:
    """Memory is what can be seen of it: one row per pane, and windows of 2000 panes are right."""
    query = Aggregates((Sum("v"), Max("v")))
    panes, windows = query.pane_state(), query.window_state(2000, 1)
    panes.add(np.zeros(6000, np.int64), np.arange(6000), {"v": np.arange(6000.0)})
    fired = windows.advance(panes.close(6000), 6000)
    assert fired["max_v"].tolist() == list(range(1999, 6000))
    assert fired["sum_v"].tolist() == [sum(range(low, low + 2000)) for low in range(4001)]


def test_sum_of_integers_beyond_64_bits_is_an_error() -> None:
    for dtype, value in ((np.int64, 2**62), (np.uint64, 2**63)):
        panes, windows = Sum("v").pane_state(), Sum("v").window_state(1, 1)
        panes.add(np.zeros(2, np.int64), np.zeros(2, np.int64), {"v": np.full(2, value, dtype)})
        with pytest.raises(BadInputError, match="must fit 64 bits"):
            windows.advance(panes.close(END_OF_PANES), END_OF_PANES)


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.uint64, np.float32, np.bool_])
def test_types_of_results_follow_the_data(dtype: Any) -> None:
    query = Aggregates((Sum("v"), Min("v"), Max("v"), Mean("v")))
    panes, windows = query.pane_state(), query.window_state(1, 1)
    panes.add(np.zeros(2, np.int64), np.zeros(2, np.int64), {"v": np.array([1, 0], dtype)})
    fired = windows.advance(panes.close(END_OF_PANES), END_OF_PANES)
    assert fired["min_v"].dtype == fired["max_v"].dtype == dtype
    wanted = {"f": np.float64, "u": np.uint64 if dtype is np.uint64 else np.int64}.get(np.dtype(dtype).kind, np.int64)
    assert fired["sum_v"].dtype == wanted
    assert (fired["min_v"][0], fired["max_v"][0], fired["sum_v"][0], fired["mean_v"][0]) == (0, 1, 1, 0.5)


def test_an_allowed_error_bounds_quantiles_and_memory() -> None:
    values = np.random.default_rng(1).lognormal(size=20_000)
    query = Quantile("v", 0.9, error=0.01)
    panes, windows = query.pane_state(), query.window_state(4, 1)
    panes.add(np.zeros(len(values), np.int64), np.arange(len(values)) % 4, {"v": values})
    partials = panes.close(END_OF_PANES)
    assert len(partials["pane"]) < 4 * 600
    fired = windows.advance(partials, END_OF_PANES)
    exact = oracle.quantile(values.tolist(), 0.9)
    assert abs(fired["quantile_v_0_9"][0] - exact) <= 0.01 * exact


def test_specs_are_checked() -> None:
    with pytest.raises(SpecError, match="`q` of Quantile must be a number from 0 to 1, got 2"):
        Quantile("v", 2)
    with pytest.raises(SpecError, match="asked for once"):
        Aggregates((Sum("v"), Sum("v")))
    with pytest.raises(SpecError, match="at least one"):
        Aggregates(())
    with pytest.raises(SpecError, match="must hold integers or floats of at most 64 bits, got <U1|object"):
        Sum("v").check({"v": np.dtype(object)})


@pytest.mark.parametrize("low", [-1.0, -8.0, -40.0])
@pytest.mark.parametrize("query", [[Sum("a")], [Count(), Sum("a")], [Sum("a"), Sum("b"), Mean("a")]])
def test_long_batches_with_many_items_per_cell_sum_exactly(query: list[Any], low: float) -> None:
    """More items in a batch than are added up at a time, over narrow, wide and very wide ranges of numbers."""
    rng, count = np.random.default_rng(3), 150_000
    data = {"ts": np.sort(rng.integers(0, 1000, count)), "key": rng.integers(0, 5, count),
            "a": rng.choice([-1.0, 1.0], count) * 10.0 ** rng.uniform(low, 1, count), "b": rng.normal(size=count)}
    report = (Stream.of(data, "ts").key_by("key").window(TimeWindow(250)).apply(query, pattern=WinSeq())
              .run(executor="inline", batch_rows=count))
    found = report.results.to_pydict()
    assert len(found["window_id"]) == 20
    for row, (key, wid) in enumerate(zip(found["key"], found["window_id"], strict=True)):
        inside = (data["key"] == key) & (data["ts"] // 250 == wid)
        assert found["sum_a"][row] == math.fsum(data["a"][inside])
        if "sum_b" in found:
            assert found["sum_b"][row] == math.fsum(data["b"][inside])
        if "count" in found:
            assert found["count"][row] == int(inside.sum())

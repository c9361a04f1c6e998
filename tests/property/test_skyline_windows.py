"""The sliding skyline against brute force: every window, every key, every way of feeding it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from patterns.queries.dominance import Skyline
from patterns.query import END_OF_PANES

Item = tuple[int, int, tuple[int, ...]]  # code, pane, point
Result = list[tuple[int, int, int]]  # window, code, row


def brute(items: Sequence[Item], per_window: int, per_slide: int) -> Result:
    """Rows of every window's skyline, straight from the definition."""
    found: Result = []
    codes = sorted({item[0] for item in items})
    last = max((item[1] for item in items), default=-1) // per_slide
    for window in range(last + 1):
        low = window * per_slide
        for code in codes:
            held = [(row, point) for row, (c, pane, point) in enumerate(items)
                    if c == code and low <= pane < low + per_window]
            found += [(window, code, row) for row, point in held
                      if not any(all(a <= b for a, b in zip(p, point, strict=True)) and p != point
                                 for _, p in held)]
    return found


def columns(items: Sequence[Item], rows: Sequence[int], dims: int) -> dict[str, np.ndarray]:
    points = np.array([items[row][2] for row in rows], np.float64).reshape(len(rows), dims)
    table: dict[str, np.ndarray] = {f"x{j}": points[:, j] for j in range(dims)}
    return {**table, "row": np.array(rows, np.int64)}


def feed(query: Any, items: Sequence[Item], rows: Sequence[int], dims: int, state: Any) -> None:
    codes = np.array([items[row][0] for row in rows], np.int64)
    panes = np.array([items[row][1] for row in rows], np.int64)
    state.add(codes, panes, columns(items, rows, dims))


def triples(fired: Any) -> Result:
    return [tuple(map(int, triple)) for triple  # type: ignore[misc]
            in zip(fired["window"], fired["code"], fired["row"], strict=True)]


def streams(dims: int, keys: int = 2) -> Any:
    point = st.tuples(*[st.integers(0, 4)] * dims)
    return st.lists(st.tuples(st.integers(0, keys - 1), st.integers(0, 9), point), max_size=40)


@settings(max_examples=120)
@given(st.data(), st.integers(1, 4), st.integers(1, 6), st.integers(1, 6))
def test_windows_of_random_streams_match_brute_force(data: Any, dims: int, window: int, slide: int) -> None:
    items = data.draw(streams(dims))
    steps = sorted(data.draw(st.lists(st.integers(0, 12), max_size=4)))
    query = Skyline(*(f"x{j}" for j in range(dims)))
    panes, windows = query.pane_state(), query.window_state(window, slide)
    fired: Result = []
    reached = 0
    for before in [*steps, END_OF_PANES]:
        rows = [row for row, item in enumerate(items) if reached <= item[1] < before]
        feed(query, items, rows, dims, panes)
        fired += triples(windows.advance(panes.close(before), before))
        reached = before
    assert sorted(fired) == brute(items, window, slide)


@settings(max_examples=60)
@given(st.data(), st.integers(1, 4), st.integers(1, 4))
def test_frontiers_per_key_give_the_same_windows(data: Any, window: int, slide: int) -> None:
    items = data.draw(streams(2, keys=3))
    query = Skyline("x0", "x1")
    panes, windows = query.pane_state(), query.window_state(window, slide)
    feed(query, items, range(len(items)), 2, panes)
    fired: Result = []
    frontier = np.zeros(data.draw(st.integers(0, 3)), np.int64)
    for _ in range(4):
        frontier = frontier + np.array([data.draw(st.integers(0, 4)) for _ in frontier], np.int64)
        fired += triples(windows.advance(panes.close(frontier), frontier))
    fired += triples(windows.advance(panes.close(END_OF_PANES), END_OF_PANES))
    assert sorted(fired) == brute(items, window, slide)


@settings(max_examples=60)
@given(st.data(), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_parts_of_panes_and_parts_of_windows_merge(data: Any, window: int, slide: int, parts: int) -> None:
    items = data.draw(streams(2))
    query = Skyline("x0", "x1")
    partials = []
    mapped = []
    for part in range(parts):
        panes = query.pane_state()
        feed(query, items, range(part, len(items), parts), 2, panes)
        partials.append(panes.close(END_OF_PANES))
        windows = query.window_state(window, slide, final=False)
        mapped.append(windows.advance(partials[-1], END_OF_PANES))
    names = ("pane", "code", "row", "point")
    joined = {name: np.concatenate([p[name] for p in partials]) for name in names}
    order = np.lexsort((joined["code"], joined["pane"]))
    split = query.window_state(window, slide, split=True)
    merged = split.advance({name: column[order] for name, column in joined.items()}, END_OF_PANES)
    assert sorted(triples(merged)) == brute(items, window, slide)

    joined = {name: np.concatenate([m[name] for m in mapped]) for name in names[1:]}
    joined["pane"] = np.concatenate([m["window"] for m in mapped])
    order = np.lexsort((joined["code"], joined["pane"]))
    reduce = query.window_state(1, 1, split=True)
    reduced = reduce.advance({name: column[order] for name, column in joined.items()}, END_OF_PANES)
    assert sorted(triples(reduced)) == brute(items, window, slide)


def test_early_partials_wait_for_the_frontier() -> None:
    items = [(0, 0, (1, 2)), (0, 3, (0, 0)), (0, 1, (2, 1))]
    query = Skyline("x0", "x1")
    panes, windows = query.pane_state(), query.window_state(2, 1)
    feed(query, items, range(3), 2, panes)
    partials = panes.close(END_OF_PANES)
    none = {name: column[:0] for name, column in partials.items()}
    fired = triples(windows.advance(partials, 1))
    assert fired == []
    for before in (2, 3, 4, END_OF_PANES):
        fired += triples(windows.advance(none, before))
    assert fired == brute(items, 2, 1)
    assert windows.size_bytes == 0


def test_a_long_silence_is_leapt_over() -> None:
    query = Skyline("x0")
    panes, windows = query.pane_state(), query.window_state(3, 1)
    feed(query, [(0, 0, (1,)), (0, 10**12, (2,))], range(2), 1, panes)
    fired = triples(windows.advance(panes.close(END_OF_PANES), END_OF_PANES))
    assert fired == [(0, 0, 0)] + [(10**12 - back, 0, 1) for back in (2, 1, 0)]

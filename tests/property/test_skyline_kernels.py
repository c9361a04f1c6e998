"""The fast skyline kernels against brute force, on data large enough that every path of them runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from patterns.queries import skyline_windows
from patterns.queries.kernels import kept
from patterns.queries.kernels.k_dominance import LargestK
from patterns.queries.kernels.pane import PaneSkyline
from patterns.queries.dominance import Skyline
from patterns.query import END_OF_PANES

DATA = ("independent", "anticorrelated", "correlated", "ties", "drift", "jump", "copies", "one column", "huge")


def points_of(data: str, n: int, dims: int, seed: int) -> np.ndarray:
    """Values `(n, dims)` of a stream of each kind; "huge" are integers that no float64 can tell apart."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, dims))
    level = rng.normal(0.5, 0.1, (n, 1))
    if data == "anticorrelated":
        return np.asarray(level + x - x.mean(axis=1, keepdims=True))
    if data == "correlated":
        return np.asarray(level + 0.1 * x)
    if data == "ties":
        return np.asarray(rng.integers(0, 4, (n, dims)))
    if data == "drift":
        return np.asarray(x - np.arange(n)[:, None] / 20)
    if data == "jump":
        return np.asarray(np.where(np.arange(n)[:, None] < n // 3, x, 1e9 + x))
    if data == "copies":
        return np.asarray(x[rng.integers(0, min(n, 20), n)])
    if data == "one column":
        return np.repeat(x[:, :1], dims, axis=1)
    if data == "huge":
        return np.asarray(2**62 + rng.integers(0, 40, (n, dims)))
    return x


def undominated(x: np.ndarray) -> np.ndarray:
    """Which rows of `x` no row dominates, straight from the definition."""
    no_worse = np.all(x[:, None] <= x[None], axis=2)
    return ~np.any(no_worse & np.any(x[:, None] < x[None], axis=2), axis=0)


def as_columns(x: np.ndarray) -> dict[str, np.ndarray]:
    return {f"x{j}": np.ascontiguousarray(x[:, j]) for j in range(x.shape[1])}


def run(x: np.ndarray, panes: np.ndarray, length: int, slide: int, step: int) -> set[tuple[int, int]]:
    """(window, row) of all windows, fed `step` panes at a time."""
    query = Skyline(*as_columns(x))
    first, second = query.pane_state(), query.window_state(length, slide)
    found: list[tuple[int, int]] = []
    for start in (*range(0, int(panes.max()) + 1, step), None):
        if start is None:
            before = END_OF_PANES
        else:
            before = start + step
            mine = np.flatnonzero((panes >= start) & (panes < before))
            first.add(np.zeros(len(mine), np.int64), panes[mine], {**as_columns(x[mine]), "row": mine})
        fired = second.advance(first.close(before), before)
        found += zip(fired["window"].tolist(), fired["row"].tolist(), strict=True)
    assert len(set(found)) == len(found)
    return set(found)


def brute(x: np.ndarray, panes: np.ndarray, length: int, slide: int) -> set[tuple[int, int]]:
    found = set()
    for window in range(int(panes.max()) // slide + 1):
        held = np.flatnonzero((panes >= window * slide) & (panes < window * slide + length))
        found |= {(window, int(row)) for row in held[undominated(x[held])]}
    return found


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: Any) -> None:
    """Kept sets of their own from 40 items on, sorted often, so that small streams reach every path."""
    monkeypatch.setattr(skyline_windows, "_LARGE", 40)
    monkeypatch.setattr(kept, "_SORT_SLACK", 100)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("dims", [1, 2, 3, 5, 8, 12])
def test_pane_skyline_of_all_kinds_of_data_matches_brute_force(data: str, dims: int) -> None:
    finder = PaneSkyline(dims)
    for seed, n in enumerate((1, 2, 17, 64, 65, 400)):
        x = points_of(data, n, dims, seed)
        points = np.stack([np.unique(x[:, j], return_inverse=True)[1] for j in range(dims)], axis=1)
        keep = finder.keep(np.ascontiguousarray(points, np.int64), np.array([0, n]))
        assert np.array_equal(keep, undominated(x))


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(("dims", "length", "slide"), [(1, 5, 1), (2, 7, 2), (3, 20, 1), (4, 3, 3), (6, 9, 4),
                                                       (8, 2, 1), (12, 6, 1)])
def test_windows_of_all_kinds_of_data_match_brute_force(data: str, dims: int, length: int, slide: int) -> None:
    n = 900
    x = points_of(data, n, dims, seed=dims)
    panes = np.sort(np.random.default_rng(1).integers(0, 30, n))
    expected = brute(x, panes, length, slide)
    assert run(x, panes, length, slide, step=1) == expected
    assert run(x, panes, length, slide, step=7) == expected


def test_two_hundred_panes_to_a_window_match_brute_force() -> None:
    n = 700
    x = points_of("anticorrelated", n, 4, seed=3)
    panes = np.arange(n) // 2
    assert run(x, panes, 200, 1, step=11) == brute(x, panes, 200, 1)


def test_ranks_that_do_not_fit_are_fitted_anew() -> None:
    finder = PaneSkyline(4)
    in_vain = []
    for turn, shift in enumerate((0, 1e6, 1e6)):
        points = ((points_of("independent", 2000, 4, turn) + shift) * 2**20).astype(np.int64)
        finder.figures[:] = 0
        assert np.array_equal(finder.keep(points, np.array([0, 2000])), undominated(points))
        in_vain.append(finder.figures[1] - finder.figures[2])
    assert in_vain[1] > 4 * 2000  # everything had the same ranks
    assert in_vain[2] < 2000


def test_kept_set_frees_what_expired() -> None:
    query = Skyline(*(f"x{j}" for j in range(8)))
    windows = query.window_state(10, 1)
    sizes = []
    for pane in range(60):
        panes = query.pane_state()
        x = points_of("anticorrelated", 1000 if pane < 30 else 1, 8, pane)
        panes.add(np.zeros(len(x), np.int64), np.full(len(x), pane), {**as_columns(x), "row": np.arange(len(x))})
        windows.advance(panes.close(pane + 1), pane + 1)
        sizes.append(windows.size_bytes)
    assert max(sizes[50:]) < max(sizes[:30]) / 10


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("dims", [1, 2, 3, 5, 8, 12])
def test_largest_k_of_skylines_matches_brute_force(data: str, dims: int) -> None:
    finder = LargestK(dims)
    for seed, n in enumerate((1, 30, 500)):
        x = points_of(data, n, dims, seed)
        x = x[undominated(x)]
        no_worse = np.sum(x[:, None] <= x[None], axis=2) * np.any(x[:, None] < x[None], axis=2)
        true = no_worse.max(axis=0)
        points = np.stack([np.unique(x[:, j], return_inverse=True)[1] for j in range(dims)], axis=1).astype(np.int64)
        bounds = np.array([0, len(x)])
        assert np.array_equal(finder.of_groups(points, bounds, len(x) + 1, dims), true)
        limited = finder.of_groups(points, bounds, len(x) + 1, 2)
        assert np.array_equal(np.minimum(limited, 2), np.minimum(true, 2))
        for wanted in (1, 5):
            cut = finder.of_groups(points, bounds, wanted, dims)
            chosen = np.lexsort((np.arange(len(x)), cut))[:wanted]
            assert np.array_equal(chosen, np.lexsort((np.arange(len(x)), true))[:wanted])


def test_thirty_two_dimensions_match_brute_force() -> None:
    x = points_of("ties", 500, 32, seed=1) // 3  # zeros and ones: some do dominate
    panes = np.arange(500) // 25
    assert run(x, panes, 8, 2, step=3) == brute(x, panes, 8, 2)

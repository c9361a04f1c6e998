"""What aggregates and user functions hold stays flat however long the stream is, quiet keys included."""

from __future__ import annotations

from typing import Any

import pytest

from patterns import CountWindow, TimeWindow
from patterns.queries import Decomposable, Function, Incremental, Quantile, Sliding, Variance
from patterns.window import Window
from tests.property.test_memory import LENGTH, peaks


def total(items: Any) -> float:
    return float(items["a"].sum())


def added(state: float, items: Any) -> float:
    return state + total(items)


def taken(state: float, items: Any) -> float:
    return state - total(items)


QUERIES: dict[str, tuple[Any, str]] = {
    "variance": (Variance("a"), "win_mapreduce(2,1)"),
    "quantile": (Quantile("a", 0.5), "win_seq"),
    "quantile in panes": (Quantile("a", 0.5), "pane_farm(2,1)"),
    "function": (Function(total, ["a"]), "win_farm(2)"),
    "incremental": (Incremental(float, added, None, ["a"]), "key_farm(2)"),
    "sliding": (Sliding(float, added, taken, float, ["a"]), "win_seq"),
    "decomposable": (Decomposable(total, max, ["a"]), "pane_farm(2,2)"),
}


@pytest.mark.parametrize("window", [TimeWindow(LENGTH, slide=LENGTH // 4), CountWindow(40, slide=10)],
                         ids=["time", "count"])
@pytest.mark.parametrize("name", QUERIES)
def test_memory_over_fifty_windows_stays_flat(name: str, window: Window) -> None:
    query, pattern = QUERIES[name]
    early, late = peaks(pattern, window, query)
    assert late < 1.5 * early

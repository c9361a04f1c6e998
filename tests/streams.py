"""Small streams for tests: hypothesis strategies, and what the oracle says each window of them holds."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from patterns import CountWindow, DeltaWindow, SlideByTuple, TimeWindow
from patterns.window import Window
from tests import oracle

Held = dict[tuple[Hashable, int], tuple[float, float, list[int]]]

#: Lengths and slides: sliding, tumbling, hopping, panes of one, panes of two.
LENGTHS = ((6, 2), (4, 4), (6, 4), (3, 5), (5, 1), (1, 1), (2, 6))


@st.composite
def items(draw: st.DrawFn, keys: int, max_size: int = 40) -> list[dict[str, Any]]:
    """Items in arrival order: equal times, gaps longer than any window, small steps back, quiet keys."""
    steps = draw(st.lists(st.tuples(
        st.sampled_from((0, 0, 1, 1, 2, 5, 23, -1, -3)), st.integers(0, max(keys - 1, 0)),
        st.integers(-2, 2), st.integers(0, 3), st.sampled_from((0, .5, 1, 2, -1))), max_size=max_size))
    found, now, level = [], 3, 0.0
    for number, (step, key, a, b, rise) in enumerate(steps):
        now, level = max(now + step, 0), level + rise
        item = {"ts": now, "a": float(a), "b": float(b), "c": level, "value": a * 3 + b, "id": number}
        found.append({**item, "key": f"k{key}"} if keys else item)
    return found


@st.composite
def windows(draw: st.DrawFn, kinds: tuple[type, ...] = (TimeWindow, CountWindow, SlideByTuple, DeltaWindow)) -> Window:
    kind = draw(st.sampled_from(kinds))
    length, slide = draw(st.sampled_from(LENGTHS))
    if kind is DeltaWindow:
        return DeltaWindow("c", length=length / 2, threshold=slide / 2)
    if kind is TimeWindow:
        return TimeWindow(length, slide=slide, origin=draw(st.sampled_from((0, 0, 4))))
    window: Window = kind(length, slide=slide)
    return window


def columns(stream: list[dict[str, Any]], keyed: bool) -> dict[str, np.ndarray]:
    """`stream` as columns, with types even if it is empty."""
    types = {"ts": np.int64, "a": np.float64, "b": np.float64, "c": np.float64, "value": np.int64, "id": np.int64}
    table = {name: np.array([item[name] for item in stream], kind) for name, kind in types.items()}
    return {**table, "key": np.array([item["key"] for item in stream], "U2")} if keyed else table


def in_arrival_order(stream: list[dict[str, Any]], disorder: str) -> list[dict[str, Any]]:
    """The items that count, in the order that counts: sorted, or without those that are late."""
    times = [item["ts"] for item in stream]
    if disorder == "sort":
        return sorted(stream, key=lambda item: item["ts"])
    delay = int(disorder.removeprefix("bounded:").removesuffix("us")) if ":" in disorder else 0
    return [stream[place] for place in oracle.admitted(stream, oracle.bounded(times, delay)[1])]


def held_by(window: Window, stream: list[dict[str, Any]]) -> Held:
    """What each window holds, by key and id, with its bounds as the product reports them."""
    if isinstance(window, TimeWindow):
        return oracle.time_windows(stream, window.length, window.slide, window.origin)
    if isinstance(window, CountWindow):
        found = oracle.count_windows(stream, window.length, window.slide)
        return {name: (stream[held[0]]["ts"], stream[held[-1]]["ts"], held) for name, (_, _, held) in found.items()}
    if isinstance(window, SlideByTuple):
        return oracle.slide_by_tuple_windows(stream, window.length, window.slide)
    return oracle.delta_windows(stream, window.attribute, window.length, window.threshold)

"""Patterns on Ray actors give what they give inline, and that is what the oracle says (`tests/contract`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from patterns import CountWindow, DeltaWindow, SlideByTuple, Stream, TimeWindow
from patterns.queries import Count, Skyline, Sum
from patterns.window import Window
from runtime.actors import ensure_ray, stop_ray

TIME, COUNT = TimeWindow("100ms", slide="20ms"), CountWindow(60, slide=20)
ON_ITEMS, DELTA = SlideByTuple("50ms", slide=40), DeltaWindow("c", length=9, threshold=4)
SUMS: Any = [Count(), Sum("value")]
SKYLINE: Any = Skyline("a", "b")


@pytest.fixture(scope="module", autouse=True)
def ray() -> Iterator[None]:
    started = ensure_ray(num_cpus=2)
    yield
    if started:
        stop_ray()


def stream() -> Stream:
    rng = np.random.default_rng(5)
    count = 3_000
    data = {"ts": rng.integers(0, 1_000_000, count), "key": [f"key-{n}" for n in rng.integers(0, 5, count)],
            "a": rng.random(count), "b": rng.random(count), "value": rng.integers(-9, 9, count),
            "c": np.cumsum(rng.normal(.05, 1, count))}
    return Stream.of(data, time="ts")


@pytest.mark.parametrize(("pattern", "window", "query", "keyed"), [
    ("win_seq", TIME, SKYLINE, False),
    ("win_farm(3)", COUNT, SKYLINE, True),
    ("win_farm(2,agnostic)", TIME, SKYLINE, False),
    ("win_farm(2,agnostic)", ON_ITEMS, SUMS, True),
    ("key_farm(2)", DELTA, SKYLINE, True),
    ("key_farm(win_mapreduce(2,1),2)", TIME, SUMS, True),
    ("pane_farm(2,2,level=0)", TIME, SKYLINE, True),
    ("win_farm(pane_farm(2,1),2,level=2)", COUNT, SUMS, True),
])
def test_pattern_on_ray_gives_what_it_gives_inline(pattern: str, window: Window, query: Any, keyed: bool) -> None:
    source = stream().key_by("key") if keyed else stream()
    plan = source.window(window).apply(query, pattern=pattern)
    found, expected = plan.run(executor="ray", batch_rows=500), plan.run(executor="inline", seed=1, batch_rows=333)
    assert found.results.equals(expected.results)
    assert found.stats.windows == expected.stats.windows > 5
    assert found.stats.executor == "ray"

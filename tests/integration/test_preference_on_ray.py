"""Preference queries on Ray actors: the same answers as inline, and keys and ranks in their places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from patterns import Stream, TimeWindow
from patterns.queries import KDominant, Skyline, TopDelta, TopK

NAMES = ("a", "b", "c", "d")
QUERIES = (Skyline(*NAMES, maximize=["d"]), KDominant(3, *NAMES), TopDelta(7, *NAMES),
           TopK(5, weights={"a": 1.0, "b": -2.0}))


def columns(n: int = 30_000) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    values = {name: rng.integers(0, 500, n).astype(kind)
              for name, kind in zip(NAMES, (np.float64, np.float32, np.int64, np.uint16), strict=True)}
    return {"ts": np.arange(n), "group": rng.integers(0, 40, n), "number": np.arange(n), **values}


@pytest.mark.parametrize(("pattern", "keyed"), [("pane_farm(2,1)", False), ("key_farm(2)", True)])
def test_preference_queries_on_ray_answer_as_inline(pattern: str, keyed: bool) -> None:
    stream = Stream.of(columns(), time="ts")
    windowed = (stream.key_by("group") if keyed else stream).window(TimeWindow(10_000, slide=2_000))
    for query in QUERIES[1:3] if keyed else (QUERIES[0], QUERIES[2], QUERIES[3]):
        on_ray = windowed.apply(query, pattern=pattern).run(executor="ray")
        inline = windowed.apply(query, pattern="win_seq").run(executor="inline")
        assert on_ray.results.equals(inline.results)
        assert on_ray.stats.windows == inline.stats.windows > 0

"""`emit_empty=True`: a row for windows without items too, the others untouched."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patterns import DeltaWindow, Stream, TimeWindow
from patterns.queries import Count, Max, Skyline, Sum
from runtime.errors import BadInputError
from tests import streams


@given(stream=streams.items(keys=3), window=streams.windows((TimeWindow,)),
       pattern=st.sampled_from(("win_seq", "key_farm(2)")))
@settings(max_examples=50)
def test_empty_windows_are_reported_between_first_and_last_of_a_key(stream: Any, window: Any, pattern: str) -> None:
    source = Stream.of(streams.columns(stream, True), time="ts").key_by("key")
    query = [Count(), Sum("value"), Max("a")]
    found = source.window(window, emit_empty=True).apply(query, pattern=pattern).run("inline").results.to_pylist()
    plain = source.window(window).apply(query).run("inline").results.to_pylist()
    assert [row for row in found if row["count"]] == plain
    for row in found:
        if not row["count"]:
            assert (row["sum_value"], row["max_a"]) == (0, None)
            assert row["window_end"] - row["window_start"] == window.length
    by_key: dict[str, list[int]] = {}
    for row in found:
        by_key.setdefault(row["key"], []).append(row["window_id"])
    assert all(ids == list(range(ids[0], ids[-1] + 1)) for ids in by_key.values())
    assert list(by_key) == sorted(by_key)


def test_empty_delta_window_is_reported_with_its_extent() -> None:
    data = {"ts": [1, 2, 3], "c": [0.0, 10.0, 11.0], "a": [1.0, 2.0, 3.0]}
    window = DeltaWindow("c", length=1, threshold=1)
    found = Stream.of(data, time="ts").window(window, emit_empty=True).apply(Skyline("a")).run("inline").results
    assert found.column("window_id").to_pylist() == [0, 1]
    assert found.column("window_start").to_pylist() == [9.0, 10.0]
    assert found.column("a").to_pylist() == [None, 2.0]


def test_empty_windows_over_a_gap_of_years_are_refused() -> None:
    data = {"ts": [0, 10**15], "a": [1.0, 2.0]}
    with pytest.raises(BadInputError, match="`emit_empty` would report"):
        Stream.of(data, time="ts").window(TimeWindow("1ms"), emit_empty=True).apply(Count()).run("inline")

"""The one law: every pattern, at every degree and level, gives what the oracle says, for every window it admits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patterns import CountWindow, DeltaWindow, SlideByTuple, Stream, TimeWindow
from patterns.queries import Count, Skyline, Sum
from patterns.window import Window
from runtime.errors import SpecError
from tests import oracle, streams

ACTIVE = ("win_farm(1)", "win_farm(2)", "win_farm(3)", "win_farm(4)", "win_farm(2,unordered)",
          "pane_farm(1,1)", "pane_farm(2,1)", "pane_farm(1,3)", "pane_farm(4,3)",
          "pane_farm(1,1,level=0)", "pane_farm(3,2,level=0)", "pane_farm(2,2,level=1)", "pane_farm(1,2,level=1)",
          "pane_farm(2,2,unordered)",
          "win_mapreduce(1,1)", "win_mapreduce(2,1)", "win_mapreduce(4,3)", "win_mapreduce(3,2,level=0)",
          "win_mapreduce(2,2,level=1)",
          "win_farm(pane_farm(2,3),2)", "win_farm(pane_farm(2,1,level=0),3,level=0)",
          "win_farm(pane_farm(2,2,level=1),2,level=2)", "win_farm(pane_farm(1,1),4,level=2)",
          "win_farm(win_mapreduce(2,2),2)", "win_farm(win_mapreduce(2,1,level=0),2,level=0)",
          "win_farm(win_mapreduce(3,1),2,level=2)")
KEYED = ("key_farm(1)", "key_farm(2)", "key_farm(4)", "key_farm(3,unordered)", "key_farm(pane_farm(2,2),2)",
         "key_farm(pane_farm(2,1,level=0),2,level=0)", "key_farm(win_mapreduce(2,2),3,level=2)",
         "key_farm(win_mapreduce(2,1,level=1),2)")
EVERYWHERE = ("win_seq", "win_farm(1,agnostic)", "win_farm(2,agnostic)", "win_farm(4,agnostic)",
              "win_farm(3,agnostic,unordered)")
ON_ITEMS = ("key_farm(1)", "key_farm(3)")

GRIDS = (TimeWindow, CountWindow)
TRIGGERED = (SlideByTuple, DeltaWindow)
#: What a hypothesis draws besides the stream; none of it may change the answer.
SCHEDULES = {"seed": st.one_of(st.none(), st.integers(0, 9)), "batch_rows": st.sampled_from((1, 3, 64))}
DISORDERS = st.sampled_from(("sort", "in-order", "bounded:2us"))
EXAMPLES = settings(max_examples=25, suppress_health_check=[HealthCheck.data_too_large])


def run(stream: list[dict[str, Any]], keyed: bool, window: Window, query: Any, pattern: str, disorder: str,
        **options: Any) -> Any:
    source = Stream.of(streams.columns(stream, keyed), time="ts", disorder=disorder)
    if keyed:
        source = source.key_by("key")
    return source.window(window).apply(query, pattern=pattern).run(executor="inline", **options)


def check_skyline(stream: list[dict[str, Any]], keyed: bool, window: Window, pattern: str, disorder: str,
                  **options: Any) -> None:
    found = run(stream, keyed, window, Skyline("a", "b", maximize=["b"]), pattern, disorder, **options)
    counted = streams.in_arrival_order(stream, disorder)
    expected = []
    for (key, wid), (start, end, held) in streams.held_by(window, counted).items():
        for place in oracle.skyline([(counted[index]["a"], counted[index]["b"]) for index in held], [1]):
            expected.append((str(key), wid, start, end, counted[held[place]]["ts"], counted[held[place]]["id"]))
    table = found.results.to_pydict()
    keys = table["key"] if keyed else ["None"] * len(table["id"])
    rows = list(zip(keys, table["window_id"], table["window_start"], table["window_end"], table["ts"], table["id"],
                    strict=True))
    assert sorted(rows) == sorted(expected)
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    assert found.stats.items_late == len(stream) - len(counted)
    if isinstance(window, GRIDS):
        held_by_any = {index for _, _, held in streams.held_by(window, counted).values() for index in held}
        assert found.stats.items_outside == len(counted) - len(held_by_any)


def check_sums(stream: list[dict[str, Any]], keyed: bool, window: Window, pattern: str, disorder: str,
               **options: Any) -> None:
    found = run(stream, keyed, window, [Count(), Sum("value")], pattern, disorder, **options)
    counted = streams.in_arrival_order(stream, disorder)
    expected = [(str(key), wid, start, end, len(held), sum(counted[index]["value"] for index in held))
                for (key, wid), (start, end, held) in streams.held_by(window, counted).items()]
    table = found.results.to_pydict()
    keys = table["key"] if keyed else ["None"] * len(table["count"])
    assert list(zip(keys, table["window_id"], table["window_start"], table["window_end"], table["count"],
                    table["sum_value"], strict=True)) == sorted(expected)


CHECKS = st.sampled_from((check_skyline, check_sums))


@pytest.mark.parametrize("pattern", ACTIVE + EVERYWHERE)
@given(stream=streams.items(keys=0), window=streams.windows(GRIDS), check=CHECKS, disorder=DISORDERS, **SCHEDULES)
@EXAMPLES
def test_pattern_without_keys_equals_oracle(stream: Any, window: Any, check: Any, pattern: str, **options: Any) -> None:
    check(stream, False, window, pattern, **options)


@pytest.mark.parametrize("pattern", ACTIVE + KEYED + EVERYWHERE)
@given(stream=streams.items(keys=4), window=streams.windows(GRIDS), check=CHECKS, disorder=DISORDERS, **SCHEDULES)
@EXAMPLES
def test_pattern_with_keys_equals_oracle(stream: Any, window: Any, check: Any, pattern: str, **options: Any) -> None:
    check(stream, True, window, pattern, **options)


@pytest.mark.parametrize("pattern", EVERYWHERE)
@given(stream=streams.items(keys=0), window=streams.windows(TRIGGERED), check=CHECKS, disorder=DISORDERS, **SCHEDULES)
@EXAMPLES
def test_pattern_on_triggered_windows_equals_oracle(stream: Any, window: Any, check: Any, pattern: str,
                                                    **options: Any) -> None:
    check(stream, False, window, pattern, **options)


@pytest.mark.parametrize("pattern", EVERYWHERE + ON_ITEMS)
@given(stream=streams.items(keys=4), window=streams.windows(TRIGGERED), check=CHECKS, disorder=DISORDERS, **SCHEDULES)
@EXAMPLES
def test_pattern_on_triggered_windows_with_keys_equals_oracle(stream: Any, window: Any, check: Any, pattern: str,
                                                              **options: Any) -> None:
    check(stream, True, window, pattern, **options)


@pytest.mark.parametrize("pattern", [name for name in ACTIVE if "agnostic" not in name])
def test_pattern_on_windows_it_cannot_run_says_which_can(pattern: str) -> None:
    stream = Stream.of({"ts": [1, 2], "a": [1., 2.]}, time="ts")
    with pytest.raises(SpecError, match="use win_seq, key_farm, or a win_farm with agnostic workers"):
        stream.window(SlideByTuple("1s", slide=2)).apply(Skyline("a"), pattern=pattern).run(executor="inline")

"""Patterns as text and as specs; window models and their errors."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from patterns import (CountWindow, DeltaWindow, KeyFarm, PaneFarm, SlideByTuple, TimeWindow, WinFarm, WinMapReduce,
                      WinSeq)
from patterns.specs import parse_pattern
from runtime.errors import SpecError


@pytest.mark.parametrize(("text", "pattern"), [
    ("win_seq", WinSeq()), ("win_farm", WinFarm()), ("win_farm(3)", WinFarm(workers=3)),
    ("win_farm( 3 , agnostic )", WinFarm(workers=3, model="agnostic")),
    ("win_farm(workers=3,model=agnostic)", WinFarm(workers=3, model="agnostic")),
    ("key_farm(pane_farm(2,3),4,unordered)", KeyFarm(PaneFarm(2, 3), workers=4, ordered=False)),
    ("win_farm(win_mapreduce(2,1,level=0),2,level=2)", WinFarm(WinMapReduce(2, 1, level=0), workers=2, level=2)),
    ("pane_farm(2)", PaneFarm(2)), ("pane_farm()", PaneFarm()),
])
def test_pattern_text_is_parsed(text: str, pattern: Any) -> None:
    assert parse_pattern(text) == pattern
    assert parse_pattern(str(pattern)) == pattern or pattern.level in (0, 2) or not pattern.ordered
    assert pickle.loads(pickle.dumps(pattern)) == pattern


@pytest.mark.parametrize("text", [
    "", "farm", "win_farm(", "win_farm)", "win_farm(2))", "win_farm(2 3)", "win_farm(,)", "win_farm(2,)x",
    "win_farm(2,3,4)", "pane_farm(1,2,3)", "win_seq(2)", "win_farm(colour=3)", "win_farm(=2)", "2",
    "win_farm(2,workers=2)",
])
def test_pattern_text_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(SpecError, match="`pattern` must be auto or one of win_seq"):
        parse_pattern(text)


@pytest.mark.parametrize("make", [
    lambda: parse_pattern("win_farm(0)"), lambda: parse_pattern("win_farm", 0), lambda: WinFarm(workers=True),
    lambda: PaneFarm(0, 1), lambda: PaneFarm(1, -1), lambda: WinMapReduce(2, 1, level=3),
    lambda: WinFarm(KeyFarm(), workers=2), lambda: WinFarm(model="lazy"), lambda: parse_pattern("win_farm(2.5)"),
])
def test_pattern_with_a_wrong_degree_level_or_part_is_refused(make: Any) -> None:
    with pytest.raises(SpecError):
        make()


def test_workers_apply_where_the_text_gives_no_degree() -> None:
    assert parse_pattern("pane_farm", 3) == PaneFarm(3, 1)
    assert parse_pattern("win_mapreduce", 3) == WinMapReduce(3, 1)
    assert parse_pattern("win_farm(2)", 3) == WinFarm(workers=2)


@pytest.mark.parametrize("window", [TimeWindow("1s", slide="250ms"), TimeWindow(1_000_000, slide=250_000),
                                    TimeWindow(timedelta(seconds=1), slide=timedelta(milliseconds=250))])
def test_time_window_is_the_same_in_every_spelling(window: TimeWindow) -> None:
    assert (window.length, window.slide) == (1_000_000, 250_000)
    assert (window.grid().pane, window.grid().panes_per_window) == (250_000, 4)


@pytest.mark.parametrize(("make", "names"), [
    (lambda: TimeWindow("1s", slide=0), "`slide`"), (lambda: TimeWindow("-1s"), "`length`"),
    (lambda: TimeWindow("1 day"), "`length`"), (lambda: TimeWindow("1s", slide=1.5), "`slide`"),
    (lambda: TimeWindow("0.1us"), "`length`"), (lambda: CountWindow(0), "`length`"),
    (lambda: CountWindow(3, slide="1s"), "`slide`"), (lambda: CountWindow(2.5), "`length`"),
    (lambda: SlideByTuple("-1s", slide=2), "`length`"), (lambda: SlideByTuple("1s", slide=0), "`slide`"),
    (lambda: DeltaWindow("a", length=0, threshold=1), "`length`"),
    (lambda: DeltaWindow("a", length=1, threshold=float("nan")), "`threshold`"),
    (lambda: DeltaWindow("", length=1, threshold=1), "`attribute`"),
])
def test_window_with_a_wrong_parameter_names_it_and_what_was_given(make: Any, names: str) -> None:
    with pytest.raises(SpecError, match=rf"{names}.*got"):
        make()

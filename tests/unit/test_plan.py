"""The choice of a pattern: from what is known of keys, query, windows and cores."""

from __future__ import annotations

import numpy as np
import pytest

from patterns import CountWindow, SlideByTuple, Stream, TimeWindow
from patterns.build import Job
from patterns.plan import Known, choose, look_at
from patterns.queries import Skyline, Sum
from patterns.queries.aggregates import Aggregates

SLIDING, TUMBLING = TimeWindow("1s", slide="10ms"), TimeWindow("1s")
DECOMPOSABLE = Skyline("a")


class NeedsWindows(Skyline):
    @property
    def decomposable(self) -> bool:
        return False


WHOLE = NeedsWindows("a")


@pytest.mark.parametrize(("job", "known", "expected"), [
    (Job(DECOMPOSABLE, SLIDING, keyed=False), Known(), "pane_farm(3,1)"),
    (Job(DECOMPOSABLE, SLIDING, keyed=False), Known(items_per_pane=1.5), "win_farm(3)"),
    (Job(DECOMPOSABLE, TUMBLING, keyed=False), Known(), "win_mapreduce(3,1)"),
    (Job(WHOLE, SLIDING, keyed=False), Known(), "win_farm(3)"),
    (Job(DECOMPOSABLE, SlideByTuple("1s", slide=3), keyed=False), Known(), "win_farm(3,agnostic)"),
    (Job(DECOMPOSABLE, SLIDING, keyed=True), Known(), "key_farm(3)"),
    (Job(DECOMPOSABLE, SLIDING, keyed=True), Known(keys=100, top_share=.02), "key_farm(3)"),
    (Job(DECOMPOSABLE, SLIDING, keyed=True), Known(keys=100, top_share=.9), "pane_farm(3,1)"),
    (Job(DECOMPOSABLE, SLIDING, keyed=True), Known(keys=3, top_share=.4), "pane_farm(3,1)"),
    (Job(WHOLE, SLIDING, keyed=True), Known(keys=3, top_share=.4), "win_farm(3)"),
])
def test_choice_follows_what_is_known(job: Job, known: Known, expected: str) -> None:
    choice = choose(job, 3, known)
    assert str(choice.pattern) == expected
    assert choice.why


def test_choice_for_one_worker_is_sequential() -> None:
    assert str(choose(Job(DECOMPOSABLE, SLIDING, keyed=True), 1).pattern) == "win_seq"


@pytest.mark.parametrize(("job", "known", "expected"), [
    (Job(DECOMPOSABLE, SLIDING, keyed=False), Known(), "pane_farm(1,1)"),
    (Job(DECOMPOSABLE, SLIDING, keyed=False), Known(items_per_pane=3_000), "pane_farm(1,1)"),
    (Job(DECOMPOSABLE, SLIDING, keyed=False), Known(items_per_pane=30), "win_seq"),
    (Job(DECOMPOSABLE, SLIDING, keyed=True), Known(), "win_seq"),
    (Job(DECOMPOSABLE, TUMBLING, keyed=False), Known(), "win_seq"),
    (Job(DECOMPOSABLE, SlideByTuple("1s", slide=3), keyed=False), Known(), "win_seq"),
    (Job(WHOLE, SLIDING, keyed=False), Known(), "win_seq"),
    (Job(Aggregates((Sum("a"),)), SLIDING, keyed=False), Known(), "win_seq"),
])
def test_choice_on_two_cores(job: Job, known: Known, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patterns.plan.cores", lambda: 2)
    assert str(choose(job, None, known).pattern) == expected
    monkeypatch.setattr("patterns.plan.cores", lambda: 1)
    assert str(choose(job, None, known).pattern) == "win_seq"


def test_look_at_first_items_counts_keys_and_items_per_pane() -> None:
    times = np.arange(1_000) * 1_000
    known = look_at(np.repeat([0, 1], [900, 100]), times, SLIDING)
    assert (known.keys, known.top_share) == (2, .9)
    assert known.items_per_pane == pytest.approx(10, rel=.01)
    assert look_at(None, times, CountWindow(6, slide=4)) == Known(items_per_pane=2)


def test_auto_pattern_of_skewed_keys_in_memory_is_not_a_key_farm() -> None:
    data = {"ts": np.arange(100), "key": ["big"] * 90 + [f"k{n}" for n in range(10)], "a": np.arange(100.)}
    plan = Stream.of(data, time="ts").key_by("key").window(CountWindow(40, slide=10)).apply(DECOMPOSABLE, workers=2)
    assert str(plan.choice().pattern) == "pane_farm(2,1)"
    assert "outweighs" in plan.choice().why


def test_explain_of_a_nested_pattern_shows_it_before_and_after() -> None:
    plan = Stream.of({"ts": [1], "a": [1.]}, time="ts").window(SLIDING).apply(
        DECOMPOSABLE, pattern="win_farm(pane_farm(2,2),2)")
    before, after = plan.explain().split("as it runs:")
    assert "replica-0/plq-collector -> replica-0/wlq-emitter" in before
    assert "plq-collector" not in after and "replica-0/plq-0 -> replica-0/wlq-0, replica-0/wlq-1" in after

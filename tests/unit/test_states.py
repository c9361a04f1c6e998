"""State objects on their own: messages in, messages out, no engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from patterns import CountWindow, DeltaWindow, SlideByTuple, TimeWindow
from patterns.admission import admission
from patterns.agnostic import InTaskOrder, ids_between
from patterns.collector import Collector, UnorderedCollector
from patterns.emitter import Emitter
from patterns.engine import AT, CODE, ROW
from patterns.intake import Intake, IntakeSpec
from patterns.lifetime import LiveItems
from patterns.lines import line
from patterns.listed import select, together
from patterns.progress import ProgressTracker, reached_message
from patterns.queries import Count, Skyline
from patterns.routing import ByKey, ByWindow, Nested, ToAll
from patterns.source import TimeColumn
from patterns.window import Grid, Window
from patterns.worker import STAMP, WindowWorker
from runtime.errors import BadInputError
from runtime.message import Batch, Message, Punctuation

GRID = TimeWindow(4, slide=2).grid()


def items(at: list[int], codes: list[int] | None = None, **columns: list[float]) -> Batch:
    every: dict[str, np.ndarray] = {AT: np.array(at, np.int64), **{name: np.array(c) for name, c in columns.items()}}
    if codes is not None:
        every[CODE] = np.array(codes, np.int64)
    return Batch(every, 7, 0)


def sent(emits: Any) -> list[Message]:
    return [emit.message for emit in emits]


def results(messages: list[Message], *names: str) -> list[tuple[int, ...]]:
    batches = [message for message in messages if isinstance(message, Batch) and "window" in message.columns]
    return [row for batch in batches for row in zip(*(batch.columns[name].tolist() for name in names), strict=True)]


# -- emitter --------------------------------------------------------------------------------------

def test_emitter_by_key_splits_items_and_tells_everybody_of_progress() -> None:
    emitter = Emitter(ByKey(2))
    parts = list(emitter.process(items([1, 2, 3], [0, 1, 2]), 0))
    assert [(part.message.columns[AT].tolist(), list(part.to)) for part in parts] == [([1, 3], [0]), ([2], [1])]
    assert [(emit.message, emit.to) for emit in emitter.process(Punctuation(5), 0)] == [(Punctuation(5), None)]


def test_emitter_by_window_sends_an_item_to_each_worker_that_holds_it() -> None:
    routed = {worker: batch.columns[AT].tolist()
              for batch, ports in ByWindow(Grid(4, 4), 2, keyed=False).route(items([1, 5, 9]))
              for worker in ports or ()}
    assert routed == {0: [1, 9], 1: [5]}


def test_nested_rule_counts_ports_through() -> None:
    rule = Nested(ByKey(2), ((ToAll(), 2), (ToAll(), 1)))
    assert [(batch.columns[AT].tolist(), list(ports or ())) for batch, ports in rule.route(items([1, 2], [0, 1]))] == [
        ([1], [0, 1]), ([2], [2])]


# -- worker ---------------------------------------------------------------------------------------

def test_worker_fires_on_the_punctuation_that_passes_a_windows_end_and_not_before() -> None:
    worker = WindowWorker(Count(), GRID, False)
    assert sent(worker.process(items([0, 1, 3]), 0)) == []
    assert results(sent(worker.process(Punctuation(3), 0)), "window", "count") == []
    assert results(sent(worker.process(Punctuation(4), 0)), "window", "count") == [(0, 3)]
    assert results(sent(worker.end()), "window", "count") == [(1, 1)]


def test_worker_fires_the_windows_of_a_quiet_key() -> None:
    worker = WindowWorker(Count(), GRID, False)
    worker.process(items([0, 1], [0, 1]), 0)
    worker.process(items([9], [0]), 0)
    assert results(sent(worker.process(Punctuation(8), 0)), "window", "code", "count") == [(0, 0, 1), (0, 1, 1)]


def test_worker_copies_what_it_keeps() -> None:
    worker = WindowWorker(Skyline("a"), GRID, False)
    batch = items([0, 1], a=[2.0, 1.0])
    worker.process(batch, 0)
    for column in batch.columns.values():
        column[:] = 99  # the memory is used for something else
    assert results(sent(worker.process(Punctuation(4), 0)), "window", "row") == [(0, 1)]


def test_worker_restored_from_a_snapshot_goes_on_as_before() -> None:
    worker, other = (WindowWorker(Skyline("a", "b"), GRID, False) for _ in range(2))
    worker.process(items([0, 1, 3], a=[1., 2., 0.], b=[1., 0., 5.]), 0)
    worker.process(Punctuation(2), 0)
    other.restore(worker.snapshot())
    more = items([4, 5], a=[3., .5], b=[3., .5])
    answers = []
    for node in (worker, other):
        node.process(more, 0)
        answers.append(results(sent(node.process(Punctuation(50), 0)), "window", "row"))
    assert answers[0] == answers[1] != []


# -- collector ------------------------------------------------------------------------------------

def result(windows: list[int]) -> Batch:
    ids = np.array(windows)
    return Batch({"window": ids, "code": np.zeros_like(ids), STAMP: np.ones_like(ids)})


def test_collector_holds_a_window_until_the_slower_worker_has_passed_it() -> None:
    collector = Collector(GRID, False, inputs=2)
    collector.process(result([0, 2]), 0)
    assert sent(collector.process(Punctuation(8), 0)) == []
    collector.process(result([1]), 1)
    out = sent(collector.process(Punctuation(6), 1))
    assert results(out, "window") == [(0,), (1,)]
    assert out[-1] == Punctuation(6)
    assert results(sent(collector.end()), "window") == [(2,)]


def test_unordered_collector_hands_on_at_once_but_not_progress() -> None:
    collector = UnorderedCollector(False, inputs=2)
    assert results(sent(collector.process(result([5]), 0)), "window") == [(5,)]
    assert sent(collector.process(Punctuation(9), 0)) == []
    assert sent(collector.process(Punctuation(4), 1)) == [Punctuation(4)]


def task(number: int, windows: list[int] | None = None) -> Batch:
    if windows is None:
        return Batch({}, meta={"task": number, "done": True})
    return Batch(result(windows).columns, meta={"task": number})


@pytest.mark.parametrize(("ordered", "expected"), [(True, [(0,), (1,), (2,)]), (False, [(2,), (1,), (0,)])])
def test_results_of_tasks_leave_in_the_order_of_tasks_if_asked(ordered: bool, expected: list[tuple[int]]) -> None:
    collector, out = InTaskOrder(ordered), []
    for number, port in ((2, 0), (1, 1), (0, 0)):
        out += sent(collector.process(task(number, [number]), port))
        collector.process(Punctuation(10 + number), port)
        out += sent(collector.process(task(number), port))
    assert results(out, "window") == expected
    assert [message for message in out if isinstance(message, Punctuation)] == [
        Punctuation(10), Punctuation(11), Punctuation(12)]


# -- intake ---------------------------------------------------------------------------------------

def intake(window: Window, disorder: str = "in-order", on_bad_row: str = "fail", key: str | None = "key") -> Intake:
    also = (window.attribute,) if isinstance(window, DeltaWindow) else ()
    return Intake(IntakeSpec(TimeColumn("ts"), key, ("a",), True, False, on_bad_row, also), admission(disorder),
                  line(window, 1))


def rows(ts: list[int], key: list[str], a: list[float | None]) -> pa.RecordBatch:
    return pa.record_batch({"ts": pa.array(ts, pa.int64()), "key": key, "a": pa.array(a, pa.float64())})


def test_intake_gives_keys_codes_and_counts_positions_per_key_across_batches() -> None:
    state = intake(CountWindow(2))
    state.take(rows([1, 2], ["x", "y"], [0., 0.]), 1)
    batch, progress = state.take(rows([3, 4, 5], ["y", "z", "y"], [0., 0., 0.]), 1).messages
    assert isinstance(batch, Batch) and isinstance(progress, Batch)
    assert batch.columns[CODE].tolist() == [1, 2, 1]
    assert batch.columns[AT].tolist() == [1, 0, 2]
    assert (progress.columns["code"].tolist(), progress.columns["reached"].tolist()) == ([1, 2], [3, 1])
    assert state.keys == ["x", "y", "z"]


def test_intake_drops_late_items_and_keeps_them_for_the_report() -> None:
    state = intake(TimeWindow(4), "bounded:2us")
    batch, progress = state.take(rows([10, 8, 7, 11], ["x"] * 4, [1., 2., 3., 4.]), 1).messages
    assert isinstance(batch, Batch)
    assert batch.columns["a"].tolist() == [1., 2., 4.]
    assert progress == Punctuation(9, 1)
    assert (state.late, state.late_rows[0].column("a").to_pylist()) == (1, [3.])


@pytest.mark.parametrize(("value", "shown"), [(None, "null"), (float("nan"), "nan"), (float("inf"), "inf")])
def test_intake_names_row_and_column_of_a_bad_value(value: float | None, shown: str) -> None:
    state = intake(TimeWindow(4))
    state.take(rows([1, 2], ["x", "x"], [1., 2.]), 1)
    with pytest.raises(BadInputError, match=rf"`a` .*got {shown} in row 4"):
        state.take(rows([3, 4], ["x", "x"], [1., value]), 1)


def test_intake_told_to_drop_bad_rows_counts_and_keeps_them() -> None:
    state = intake(TimeWindow(4), on_bad_row="drop")
    batch, _ = state.take(rows([1, 2, 3], ["x"] * 3, [1., None, 3.]), 1).messages
    assert isinstance(batch, Batch) and batch.columns["a"].tolist() == [1., 3.]
    assert (state.bad, state.bad_rows[0].num_rows) == (1, 1)


def test_intake_lists_windows_behind_the_items_that_trigger_them() -> None:
    state = intake(SlideByTuple(3, slide=2), key=None)
    batch, listing, progress = state.take(rows([1, 4, 6, 9], ["x"] * 4, [0.] * 4), 1).messages
    assert isinstance(listing, Batch) and progress == Punctuation(9, 1)
    assert {name: column.tolist() for name, column in listing.columns.items()} == {
        CODE: [0, 0], "window": [0, 1], "low": [1, 6], "last_row": [1, 3]}


# -- lifetimes and progress -----------------------------------------------------------------------

def test_live_items_of_a_quiet_key_do_not_keep_those_of_others() -> None:
    held = LiveItems(CountWindow(2), select, together)
    for start in range(0, 40_000, 1_000):
        codes = np.zeros(1_000, np.int64)
        if start == 0:
            codes[0] = 1
        at = np.arange(start, start + 1_000)
        held.add({AT: at, ROW: at}, codes, np.where(codes == 1, 0, at))
        held.purge(np.array([start + 1_000, 1]))
    assert held.items < 10_000
    assert 0 in np.concatenate([part[ROW] for part in held])


def test_progress_of_several_inputs_is_the_least_for_each_key() -> None:
    tracker = ProgressTracker(2, True)
    tracker.update(reached_message(np.array([0, 2]), np.array([5, 7]), 1), 0)
    tracker.update(reached_message(np.array([0, 1]), np.array([3, 9]), 2), 1)
    value = tracker.value
    assert isinstance(value, np.ndarray) and value[:3].tolist() == [3, 0, 0]


def test_ids_between_merges_intervals() -> None:
    assert ids_between(np.array([5, 0, 1, 9]), np.array([6, 2, 2, 8])).tolist() == [0, 1, 2, 5, 6]

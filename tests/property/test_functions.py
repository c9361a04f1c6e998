"""User functions end to end: every kind, pattern, degree and window model gives what the oracle says."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from patterns import (CountWindow, DeltaWindow, KeyFarm, PaneFarm, SlideByTuple, Stream, TimeWindow, WinFarm,
                      WinMapReduce, WinSeq)
from patterns.queries import Decomposable, Function, Incremental, Sliding
from tests import oracle

DEGREES = st.integers(1, 4)
TWO_STAGES = st.one_of(st.builds(PaneFarm, DEGREES, DEGREES), st.builds(WinMapReduce, DEGREES, DEGREES))
AGNOSTIC = st.builds(WinFarm, st.just(WinSeq()), DEGREES, st.just("agnostic"))
ONE_STAGE = st.one_of(st.just(WinSeq()), AGNOSTIC, st.builds(WinFarm, st.just(WinSeq()), DEGREES))
ON_GRID = st.one_of(st.builds(TimeWindow, st.integers(1, 6), st.integers(1, 6)),
                    st.builds(CountWindow, st.integers(1, 6), st.integers(1, 6)))
TRIGGERED = st.one_of(st.builds(SlideByTuple, st.integers(0, 6), st.integers(1, 4)),
                      st.builds(DeltaWindow, st.just("a"), st.integers(1, 5), st.integers(1, 4)))


def digest(items: Any) -> dict[str, Any]:
    """All that a function can see of a window, in one row; depends on the order of the items."""
    return {"values": ",".join(f"{value:g}" for value in items["value"]), "n": len(items), "who": str(items.key),
            "wid": items.wid, "from": items.start, "to": items.end}


WHOLE = Function(digest, ["value"])
GROWING = Incremental(list, lambda state, items: state + items["value"].tolist(),
                      lambda state: ",".join(f"{value:g}" for value in state), ["value"], name="values")
SLIDING = Sliding(list, lambda state, items: state + items["value"].tolist(),
                  lambda state, items: state[len(items):],
                  lambda state: ",".join(f"{value:g}" for value in state), ["value"], name="values")
JOINED = Decomposable(lambda items: items["value"].tolist(), lambda older, younger: older + younger, ["value"],
                      finish=lambda state: ",".join(f"{value:g}" for value in state), name="values",
                      commutative=False)
EXTREMES = Decomposable(lambda items: (items["value"].max(), len(items)),
                        lambda one, other: (max(one[0], other[0]), one[1] + other[1]), ["value"],
                        finish=lambda state: {"top": state[0], "n": state[1]})


@st.composite
def streams(draw: Any, keyed: bool) -> list[dict[str, Any]]:
    items, now, attribute = [], 0, 0
    for number in range(draw(st.integers(1, 20))):
        now += draw(st.sampled_from([0, 1, 1, 2, 9, 30]))
        attribute += draw(st.integers(0, 3))
        item = {"ts": now, "value": number + 0.5, "a": attribute}
        if keyed:
            item["key"] = draw(st.sampled_from(["x", "y", "y", "rare"]))
        items.append(item)
    return items


def windows_of(items: list[dict[str, Any]], model: Any) -> oracle.Windows:
    if isinstance(model, SlideByTuple):
        return oracle.slide_by_tuple_windows(items, model.length, model.slide)  # type: ignore[arg-type]
    if isinstance(model, DeltaWindow):
        return oracle.delta_windows(items, model.attribute, model.length, model.threshold)
    grid = model.grid()
    if isinstance(model, CountWindow):
        return oracle.count_windows(items, grid.length, grid.slide)
    return oracle.time_windows(items, grid.length, grid.slide)


def run(items: list[dict[str, Any]], model: Any, query: Any, pattern: Any, keyed: bool, seed: int, rows: int
        ) -> dict[Any, dict[str, Any]]:
    stream = Stream.of(pa.Table.from_pylist(items), time="ts")
    stream = stream.key_by("key") if keyed else stream
    table = stream.window(model).apply(query, pattern).run(executor="inline", seed=seed, batch_rows=rows).results
    found = {(row.get("key"), row["window_id"]): row for row in table.to_pylist()}
    assert len(found) == table.num_rows
    return found


def text(items: list[dict[str, Any]], held: list[int]) -> str:
    return ",".join(f"{items[index]['value']:g}" for index in held)


@settings(max_examples=200)
@given(data=st.data(), keyed=st.booleans(), seed=st.integers(0, 9), rows=st.integers(1, 9))
def test_functions_that_need_whole_windows_equal_the_oracle(data: Any, keyed: bool, seed: int, rows: int) -> None:
    items = data.draw(streams(keyed))
    model = data.draw(st.one_of(ON_GRID, TRIGGERED))
    patterns = ONE_STAGE if isinstance(model, TimeWindow | CountWindow) else st.one_of(st.just(WinSeq()), AGNOSTIC)
    if keyed:
        patterns = st.one_of(patterns, st.builds(KeyFarm, st.just(WinSeq()), DEGREES))
    query = data.draw(st.sampled_from([WHOLE, GROWING, SLIDING]))
    found = run(items, model, query, data.draw(patterns), keyed, seed, rows)
    wanted = windows_of(items, model)
    assert {name: row["values"] for name, row in found.items()} == {
        name: text(items, held) for name, (_, _, held) in wanted.items()}
    if query is WHOLE:
        for (key, wid), row in found.items():
            assert (row["n"], row["who"], row["wid"]) == (len(wanted[key, wid][2]), str(key), wid)
            assert (row["from"], row["to"]) == (row["window_start"], row["window_end"])


@settings(max_examples=200)
@given(data=st.data(), keyed=st.booleans(), seed=st.integers(0, 9), rows=st.integers(1, 9), model=ON_GRID)
def test_decomposable_functions_on_every_pattern_equal_the_oracle(data: Any, keyed: bool, seed: int, rows: int,
                                                                  model: Any) -> None:
    items = data.draw(streams(keyed))
    inner = st.one_of(st.just(WinSeq()), TWO_STAGES)
    patterns = [ONE_STAGE, TWO_STAGES, st.builds(WinFarm, inner, DEGREES)]
    pattern = data.draw(st.one_of(*patterns, *([st.builds(KeyFarm, inner, DEGREES)] if keyed else [])))
    wanted = windows_of(items, model)
    found = run(items, model, EXTREMES, pattern, keyed, seed, rows)
    assert {name: (row["top"], row["n"]) for name, row in found.items()} == {
        name: (max(items[index]["value"] for index in held), len(held)) for name, (_, _, held) in wanted.items()}
    if "mapreduce" not in str(pattern):
        found = run(items, model, JOINED, pattern, keyed, seed, rows)
        assert {name: row["values"] for name, row in found.items()} == {
            name: text(items, held) for name, (_, _, held) in wanted.items()}


@settings(max_examples=80)
@given(data=st.data(), seed=st.integers(0, 9), degree=DEGREES,
       times=st.lists(st.integers(0, 25), min_size=1, max_size=20))
def test_functions_see_items_that_come_out_of_order_in_order_of_time(data: Any, seed: int, degree: int,
                                                                     times: list[int]) -> None:
    items = [{"ts": ts, "value": number + 0.5} for number, ts in enumerate(times)]
    kept = [items[index] for index in oracle.admitted(items, oracle.bounded(times, 4)[1])]
    query = data.draw(st.sampled_from([WHOLE, GROWING, SLIDING]))
    batches = (pa.Table.from_pylist(items[start:start + 3]) for start in range(0, len(items), 3))
    stream = Stream.of(batches, time="ts", disorder="bounded:4us")
    pattern = data.draw(st.sampled_from([WinSeq(), WinFarm(workers=degree), WinFarm(workers=degree, model="agnostic")]))
    report = stream.window(TimeWindow(6, slide=4)).apply(query, pattern).run("inline", seed=seed)
    assert {row["window_id"]: row["values"] for row in report.results.to_pylist()} == {
        wid: text(kept, held) for (_, wid), (_, _, held) in oracle.time_windows(kept, 6, 4).items()}


def test_combining_a_window_of_many_panes_takes_a_constant_number_of_calls_per_slide() -> None:
    calls = [0]

    def combine(one: float, other: float) -> float:
        calls[0] += 1
        return one + other

    query = Decomposable(lambda items: items["v"].sum(), combine, ["v"])
    columns = {"ts": list(range(2000)), "v": [1.0] * 2000}
    report = Stream.of(columns, time="ts").window(TimeWindow(500, slide=1)).apply(query, "win_seq").run("inline")
    assert calls[0] < 4 * 2000
    assert max(report.results["value"].to_pylist()) == 500.0
    assert math.fsum(report.results["value"].to_pylist()) == sum(min(500, 2000 - wid) for wid in range(2000))

"""The fluent API: what a stream can be made of, and what is refused before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from patterns import CountWindow, KeyFarm, Stream, TimeWindow, WinFarm
from patterns.queries import Count, Skyline
from runtime.errors import BadInputError, SpecError

COUNT = 200
RNG = np.random.default_rng(0)
DATA: dict[str, Any] = {"ts": np.arange(COUNT) * 10_000, "price": RNG.random(COUNT), "stars": RNG.integers(0, 5, COUNT)}
QUERY, WINDOW = Skyline("price", maximize=["stars"]), TimeWindow("1s", slide="200ms")


def run(source: Any, query: Any = QUERY, pattern: Any = "auto", key: str | None = None, **options: Any) -> pa.Table:
    stream = Stream.of(source, time="ts", **options)
    if key is not None:
        stream = stream.key_by(key)
    return stream.window(WINDOW).apply(query, pattern=pattern).run(executor="inline").results


SOURCES: list[Callable[[], Any]] = [
    lambda: pd.DataFrame(DATA), lambda: pa.table(DATA), lambda: {name: list(column) for name, column in DATA.items()},
    lambda: pa.table(DATA).to_reader(17), lambda: iter(pa.table(DATA).to_batches(13)),
    lambda: [pd.DataFrame(DATA)[:50], pd.DataFrame(DATA)[50:]], lambda: pa.table(DATA).combine_chunks().to_batches()[0],
    lambda: pd.DataFrame(DATA).sample(frac=1, random_state=3),
]


@pytest.mark.parametrize("source", SOURCES)
def test_stream_of_any_source_gives_the_same_results(source: Callable[[], Any]) -> None:
    assert run(source()).equals(run(DATA))


@pytest.mark.parametrize(("times", "unit"), [
    (DATA["ts"] // 1000, "ms"), (DATA["ts"] * 1000, "ns"), (pd.to_datetime(DATA["ts"], unit="us"), "us"),
    (pa.array(DATA["ts"]).cast(pa.timestamp("us", tz="Europe/Rome")), "us"),
    (pa.array(DATA["ts"] // 1000).cast(pa.timestamp("ms")), "us"),
])
def test_stream_with_times_of_any_type_gives_bounds_of_that_type(times: Any, unit: str) -> None:
    found = run({**DATA, "ts": times}, time_unit=unit)
    assert found.column("window_start").type == found.column("ts").type
    assert found.drop_columns(["ts", "window_start", "window_end"]).equals(
        run(DATA).drop_columns(["ts", "window_start", "window_end"]))


@pytest.mark.parametrize("keys", [
    ["x", "y"], [1.5, 2.5], [True, False], [date(2020, 1, 1), date(2021, 1, 1)], [b"x", b"y"],
    [Decimal("1.50"), Decimal("2.50")], [-7, 2**62],
])
def test_stream_keyed_by_any_plain_type_has_keys_of_that_type(keys: list[Any]) -> None:
    found = run({**DATA, "kind": keys * (COUNT // 2)}, Count(), "key_farm(2)", key="kind")
    assert sorted(set(found.column("key").to_pylist())) == sorted(keys)
    assert found.column("key").type == pa.array(keys).type
    assert sum(found.filter(pa.compute.equal(found["window_id"], 0))["count"].to_pylist()) == 100


@pytest.mark.parametrize(("call", "says"), [
    (lambda: run(DATA, Skyline("prize")), r"column `prize` .*did you mean `price`"),
    (lambda: run(DATA, key="stairs"), r"column `stairs` .*did you mean `stars`"),
    (lambda: run({**DATA, "price": ["a"] * COUNT}), r"`dims` must be integers or floats.*'price'"),
    (lambda: run({**DATA, "ts": DATA["ts"] / 1e6}), r"time column `ts` must be a timestamp or an integer, got double"),
    (lambda: run({**DATA, "price": [Decimal(n) / 7 for n in range(COUNT)]}), r"`price` must be a decimal of at most"),
    (lambda: run({**DATA, "pair": [[1, 2]] * COUNT}, Count(), key="pair"), r"key `pair` must be a plain value"),
    (lambda: run({**DATA, "window_id": DATA["ts"]}), r"columns named like those of the results, got \['window_id'\]"),
    (lambda: run({"ts": [1], "price": [1, 2]}), r"columns must have one length"),
    (lambda: run(5), r"a stream is made of .*got int"),
    (lambda: run("data.parquet"), r"a stream is made of .*got str"),
    (lambda: run(DATA, "skyline"), r"`query` must be a query"),
    (lambda: run(DATA, pattern=3), r"`pattern` must be a pattern such as .*got 3"),
    (lambda: run(DATA, pattern="farm"), r"`pattern` must be auto or one of"),
    (lambda: run(DATA, pattern=KeyFarm(workers=2)), r"key_farm needs a key"),
    (lambda: run(DATA, disorder="k-slack"), r"not available yet"),
    (lambda: run(DATA, disorder="sorted"), r"`disorder` must be sort, in-order"),
    (lambda: run(iter([pa.table(DATA)]), disorder="sort"), r"`disorder` sort needs all items at once"),
    (lambda: run(DATA, time_unit="minutes"), r"`time_unit` must be one of"),
    (lambda: run(DATA, time_unit="s", pattern=WinFarm()), r"multiples of the time column's unit \(s\)"),
    (lambda: run(DATA, on_bad_row="ignore"), r"`on_bad_row` must be fail or drop"),
    (lambda: Stream.of(DATA, time="ts").window("1s"), r"`window` must be a window model"),  # type: ignore[arg-type]
    (lambda: Stream.of(DATA, time="ts").window(WINDOW).apply(QUERY, workers=0), r"`workers` .*at least 1, got 0"),
    (lambda: Stream.of(DATA, time="ts").window(WINDOW).apply(QUERY).run("threads"), r"`executor` must be ray or"),
])
def test_stream_with_a_wrong_part_names_it_and_what_was_given(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        call()


def test_stream_with_a_time_that_overflows_is_refused() -> None:
    with pytest.raises(BadInputError, match="does not fit 64 bits"):
        Stream.of({"ts": [2**60]}, time="ts", time_unit="s").window(TimeWindow("2s")).apply(Count()).run("inline")


@pytest.mark.parametrize("source", [{name: column[:0] for name, column in DATA.items()}, iter([])])
def test_empty_stream_has_no_windows_and_is_no_error(source: Any) -> None:
    report = Stream.of(source, time="ts").window(CountWindow(3)).apply(QUERY).run(executor="inline")
    assert (report.stats.windows, report.results.num_rows) == (0, 0)


def test_bad_rows_told_to_be_dropped_are_counted_and_reported() -> None:
    data = {"ts": [1, 2, 3], "price": [1.0, float("nan"), 2.0], "stars": [1, 2, 3]}
    report = (Stream.of(data, time="ts", on_bad_row="drop").window(CountWindow(3)).apply(QUERY)
              .run(executor="inline"))
    assert (report.stats.items_in, report.stats.items_bad, report.bad.column("ts").to_pylist()) == (3, 1, [2])

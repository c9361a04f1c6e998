"""The aggregate job, through real Spark and real Ray, against the oracle; its options and its errors."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from apps.window import aggregates, main
from runtime.errors import SpecError
from tests import oracle

ALL = "count,sum:load,min:load,max:load,mean:load,variance:load,quantile:load:0.9,median:load"
NAMES = ["count", "sum_load", "min_load", "max_load", "mean_load", "variance_load", "quantile_load_0_9",
         "quantile_load_0_5"]


def write(folder: Path, count: int = 120) -> tuple[str, list[dict[str, Any]]]:
    """A CSV file in no order of time, and its items as the oracle wants them, in order."""
    rng = random.Random(4)
    rows = [{"ts": rng.randrange(80), "key": rng.choice("abc"), "load": rng.choice([0.1, 1e16, -1e16, 2.5, 7.0])}
            for _ in range(count)]
    path = folder / "items.csv"
    path.write_text("when,host,load\n" + "".join(f"{row['ts']},{row['key']},{row['load']!r}\n" for row in rows))
    return str(path), sorted(rows, key=lambda row: row["ts"])


def arguments(path: str, output: Path, *more: str) -> list[str]:
    return ["--input", path, "--time", "when", "--time-unit", "us", "--key", "host", "--agg", ALL, "--output",
            str(output), "--quiet", *more]


@pytest.mark.parametrize(("window", "more"), [
    (("12us", "5us"), ["--executor", "inline"]), (("12us", "5us"), ["--pattern", "win_mapreduce(2,1)"]),
    (("10", "4"), ["--pattern", "key_farm(2)"]),
    (("4us", "7us"), ["--executor", "inline", "--pattern", "pane_farm(2,2)"])])
def test_job_equals_the_oracle(window: tuple[str, str], more: list[str], tmp_path: Path, spark: Any, ray: None) -> None:
    path, items = write(tmp_path)
    output, stats = tmp_path / "out.parquet", tmp_path / "stats.json"
    assert main(arguments(path, output, "--window", window[0], "--slide", window[1], "--stats", str(stats), *more)) == 0
    length, slide = (int(text.removesuffix("us")) for text in window)
    make = oracle.time_windows if window[0].endswith("us") else oracle.count_windows
    wanted = {}
    for name, (_, _, held) in make(items, length, slide).items():
        values = [items[index]["load"] for index in held]
        wanted[name] = [len(values), oracle.total(values), min(values), max(values), oracle.mean(values),
                        oracle.variance(values), oracle.quantile(values, 0.9), oracle.quantile(values, 0.5)]
    table = pq.read_table(output)
    assert table.column_names == ["key", "window_id", "window_start", "window_end", *NAMES]
    assert {(row["key"], row["window_id"]): [row[name] for name in NAMES] for row in table.to_pylist()} == wanted
    assert json.loads(stats.read_text())["windows"] == len(wanted)


@pytest.mark.parametrize(("given", "message"), [
    (["--agg", "total:load"], "`--agg` must be aggregates such as sum:price,count"),
    (["--agg", "quantile:load:high"], "`--agg` quantile must have a share from 0 to 1, got 'quantile:load:high'"),
    (["--agg", "quantile:load:1.5"], "`--agg` quantile must have a share from 0 to 1, got 'quantile:load:1.5'"),
    (["--agg", "sum:laod"], "did you mean `load`?"),
    (["--agg", "sum:host"], "column `host`"),
    (["--window", "0us"], "`--window` must be greater than 0"),
    (["--pattern", "ring"], "`pattern` must be"),
])
def test_wrong_options_are_an_error_of_one_paragraph_and_nothing_is_written(
        given: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: Any) -> None:
    path, _ = write(tmp_path, 5)
    output = tmp_path / "out.parquet"
    assert main(arguments(path, output, "--window", "5us", "--executor", "inline", *given)) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not output.exists()


def test_names_of_aggregates_are_read_as_documented() -> None:
    assert list(aggregates(ALL).outputs) == NAMES
    with pytest.raises(SpecError, match="asked for once"):
        aggregates("count,count")


def test_picture_and_summary_are_made(tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: Any) -> None:
    path, _ = write(tmp_path)
    given = [part for part in arguments(path, tmp_path / "out.parquet", "--window", "5us", "--executor", "inline",
                                        "--plot", str(tmp_path / "p.png")) if part != "--quiet"]
    assert main(given) == 0
    assert (tmp_path / "p.png").stat().st_size > 1000
    assert "throughput" in capsys.readouterr().out

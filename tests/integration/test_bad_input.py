"""Wrong arguments and bad data: one paragraph, exit code 2, no traceback, and no engine started for it if possible."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from apps.common_engines import Engines
from apps.skyline import main

GOOD = pa.table({"ts": [1, 2, 3], "price": [1.0, 2.0, 3.0], "stars": [3, 2, 1], "city": ["a", "b", "a"]})
BASE = {"--time": "ts", "--dims": "price,stars", "--window": "2us", "--executor": "inline"}


def arguments(source: Path, **changed: str) -> list[str]:
    options = {**BASE, **{f"--{name.replace('_', '-')}": value for name, value in changed.items()}}
    return ["--input", str(source), *(part for pair in options.items() for part in pair), "--quiet"]


def said(given: list[str], capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    """What the job says about `given`, as one line; it must end with `code`."""
    assert main(given) == code
    printed = capsys.readouterr()
    assert printed.out == "" and "Traceback" not in printed.err and "\n\n" not in printed.err
    return " ".join(printed.err.split())


@pytest.fixture
def good(tmp_path: Path) -> Path:
    pq.write_table(GOOD, tmp_path / "good.parquet")
    return tmp_path / "good.parquet"


@pytest.fixture
def no_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("an engine was started")
    monkeypatch.setattr(Engines, "on_spark", refuse)
    monkeypatch.setattr(Engines, "start_ray", refuse)


@pytest.mark.usefixtures("no_engines")
@pytest.mark.parametrize("changed, parts", [
    ({"slide": "0us"}, ["`--slide` must be greater than 0", "got 0us"]),
    ({"slide": "0"}, ["`--window` and `--slide`"]),
    ({"window": "0"}, ["`--window` must be greater than 0"]),
    ({"window": "-1s"}, ["`--window` must be greater than 0", "got -1s"]),
    ({"window": "soon"}, ["`--window` must be a duration", "got 'soon'"]),
    ({"window": "1s", "slide": "5"}, ["both be durations or both be numbers of items", "got 1s and 5"]),
    ({"pattern": "farm"}, ["`pattern` must be auto or one of", "got 'farm'"]),
    ({"pattern": "win_farm", "workers": "0"}, ["--workers", "at least 1", "got '0'"]),
    ({"workers": "-2"}, ["--workers", "got '-2'"]),
    ({"workers": "two"}, ["--workers", "'two'"]),
    ({"pattern": "key_farm"}, ["key_farm needs a key", "--key"]),
    ({"dims": "prise,stars"}, ["column `prise` must be in the data", "did you mean `price`?"]),
    ({"dims": "price,city"}, ["'city'", "integers or floats"]),
    ({"dims": ""}, ["`--dims` must name at least one column"]),
    ({"dims": "price,,stars"}, ["`--dims` must be names of columns"]),
    ({"time": "city"}, ["time column `city` must be a timestamp or an integer"]),
    ({"time": "when"}, ["column `when` must be in the data, got ts, price, stars, city"]),
    ({"key": "town"}, ["column `town` must be in the data"]),
    ({"disorder": "k-slack"}, ["not available yet"]),
    ({"disorder": "bounded:200ms"}, ["not available yet"]),
    ({"disorder": "aq:1%"}, ["not available yet"]),
    ({"disorder": "none"}, ["`--disorder` must be sort"]),
    ({"time_unit": "days"}, ["--time-unit", "'days'"]),
    ({"limit": "0"}, ["--limit", "at least 1"]),
    ({"executor": "spark"}, ["--executor", "'spark'"]),
    ({"output": "/nowhere/at/all/r.parquet"}, ["`--output` must be in a folder that exists", "/nowhere/at/all"]),
    ({"stats": "/nowhere/s.json"}, ["`--stats` must be in a folder that exists"]),
    ({"plot": "/tmp"}, ["`--plot` must be a file"]),
    ({"plot": "/tmp/p.txt"}, ["`--plot` must be a picture (png,", "got `/tmp/p.txt`"]),
    ({"output": "/tmp/r.csv"}, ["`--output` is written as Parquet", "name it r.parquet"]),
    ({"output": "/tmp/r.parquet", "stats": "/tmp/r.parquet"}, ["`--output` and `--stats` must be different files"]),
    ({"output": "/tmp/r.parquet", "stats": "/tmp/r.bad.parquet"}, ["`--output` and `--stats` must be different"]),
    ({"pattern": "win_farm(2)", "workers": "3"}, ["`workers` must be left out", "3 and win_farm(2)"]),
], ids=str)
def test_arguments_wrong_are_named_before_anything_starts(
        changed: dict[str, str], parts: list[str], good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = said(arguments(good, **changed), capsys)
    assert all(part in message for part in parts), message


@pytest.mark.usefixtures("no_engines")
def test_arguments_unknown_option_is_named(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--colour" in said([*arguments(good), "--colour", "red"], capsys)


@pytest.mark.usefixtures("no_engines")
@pytest.mark.parametrize("option", ["output", "stats", "plot"])
def test_input_is_never_written_over(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "good.png" if option == "plot" else "good.parquet"
    (tmp_path / "in").mkdir()
    pq.write_table(GOOD, tmp_path / "in" / "good.parquet")
    (tmp_path / name).symlink_to(tmp_path / "in" / "good.parquet")
    message = said(arguments(tmp_path / "in", **{option: str(tmp_path / name)}), capsys)
    assert f"`--{option}` must not be one of the files of --input" in message
    beside = arguments(tmp_path / "in", output=str(tmp_path / "in" / "good"))
    pq.write_table(GOOD, tmp_path / "in" / "good.bad.parquet")
    assert "beside which" in said(beside, capsys)


@pytest.mark.usefixtures("no_engines")
def test_input_missing_file_is_named_with_the_closest(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = said(arguments(good.with_name("goood.parquet")), capsys)
    assert "must name a file or a folder that exists" in message and "did you mean" in message


@pytest.mark.usefixtures("no_engines")
@pytest.mark.parametrize("content", [b"", b"PAR1 but no more", b"not at all"])
def test_input_unreadable_parquet_is_named(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.parquet"
    path.write_bytes(content)
    assert "broken.parquet` must be readable as parquet" in said(arguments(path), capsys)


@pytest.mark.usefixtures("no_engines")
def test_input_unknown_format_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "offers.xlsx"
    path.write_bytes(b"PK")
    assert "must be Parquet" in said(arguments(path), capsys)
    assert "must hold Parquet" in said(arguments(tmp_path), capsys)


@pytest.mark.usefixtures("no_engines")
def test_input_mixed_columns_name_both_files(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(GOOD.drop_columns(["city"]), good.with_name("other.parquet"))
    message = said(arguments(good.parent), capsys)
    assert all(part in message for part in ("good.parquet", "other.parquet", "`city`", "same columns"))


@pytest.mark.usefixtures("no_engines")
def test_input_mixed_types_name_both_files(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(GOOD.set_column(2, "stars", pa.array([1.0, 2.0, 3.0])), good.with_name("other.parquet"))
    message = said(arguments(good.parent), capsys)
    assert all(part in message for part in ("good.parquet", "other.parquet", "`stars`", "int64", "double"))


BAD_FILES = {
    "null.parquet": (pa.table({**{name: GOOD.column(name) for name in GOOD.column_names}, "stars": [1, 2, None]}),
                     ["`stars`", "got null in row 3"]),
    "nan.parquet": (GOOD.set_column(1, "price", pa.array([1.0, float("nan"), 3.0])), ["`price`", "nan in row 2"]),
    "infinite.parquet": (GOOD.set_column(1, "price", pa.array([1.0, 2.0, float("-inf")])),
                         ["`price`", "-inf in row 3"]),
    "text.csv": ("ts,price,stars\n1,1.5,3\n2,cheap,2\n", ["`price`", "got 'cheap' in row 2"]),
    "whole.csv": ("ts,price,stars\n1,1,3\n2,2,2\n3,x,2\n", ["`price`", "got 'x' in row 3"]),
    "empty.csv": ("ts,price,stars\n1,1.5,3\n2,,2\n", ["`price`", "got null in row 2"]),
    "nan.csv": ("ts,price,stars\n1,NaN,3\n2,1,2\n", ["`price`", "nan in row 1"]),
    "time.csv": ("ts,price,stars\n1,1.5,3\nnoon,1,2\n", ["`ts`", "got 'noon' in row 2"]),
    "text.jsonl": ('{"ts":1,"price":1,"stars":2}\n{"ts":2,"price":"x","stars":2}\n', ["`price`", "got 'x' in row 2"]),
    "left-out.jsonl": ('{"ts":1,"price":1,"stars":2}\n{"ts":2,"stars":2}\n', ["`price`", "got null in row 2"]),
    "broken.jsonl": ('{"ts":1,"price":1,"stars":2}\n{"ts":2,\n', ["broken.jsonl"]),
    "ragged.csv": ("ts,price,stars\n1,1.5,3\n2,2.5\n", ["ragged.csv", "must be readable as csv"]),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_input_bad_value_is_named_by_file_row_and_column(name: str, tmp_path: Path, spark: Any,
                                                         capsys: pytest.CaptureFixture[str]) -> None:
    content, parts = BAD_FILES[name]
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    else:
        pq.write_table(content, path)
    message = said(arguments(path), capsys)
    assert name in message and all(part in message for part in parts), message


def test_input_bad_value_is_the_first_in_file_order(tmp_path: Path, spark: Any,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        prices = [1.0] * 50 + [None if number else 2.0] + [1.0, float("nan")]
        pq.write_table(pa.table({"ts": list(range(53, 0, -1)), "price": prices, "stars": [1] * 53}),
                       tmp_path / f"p{number}.parquet", row_group_size=9)
    assert "nan in row 53 of" in (message := said(arguments(tmp_path), capsys)) and "p0.parquet" in message


@pytest.mark.parametrize("name", ["text.csv", "nan.parquet", "text.jsonl", "time.csv"])
def test_bad_rows_dropped_are_counted_and_kept(name: str, tmp_path: Path, spark: Any) -> None:
    content, _ = BAD_FILES[name]
    path, output, stats = tmp_path / name, tmp_path / "r.parquet", tmp_path / "s.json"
    if isinstance(content, str):
        path.write_text(content)
    else:
        pq.write_table(content, path)
    assert main(arguments(path, on_bad_row="drop", output=str(output), stats=str(stats))) == 0
    assert '"items_bad": 1' in stats.read_text()
    bad = pq.read_table(tmp_path / "r.bad.parquet").to_pylist()
    assert [row["bad_row"] for row in bad] == [2] and bad[0]["bad_file"].endswith(name)
    assert pq.read_schema(output).field("ts").type == pa.int64()


@pytest.mark.parametrize("name, content", [
    ("header.csv", "ts,price,stars\n"), ("nothing.csv", ""), ("nothing.jsonl", ""),
    ("empty.parquet", GOOD.slice(0, 0))])
def test_input_empty_succeeds_with_no_windows(name: str, content: Any, tmp_path: Path, spark: Any,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    path, output = tmp_path / name, tmp_path / "r.parquet"
    if isinstance(content, str):
        path.write_text(content)
    else:
        pq.write_table(content, path)
    given = [argument for argument in arguments(path, output=str(output)) if argument != "--quiet"]
    assert main([*given, "--plot", str(tmp_path / "p.png")]) == 0
    results = pq.read_table(output)
    assert results.num_rows == 0
    assert {"window_id", "window_start", "window_end", "ts", "price", "stars"} <= set(results.column_names)
    assert "there were no items" in capsys.readouterr().out and not (tmp_path / "p.png").exists()


def test_input_mixed_numbers_and_compressed_files_are_read(tmp_path: Path, spark: Any) -> None:
    """A column that is whole in one file and not in another is one column of floats; .gz is unpacked."""
    (tmp_path / "a.csv").write_text("ts,price,stars\n1,5,1\n2,6,2\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"ts,price,stars\n1,4.5,1\n9,7,1\n"))
    output = tmp_path / "r.parquet"
    assert main(arguments(tmp_path, output=str(output), window="5us")) == 0
    rows = pq.read_table(output).select(["window_id", "ts", "price"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(0, 1, 4.5), (1, 9, 7.0)]


def test_input_whole_numbers_that_end_late_are_read_again_as_floats(tmp_path: Path, spark: Any) -> None:
    lines = [f"{number},{number % 7 + 1},1" for number in range(60_000)]
    (tmp_path / "a.csv").write_text("ts,price,stars\n" + "\n".join([*lines, "60000,0.5,1"]) + "\n")
    output = tmp_path / "r.parquet"
    assert main(arguments(tmp_path / "a.csv", output=str(output), window="100000us")) == 0
    assert pq.read_table(output).column("price").to_pylist() == [0.5]


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert "examples:" in printed and "--on-bad-row" in printed

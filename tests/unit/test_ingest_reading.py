"""Files, their columns and the tasks that read them, without Spark: a task is a plain function."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runtime.errors import BadInputError, SpecError
from spark_glue.files import find_files, kind_of
from spark_glue.ingest import open_inputs, splits_of
from spark_glue.readers import PORTION_ROWS
from spark_glue.schemas import Column, common, type_for, widened
from spark_glue.tasks import Answer, split_task

US = pa.timestamp("us")


def test_files_of_a_folder_come_by_name_without_marks(tmp_path: Path) -> None:
    for name in ("b.csv", "a/c.parquet", "_SUCCESS", ".b.csv.crc", "_temporary/x.csv", "readme.txt", "d.json.gz"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    found = find_files([tmp_path])
    assert [(Path(file.path).name, file.kind) for file in found] == [
        ("c.parquet", "parquet"), ("b.csv", "csv"), ("d.json.gz", "json")]


def test_files_given_keep_the_order_given(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv"):
        (tmp_path / name).touch()
    assert [Path(file.path).name for file in find_files([tmp_path / "b.csv", tmp_path / "a.csv"])] == ["b.csv", "a.csv"]


def test_files_none_given_is_an_error() -> None:
    with pytest.raises(SpecError, match="at least one"):
        find_files([])


@pytest.mark.parametrize("name, kind", [("a.PARQUET", "parquet"), ("a.pq", "parquet"), ("a.csv.gz", "csv"),
                                        ("a.ndjson", "json"), ("a.parquet.gz", None), ("a.txt", None), ("csv", None)])
def test_kind_of_a_name_is_its_ending(name: str, kind: str | None) -> None:
    assert kind_of(Path(name)) == kind


def test_parquet_with_another_ending_is_recognised(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "data")
    assert find_files([tmp_path / "data"])[0].kind == "parquet"


@pytest.mark.parametrize("one, other, both", [
    (pa.null(), pa.int64(), pa.int64()), (pa.int64(), pa.float64(), pa.float64()),
    (US, pa.timestamp("ns"), pa.timestamp("ns")), (pa.date32(), US, US),
    (US, pa.timestamp("us", "UTC"), pa.string()), (pa.int64(), pa.string(), pa.string()),
    (pa.bool_(), pa.int64(), pa.string())])
def test_common_type_holds_both(one: pa.DataType, other: pa.DataType, both: pa.DataType) -> None:
    assert common(one, other) == both == common(other, one)


@pytest.mark.parametrize("kind, values, wanted", [
    (pa.int64(), ["1", "x"], pa.int64()), (pa.int64(), ["1.5"], pa.float64()), (pa.int64(), ["1e3"], pa.float64()),
    (pa.int64(), ["99999999999999999999"], pa.float64()), (US, ["2026-01-01T10:00:00Z"], pa.timestamp("us", "UTC")),
    (US, ["2026-01-01 10:00:00.1234567"], pa.timestamp("ns")), (pa.date32(), ["2026-01-01 10:00"], US),
    (US, ["5", "x"], pa.int64()), (US, ["x"], US)])
def test_type_for_values_widens_within_its_family(kind: pa.DataType, values: list[str], wanted: pa.DataType) -> None:
    assert type_for(kind, values) == wanted


def test_widened_column_that_is_read_keeps_its_type() -> None:
    column = Column("a", pa.int64())
    assert widened(column, "x", must_hold=True) == Column("a", pa.int64(), as_text=True)
    assert widened(column, "x", must_hold=False) == Column("a", pa.string())


def test_splits_of_parquet_are_row_groups_of_about_a_portion(tmp_path: Path) -> None:
    rows = PORTION_ROWS // 2 + 1
    pq.write_table(pa.table({"ts": range(rows * 2 + 5)}), tmp_path / "a.parquet", row_group_size=rows)
    splits = splits_of(open_inputs([tmp_path / "a.parquet"], "ts").heads)
    assert [(split.first_row, split.row_groups) for split in splits] == [(0, (0,)), (rows, (1, 2))]


def answers(path: Path, folder: Path, numeric: list[str], on_bad_row: str = "fail") -> list[Answer]:
    inputs = open_inputs([path], "ts", numeric=numeric, on_bad_row=on_bad_row)
    splits = splits_of(inputs.heads)
    task = split_task(splits, inputs, folder)
    return [Answer.from_text(task(number).to_text()) for number in range(len(splits))]


def test_task_asks_for_a_wider_type_when_a_late_value_needs_it(tmp_path: Path) -> None:
    lines = "".join(f"{number},1\n" for number in range(60_000))
    (tmp_path / "a.csv").write_text(f"ts,a\n{lines}60000,1.5\n")
    assert [answer.wider for answer in answers(tmp_path / "a.csv", tmp_path, ["a"])] == [Column("a", pa.float64())]


def test_task_reports_the_first_bad_row_with_its_number_in_the_file(tmp_path: Path) -> None:
    table = pa.table({"ts": range(10), "a": [1.0] * 7 + [None, 2.0, float("nan")]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    (answer,) = answers(tmp_path / "a.parquet", tmp_path, ["a"])
    assert answer.first_bad is not None
    assert (answer.first_bad.row, answer.first_bad.column, answer.first_bad.value) == (8, "a", "null")
    assert not list(tmp_path.glob("*.arrow"))


def test_task_dropping_bad_rows_writes_the_others(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [3, 1, 2], "a": [1.0, None, 2.0]}), tmp_path / "a.parquet")
    (answer,) = answers(tmp_path / "a.parquet", tmp_path, ["a"], on_bad_row="drop")
    assert (answer.rows, answer.bad, answer.segments[0].rows) == (3, 1, 2)
    assert (answer.segments[0].first, answer.segments[0].last) == (2, 3)


def test_task_on_a_file_that_breaks_later_says_so(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": range(50_000), "a": [float(n) for n in range(50_000)]}), tmp_path / "a.parquet",
                   compression="zstd")
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[4:100] = b"\xff" * 96  # the footer is whole, the first page's header is not
    (tmp_path / "a.parquet").write_bytes(content)
    (answer,) = answers(tmp_path / "a.parquet", tmp_path, ["a"])
    assert "must be readable as parquet" in answer.error


def test_task_on_a_page_that_does_not_match_its_checksum_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"ts": range(50_000)}), path, compression="none", use_dictionary=False,
                   write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    (answer,) = answers(path, tmp_path, [])
    assert "must be readable as parquet" in answer.error


def test_json_field_that_appears_late_is_a_column(tmp_path: Path) -> None:
    lines = "".join(f'{{"ts":{number},"a":1}}\n' for number in range(20_000))
    (tmp_path / "a.jsonl").write_text(lines + '{"ts":20000,"a":1,"note":"new"}\n')
    assert [answer.wider for answer in answers(tmp_path / "a.jsonl", tmp_path, ["a"])] == [Column("note", pa.string())]


def test_inputs_name_a_column_twice_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,a,a\n1,2,3\n")
    with pytest.raises(BadInputError, match="`a` more than once"):
        open_inputs([tmp_path / "a.csv"], "ts")


@pytest.mark.parametrize("column, given, wanted", [
    ("zip", ["007", "7", "0123"], ["007", "7", "0123"]),
    ("zip", ["7", "8", "0"], [7, 8, 0]),
    ("zip", ["12345678901234567890", "1", ""], ["12345678901234567890", "1", None]),
    ("zip", ["-0.5", "0.25", "00.5"], [-0.5, 0.25, 0.5]),
    ("price", ["007", "7", "0123"], [7, 7, 123]),
])
def test_csv_codes_stay_as_they_are_written_unless_read_as_numbers(column: str, given: list[str], wanted: list[object],
                                                                   tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"ts,{column}\n" + "".join(f"{ts},{value}\n" for ts, value in enumerate(given)))
    (answer,) = answers(path, tmp_path, [] if column == "zip" else ["price"])
    assert (answer.wider, answer.error, answer.first_bad) == (None, "", None)
    (segment,) = tmp_path.glob("*.arrow")
    assert pa.ipc.open_file(str(segment)).read_all().column(column).to_pylist() == wanted


def test_csv_of_nineteen_digits_is_read_also_beside_a_text(tmp_path: Path) -> None:
    """Nanoseconds of our days have so many digits."""
    path = tmp_path / "a.csv"
    path.write_text("ts,a\n1800000000000000001,1\nsoon,2\n1800000000000000002,3\n")
    (answer,) = answers(path, tmp_path, ["a"], on_bad_row="drop")
    if answer.wider is None:
        assert (answer.rows, answer.bad) == (3, 1)
    else:
        assert answer.wider.type == pa.int64()

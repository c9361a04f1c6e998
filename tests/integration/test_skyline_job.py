"""The main job, through real Spark and real Ray, against the oracle: exactly the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from apps.skyline import main
from tests.integration.data import CASES, Case, found

INLINE = [("win_seq", 1), ("win_farm", 2), ("win_farm", 3)]
ON_RAY = [("win_seq", 1), ("win_farm", 1), ("win_farm", 2), ("win_farm", 3)]


def run(case: Case, folder: Path, *more: str) -> Path:
    output = folder / "out.parquet"
    assert main([*case.arguments(case.write(folder)), "--output", str(output), *more]) == 0
    return output


@pytest.mark.parametrize("pattern, workers", INLINE)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_job_inline_equals_brute_force(case: Case, pattern: str, workers: int, tmp_path: Path, spark: Any) -> None:
    output = run(case, tmp_path, "--pattern", pattern, "--workers", str(workers), "--executor", "inline")
    assert found(output, case) == case.expected()


@pytest.mark.parametrize("pattern, workers", ON_RAY)
@pytest.mark.parametrize("case", CASES[:5], ids=lambda case: case.name)
def test_job_on_ray_equals_brute_force(case: Case, pattern: str, workers: int, tmp_path: Path, spark: Any,
                                       ray: None) -> None:
    output = run(case, tmp_path, "--pattern", pattern, "--workers", str(workers))
    assert found(output, case) == case.expected()


@pytest.mark.parametrize("pattern", ["auto", "key_farm", "pane_farm(2,1)", "win_mapreduce(2,2)",
                                     "win_farm(pane_farm(1,2),2)"])
def test_job_other_patterns_equal_brute_force(pattern: str, tmp_path: Path, spark: Any) -> None:
    case = CASES[1]
    output = run(case, tmp_path, "--pattern", pattern, "--executor", "inline")
    assert found(output, case) == case.expected()


@pytest.mark.parametrize("case", CASES[:3], ids=lambda case: case.name)
def test_job_columns_keep_their_types(case: Case, tmp_path: Path, spark: Any) -> None:
    schema = pq.read_schema(run(case, tmp_path, "--executor", "inline"))
    assert {schema.field(name).type for name in ("when", "window_start", "window_end")} == {case.time}
    assert [name for name in schema.names if name != "key"] == [
        "window_id", "window_start", "window_end", "when", "city", "a", "b", "c", "note"]


def test_job_exotic_columns_come_out_untouched(tmp_path: Path, spark: Any) -> None:
    table = pa.table({"ts": pa.array([3, 1, 2], pa.int64()), "a": pa.array([1, 2, 3], pa.uint16()),
                      "exact": pa.array(["1.10", "2.20", "3.30"]).cast(pa.decimal128(9, 2)),
                      "big": pa.array([2**63 + 1, 0, 2**64 - 1], pa.uint64()), "list": [[1], None, []],
                      "bytes": pa.array([b"\x00", b"\xff", None]), "yes": [True, None, False]})
    pq.write_table(table, tmp_path / "x.parquet")
    output = tmp_path / "out.parquet"
    assert main(["--input", str(tmp_path / "x.parquet"), "--time", "ts", "--dims", "a,exact", "--window", "10us",
                 "--executor", "inline", "--output", str(output), "--quiet"]) == 0
    rows = pq.read_table(output)
    assert rows.select(table.column_names).schema == table.schema
    assert rows.select(table.column_names).equals(table.slice(0, 1))  # the first row dominates the others


def test_job_limit_takes_the_first_items_in_time_order(tmp_path: Path, spark: Any) -> None:
    case = CASES[0]
    stats = tmp_path / "stats.json"
    output = run(case, tmp_path, "--executor", "inline", "--limit", "30", "--stats", str(stats))
    last = sorted(row["when"] for row in case.rows())[29]
    assert json.loads(stats.read_text())["items_in"] == 30
    assert max(row[4]["when"] for row in found(output, case)) <= last


def test_job_statistics_file_has_all_figures(tmp_path: Path, spark: Any, ray: None) -> None:
    case, stats = CASES[0], tmp_path / "stats.json"
    output = run(case, tmp_path, "--stats", str(stats), "--workers", "2", "--pattern", "win_farm")
    figures = json.loads(stats.read_text())
    assert figures["items_in"] == case.items
    assert figures["windows"] == len({row[:2] for row in case.expected()})
    assert figures["result_rows"] == pq.read_metadata(output).num_rows
    assert {"items_late", "items_bad", "startup_s", "run_s", "items_per_s", "latency_ms", "nodes"} <= figures.keys()
    assert {node["name"] for node in figures["nodes"]} >= {"worker-0", "worker-1"}


def test_job_inline_does_not_start_ray(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("ray was started")
    monkeypatch.setattr("apps.common_engines.Engines.start_ray", refuse)
    case = CASES[0]
    assert found(run(case, tmp_path, "--executor", "inline"), case) == case.expected()


def test_job_picture_and_table_are_made(tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    case, plot = CASES[0], tmp_path / "last.png"
    arguments = [argument for argument in case.arguments(case.write(tmp_path)) if argument != "--quiet"]
    assert main([*arguments, "--executor", "inline", "--plot", str(plot)]) == 0
    assert plot.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("windows", "items", "skyline sizes", "throughput", "latency", "picture"))


def test_job_without_input_runs_the_demo(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("apps.common_program.DEMO_ITEMS", 20_000)
    assert main(["--executor", "inline", "--quiet"]) == 0
    results = pq.read_table(tmp_path / "skyline-demo" / "skylines.parquet")
    assert results.num_rows and results.column_names[:4] == ["window_id", "window_start", "window_end", "ts"]
    assert (tmp_path / "skyline-demo" / "last-skyline.png").exists()


def test_job_interrupted_while_it_writes_leaves_no_file(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    case = CASES[0]
    source = case.write(tmp_path)
    before = set(tmp_path.rglob("*"))
    monkeypatch.setattr("apps.picture.draw_run", interrupted)
    assert main([*case.arguments(source), "--executor", "inline", "--output", str(tmp_path / "r.parquet"), "--stats",
                 str(tmp_path / "s.json"), "--plot", str(tmp_path / "p.png")]) == 130
    assert "nothing was written" in capsys.readouterr().err
    assert set(tmp_path.rglob("*")) == before


def test_job_demo_that_fails_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--pattern", "nothing", "--quiet"]) == 2
    assert not list(tmp_path.iterdir())

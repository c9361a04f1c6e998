"""Segments and their merge: time, then segment, then row, whatever the pieces."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_glue import segments
from spark_glue.handoff import OrderedSource
from spark_glue.segments import SegmentFile, merged, raw_times, write_segment

PARTS = st.lists(st.lists(st.integers(-3, 6), min_size=1, max_size=12), max_size=5)


def write_all(parts: list[list[int]], folder: Path) -> list[SegmentFile]:
    found = []
    for number, times in enumerate(parts):
        table = pa.table({"ts": times, "id": [f"{number}/{row}" for row in range(len(times))]})
        found.append(write_segment(table, "ts", folder, f"{number:06d}-0000.arrow"))
    return found


@given(parts=PARTS, piece=st.integers(1, 5))
def test_merge_any_segments_is_the_stable_sort_of_all_rows(
        parts: list[list[int]], piece: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("segments")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "PIECE_ROWS", piece)
        written = write_all(parts, folder)
    rows = [(ts, number, row) for number, times in enumerate(parts) for row, ts in enumerate(times)]
    expected = [(ts, f"{number}/{row}") for ts, number, row in sorted(rows)]
    batches = list(merged(folder, written, "ts"))
    assert [tuple(row.values()) for batch in batches for row in batch.to_pylist()] == expected
    assert sorted(path.name for path in folder.iterdir()) == [segment.name for segment in written]


@given(parts=PARTS, limit=st.integers(0, 40))
def test_source_limited_gives_the_first_rows(
        parts: list[list[int]], limit: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("segments")
    written = tuple(write_all(parts, folder))
    total = sum(segment.rows for segment in written)
    source = OrderedSource(pa.schema({"ts": pa.int64()}), total, 0, folder, written, "ts").limited(limit)
    times = [ts for batch in source.batches() for ts in batch.column("ts").to_pylist()]
    assert times == sorted(ts for part in parts for ts in part)[:limit]
    assert source.rows == len(times)


def test_segment_written_twice_is_one_segment(tmp_path: Path) -> None:
    """Spark may run a task twice: the second run replaces the first one's file."""
    table = pa.table({"ts": [2, 1]})
    assert write_segment(table, "ts", tmp_path, "a") == write_segment(table, "ts", tmp_path, "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("kind, value", [(pa.timestamp("ns"), 5), (pa.timestamp("s", "UTC"), 5), (pa.int32(), 5),
                                         (pa.uint64(), 5), (pa.date32(), 5)])
def test_raw_times_of_any_kind_are_their_own_numbers(kind: pa.DataType, value: int) -> None:
    column = pa.array([value], pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
    assert raw_times(column, "ts").tolist() == [value]

"""The hand-over: an ordered source that the runtime reads, made of the segments that Spark's tasks wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from spark_glue.segments import SegmentFile, merged


@dataclass
class OrderedSource:
    """All items in the order of their times, as `Stream.of` takes them; lives as long as `folder` does."""

    schema: pa.Schema
    rows: int
    bad: int
    folder: Path
    segments: tuple[SegmentFile, ...]
    time: str
    ordered: bool = field(default=True, init=False)

    def limited(self, rows: int | None) -> OrderedSource:
        """The first `rows` items in time order."""
        return self if rows is None else replace(self, rows=min(rows, self.rows))

    def batches(self) -> Iterator[pa.RecordBatch]:
        left = self.rows
        for batch in merged(self.folder, self.segments, self.time):
            if left <= 0:
                return
            yield batch.slice(0, left)
            left -= batch.num_rows

    def bad_rows(self) -> pa.Table:
        """The rows that were left out, as text, with the file and row they stand in and what is wrong."""
        parts = [pa.ipc.open_file(pa.memory_map(str(path))).read_all()
                 for path in sorted(self.folder.glob("[0-9]*.bad"))]
        return pa.concat_tables(parts, promote_options="default") if parts else pa.table({})

"""Results on their way out: to Parquet, all or nothing, and to a Spark DataFrame."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` to write to; what was written takes the place of `path` if all went well.

    A reader finds the old file or the whole new one, never a part.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        if partial.exists():
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write `table` to `path`; types come back as they went in, nanoseconds and time zones too."""
    pq.write_table(table, path, compression="zstd", store_schema=True)


def to_dataframe(spark: Any, table: pa.Table) -> Any:
    """`table` as a Spark DataFrame (nanoseconds become microseconds there: Spark has no finer ones)."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            coarse = table.column(place).cast(pa.timestamp("us", field.type.tz), safe=False)
            table = table.set_column(place, field.name, coarse)
    return spark.createDataFrame(table)

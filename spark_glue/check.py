"""Which rows cannot be read, and why: nulls, NaN, infinities and text in the columns that the query reads.

Runs inside Spark's tasks on Arrow columns, before the rows are put in order, because only there the file
and the number of a row are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from runtime.errors import BadInputError
from spark_glue.schemas import WHOLE, Column, type_for


@dataclass(frozen=True)
class BadRow:
    """The first row that cannot be read: `row` counts from 1 within its file, a CSV's header does not count."""

    file: str
    row: int
    column: str
    value: str

    def error(self) -> BadInputError:
        return BadInputError(f"column `{self.column}` must hold a finite value of its type in every row, got "
                             f"{self.value} in row {self.row} of `{self.file}`: mend the data, or leave such rows "
                             "out with --on-bad-row drop")


class WiderNeeded(Exception):
    """A column has to be read with a wider type, and all files with it."""

    def __init__(self, column: Column) -> None:
        super().__init__(column)
        self.column = column


def bad_rows(table: pa.Table, read: Sequence[str]) -> np.ndarray | None:
    """Which rows hold a null, NaN or infinity in one of the columns `read`; None if no row does."""
    bad: np.ndarray | None = None
    for name in read:
        wrong = bad_values(table.column(name))
        if wrong is not None:
            bad = wrong if bad is None else bad | wrong
    return bad


def bad_values(column: pa.ChunkedArray) -> np.ndarray | None:
    wrong: np.ndarray | None = None
    if column.null_count:
        wrong = column.is_null().to_numpy()
    if pa.types.is_floating(column.type):
        finite = np.isfinite(column.fill_null(0.0).to_numpy())
        if not finite.all():
            wrong = ~finite if wrong is None else wrong | ~finite
    return wrong


def first_bad(table: pa.Table, texts: pa.Table, read: Sequence[str], row: int) -> tuple[str, str]:
    """Column and value (as it stands in the file) of the first bad value in `row`."""
    for name in read:
        if bad_values(table.column(name).slice(row, 1)) is not None:
            given = texts.column(name)[row].as_py()
            return name, "null" if given is None else repr(given)
    raise AssertionError("the row is not bad")


def converted(column: pa.ChunkedArray, wanted: Column) -> pa.ChunkedArray:
    """A text column as `wanted.type`; what is no such value becomes null. WiderNeeded if the type is too narrow."""
    try:
        return column.cast(wanted.type)
    except pa.ArrowInvalid:
        pass
    better = type_for(wanted.type, column.drop_null().unique().to_pylist())
    if better != wanted.type:
        raise WiderNeeded(Column(wanted.name, better, as_text=True))
    if pa.types.is_timestamp(wanted.type) or pa.types.is_date(wanted.type):
        return _moments(column, wanted.type)
    return _numbers(column, wanted.type)


def _numbers(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_floating(kind):
        values = pd.to_numeric(column.to_pandas().astype(object), errors="coerce").to_numpy(np.float64)
        return pa.chunked_array([pa.array(values, kind, mask=np.isnan(values))])
    return pc.if_else(pc.match_substring_regex(column, f"^{WHOLE}$"), column, pa.scalar(None, pa.string())).cast(kind)


def _moments(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    zone = getattr(kind, "tz", None)
    pattern = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.]\d+)?)?" + (r"(Z|[+-]\d\d(:?\d\d)?)" if zone else "") + ")?$"
    text = pc.if_else(pc.match_substring_regex(column, pattern), column, pa.scalar(None, pa.string()))
    moments = pd.to_datetime(text.to_pandas(), errors="coerce", format="ISO8601", utc=zone is not None)
    return pa.chunked_array([pa.Array.from_pandas(moments)]).cast(
        pa.timestamp("ns", zone)).cast(kind, safe=False)

"""What a stream can be made of: tables in memory, or an iterator of batches.

Whatever is given becomes Arrow record batches. A table that lies in memory is put into the order of
its event times first (stable: equal times keep their order); an iterator is taken as it comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from runtime.errors import BadInputError, SpecError

_UNIT_FACTORS = {"us": 1, "ms": 1_000, "s": 1_000_000}
#: Powers of ten up to this one are exact as floats.
_EXACT_POWER = 22


@dataclass(frozen=True)
class TimeColumn:
    """Where event times are, and how they are written: a timestamp column, or integers of `unit`."""

    name: str
    unit: str = "us"

    def __post_init__(self) -> None:
        if self.unit not in (*_UNIT_FACTORS, "ns"):
            raise SpecError(f"`time_unit` must be one of us, ms, s, ns, got {self.unit!r}")

    def check(self, kind: pa.DataType) -> None:
        if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_date(kind)):
            raise SpecError(f"the time column `{self.name}` must be a timestamp or an integer, got {kind}: "
                            "convert it, or name another column")

    def microseconds(self, column: pa.Array) -> np.ndarray:
        """Event times in microseconds, rounded down: a window's bounds are whole microseconds, so nothing moves."""
        kind = column.type
        if pa.types.is_date(kind):
            return column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy(zero_copy_only=False)
        unit = kind.unit if pa.types.is_timestamp(kind) else self.unit
        values = self._integers(column)
        if unit == "ns":
            return values // 1000
        factor = _UNIT_FACTORS[unit]
        if factor > 1 and len(values) and max(-int(values.min()), int(values.max())) > 2**63 // factor - 1:
            raise BadInputError(f"a time in column `{self.name}` does not fit 64 bits of microseconds, "
                                f"got {int(values.max())} {unit}: check `time_unit`")
        return values * factor if factor > 1 else values

    def _integers(self, column: pa.Array) -> np.ndarray:
        try:
            return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid:  # only uint64 has such values
            raise BadInputError(f"a time in column `{self.name}` does not fit 63 bits, got "
                                f"{pc.max(column).as_py()}: check the column and `time_unit`") from None

    def from_microseconds(self, times: np.ndarray, kind: pa.DataType) -> pa.Array:
        """Window bounds in the type of the time column."""
        if pa.types.is_date(kind):
            kind = pa.timestamp("us")
        unit = kind.unit if pa.types.is_timestamp(kind) else self.unit
        bounds = pa.array(times * 1000 if unit == "ns" else times // _UNIT_FACTORS[unit])
        try:
            return bounds.cast(kind)
        except pa.ArrowInvalid:  # a window may end beyond what a small integer holds
            return bounds

    def unit_us(self, kind: pa.DataType) -> int:
        """The least distance of two times of the column, in microseconds (1 for nanoseconds)."""
        return _UNIT_FACTORS.get((kind.unit if pa.types.is_timestamp(kind) else self.unit), 1)

    def check_grid(self, bounds_us: Iterable[int], kind: pa.DataType) -> None:
        """Window bounds must be writable in the column's own unit."""
        unit = getattr(kind, "unit", None) if pa.types.is_timestamp(kind) else self.unit
        factor = _UNIT_FACTORS.get(unit or "us", 1)
        for bound in bounds_us:
            if bound % factor:
                raise SpecError(f"`window` and `slide` must be whole multiples of the time column's unit ({unit}), "
                                f"got {bound} us: choose other lengths, or a finer unit for `{self.name}`")


def to_table(data: Any) -> pa.Table:
    """`data` as an Arrow table: pandas, Arrow, a dict of columns, or anything with `toArrow` (Spark)."""
    if isinstance(data, pa.Table):
        _check_names(data.schema.names)
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pd.DataFrame):
        _check_names(list(map(str, data.columns)))
        return pa.table({str(name): _from_series(data[name]) for name in data.columns})
    if isinstance(data, Mapping):
        lengths = {name: len(column) for name, column in data.items()}
        if len(set(lengths.values())) > 1:
            raise SpecError(f"columns must have one length, got {lengths}")
        return pa.table({str(name): _from_values(str(name), column) for name, column in data.items()})
    if hasattr(data, "toArrow"):
        table: pa.Table = data.toArrow()
        return table
    raise SpecError(f"a stream is made of a pandas or Spark DataFrame, an Arrow table, a dict of columns or an "
                    f"iterator of those, got {type(data).__name__}")


def _check_names(names: Sequence[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise SpecError(f"each column must have a name of its own, got `{twice[0]}` more than once: rename one of them")


def _from_values(name: str, column: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if isinstance(column, pd.Series):
        return _from_series(column)
    if isinstance(column, np.ndarray) and not column.dtype.isnative:
        column = column.astype(column.dtype.newbyteorder("="))
    try:
        return pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        shape = f"an array of shape {column.shape}" if getattr(column, "ndim", 1) != 1 else str(error).splitlines()[0]
        raise SpecError(f"column `{name}` must be a plain list or array of values of one type, got {shape}") from None


def _from_series(series: pd.Series[Any]) -> pa.Array:
    # NaN must stay NaN: Arrow's pandas conversion would turn it into null, which is another value.
    if series.dtype.kind == "f":
        return pa.array(series.to_numpy(), from_pandas=False)
    return pa.Array.from_pandas(series)


def is_table(data: Any) -> bool:
    """Whether all items are there at once, so that they can be put in order."""
    return isinstance(data, pa.Table | pa.RecordBatch | pd.DataFrame | Mapping) or hasattr(data, "toArrow")


def first_values(data: Any, name: str | None, count: int = 65_536) -> pa.Array | None:
    """The first values of a column of what lies in memory; None if there is no such column, or it must be fetched."""
    if name is None or not isinstance(data, pa.Table | pa.RecordBatch | pd.DataFrame | Mapping):
        return None
    if name not in (data.schema.names if isinstance(data, pa.Table | pa.RecordBatch) else data):
        return None
    column = data[name][:count]
    if isinstance(column, pd.Series):
        return _from_series(column)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else _from_values(name, column)


def ordered(table: pa.Table, time: TimeColumn) -> pa.Table:
    """`table` in the order of event time; rows of equal time keep their order, those without a time come first."""
    column = table.column(time.name).combine_chunks()
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    times = time.microseconds(column.drop_null()) if table.num_rows else np.empty(0, np.int64)
    if missing is None and (len(times) < 2 or bool((times[1:] >= times[:-1]).all())):
        return table
    order = np.argsort(times, kind="stable")
    if missing is not None:
        order = np.r_[np.flatnonzero(missing), np.flatnonzero(~missing)[order]]
    return table.take(pa.array(order))


def nearest_floats(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """The floats nearest to decimals of few digits, without nulls (Arrow's own cast may be off by one bit)."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    precision, scale = column.type.precision, column.type.scale
    if not 0 <= scale <= _EXACT_POWER:
        return np.array([float(value) for value in column.to_pylist()], np.float64)
    column = column.cast(pa.decimal128(precision, scale))
    words = np.frombuffer(column.buffers()[1], np.int64) if len(column) else np.empty(0, np.int64)
    whole = words[2 * column.offset:2 * (column.offset + len(column)):2]  # the lower half: digits enough
    floats: np.ndarray = whole / 10.0**scale  # both exact, so that it is rounded once
    return floats


def batches_of(data: Any) -> Iterator[pa.RecordBatch]:
    """Record batches of an iterator of anything that `to_table` takes (a record batch reader is one).

    All have the columns of the first one, in its order: BadInputError for a column that is missing, new, or of
    another type.
    """
    schema: pa.Schema | None = None
    for part in data:
        if part is not None:
            table = to_table(part)
            schema = schema or table.schema
            yield from _alike(table, schema).to_batches()


def _alike(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for name in dict.fromkeys([*schema.names, *table.schema.names]):
        if name not in table.schema.names or name not in schema.names:
            where = "the first only" if name in schema.names else "a later one only"
            raise BadInputError(f"all batches of a stream must have the same columns, got `{name}` in {where}")
    columns = [table.column(name) for name in schema.names]
    for place, (column, field) in enumerate(zip(columns, schema, strict=True)):
        if pa.types.is_null(column.type):
            columns[place] = column.cast(field.type)
        elif column.type != field.type:
            raise BadInputError(f"column `{field.name}` must have one type in all batches of a stream, got "
                                f"{field.type} in the first and {column.type} in a later one: convert it")
    return pa.table(columns, schema=schema)


def column_names(data: Any) -> tuple[str, ...]:
    """The names of all columns of `data`; SpecError if they are not known before its first batch."""
    if isinstance(data, pa.Table | pa.RecordBatch) or isinstance(getattr(data, "schema", None), pa.Schema):
        return tuple(data.schema.names)
    if isinstance(data, Mapping | pd.DataFrame) or hasattr(data, "toArrow"):
        return tuple(map(str, getattr(data, "columns", data)))
    raise SpecError("`columns` must be named when the stream is an iterator: write Function(f, columns=[\"price\"])")

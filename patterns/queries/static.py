"""Skylines of data that do not move: an array, a table, a DataFrame, or batches of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from patterns.queries.kernels.kept import KeptSet
from patterns.queries.kernels.keys import points_of
from patterns.queries.kernels.pane import PaneSkyline
from patterns.queries.dominance import check_numeric, dimensions
from patterns.source import nearest_floats
from runtime.errors import BadInputError, SpecError

#: Batches are gathered to this many rows beyond the skyline so far before it is taken anew.
_REDUCE_EVERY = 1 << 16

#: Larger data are taken in chunks of so many rows.
_CHUNK = 1 << 14


def skyline(data: Any, *dims: Any, maximize: Iterable[Any] = ()) -> Any:
    """The rows that no other row dominates: no worse in every dimension, better in one.

    A NumPy array `(rows, dimensions)` gives the numbers of the rows, ascending; dimensions are columns by
    number. An Arrow table or record batch, or a pandas DataFrame, gives the rows themselves in their order;
    dimensions are columns by name. Without `dims` all columns count. Smaller is better, except in the
    dimensions of `maximize`. Equal rows do not dominate each other.

    >>> import numpy as np
    >>> from patterns.queries import skyline
    >>> skyline(np.array([[5, 1], [3, 2], [4, 2], [2, 4]]))
    array([0, 1, 3])
    >>> skyline(np.array([[5, 1], [3, 2], [4, 2], [2, 4]]), maximize=[1])
    array([3])
    >>> import pandas as pd
    >>> hotels = pd.DataFrame({"name": ["A", "B", "C"], "price": [90, 70, 95], "rating": [4.5, 4.0, 4.4]})
    >>> skyline(hotels, "price", maximize=["rating"]).name.tolist()
    ['A', 'B']
    """
    if isinstance(data, np.ndarray):
        return np.flatnonzero(_keep_of_array(data, dims, maximize))
    if isinstance(data, pd.DataFrame):
        names, wanted = _names(data.columns, dims, maximize)
        columns = {name: _values(pa.Array.from_pandas(data[name]), name) for name in names}
        return data[_keep(columns, names, wanted)]
    if isinstance(data, pa.Table | pa.RecordBatch):
        names, wanted = _names(data.schema.names, dims, maximize)
        return data.filter(pa.array(_keep(_columns(data, names), names, wanted)))
    raise SpecError(f"`data` must be a NumPy array, an Arrow table or a pandas DataFrame, got {type(data).__name__}: "
                    "convert it, or use spark_glue.skyline for a Spark DataFrame")


def skyline_of_batches(batches: Iterable[pa.RecordBatch], dims: Sequence[str],
                       maximize: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """The skyline of all `batches` together, in their order; no more than that is held at any time.

    This is one partition's share of a larger skyline: give the batches of all shares to it again.

    >>> import pyarrow as pa
    >>> parts = [pa.record_batch({"a": [3, 1], "b": [3, 5]}), pa.record_batch({"a": [2], "b": [2]})]
    >>> [batch.to_pylist() for batch in skyline_of_batches(parts, ["a", "b"])]
    [[{'a': 1, 'b': 5}], [{'a': 2, 'b': 2}]]
    """
    held: list[pa.RecordBatch] = []
    rows = left = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows > 2 * left + _REDUCE_EVERY:
            held = _reduced(held, dims, maximize)
            rows = left = sum(part.num_rows for part in held)
    if held:
        yield from _reduced(held, dims, maximize)


def _reduced(batches: list[pa.RecordBatch], dims: Sequence[str], maximize: Sequence[str]) -> list[pa.RecordBatch]:
    found: pa.Table = skyline(pa.Table.from_batches(batches), *dims, maximize=maximize)
    return [batch for batch in found.to_batches() if batch.num_rows]


def _keep_of_array(data: np.ndarray, dims: Sequence[Any], maximize: Iterable[Any]) -> np.ndarray:
    if data.ndim != 2 or data.dtype.kind not in "iuf":
        raise SpecError(f"`data` must be a numeric array of two dimensions (rows, columns), got {data.dtype} of "
                        f"shape {data.shape}")
    numbers = [str(number) for number in range(data.shape[1])]
    wanted = (maximize,) if isinstance(maximize, int) else tuple(maximize)
    given = [str(number) for number in (dims or range(data.shape[1]))]
    unknown = [name for name in (*given, *map(str, wanted)) if name not in numbers]
    if unknown:
        raise SpecError(f"`dims` and `maximize` of an array must be numbers of columns from 0 to {len(numbers) - 1}, "
                        f"got {unknown[0]}")
    names, turned = dimensions(tuple(given), tuple(str(number) for number in wanted))
    return _keep({name: data[:, int(name)] for name in names}, names, turned)


def _names(known: Iterable[Any], dims: Sequence[str],
           maximize: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    wanted = (maximize,) if isinstance(maximize, str) else tuple(maximize)
    names, turned = dimensions(tuple(dims) or tuple(map(str, known)), wanted)
    unknown = [name for name in names if name not in set(known)]
    if unknown:
        raise SpecError(f"`dims` must be columns of the data, got {unknown[0]!r}: there are "
                        f"{', '.join(map(str, known))}")
    return names, turned


def _columns(data: pa.Table | pa.RecordBatch, names: Sequence[str]) -> dict[str, np.ndarray]:
    columns = {}
    for name in names:
        column = data.column(name)
        columns[name] = _values(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column, name)
    return columns


def _values(column: pa.Array, name: str) -> np.ndarray:
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise BadInputError(f"column `{name}` must hold a value in every row, got null in row {row + 1}")
    if pa.types.is_decimal(column.type):
        return nearest_floats(column)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _keep(columns: dict[str, np.ndarray], names: tuple[str, ...], maximize: tuple[str, ...]) -> np.ndarray:
    check_numeric(names, {name: column.dtype for name, column in columns.items()})
    if not len(columns[names[0]]):
        return np.zeros(0, np.bool_)
    points = points_of(columns, names, maximize)
    finder = PaneSkyline(len(names))
    if len(points) <= 2 * _CHUNK or len(names) < 3:
        return finder.keep(points, np.array([0, len(points)], np.int64))
    # Chunk by chunk, as if they were the panes of one long window: a kept set is sorted in space, a pane is not.
    kept = KeptSet(len(names))
    for number, start in enumerate(range(0, len(points), _CHUNK)):
        chunk = points[start:start + _CHUNK]
        rows = np.flatnonzero(finder.keep(chunk, np.array([0, len(chunk)], np.int64)))
        kept.push(number, chunk[rows], start + rows)
    keep = np.zeros(len(points), np.bool_)
    keep[kept.members(0)[0]] = True
    return keep

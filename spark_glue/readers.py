"""Read one split of the input with Arrow, inside a Spark task.

Why not through Spark's own readers: no row passes through the Java process then, types come out as they are
stored (nanoseconds, unsigned integers, decimals), and rows keep their numbers. Measured on 2 cores with 2
million offers of 7 columns in 4 files, sorted and ready to be mapped by the runtime (a warm session):

                                              Parquet    CSV
    spark.read, orderBy, toArrow                2.3 s    5.0 s
    spark.read, range sort, mapInArrow          1.8 s
    spark.read, mapInArrow sorts and writes     1.2 s    3.9 s
    Arrow in the task sorts and writes          0.4 s    0.4 s      <- this
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from runtime.errors import BadInputError
from spark_glue.check import WiderNeeded
from spark_glue.files import CSV, PARQUET, InputFile
from spark_glue.schemas import Column, csv_options, one_line, plain, type_for, type_of, widened

#: A task holds and sorts about this many rows at a time; each portion becomes one segment.
PORTION_ROWS = 1 << 19
_BLOCK_BYTES = 8 << 20
_CSV_ERROR = re.compile(r"In CSV column #(\d+): Row #\d+: CSV conversion error to .*: invalid value '(.*)'", re.S)


@dataclass(frozen=True)
class Split:
    """A part of a file for one task: some row groups of a Parquet file, or a whole text file."""

    file: InputFile
    first_row: int = 0
    row_groups: tuple[int, ...] = ()


def read_split(split: Split, columns: Sequence[Column], must_hold: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of `split` in portions, each with its first row's number; `as_text` columns come as text.

    `must_hold` are the columns whose type stays whatever is in them (the query reads them).
    """
    reader = {PARQUET: _parquet, CSV: _csv}.get(split.file.kind, _json)
    row = split.first_row
    try:
        for portion in portions(reader(split, {column.name: column for column in columns}, must_hold)):
            yield row, _completed(portion, columns)
            row += portion.num_rows
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"`input` file `{split.file.shown}` must be readable as {split.file.kind}, got an error: "
                            f"{one_line(error)}: check that the file is complete and of that format") from None


def portions(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The rows of `tables` in portions of about `PORTION_ROWS`."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(part.num_rows for part in waiting) >= PORTION_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _completed(table: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """All columns in their order and type; a field that a JSON file leaves out is null."""
    arrays = {}
    for column in columns:
        kind = pa.string() if column.as_text else column.type
        if column.name in table.column_names:
            array = table.column(column.name)
            arrays[column.name] = array if array.type == kind else array.cast(kind)
        else:
            arrays[column.name] = pa.chunked_array([pa.nulls(table.num_rows, kind)])
    return pa.table(arrays)


def _parquet(split: Split, columns: Mapping[str, Column], must_hold: Sequence[str]) -> Iterator[pa.Table]:
    with pq.ParquetFile(split.file.path, page_checksum_verification=True) as file:
        for group in split.row_groups:
            table = file.read_row_group(group, use_threads=False)
            for place, field in enumerate(table.schema):
                if plain(field.type) != field.type:
                    table = table.set_column(place, field.name, table.column(place).cast(plain(field.type)))
            yield table.replace_schema_metadata(None)


def _csv(split: Split, columns: Mapping[str, Column], must_hold: Sequence[str]) -> Iterator[pa.Table]:
    types = {column.name: pa.string() if column.as_text else column.type for column in columns.values()}
    names: list[str] = []
    try:
        with pa.input_stream(split.file.path, compression="detect") as stream:
            reader = pa.csv.open_csv(stream, convert_options=csv_options(types), read_options=pa.csv.ReadOptions(
                use_threads=False, block_size=_BLOCK_BYTES))
            names = reader.schema.names
            for batch in reader:
                yield pa.Table.from_batches([batch])
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            return
        found = _CSV_ERROR.search(str(error))
        if found is None:
            raise
        name = (names or _csv_header(split.file))[int(found[1])]
        raise WiderNeeded(widened(columns[name], found[2], name in must_hold)) from None


def _csv_header(file: InputFile) -> list[str]:
    with pa.input_stream(file.path, compression="detect") as stream:
        options = pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES)
        reader = pa.csv.open_csv(stream, read_options=options, convert_options=pa.csv.ConvertOptions(
            auto_dict_encode=False, null_values=[]), parse_options=pa.csv.ParseOptions(
                invalid_row_handler=lambda row: "skip"))
        names: list[str] = reader.schema.names
        return names


def _json(split: Split, columns: Mapping[str, Column], must_hold: Sequence[str]) -> Iterator[pa.Table]:
    """JSON lines: Arrow's reader, and line by line in Python where it meets a value of another kind."""
    schema = pa.schema([(column.name, pa.string() if column.as_text else column.type) for column in columns.values()])
    if not any(column.as_text for column in columns.values()):
        try:
            yield from list(_json_fast(split, schema))
            return
        except pa.ArrowInvalid as error:
            if "Empty JSON" in str(error):
                return
    yield from _json_slowly(split, columns, must_hold)


def _json_fast(split: Split, schema: pa.Schema) -> Iterator[pa.Table]:
    parse = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    with pa.input_stream(split.file.path, compression="detect") as stream:
        for batch in pa.json.open_json(stream, parse_options=parse, read_options=pa.json.ReadOptions(
                use_threads=False, block_size=_BLOCK_BYTES)):
            yield pa.Table.from_batches([batch])


def _json_slowly(split: Split, columns: Mapping[str, Column], must_hold: Sequence[str]) -> Iterator[pa.Table]:
    with pa.input_stream(split.file.path, compression="detect") as stream:
        lines = stream.read().decode().splitlines()
    rows: list[dict[str, object]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise BadInputError(f"`input` file `{split.file.shown}` must hold one JSON object per line, got "
                                f"line {number}: {error}: mend the file") from None
        if not isinstance(row, dict):
            raise BadInputError(f"`input` file `{split.file.shown}` must hold one JSON object per line, got "
                                f"{line[:40]!r} in line {number}: write one object per line")
        rows.append(row)
    for row in rows:
        for name in row.keys() - columns.keys():
            raise WiderNeeded(Column(name, type_of([row.get(name) for row in rows])))
    yield pa.table({column.name: _json_column([row.get(column.name) for row in rows], column,
                                              column.name in must_hold) for column in columns.values()})


def _json_column(values: list[object], column: Column, must_hold: bool) -> pa.Array:
    if column.as_text or pa.types.is_string(column.type):
        return pa.array([None if value is None else value if isinstance(value, str) else json.dumps(value)
                         for value in values], pa.string())
    try:
        return pa.array(values, column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        texts = [value if isinstance(value, str) else json.dumps(value) for value in values if value is not None]
        better = type_for(column.type, texts)
        if better != column.type:
            raise WiderNeeded(Column(column.name, better)) from None
        raise WiderNeeded(Column(column.name, column.type if must_hold else pa.string(), must_hold)) from None

"""The columns of the input files and their types, before anything is started.

Parquet says so in its footer. CSV and JSON lines are judged by their first block; a later value that does
not fit makes the reading task ask for a wider type (`widened`), and the files are read again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from runtime.errors import BadInputError
from spark_glue.files import CSV, PARQUET, InputFile

_HEAD_BYTES = 1 << 18
_UNITS = ("s", "ms", "us", "ns")
#: Whole numbers that int64 holds (a few more would fit).
WHOLE = r"[+-]?([0-9]{1,18}|[0-8][0-9]{18}|9[01][0-9]{17})"
_WHOLE = re.compile(WHOLE)
#: Digits behind a leading zero, or more of them than a 64-bit integer has.
_CODE = r"^[+-]?(0[0-9]+|[1-9][0-9]{19,})$"
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,](?P<fraction>[0-9]+))?)?"
                     r"(?P<zone>Z|[+-][0-9]{2}:?([0-9]{2})?)?")


@dataclass(frozen=True)
class Column:
    """A column as it will come out; `as_text`: read it as text, because some of its values are no `type`."""

    name: str
    type: pa.DataType
    as_text: bool = False


@dataclass(frozen=True)
class Head:
    """What is known of a file before it is read: its columns, and for Parquet the rows of each row group.

    `codes` are the columns of a CSV file whose values look like numbers but are more than that, such as 007.
    """

    file: InputFile
    types: Mapping[str, pa.DataType]
    row_groups: tuple[int, ...] = ()
    codes: frozenset[str] = frozenset()


def head_of(file: InputFile) -> Head:
    """The columns of `file`; BadInputError if it cannot be read as what its name says."""
    try:
        if file.kind == PARQUET:
            return _parquet_head(file)
        if file.kind == CSV:
            types = _csv_types(file)
            return Head(file, types, codes=_csv_codes(file, types))
        return Head(file, _json_types(file))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, json.JSONDecodeError) as error:
        if "Empty" in str(error) and file.kind != PARQUET:
            return Head(file, {})  # nothing in it, not even a header: no items
        raise BadInputError(f"`input` file `{file.shown}` must be readable as {file.kind}, got an error: "
                            f"{one_line(error)}: check that the file is complete and of that format") from None


def _parquet_head(file: InputFile) -> Head:
    with pq.ParquetFile(file.path) as opened:
        groups = tuple(opened.metadata.row_group(number).num_rows for number in range(opened.num_row_groups))
        return Head(file, _types(opened.schema_arrow, file), groups)


def _csv_types(file: InputFile) -> dict[str, pa.DataType]:
    with pa.input_stream(file.path, compression="detect") as stream:
        reader = pa.csv.open_csv(stream, read_options=pa.csv.ReadOptions(use_threads=False, block_size=_HEAD_BYTES),
                                 convert_options=csv_options({}))
        return {name: _in_microseconds(kind) for name, kind in _types(reader.schema, file).items()}


def _csv_codes(file: InputFile, types: Mapping[str, pa.DataType]) -> frozenset[str]:
    """The columns of numbers of which a number would not tell what stands in the file: 007, or too many digits."""
    names = [name for name, kind in types.items() if is_number(kind)]
    if not names:
        return frozenset()
    options = csv_options(dict.fromkeys(names, pa.string()))
    options.include_columns = names
    with pa.input_stream(file.path, compression="detect") as stream:
        texts = next(pa.csv.open_csv(stream, convert_options=options, read_options=pa.csv.ReadOptions(
            use_threads=False, block_size=_HEAD_BYTES)), None)
    return frozenset(name for name in names if texts is not None
                     and pc.any(pc.match_substring_regex(texts.column(name), _CODE)).as_py())


def _json_types(file: InputFile) -> dict[str, pa.DataType]:
    options = pa.json.ReadOptions(use_threads=False, block_size=_HEAD_BYTES)
    try:
        with pa.input_stream(file.path, compression="detect") as stream:
            types = _types(pa.json.open_json(stream, read_options=options).schema, file)
    except pa.ArrowInvalid as error:
        if "changed from" not in str(error):
            raise
        types = _mixed_json_types(file)
    # JSON has no timestamps: text stays text, unless it is the time column (see `plan_columns`).
    return {name: pa.string() if pa.types.is_timestamp(kind) else kind for name, kind in types.items()}


def _mixed_json_types(file: InputFile) -> dict[str, pa.DataType]:
    """The types of the first lines of a file in which a field has values of two kinds: text for such a field."""
    with pa.input_stream(file.path, compression="detect") as stream:
        lines = stream.read(_HEAD_BYTES).decode(errors="replace").splitlines()
    # The last line may have been cut in two; the reading tasks judge the others.
    rows = [json.loads(line) for line in (lines[:-1] if len(lines) > 1 else lines) if line.strip()]
    fields = dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row)
    return {name: type_of([row.get(name) for row in rows if isinstance(row, dict)]) for name in fields}


def type_of(values: Sequence[object]) -> pa.DataType:
    """The type of Python values; text if they are of several kinds."""
    try:
        return pa.array(values).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.string()


def csv_options(types: Mapping[str, pa.DataType]) -> pa.csv.ConvertOptions:
    """An empty field is null, everything else is what it says ("NA" may be a country)."""
    return pa.csv.ConvertOptions(column_types=dict(types), null_values=[""], strings_can_be_null=True,
                                 quoted_strings_can_be_null=False)


def _types(schema: pa.Schema, file: InputFile) -> dict[str, pa.DataType]:
    twice = [name for name in schema.names if schema.names.count(name) > 1]
    if twice:
        raise BadInputError(f"`input` file `{file.shown}` must name each column once, got `{twice[0]}` more than "
                            "once: rename one of them")
    return {field.name: plain(field.type) for field in schema}


def plain(kind: pa.DataType) -> pa.DataType:
    """`kind` without an encoding: dictionaries give way to their values."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    # Text has no unit of its own: microseconds, unless a value has more digits.
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


# -- one schema for all files ------------------------------------------------------------------------

def plan_columns(heads: Sequence[Head], time: str, numeric: Iterable[str]) -> tuple[Column, ...]:
    """One list of columns that all files fit; BadInputError that names two files if there is none.

    `numeric` columns come out as numbers whatever is in them: text there is a bad row, not a text column.
    """
    named = [head for head in heads if head.types]
    if not named:
        return ()
    _check_names(named)
    names = dict.fromkeys(name for head in named for name in head.types)
    return tuple(_plan_column(name, [head for head in named if name in head.types], name == time, name in set(numeric))
                 for name in names)


def _check_names(heads: Sequence[Head]) -> None:
    """All files have the same columns; only JSON lines may leave fields out, which are null then."""
    strict = [head for head in heads if head.file.kind in (PARQUET, CSV)]
    for head in strict[1:]:
        for one, other in ((strict[0], head), (head, strict[0])):
            missing = [name for name in one.types if name not in other.types]
            if missing:
                raise BadInputError(f"`input` files must have the same columns, got `{one.file.shown}` with column "
                                    f"`{missing[0]}` and `{other.file.shown}` without it: mend the files, or read "
                                    "them one by one")


def _plan_column(name: str, heads: Sequence[Head], is_time: bool, is_numeric: bool) -> Column:
    stored = [head for head in heads if head.file.kind == PARQUET]
    if stored:
        kind = stored[0].types[name]
        for head in stored[1:]:
            if head.types[name] != kind:
                raise BadInputError(f"column `{name}` must have one type in all files, got {kind} in "
                                    f"`{stored[0].file.shown}` and {head.types[name]} in `{head.file.shown}`: "
                                    "convert one of them")
        texts = [head.types[name] for head in heads if head.file.kind != PARQUET]
        return Column(name, kind, any(not _fits(text, kind) for text in texts))
    if not is_time and not is_numeric and any(name in head.codes for head in heads):
        return Column(name, pa.string())
    kind = pa.null()
    for head in heads:
        kind = common(kind, head.types[name])
    if is_numeric and not is_number(kind):
        # The values decide: int64 as long as all of those that are numbers are whole.
        return Column(name, pa.int64(), as_text=True)
    if is_time and pa.types.is_string(kind):
        return Column(name, pa.timestamp("us"), as_text=True)
    if pa.types.is_null(kind):
        kind = pa.int64() if is_time else pa.string()
    return Column(name, kind)


def _fits(text: pa.DataType, kind: pa.DataType) -> bool:
    return text == kind or pa.types.is_null(text) or pa.types.is_string(kind) or (is_number(text) and is_number(kind))


def is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The narrowest type of text files that holds the values of both."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if is_number(one) and is_number(other):
        return pa.float64()
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other) and one.tz == other.tz:
        return max(one, other, key=lambda kind: _UNITS.index(kind.unit))
    if pa.types.is_date(one) and pa.types.is_timestamp(other) and other.tz is None:
        return other
    if pa.types.is_date(other) and pa.types.is_timestamp(one) and one.tz is None:
        return one
    return pa.string()


def widened(column: Column, value: str, must_hold: bool) -> Column:
    """The next wider column after `value` did not fit; with `must_hold` its type stays, and bad values are found."""
    better = type_for(column.type, [value])
    if better != column.type:
        return replace(column, type=better)
    if must_hold:
        return replace(column, as_text=True)
    return replace(column, type=pa.string())


def type_for(kind: pa.DataType, values: Sequence[str]) -> pa.DataType:
    """`kind`, or the wider type of its family that `values` ask for; what is of another family is ignored."""
    if pa.types.is_timestamp(kind) and len(values) > 1 and not any(map(_MOMENT.fullmatch, values)):
        if any(map(_WHOLE.fullmatch, values)):
            return pa.int64()  # times were taken for text because of some of them: the others are plain numbers
    for value in values:
        if pa.types.is_integer(kind) and not _WHOLE.fullmatch(value) and _is_float(value):
            kind = pa.float64()
        elif (pa.types.is_date(kind) or pa.types.is_timestamp(kind)) and (found := _MOMENT.fullmatch(value)):
            unit = "ns" if len(found["fraction"] or "") > 6 or getattr(kind, "unit", "") == "ns" else "us"
            zone = "UTC" if found["zone"] else getattr(kind, "tz", None)
            kind = pa.timestamp(unit, zone)
    return kind


def _is_float(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def one_line(error: object) -> str:
    return " ".join(str(error).split()).rstrip(".")

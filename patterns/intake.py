"""The intake: where a source's rows become the runtime's items. The first emitter of every run.

Here, and only here, rows are checked, keys become codes, lateness is decided and arrival positions are
counted; so none of it can depend on how many workers come behind. What goes on is one batch of plain
columns and the progress it makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from patterns.admission import Admission
from patterns.coding import KeyCodes
from patterns.lines import Line
from patterns.query import AT, CODE, KEY, TS
from patterns.source import TimeColumn, nearest_floats
from runtime.errors import BadInputError, SpecError
from runtime.message import Batch, Message


#: Decimals of so many digits stay different, and in order, as float64.
EXACT_DIGITS = 15


@dataclass(frozen=True)
class IntakeSpec:
    """What the intake reads of each row and what it hands on: `rows` their numbers, `times` their event times."""

    time: TimeColumn
    key: str | None
    columns: tuple[str, ...]
    rows: bool
    times: bool
    on_bad_row: str = "fail"
    also_read: tuple[str, ...] = ()
    keys: bool = False

    def __post_init__(self) -> None:
        if self.on_bad_row not in ("fail", "drop"):
            raise SpecError(f"`on_bad_row` must be fail or drop, got {self.on_bad_row!r}")

    @property
    def read(self) -> tuple[str, ...]:
        """Every column that must be there, each once."""
        names = [self.time.name, *([self.key] if self.key else []), *self.columns, *self.also_read]
        return tuple(dict.fromkeys(names))


@dataclass
class Taken:
    """What came of one record batch: messages for the graph, the rows that were kept and where they lie."""

    messages: list[Message]
    kept: pa.RecordBatch
    codes: np.ndarray
    ordinates: np.ndarray


@dataclass
class Intake:
    """Turns record batches into messages; a plain state object."""

    spec: IntakeSpec
    admission: Admission
    line: Line
    coding: KeyCodes = field(default_factory=KeyCodes)
    items: int = 0
    late: int = 0
    bad: int = 0
    late_rows: list[pa.RecordBatch] = field(default_factory=list)
    bad_rows: list[pa.RecordBatch] = field(default_factory=list)
    _row: int = 0
    _seen: int = 0

    @property
    def keys(self) -> list[object]:
        """The key of every code."""
        return self.coding.keys

    def take(self, batch: pa.RecordBatch, stamp_ns: int) -> Taken:
        """Check, admit, code and lay out the rows of `batch`, which entered at `stamp_ns`."""
        batch = self._without_bad_rows(batch)
        times = self.spec.time.microseconds(batch.column(self.spec.time.name))
        self.items += batch.num_rows
        in_time = self.admission.admit(times)
        if in_time is not None:
            self.late += int(np.count_nonzero(~in_time))
            self.late_rows.append(batch.filter(pa.array(~in_time)))
            batch, times = batch.filter(pa.array(in_time)), times[in_time]
        codes = self._codes(batch)
        ordinates = self.line.lay(codes, times, batch)
        messages: list[Message] = []
        if batch.num_rows:
            columns = self._columns(batch, codes, ordinates, times)
            messages.append(Batch(columns, stamp_ns, self._row if self.spec.rows else -1))
        messages += self.line.behind(codes, ordinates, times, self._row, self.admission.watermark, stamp_ns)
        self._row += batch.num_rows
        return Taken(messages, batch, codes, ordinates)

    def _columns(self, batch: pa.RecordBatch, codes: np.ndarray, ordinates: np.ndarray,
                 times: np.ndarray) -> dict[str, np.ndarray]:
        columns: dict[str, np.ndarray] = {name: _numbers(batch.column(name)) for name in self.spec.columns}
        columns[AT] = ordinates
        if self.spec.key is not None:
            columns[CODE] = codes
        if self.spec.times:
            columns[TS] = times
        if self.spec.keys and self.spec.key is not None:
            columns[KEY] = self.coding.values(codes)
        return columns

    # -- rows -----------------------------------------------------------------------------------

    def _without_bad_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        first, self._seen = self._seen, self._seen + batch.num_rows
        bad = bad_rows(batch, self.spec)
        if bad is None:
            return batch
        if self.spec.on_bad_row == "fail":
            row = int(np.argmax(bad))
            raise BadInputError(describe_bad_row(batch, self.spec, row, first + row))
        self.bad += int(np.count_nonzero(bad))
        self.bad_rows.append(batch.filter(pa.array(bad)))
        return batch.filter(pa.array(~bad))

    def _codes(self, batch: pa.RecordBatch) -> np.ndarray:
        if self.spec.key is None:
            return np.zeros(batch.num_rows, np.int64)
        return self.coding.codes(batch.column(self.spec.key))


def bad_rows(batch: pa.RecordBatch, spec: IntakeSpec) -> np.ndarray | None:
    """Which rows hold a null, NaN or infinity in a column that is read; None if no row does."""
    bad: np.ndarray | None = None
    for name in spec.read:
        column = batch.column(name)
        if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
            column = column.dictionary_decode()
        wrong: np.ndarray | None = None
        if column.null_count:
            wrong = column.is_null().to_numpy(zero_copy_only=False)
        if pa.types.is_floating(column.type):
            present = column.fill_null(0.0) if column.null_count else column
            finite = np.isfinite(present.to_numpy(zero_copy_only=False))
            if not finite.all():
                wrong = ~finite if wrong is None else wrong | ~finite
        if wrong is not None:
            bad = wrong if bad is None else bad | wrong
    return bad


def check_rows(table: pa.Table, spec: IntakeSpec) -> None:
    """Raise BadInputError for the first bad row of `table`."""
    first = 0
    for batch in table.to_batches():
        bad = bad_rows(batch, spec)
        if bad is not None:
            row = int(np.argmax(bad))
            raise BadInputError(describe_bad_row(batch, spec, row, first + row))
        first += batch.num_rows


def describe_bad_row(batch: pa.RecordBatch, spec: IntakeSpec, row: int, number: int) -> str:
    """Which column of row `number` of the stream is bad, and what to do about it."""
    for name in spec.read:
        value = batch.column(name)[row].as_py()
        if value is None or (isinstance(value, float) and not np.isfinite(value)):
            shown = "null" if value is None else repr(value)
            return (f"column `{name}` must hold a value in every row, got {shown} in row {number + 1}: "
                    "mend the data, or use on_bad_row=\"drop\" (--on-bad-row drop) to leave such rows out")
    return f"row {number + 1} cannot be read"


def _numbers(column: pa.Array) -> np.ndarray:
    if pa.types.is_decimal(column.type):
        return nearest_floats(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.str_)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def check_columns(schema: Mapping[str, object], wanted: Sequence[str]) -> None:
    """Raise SpecError for the first of `wanted` that `schema` lacks."""
    import difflib
    for name in wanted:
        if name not in schema:
            close = difflib.get_close_matches(name, list(schema), 1)
            hint = f" (did you mean `{close[0]}`?)" if close else ""
            given = ", ".join(repr(column) if column != column.strip() else column for column in schema)
            raise SpecError(f"column `{name}` must be in the data, got {given or 'no columns'}{hint}")

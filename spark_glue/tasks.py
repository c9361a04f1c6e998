"""What a Spark task does with its split: read, check, order, write segments, and answer in a few numbers."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from runtime.errors import BadInputError
from spark_glue.check import BadRow, WiderNeeded, bad_rows, bad_values, converted, first_bad
from spark_glue.readers import Split, portions, read_split
from spark_glue.schemas import Column, Head
from spark_glue.segments import SegmentFile, write_segment


@dataclass(frozen=True)
class Inputs:
    """Files that were looked at but not read: their columns, and which of them must hold a value in every row."""

    heads: tuple[Head, ...]
    columns: tuple[Column, ...]
    time: str
    read: tuple[str, ...]
    on_bad_row: str = "fail"

    @property
    def schema(self) -> pa.Schema:
        """The columns as they will come out, as far as the files' heads can tell."""
        return pa.schema([(column.name, column.type) for column in self.columns])


@dataclass(frozen=True)
class Answer:
    """What a task says about its split."""

    split: int
    rows: int = 0
    bad: int = 0
    segments: tuple[SegmentFile, ...] = ()
    first_bad: BadRow | None = None
    wider: Column | None = None
    error: str = ""

    def to_text(self) -> str:
        return pickle.dumps(self).hex()

    @classmethod
    def from_text(cls, text: str) -> Answer:
        answer = pickle.loads(bytes.fromhex(text))
        assert isinstance(answer, cls)
        return answer


def split_task(splits: Sequence[Split], inputs: Inputs, folder: Path) -> Callable[[int], Answer]:
    columns, read, time, on_bad_row = inputs.columns, inputs.read, inputs.time, inputs.on_bad_row

    def task(number: int) -> Answer:
        split = splits[number]
        keeper = Keeper(number, split.file.shown, time, read, on_bad_row, folder)
        try:
            for first_row, texts in read_split(split, columns, read):
                table = with_types(texts, columns)
                if not keeper.take(first_row, table, texts):
                    break
        except WiderNeeded as needed:
            return Answer(number, wider=needed.column)
        except BadInputError as error:
            return Answer(number, error=str(error))
        return keeper.answer()

    return task


def partition_task(time: str, read: Sequence[str], on_bad_row: str, folder: Path,
                   ) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """As `split_task`, for the partitions of a DataFrame: rows come from Spark, portion by portion."""
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext
        number = TaskContext.get().partitionId()
        keeper = Keeper(number, f"partition {number}", time, read, on_bad_row, folder)
        row = 0
        for portion in portions(pa.Table.from_batches([batch]) for batch in batches):
            if not keeper.take(row, portion, portion):
                break
            row += portion.num_rows
        yield pa.RecordBatch.from_pydict({"answer": [keeper.answer().to_text()]})

    return task


def with_types(texts: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """`texts` with the columns that were read as text converted; a value that cannot be is null."""
    for place, column in enumerate(columns):
        if column.as_text:
            texts = texts.set_column(place, column.name, converted(texts.column(place), column))
    return texts


@dataclass
class Keeper:
    """Takes the portions of one split, leaves bad rows out, writes segments."""

    number: int
    shown: str
    time: str
    read: Sequence[str]
    on_bad_row: str
    folder: Path
    rows: int = 0
    bad: int = 0
    segments: list[SegmentFile] = field(default_factory=list)
    first_bad: BadRow | None = None

    def take(self, first_row: int, table: pa.Table, texts: pa.Table) -> bool:
        """Take one portion; `texts` are its values as they stand in the file. False: no more is needed."""
        self.rows += table.num_rows
        wrong = bad_rows(table, self.read)
        if wrong is not None:
            places = wrong.nonzero()[0]
            column, value = first_bad(table, texts, self.read, int(places[0]))
            self.first_bad = self.first_bad or BadRow(self.shown, first_row + int(places[0]) + 1, column, value)
            if self.on_bad_row == "fail":
                return False
            self.bad += len(places)
            self._write_bad(first_row, table, texts, places)
            table = table.filter(pa.array(~wrong))
        if table.num_rows:
            name = f"{self.number:06d}-{len(self.segments):04d}.arrow"
            self.segments.append(write_segment(table, self.time, self.folder, name))
        return True

    def _write_bad(self, first_row: int, table: pa.Table, texts: pa.Table, places: np.ndarray) -> None:
        chosen = pa.array(places)
        kept, shown = table.take(chosen), texts.take(chosen)
        out = pa.table({"bad_file": [self.shown] * len(places), "bad_row": places + first_row + 1,
                        "bad_column": _columns_at_fault(kept, self.read),
                        **{name: _as_text(shown.column(name)) for name in shown.column_names}})
        path = self.folder / f"{self.number:06d}-{first_row:012d}.bad"
        partial = path.with_name(f".{path.name}")
        with pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_file(sink, out.schema) as writer:
            writer.write_table(out)
        partial.replace(path)

    def answer(self) -> Answer:
        return Answer(self.number, self.rows, self.bad, tuple(self.segments), self.first_bad)


def _columns_at_fault(table: pa.Table, read: Sequence[str]) -> np.ndarray:
    """The first of the columns `read` that is bad, for every row."""
    names = np.full(table.num_rows, "", object)
    for name in reversed(read):
        wrong = bad_values(table.column(name))
        if wrong is not None:
            names[wrong] = name
    return names


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.chunked_array([pa.array([None if value is None else json.dumps(value, default=str)
                                           for value in column.to_pylist()], pa.string())])

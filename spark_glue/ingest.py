"""From files to an ordered source: read, check, order in Spark's tasks, hand over as Arrow.

    inputs = open_inputs(["offers/"], time="ts", numeric=["price", "distance"])      no Spark yet, in a moment
    source = ingest(start_session(), inputs, folder)                                 the Spark job
    Stream.of(source, time="ts", disorder="sort")...

What Spark has computed, any DataFrame, takes the same way out: `ordered_source(frame, "ts", folder)`.

A task reads its split with Arrow (see `readers` for why), takes bad rows out or reports the first one, sorts
and writes segments, and answers with a few numbers: no row passes through the Java process.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from runtime.errors import BadInputError, SpecError
from spark_glue.files import PARQUET, find_files
from spark_glue.handoff import OrderedSource
from spark_glue.readers import PORTION_ROWS, Split
from spark_glue.schemas import Column, Head, head_of, plan_columns
from spark_glue.tasks import Answer, Inputs, partition_task, split_task

_ANSWER = "answer string"


def open_inputs(paths: Iterable[str | Path], time: str, *, key: str | None = None, numeric: Sequence[str] = (),
                on_bad_row: str = "fail") -> Inputs:
    """Look at the files: they exist, can be read, agree on their columns. Starts nothing.

    `numeric` are the columns that the query reads as numbers. Whether the columns that are asked for are
    there is for the caller to say (`Inputs.schema`).
    """
    if on_bad_row not in ("fail", "drop"):
        raise SpecError(f"`on_bad_row` must be fail or drop, got {on_bad_row!r}")
    heads = tuple(head_of(file) for file in find_files(paths))
    columns = plan_columns(heads, time, numeric)
    if not columns:  # nothing in any file: no items, of columns that nobody has named
        columns = tuple(Column(name, kind) for name, kind in _assumed(time, key, numeric).items())
    read = tuple(dict.fromkeys([time, *([key] if key else []), *numeric]))
    return Inputs(heads, columns, time, read, on_bad_row)


def _assumed(time: str, key: str | None, numeric: Sequence[str]) -> dict[str, pa.DataType]:
    return {time: pa.timestamp("us"), **({key: pa.string()} if key else {}),
            **{name: pa.float64() for name in numeric}}


def splits_of(heads: Sequence[Head]) -> list[Split]:
    """One split per text file; of a Parquet file, row groups that are about a portion together."""
    splits: list[Split] = []
    for head in heads:
        if head.file.kind != PARQUET:
            splits.append(Split(head.file))
            continue
        first, groups, size = 0, list[int](), 0
        for number, rows in enumerate(head.row_groups):
            if groups and size + rows > PORTION_ROWS:
                splits.append(Split(head.file, first, tuple(groups)))
                first, groups, size = first + size, [], 0
            groups.append(number)
            size += rows
        if size:
            splits.append(Split(head.file, first, tuple(groups)))
    return splits


# -- the Spark job -----------------------------------------------------------------------------------

def ingest(spark: Any, inputs: Inputs, folder: Path) -> OrderedSource:
    """Read, check and order the files of `inputs`; the segments are written to `folder`."""
    splits = splits_of(inputs.heads)
    folder.mkdir(parents=True, exist_ok=True)
    _check_room(splits, folder)
    for number in itertools.count():
        target = folder / f"pass-{number}"  # a new one each time: nothing of an earlier pass is taken for this one's
        target.mkdir()
        answers = run_tasks(spark, len(splits), split_task(tuple(splits), inputs, target))
        wider = [answer.wider for answer in answers if answer.wider is not None]
        if not wider:
            break
        inputs = replace(inputs, columns=_widened(inputs.columns, wider))
        shutil.rmtree(target)
    return source_of(answers, inputs.schema, inputs.time, target, inputs.on_bad_row)


def ordered_source(frame: Any, time: str, folder: Path, *, key: str | None = None, numeric: Sequence[str] = (),
                   on_bad_row: str = "fail") -> OrderedSource:
    """The rows of a Spark DataFrame by time, through segments in `folder`: rows of equal time by partition, then row.

    Unlike `DataFrame.toArrow`, which a stream uses otherwise, all partitions sort and write side by side and
    the driver holds none of it in memory.
    """
    read = tuple(dict.fromkeys([time, *([key] if key else []), *numeric]))
    schema = frame.limit(0).toArrow().schema
    folder.mkdir(parents=True, exist_ok=True)
    found = frame.mapInArrow(partition_task(time, read, on_bad_row, folder), _ANSWER).collect()
    answers = sorted((Answer.from_text(row.answer) for row in found), key=lambda answer: answer.split)
    return source_of(answers, schema, time, folder, on_bad_row)


def run_tasks(spark: Any, tasks: int, task: Callable[[int], Answer]) -> list[Answer]:
    """The answers of `task(0) ... task(tasks - 1)`, each run by Spark, in order."""
    if not tasks:
        return []

    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = [task(number).to_text() for number in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_pydict({"answer": texts})

    found = spark.range(0, tasks, 1, tasks).mapInArrow(each, _ANSWER).collect()
    return sorted((Answer.from_text(row.answer) for row in found), key=lambda answer: answer.split)


def source_of(answers: Sequence[Answer], schema: pa.Schema, time: str, folder: Path, on_bad_row: str) -> OrderedSource:
    """The source that the tasks' `answers` describe; raises what they found wrong, the first in file order."""
    for answer in answers:
        if answer.error:
            raise BadInputError(answer.error)
        if answer.first_bad is not None and on_bad_row == "fail":
            raise answer.first_bad.error()
    segments = tuple(segment for answer in answers for segment in answer.segments)
    return OrderedSource(schema, sum(segment.rows for segment in segments), sum(answer.bad for answer in answers),
                         folder, segments, time)


def _widened(columns: Sequence[Column], wider: Sequence[Column]) -> tuple[Column, ...]:
    changed = {column.name: column for column in wider}
    known = [column.name for column in columns]
    return (*(changed.get(column.name, column) for column in columns),
            *(column for name, column in changed.items() if name not in known))


def _check_room(splits: Sequence[Split], folder: Path) -> None:
    size = sum(Path(path).stat().st_size for path in {split.file.path for split in splits})
    free = shutil.disk_usage(folder).free
    if size > free:
        raise BadInputError(f"the input must fit `{folder}` while it is put in order, got {size >> 20} MB and "
                            f"{free >> 20} MB free: set TMPDIR to a folder with more room")

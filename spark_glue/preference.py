"""The skyline of a Spark DataFrame: of every partition first, then of what is left of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.types import NumericType

from patterns.queries.dominance import dimensions
from patterns.queries.static import skyline_of_batches
from runtime.errors import SpecError


def skyline(frame: Any, *dims: str, maximize: Iterable[str] = ()) -> Any:
    """The rows of a Spark DataFrame that no other row dominates: no worse in every dimension, better in one.

    Smaller is better, except in the dimensions of `maximize`, which need not be listed twice. Equal rows do
    not dominate each other. Lazy, like every transformation; the columns stay as they are, the order of the
    rows is Spark's. A null, NaN or infinity in a dimension stops the action that asks for the rows.

        best = spark_glue.skyline(offers, "price", "distance", maximize=["rating"])
    """
    every, wanted = dimensions(dims, maximize)
    _check(frame, every)

    def reduce(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return skyline_of_batches(batches, every, wanted)

    # Not `coalesce`, which would put the first step into the one task of the second.
    return frame.mapInArrow(reduce, frame.schema).repartition(1).mapInArrow(reduce, frame.schema)


def _check(frame: Any, dims: Iterable[str]) -> None:
    types = {field.name: field.dataType for field in frame.schema.fields}
    for name in dims:
        if name not in types:
            close = difflib.get_close_matches(name, list(types), 1)
            hint = f" (did you mean `{close[0]}`?)" if close else ""
            raise SpecError(f"`dims` must be columns of the DataFrame, got {name!r}{hint}: there are "
                            f"{', '.join(types)}")
        if not isinstance(types[name], NumericType):
            raise SpecError(f"`dims` must be numeric columns, got {name!r} of type {types[name].simpleString()}: "
                            "cast it")

"""Fields: what is kept of the items of a pane (or window) and key, and how it travels as columns.

Inside a state a field is a few 64-bit words in the matrices `ints` and `floats`; between nodes it is a
column of the partials under its own name, with the type of the data, so that the receiver can tell
sums of integers from sums of floats without having seen an item.

    field      column             shape    words
    count      count              n        ints 1
    sum        sum_<column>       n x 2    ints 2 (low, high: 128 bits) or floats 2 (value, rest)
    least      min_<column>       n        ints 1 or floats 1
    greatest   max_<column>       n        ints 1 or floats 1
    moments    moments_<column>   n x 5    floats 5 (shift, sum, rest, squares, rest)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from patterns.queries.kernels.two_stacks import ADD, GREATEST, LEAST, MOMENTS, PAIR, SKIP
from runtime.errors import StateError
from runtime.message import Columns

_SIGN = np.int64(-(2**63))
_PREFIX = {"sum": "sum", "least": "min", "greatest": "max", "moments": "moments"}
_WORDS = {"count": 1, "sum": 2, "least": 1, "greatest": 1, "moments": 5}
_OPS = {"count": ADD, "sum": PAIR, "least": LEAST, "greatest": GREATEST, "moments": MOMENTS}


@dataclass(frozen=True, slots=True)
class Field:
    """Something that is kept per pane and key: the number of items, or `kind` of an input column."""

    kind: str
    column: str = ""

    @property
    def name(self) -> str:
        return "count" if self.kind == "count" else f"{_PREFIX[self.kind]}_{self.column}"


COUNT = Field("count")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field lives: `words` words from `first` on in one of the matrices; `dtype` is its column's."""

    field: Field
    floating: bool
    first: int
    words: int
    dtype: np.dtype


class Layout:
    """The words of several fields, once the types of their columns are known.

    `dtypes` maps the name of every field but `count` to the type of its column.
    """

    def __init__(self, fields: Sequence[Field], dtypes: Mapping[str, np.dtype]) -> None:
        ops: tuple[list[int], list[int]] = [], []
        blank: tuple[list[int], list[float]] = [], []
        self.places: list[Place] = []
        for field in fields:
            dtype = np.dtype(np.int64) if field is COUNT else dtypes[field.name]
            floating = dtype.kind == "f" or field.kind == "moments"
            words = _WORDS[field.kind]
            self.places.append(Place(field, floating, len(ops[floating]), words, dtype))
            ops[floating].extend([_OPS[field.kind]] + [SKIP] * (words - 1))
            if floating:
                blank[1].extend(_blank_floats(field.kind))
            else:
                blank[0].extend(_blank_ints(field.kind))
        self.ops = np.array(ops[0], np.int8), np.array(ops[1], np.int8)
        self.blank_ints = np.array(blank[0], np.int64)
        self.blank_floats = np.array(blank[1], np.float64)

    def blank(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Words of `rows` cells without items."""
        return np.tile(self.blank_ints, (rows, 1)), np.tile(self.blank_floats, (rows, 1))

    def to_columns(self, ints: np.ndarray, floats: np.ndarray) -> dict[str, np.ndarray]:
        """The columns of partials whose words are `ints` and `floats`."""
        columns = {}
        for place in self.places:
            words = (floats if place.floating else ints)[:, place.first:place.first + place.words]
            columns[place.field.name] = decoded(words[:, 0], place.dtype) if place.words == 1 else words
        return columns

    def to_words(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        """The words of partials that came as columns."""
        rows = len(columns["count"])
        ints = np.empty((rows, len(self.blank_ints)), np.int64)
        floats = np.empty((rows, len(self.blank_floats)), np.float64)
        for place in self.places:
            column = columns[place.field.name]
            if place.words == 1:
                column = encoded(column)[:, None]
            (floats if place.floating else ints)[:, place.first:place.first + place.words] = column
        return ints, floats

    def check(self, dtypes: Mapping[str, np.dtype]) -> None:
        """Raise StateError if a column has changed its type since the layout was made."""
        for place in self.places:
            if place.field is not COUNT and dtypes[place.field.name] != place.dtype:
                raise StateError(f"column `{place.field.column}` changed its type within the stream from "
                                 f"{place.dtype} to {dtypes[place.field.name]}")


def encoded(column: np.ndarray) -> np.ndarray:
    """`column` as int64 or float64 in the same order: what kernels compare; uint64 is shifted to fit."""
    if column.dtype.kind == "f":
        return column.astype(np.float64, copy=False)
    if column.dtype == np.uint64:
        shifted: np.ndarray = column.view(np.int64) ^ _SIGN
        return shifted
    return column.astype(np.int64, copy=False)


def decoded(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The column of type `dtype` that `encoded` turned into `words`."""
    if dtype == np.uint64:
        return (words ^ _SIGN).view(np.uint64)
    return words.astype(dtype)


def _blank_ints(kind: str) -> list[int]:
    if kind in ("least", "greatest"):
        return [2**63 - 1 if kind == "least" else -(2**63)]
    return [0] * _WORDS[kind]


def _blank_floats(kind: str) -> list[float]:
    if kind in ("least", "greatest"):
        return [np.inf if kind == "least" else -np.inf]
    return [np.nan, 0.0, 0.0, 0.0, 0.0] if kind == "moments" else [0.0, 0.0]

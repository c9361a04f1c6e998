"""Fields: what is kept of the items of a pane (or window) and key, and how it travels as columns.

Inside a state a field is a few words in a matrix of int64, merged word by word: counts and sums are
added, the least and the greatest value compared (floats in an order of their bits). Sums are exact
(`kernels.exact`), so that no result depends on an order. Between nodes a field is a column of the partials
under its own name, and tells the receiver, who has not seen an item, of what type the data are:

    field      column             shape           words
    count      count              n               1
    sum        sum_<column>       n x 3           3, of integers (uint64 if the data are)
                                  n x (1 + 3...)  as many as the floats' range takes; the first entry is their place
    squares    squares_<column>   n x 5           5, of integers
                                  n x (1 + 5...)  of floats
    least      min_<column>       n               1; the data's own type
    greatest   max_<column>       n               1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from patterns.queries.kernels import exact
from patterns.queries.kernels.coding import frozen
from patterns.queries.kernels.two_stacks import ADD, GREATEST, LEAST
from runtime.errors import StateError
from runtime.message import Columns

_SIGN = np.int64(-(2**63))
_MAGNITUDE = np.int64(2**63 - 1)
_PREFIX = {"sum": "sum", "squares": "squares", "least": "min", "greatest": "max"}
_OPS = {"count": ADD, "sum": ADD, "squares": ADD, "least": LEAST, "greatest": GREATEST}
_BLANK = {"count": 0, "sum": 0, "squares": 0, "least": 2**63 - 1, "greatest": -(2**63)}
#: Words of a sum of integers, and of floats that are all within one word's range.
INT_WORDS = {"sum": 3, "squares": 5}
FLOAT_WORDS = {"sum": 3, "squares": 5}
#: Powers that are summed up.
POWER = {"sum": 1, "squares": 2}
#: Exponent of the lowest bit of a float64.
_LOWEST = -1074

#: First word and number of words.
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Field:
    """Something that is kept per pane and key: the number of items, or `kind` of an input column."""

    kind: str
    column: str = ""

    @property
    def name(self) -> str:
        return "count" if self.kind == "count" else f"{_PREFIX[self.kind]}_{self.column}"

    @property
    def summed(self) -> bool:
        return self.kind in POWER


COUNT = Field("count")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field lives: `words` words from `first` on; a sum's first word is word `low` of its number line."""

    field: Field
    dtype: np.dtype
    first: int
    words: int
    low: int = 0

    @property
    def floating(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def scale(self) -> int:
        """The exponent of word 0 of a sum's number line."""
        return _LOWEST * POWER[self.field.kind] if self.floating else 0

    def cut(self, ints: np.ndarray) -> np.ndarray:
        """The words of this field, as a matrix of their own."""
        return np.ascontiguousarray(ints[:, self.first:self.first + self.words])


class Layout:
    """The words of several fields, once the types of their columns are known.

    `dtypes` maps the name of every field but `count` to the type of its column, `ranges` those that are
    sums of floats to their words.
    """

    def __init__(self, fields: Sequence[Field], dtypes: Mapping[str, np.dtype], ranges: Mapping[str, Range]) -> None:
        self.ranges = dict(ranges)
        self.places: list[Place] = []
        first = 0
        for field in fields:
            dtype = np.dtype(np.int64) if field is COUNT else dtypes[field.name]
            low, words = 0, INT_WORDS.get(field.kind, 1)
            if field.summed and dtype.kind == "f":
                low, words = ranges[field.name]
            self.places.append(Place(field, dtype, first, words, low))
            first += words
        every = [place.field.kind for place in self.places for _ in range(place.words)]
        self.ops = np.array([_OPS[kind] for kind in every], np.int8)
        self.blank_ints = np.array([_BLANK[kind] for kind in every], np.int64)

    def blank(self, rows: int) -> np.ndarray:
        """Words of `rows` cells without items."""
        return np.tile(self.blank_ints, (rows, 1))

    def __getitem__(self, field: Field) -> Place:
        return next(place for place in self.places if place.field == field)

    def values(self, field: Field, ints: np.ndarray) -> np.ndarray:
        """The values of a field of one word, in the type of its column."""
        place = self[field]
        return decoded(place.cut(ints)[:, 0], place.dtype)

    # -- ranges of floats -----------------------------------------------------------------------------

    def wider(self, ranges: Mapping[str, Range]) -> Layout | None:
        """A layout that has room for `ranges` too; None if this one has."""
        joined = {name: join(mine, ranges.get(name)) for name, mine in self.ranges.items()}
        if joined == self.ranges:
            return None
        return Layout([place.field for place in self.places],
                      {place.field.name: place.dtype for place in self.places}, joined)

    def moved(self, ints: np.ndarray, old: Layout) -> np.ndarray:
        """The words that `ints` has in layout `old`, in this one, which is wider."""
        result = self.blank(len(ints))
        for place, before in zip(self.places, old.places, strict=True):
            at = place.first + before.low - place.low
            result[:, at:at + before.words] = ints[:, before.first:before.first + before.words]
        return result

    def carry(self, ints: np.ndarray) -> None:
        """Bring all sums to their normal form, so that they can take in more, and travel."""
        for place in self.places:
            if place.field.summed:
                exact.carry(ints, place.first, place.words)

    # -- partials ---------------------------------------------------------------------------------------

    def to_columns(self, ints: np.ndarray) -> dict[str, np.ndarray]:
        """The columns of partials whose words are `ints`, which are brought to their normal form."""
        self.carry(ints)
        columns = {}
        for place in self.places:
            words = place.cut(ints)
            if not place.field.summed:
                columns[place.field.name] = decoded(words[:, 0], place.dtype)
            elif place.floating:
                columns[place.field.name] = np.insert(words, 0, place.low, axis=1)
            else:
                columns[place.field.name] = words.view(np.uint64) if place.dtype == np.uint64 else words
        return columns

    def to_words(self, columns: Columns) -> np.ndarray:
        """The words of partials that came as columns, within the ranges of this layout."""
        ints = self.blank(len(columns["count"]))
        for place in self.places:
            column = columns[place.field.name]
            if not place.field.summed:
                ints[:, place.first] = encoded(column)
            elif place.floating:
                exact.place(frozen(column), ints, place.first, place.low)
            else:
                ints[:, place.first:place.first + place.words] = column.view(np.int64)
        return ints

    def check(self, dtypes: Mapping[str, np.dtype]) -> None:
        """Raise StateError if a column has changed its type since the layout was made."""
        for place in self.places:
            if place.field is not COUNT and dtypes[place.field.name] != place.dtype:
                raise StateError(f"column `{place.field.column}` changed its type within the stream from "
                                 f"{place.dtype} to {dtypes[place.field.name]}")


def join(one: Range, other: Range | None) -> Range:
    """The words of both ranges."""
    if other is None:
        return one
    low = min(one[0], other[0])
    return low, max(sum(one), sum(other)) - low


def range_of(field: Field, magnitudes: tuple[int, int]) -> Range | None:
    """The words that a sum of floats of these `exact.magnitudes` takes; None if they are all zero."""
    least, greatest = magnitudes
    if greatest < 0:
        return None
    low, high = (POWER[field.kind] * max((magnitude >> 52) - 1, 0) >> 5 for magnitude in (least, greatest))
    return low, high - low + FLOAT_WORDS[field.kind]


def range_of_one(field: Field) -> Range:
    """The words of values around 1: where to begin when nothing but zeros is known."""
    return POWER[field.kind] * (-_LOWEST - 52) >> 5, FLOAT_WORDS[field.kind]


def layout_of_partials(fields: Sequence[Field], partials: Columns, old: Layout | None) -> Layout:
    """`old`, or a layout with room for `partials` too."""
    dtypes, ranges = {}, {}
    for field in fields:
        column = partials[field.name]
        dtypes[field.name] = column.dtype
        if field.summed and column.shape[1] > INT_WORDS[field.kind]:
            dtypes[field.name] = np.dtype(np.float64)
            low = int(column[:, 0].min())
            ranges[field.name] = low, int(column[:, 0].max()) - low + column.shape[1] - 1
    return Layout(fields, dtypes, ranges) if old is None else old.wider(ranges) or old


def encoded(column: np.ndarray) -> np.ndarray:
    """`column` as int64 in the same order: what kernels compare."""
    if column.dtype.kind == "f":
        bits = column.astype(np.float64, copy=False).view(np.int64)
        ordered: np.ndarray = bits ^ ((bits >> 63) & _MAGNITUDE)
        return ordered
    if column.dtype == np.uint64:
        shifted: np.ndarray = column.view(np.int64) ^ _SIGN
        return shifted
    return column.astype(np.int64, copy=False)


def decoded(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The column of type `dtype` that `encoded` turned into `words`."""
    if dtype.kind == "f":
        return (words ^ ((words >> 63) & _MAGNITUDE)).view(np.float64).astype(dtype, copy=False)
    if dtype == np.uint64:
        return (words ^ _SIGN).view(np.uint64)
    return words.astype(dtype)


def summands(column: np.ndarray) -> np.ndarray:
    """`column` as kernels add it up: floats and uint64 by their bits, other integers as int64."""
    if column.dtype.kind == "f":
        column = column.astype(np.float64, copy=False)
    elif column.dtype != np.uint64:
        column = column.astype(np.int64, copy=False)
    return frozen(np.ascontiguousarray(column).view(np.int64))

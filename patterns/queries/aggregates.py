"""Built-in aggregates of every window: count, sum, min, max, mean, variance, quantiles.

    >>> Aggregates((Count(), Sum("price"))).outputs
    ('count', 'sum_price')

All of them are exact and reported after one rounding, so that a result depends on the items of its window
alone: not on their order, the degree of parallelism, the pattern or the executor.

    aggregate       result column          type       value
    Count()         count                  int64      number of items
    Sum("v")        sum_v                  int64, uint64 or float64   exact; floats rounded once; integers must fit
    Min, Max        min_v, max_v           that of v  exact
    Mean("v")       mean_v                 float64    exact sum divided by the count, rounded once
    Variance("v")   variance_v             float64    population variance, rounded once
    Quantile(...)   quantile_v_0_95        that of v  exact; float64 within a relative error if one is allowed
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from patterns.queries.aggregate_states import AggregatePanes, AggregateWindows
from patterns.queries.aggregate_warm import warm_up
from patterns.queries.fields import COUNT, Field, Layout
from patterns.queries.kernels import exact
from patterns.queries.multisets import Multiset
from runtime.errors import BadInputError, SpecError


class Aggregate:
    """A query that keeps a few numbers of every pane; also what `Aggregates` is made of."""

    column: str

    # -- what it is made of ---------------------------------------------------------------------

    @property
    def output(self) -> str:
        """The name of its result column."""
        return f"{type(self).__name__.lower()}_{self.column}"

    @property
    def fields(self) -> tuple[Field, ...]:
        """What is kept of the items, besides their number."""
        return ()

    @property
    def multiset(self) -> Multiset | None:
        """The values it is taken from, if all of them are needed."""
        return None

    def result(self, layout: Layout, ints: np.ndarray) -> np.ndarray:
        """One value for every row of what was kept."""
        raise NotImplementedError

    def ranks(self, counts: np.ndarray) -> np.ndarray:
        """Which value of a window, from 1 in order of size, it is; `counts` are the windows' items."""
        raise NotImplementedError

    # -- as a query of its own ------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        return Aggregates((self,)).columns

    @property
    def decomposable(self) -> bool:
        return True

    @property
    def selects(self) -> bool:
        return False

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)

    @property
    def of_nothing(self) -> Mapping[str, int]:
        """What is reported of a window without items; null if it is not here."""
        return {self.output: 0} if isinstance(self, Count | Sum) else {}

    def check(self, dtypes: Mapping[str, np.dtype]) -> None:
        Aggregates((self,)).check(dtypes)

    def pane_state(self) -> AggregatePanes:
        return Aggregates((self,)).pane_state()

    def window_state(self, panes_per_window: int, panes_per_slide: int, *,
                     final: bool = True, split: bool = False) -> AggregateWindows:
        return Aggregates((self,)).window_state(panes_per_window, panes_per_slide, final=final, split=split)


@dataclass(frozen=True)
class Count(Aggregate):
    """The number of items."""

    @property
    def output(self) -> str:
        return "count"

    def result(self, layout: Layout, ints: np.ndarray) -> np.ndarray:
        return ints[:, 0].copy()


@dataclass(frozen=True)
class _OfColumn(Aggregate):
    column: str

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SpecError(f"`column` of {type(self).__name__} must be the name of a column, got {self.column!r}")


class Sum(_OfColumn):
    """The sum: of integers an integer (which must fit 64 bits), of floats the nearest float64 to the exact sum."""

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Field("sum", self.column),)

    def result(self, layout: Layout, ints: np.ndarray) -> np.ndarray:
        place = layout[self.fields[0]]
        words = place.cut(ints)
        if place.floating:
            return exact.totals(words, 32 * place.low + place.scale)
        exact.carry(words, 0, place.words)
        low, middle, high = words.T
        bits: np.ndarray = low | (middle << 32)
        fits = high == 0 if place.dtype == np.uint64 else high == bits >> 63
        if not fits.all():
            raise BadInputError(f"a sum of integers must fit 64 bits, got a greater one of column `{self.column}`: "
                                "cast the column to a float")
        return bits.view(np.uint64) if place.dtype == np.uint64 else bits


class Min(_OfColumn):
    """The least value."""

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Field("least", self.column),)

    def result(self, layout: Layout, ints: np.ndarray) -> np.ndarray:
        return layout.values(self.fields[0], ints)


class Max(_OfColumn):
    """The greatest value."""

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Field("greatest", self.column),)

    def result(self, layout: Layout, ints: np.ndarray) -> np.ndarray:
        return layout.values(self.fields[0], ints)


class Mean(_OfColumn):
    """The arithmetic mean: the nearest float64 to the exact one."""

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Field("sum", self.column),)

    def result(self, layout: Layout, ints: np.ndarray) -> np.ndarray:
        place = layout[self.fields[0]]
        return exact.means(place.cut(ints), 32 * place.low + place.scale, _divisors(ints, self))


class Variance(_OfColumn):
    """The population variance, `sum((x - mean)**2) / n`: the nearest float64 to the exact one."""

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Field("sum", self.column), Field("squares", self.column))

    def result(self, layout: Layout, ints: np.ndarray) -> np.ndarray:
        sums, squares = (layout[field] for field in self.fields)
        return exact.variances(_divisors(ints, self), sums.cut(ints), sums.low, squares.cut(ints), squares.low,
                               squares.scale)


def _divisors(ints: np.ndarray, asked: Aggregate) -> np.ndarray:
    """The windows' numbers of items, which exact division takes up to 32 bits of."""
    if len(ints) and int(ints[:, 0].max()) >= 2**32:
        raise BadInputError(f"a window must hold less than 2**32 items for {asked!r}, got {int(ints[:, 0].max())}: "
                            "make windows shorter")
    return ints[:, 0].copy()


@dataclass(frozen=True)
class Quantile(_OfColumn):
    """The smallest value that at least the share `q` of the values do not exceed; `q` is read as a decimal.

    Exact, unless a relative `error` is allowed: then no value counts as further than that share of itself
    from what it is, a window keeps a few hundred numbers however many items it has, and the result is a
    float64. Either way it is the same at every degree of parallelism, which sketches that throw dice
    (KLL, REQ) or depend on the order of merges (t-digest) cannot promise.

    >>> Quantile("latency", 0.95).output
    'quantile_latency_0_95'
    """

    q: float = 0.5
    error: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, top in (("q", self.q, 1.0), ("error", self.error, 0.5)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= top:
                raise SpecError(f"`{name}` of Quantile must be a number from 0 to {top:g}, got {value!r}")

    @property
    def output(self) -> str:
        return f"quantile_{self.column}_{str(self.q).replace('.', '_')}"

    @property
    def multiset(self) -> Multiset:
        return Multiset(self.column, float(self.error))

    def ranks(self, counts: np.ndarray) -> np.ndarray:
        share = Fraction(str(self.q))
        upto, of = share.numerator, share.denominator
        return np.array([max(-(-count * upto // of), 1) for count in counts.tolist()], np.int64)


@dataclass(frozen=True)
class Aggregates:
    """Several aggregates of the same windows, in one pass."""

    parts: tuple[Aggregate, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise SpecError("a list of aggregates must hold at least one, got none: write [Count(), Sum(\"price\")]")
        for part in self.parts:
            if not isinstance(part, Aggregate):
                raise SpecError(f"several queries in one must be aggregates such as Count() or Sum(\"price\"), "
                                f"got {part!r}: ask it in a run of its own")
            if self.outputs.count(part.output) > 1:
                raise SpecError(f"each aggregate must be asked for once, got the column {part.output!r} of the results "
                                "more than once")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.column for part in self.parts if not isinstance(part, Count)))

    @property
    def decomposable(self) -> bool:
        return True

    @property
    def selects(self) -> bool:
        return False

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(part.output for part in self.parts)

    @property
    def of_nothing(self) -> Mapping[str, int]:
        return {name: value for part in self.parts for name, value in part.of_nothing.items()}

    @property
    def fields(self) -> tuple[Field, ...]:
        return COUNT, *dict.fromkeys(field for part in self.parts for field in part.fields)

    @property
    def multisets(self) -> tuple[Multiset, ...]:
        return tuple(dict.fromkeys(part.multiset for part in self.parts if part.multiset is not None))

    def check(self, dtypes: Mapping[str, np.dtype]) -> None:
        for part in self.parts:
            if isinstance(part, Count):
                continue
            if part.column not in dtypes:
                raise SpecError(f"column `{part.column}` must be in the data, got {', '.join(dtypes) or 'no columns'}")
            dtype = dtypes[part.column]
            if dtype.kind not in "iufb" or dtype.itemsize > 8:
                raise SpecError(f"column `{part.column}` of {part!r} must hold integers or floats of at most 64 bits, "
                                f"got {'text' if dtype.kind == 'U' else dtype}: cast the column, or count with Count()")

    def pane_state(self) -> AggregatePanes:
        warm_up()
        return AggregatePanes(self.fields, self.multisets)

    def window_state(self, panes_per_window: int, panes_per_slide: int, *,
                     final: bool = True, split: bool = False) -> AggregateWindows:
        warm_up()
        return AggregateWindows(self.fields, self.multisets, panes_per_window, panes_per_slide,
                                self.parts if final else None)

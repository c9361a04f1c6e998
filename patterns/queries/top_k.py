"""The k items of every window with the best score."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from patterns.queries.k_dominant import check_number
from patterns.queries.kernels.best import advance_best, first_of_groups
from patterns.queries.kernels.keys import points_of
from patterns.queries.rows import Waiting, limits_of, select
from patterns.queries.runs import bounds_of
from patterns.queries.dominance import check_numeric
from patterns.queries.warm import warm_best
from patterns.query import Frontier, empty_columns
from runtime.errors import SpecError, UserFunctionError
from runtime.message import Columns

Score = Callable[[Mapping[str, np.ndarray]], np.ndarray]

_NAMES = ("pane", "code", "row", "place")

#: An open pane is cut to its best items whenever this many have come on top of what was left.
_CUT_EVERY = 1 << 15


@dataclass(frozen=True, init=False, repr=False)
class TopK:
    """The `k` items of a window with the best score; ties go to the earlier arrival.

    The score is the sum of the columns in `weights`, each times its weight, added up in that order in
    float64; or `score`, a function from columns (a mapping of NumPy arrays) to one number per item, with
    the names of the `columns` that it reads. The greatest score is the best, unless `largest` is false.
    The column `rank` (1, 2, ...) tells the order.

    >>> TopK(10, weights={"rating": 2.0, "price": -0.1})
    TopK(10, weights={'rating': 2.0, 'price': -0.1})
    >>> TopK(3, "price", "area", score=lambda c: c["price"] / c["area"], largest=False).columns
    ('price', 'area')
    """

    k: int
    columns: tuple[str, ...]
    weights: tuple[float, ...] | None
    score: Score | None
    largest: bool

    def __init__(self, k: int, *columns: str, weights: Mapping[str, float] | None = None,
                 score: Score | None = None, largest: bool = True) -> None:
        check_number(k, "k", "TopK")
        if (weights is None) == (score is None):
            raise SpecError("TopK needs either `weights` or a `score`, got "
                            + ("neither" if weights is None else "both") + ": write weights={\"price\": -1.0}")
        if weights is not None:
            _check_weights(weights, columns)
            columns = tuple(weights)
        if not columns or len(set(columns)) < len(columns):
            raise SpecError(f"`columns` of TopK must name the columns that `score` reads, each once, got {columns}")
        values = tuple(float(weight) for weight in weights.values()) if weights is not None else None
        for name, value in (("k", int(k)), ("columns", columns), ("weights", values), ("score", score),
                            ("largest", bool(largest))):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        last = "" if self.largest else ", largest=False"
        if self.weights is not None:
            return f"TopK({self.k}, weights={dict(zip(self.columns, self.weights, strict=True))}{last})"
        named = ", ".join(repr(name) for name in self.columns)
        return f"TopK({self.k}, {named}, score={getattr(self.score, '__name__', self.score)}{last})"

    @property
    def decomposable(self) -> bool:
        return True

    @property
    def selects(self) -> bool:
        return True

    @property
    def outputs(self) -> tuple[str, ...]:
        return ("rank",)

    def check(self, dtypes: Mapping[str, np.dtype]) -> None:
        check_numeric(self.columns, dtypes)

    def scores(self, columns: Columns) -> np.ndarray:
        """The score of each item."""
        if self.weights is not None:
            total = np.zeros(len(columns[self.columns[0]]))
            for name, weight in zip(self.columns, self.weights, strict=True):
                total += weight * columns[name].astype(np.float64, copy=False)
            return total
        assert self.score is not None
        given = {name: columns[name] for name in self.columns}
        try:
            scores = np.asarray(self.score(given))
        except Exception as error:
            raise UserFunctionError(f"`score` of {self!r} raised {type(error).__name__}: {error}",
                                    traceback.format_exc()) from error
        if scores.shape != given[self.columns[0]].shape or scores.dtype.kind not in "iufb":
            raise UserFunctionError(f"`score` of TopK must give one number per item, got {scores.dtype} of shape "
                                    f"{scores.shape} for {len(given[self.columns[0]])} items")
        return scores.astype(np.float64) if scores.dtype.kind == "b" else scores

    def pane_state(self) -> BestPanes:
        return BestPanes(self)

    def window_state(self, panes_per_window: int, panes_per_slide: int, *,
                     final: bool = True, split: bool = False) -> BestWindows:
        return BestWindows(self.k, panes_per_window, panes_per_slide, final=final, split=split)


def _check_weights(weights: Mapping[str, float], columns: Iterable[str]) -> None:
    if not isinstance(weights, Mapping) or not weights or tuple(columns):
        raise SpecError(f"`weights` of TopK must map names of columns to numbers, and no other columns are named, "
                        f"got {weights!r} and {tuple(columns)}")
    for name, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float | np.number) or not np.isfinite(weight):
            raise SpecError(f"`weights` of TopK must be finite numbers, got {weight!r} for {name!r}")


def cut(items: Columns, k: int, by: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The k best of each group of equal `by`, grouped, best first."""
    order = np.lexsort((items["row"], items["place"], *(items[name] for name in reversed(by))))
    grouped = select(items, order)
    return select(grouped, first_of_groups(bounds_of(*(grouped[name] for name in by)), k))


class BestPanes:
    """First stage: the k best of every pane and key, as columns `pane`, `code`, `row` and `place`."""

    def __init__(self, query: TopK) -> None:
        warm_best()
        self._query = query
        self._items = dict(empty_columns(_NAMES))
        self._chunks: list[dict[str, np.ndarray]] = []
        self._came = 0

    def add(self, codes: np.ndarray, panes: np.ndarray, columns: Columns) -> None:
        scores = {"score": self._query.scores(columns)}
        places = points_of(scores, ("score",), ("score",) if self._query.largest else ())[:, 0]
        self._chunks.append({"pane": panes.copy(), "code": codes.copy(), "row": columns["row"].copy(),
                             "place": places})
        self._came += len(panes)
        if self._came > len(self._items["row"]) + _CUT_EVERY:
            self._cut()

    def close(self, before: Frontier) -> Columns:
        self._cut()
        ready = np.broadcast_to(self._items["pane"] < limits_of(before, self._items["code"]),
                                self._items["pane"].shape)
        closed, self._items = select(self._items, ready), select(self._items, ~ready)
        return closed

    def _cut(self) -> None:
        if self._chunks:
            parts = [self._items, *self._chunks]
            joined = {name: np.concatenate([part[name] for part in parts]) for name in _NAMES}
            self._items = cut(joined, self._query.k, ("pane", "code"))
            self._chunks, self._came = [], 0


class BestWindows:
    """Second stage: the items of each key that may still be among the k best of a window."""

    def __init__(self, k: int, length: int, slide: int, *, final: bool = True, split: bool = False) -> None:
        warm_best()
        self._k, self._length, self._slide = k, length, slide
        self._final, self._split = final, split
        self._items = dict(empty_columns((*_NAMES, "beaten")))  # by key, best first
        self._codes, self._next = np.empty(0, np.int64), np.empty(0, np.int64)
        self._waiting = Waiting()

    def advance(self, partials: Columns, before: Frontier) -> Columns:
        ready = self._waiting.ready(partials, before)
        new = {name: ready[name] for name in _NAMES}
        if self._split:
            new = cut(new, self._k, ("code", "pane"))
        new = {**new, "beaten": np.zeros(len(new["row"]), np.int64)}
        n_old = len(self._items["row"])
        items = {name: np.concatenate((self._items[name], new[name])) for name in new}
        is_new = np.arange(len(items["row"])) >= n_old
        if len(new["row"]):  # by key: what was there, best first; then pane by pane, best first
            order = np.argsort(items["code"], kind="stable")
            items, is_new = select(items, order), is_new[order]
        bounds = bounds_of(items["code"])
        codes = items["code"][bounds[:-1]]
        windows = np.zeros(len(codes), np.int64)
        windows[np.searchsorted(codes, self._codes)] = self._next
        old = np.add.reduceat(~is_new, bounds[:-1]).astype(np.int64) if len(codes) else np.empty(0, np.int64)
        stay, counts, fired, keys, chosen = advance_best(
            codes, bounds, old, windows, np.zeros(len(codes), np.int64) + limits_of(before, codes), items["place"],
            items["row"], items["pane"], items["beaten"], self._length, self._slide, self._k)
        results = self._results(fired, keys, select(items, chosen))
        self._items = select(items, stay)
        self._codes, self._next = codes[counts > 0], windows[counts > 0]
        return results

    @property
    def size_bytes(self) -> int:
        return sum(column.nbytes for column in self._items.values()) + 2 * self._next.nbytes

    def _results(self, fired: np.ndarray, keys: np.ndarray, items: Columns) -> Columns:
        order = np.lexsort((keys, fired))  # stable: best first within a window and key
        bounds = bounds_of(fired[order], keys[order])
        columns = {"window": fired[order], "code": keys[order], "row": items["row"][order]}
        if not self._final:
            return {**columns, "place": items["place"][order]}
        return {**columns, "rank": np.arange(1, len(order) + 1) - np.repeat(bounds[:-1], np.diff(bounds))}

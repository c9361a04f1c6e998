"""Windows without items, for those who want a row for them too (`emit_empty=True`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from patterns.window import Grid
from runtime.errors import BadInputError

#: More rows than this would be added by mistake: a gap of years, or the wrong unit of time.
_TOO_MANY = 50_000_000
_NEVER = 2**62


class Spans:
    """The first and the last window on a grid that holds an item, by key code."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._first, self._last = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def note(self, codes: np.ndarray, ordinates: np.ndarray) -> None:
        """Items at `ordinates` of keys `codes` have come."""
        first, last = self._grid.first_window(ordinates), self._grid.last_window(ordinates)
        held = first <= last
        if not held.any():
            return
        more = int(codes.max()) + 1 - len(self._first)
        if more > 0:
            self._first = np.append(self._first, np.full(more, _NEVER))
            self._last = np.append(self._last, np.full(more, -1))
        np.minimum.at(self._first, codes[held], first[held])
        np.maximum.at(self._last, codes[held], last[held])

    def windows(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes and ids of all windows from a key's first to its last."""
        sizes = np.maximum(self._last - self._first + 1, 0)
        count = int(sizes.sum())
        if count > _TOO_MANY:
            raise BadInputError(f"`emit_empty` would report {count:,} windows, more than {_TOO_MANY:,}: "
                                "check the unit of the times, or leave it out")
        starts = np.cumsum(sizes) - sizes
        return np.repeat(np.arange(len(sizes)), sizes), np.arange(count) - np.repeat(starts - self._first, sizes)


def missing_windows(every: tuple[np.ndarray, np.ndarray], codes: np.ndarray, windows: np.ndarray
                    ) -> tuple[np.ndarray, np.ndarray]:
    """Those of the windows `every`, given by codes and ids, that are not among `codes` and `windows`."""
    all_codes, all_windows = every
    span = int(max(all_windows.max(initial=0), windows.max(initial=0))) + 1
    missing = ~np.isin(all_codes * span + all_windows, codes * span + windows)
    return all_codes[missing], all_windows[missing]


def empty_rows(schema: pa.Schema, known: Mapping[str, pa.Array], fill: Mapping[str, object], count: int) -> pa.Table:
    """`count` rows of `schema`: the columns in `known`, else what the query says of nothing (`fill`), else null."""
    columns = []
    for field in schema:
        if field.name in known:
            columns.append(known[field.name].cast(field.type))
        else:
            columns.append(pa.repeat(pa.scalar(fill.get(field.name), field.type), count))
    return pa.table(columns, schema=schema)

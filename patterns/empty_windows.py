"""Windows without items, for those who want a row for them too (`emit_empty=True`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from patterns.lines import Extents
from patterns.window import DeltaWindow, Window
from runtime.errors import BadInputError

#: More rows than this would be added by mistake: a gap of years, or the wrong unit of time.
_TOO_MANY = 50_000_000


def missing_windows(window: Window, codes: np.ndarray, windows: np.ndarray, extents: Extents
                    ) -> tuple[np.ndarray, np.ndarray]:
    """Codes and ids of the windows that hold no item, given those that do.

    On a grid: those between a key's first and last window. Delta windows: all that were triggered.
    """
    if isinstance(window, DeltaWindow):
        all_codes, all_windows = extents.ends()
    else:
        present, place = np.unique(codes, return_inverse=True)
        first, last = np.full(len(present), 2**62), np.full(len(present), -1)
        np.minimum.at(first, place, windows)
        np.maximum.at(last, place, windows)
        count = int((last - first + 1).sum())
        if count > _TOO_MANY:
            raise BadInputError(f"`emit_empty` would report {count:,} windows, more than {_TOO_MANY:,}: "
                                "check the unit of the times, or leave it out")
        all_codes = np.repeat(present, last - first + 1)
        starts = np.cumsum(last - first + 1) - (last - first + 1)
        all_windows = np.arange(count) - np.repeat(starts - first, last - first + 1)
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

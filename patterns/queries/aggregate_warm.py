"""The kernels of the aggregates compiled (or read from the cache) before a stream starts, never while it runs."""

from __future__ import annotations

import logging
import time
from functools import cache

import numpy as np

from patterns.queries.cells import Closed, DenseCells, SparseCells
from patterns.queries.fields import COUNT, Field, Layout, range_of_one
from patterns.queries.kernels import aggregates as kernels
from patterns.queries.kernels import exact, order, split
from patterns.queries.kernels.coding import frozen
from patterns.queries.sliding import TwoStacks

_log = logging.getLogger(__name__)

#: From this time on it is worth a line in the log.
_NOTICEABLE_S = 1.0


@cache
def warm_up() -> None:
    """Have all kernels of the built-in aggregates ready in this process; states do this when they are made.

    Every kernel works on int64, whatever the data are, so that one call of each is enough.
    """
    begin = time.perf_counter()
    fields = (COUNT, Field("sum", "v"), Field("squares", "v"))
    layout = Layout(fields, {field.name: np.dtype(np.float64) for field in fields[1:]},
                    {field.name: range_of_one(field) for field in fields[1:]})
    nothing = frozen(np.empty(0, np.int64))
    dense, found = DenseCells(layout), np.empty(0, np.int64)
    dense.locate(0, nothing, nothing, (0, 1, 1, 1), found)
    SparseCells(layout, Closed(found, found, layout.blank(0))).locate(0, nothing, nothing, (0, 1, 1, 1), found)
    kernels.add_least(found, nothing, dense.ints, 0)
    kernels.add_greatest(found, nothing, dense.ints, 0)
    exact.add_floats(found, nothing, dense.ints, 1, 0)
    exact.add_ints(found, nothing, False, dense.ints, 1)
    exact.add_float_squares(found, nothing, dense.ints, 1, 0)
    exact.add_int_squares(found, nothing, False, dense.ints, 1)
    exact.magnitudes(nothing)
    floats, parts = nothing.view(np.float64), np.zeros((0, split.WIDTH))
    split.add_dense(0, nothing, nothing, (0, 1, 1, 1), dense.slots, dense.width, floats, 0.0, 0.0, True, parts)
    split.add(found, floats, 0.0, 0.0, True, parts)
    split.settle(parts, found, np.empty(0), dense.ints, 1, 3, 0)
    exact.carry(dense.ints, 1, 3)
    exact.place(frozen(np.empty((0, 4), np.int64)), dense.ints, 1, 0)
    words, counts = np.empty((0, 3), np.int64), np.empty(0, np.int64)
    exact.totals(words, 0)
    exact.means(words, 0, counts)
    exact.variances(counts, words, 0, words, 0, 0)
    TwoStacks(layout, 1, 1).advance(frozen(np.zeros(1, np.int64)), frozen(np.zeros(1, np.int64)), layout.blank(1), 1)
    rows, ranks = np.empty((0, 4), np.int64), np.empty((0, 1), np.int64)
    order.merge(rows, rows, counts, rows)
    order.selected(rows, counts, counts, counts, 1, ranks, ranks)
    spent = time.perf_counter() - begin
    if spent > _NOTICEABLE_S:
        _log.info("aggregates: kernels compiled in %.1f s", spent)

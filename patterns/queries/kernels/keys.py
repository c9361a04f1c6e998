"""Coordinates as int64 keys: one order for every numeric type, exact, smaller is better.

A float64 becomes the integer that sorts where it sorts (its bits, with the magnitude turned round below
zero), an int64 stays what it is, and a dimension to maximise is complemented. So all comparisons of the
kernels are comparisons of int64, 2**53 + 1 is not 2**53, and no type needs a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.errors import BadInputError
from runtime.message import Columns

_MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_SIGN = np.uint64(0x8000_0000_0000_0000)


def keys_of(column: np.ndarray, name: str) -> np.ndarray:
    """The int64 keys of one column, in the order of its values; NaN and infinities are refused."""
    kind = column.dtype.kind
    if kind == "i":
        return column.astype(np.int64)
    if kind == "u":
        return (column.astype(np.uint64) ^ _SIGN).view(np.int64)
    if kind != "f":
        raise BadInputError(f"column `{name}` must be numeric, got {column.dtype}: cast it first")
    values = column.astype(np.float64) + 0.0  # -0.0 and 0.0 are one value
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise BadInputError(f"column `{name}` must be finite, got {values[bad]} at item {bad} of the batch")
    bits = values.view(np.int64)
    return bits ^ ((bits >> np.int64(63)) & _MAGNITUDE)


def points_of(columns: Columns, dims: Sequence[str], maximize: Sequence[str]) -> np.ndarray:
    """One row of keys per item, `(items, dims)`, C-contiguous, all dimensions to be minimised."""
    points = np.empty((len(columns[dims[0]]), len(dims)), np.int64)
    for j, name in enumerate(dims):
        keys = keys_of(columns[name], name)
        points[:, j] = ~keys if name in maximize else keys
    return points

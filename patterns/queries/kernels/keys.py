"""Coordinates as int64 keys: one order for every numeric type, exact, smaller is better.

A float64 becomes the integer that sorts where it sorts (its bits, with the magnitude turned round below
zero), an int64 stays what it is, and a dimension to maximise is complemented. So all comparisons of the
kernels are comparisons of int64, 2**53 + 1 is not 2**53, and no type needs a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from runtime.errors import BadInputError
from runtime.message import Columns

_MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_SIGN = np.int64(-0x8000_0000_0000_0000)
_INFINITY = np.int64(0x7FF0_0000_0000_0000)


@njit(nogil=True, cache=True)
def _fill_from_bits(bits: np.ndarray, turned: int, points: np.ndarray, j: int) -> bool:
    """Write column `j` of `points` from the bits of floats; False if one is NaN or infinite."""
    finite = True
    for i in range(bits.shape[0]):
        key = bits[i]
        finite &= (key & _MAGNITUDE) < _INFINITY
        key = key if key != _SIGN else 0  # -0.0 and 0.0 are one value
        points[i, j] = key ^ ((key >> 63) & _MAGNITUDE) ^ turned
    return finite


@njit(nogil=True, cache=True)
def _fill_from_integers(values: np.ndarray, turned: int, points: np.ndarray, j: int) -> None:
    for i in range(values.shape[0]):
        points[i, j] = values[i] ^ turned


def fill_keys(column: np.ndarray, name: str, maximize: bool, points: np.ndarray, j: int) -> None:
    """Write the keys of `column` into column `j` of `points`; NaN and infinities are refused."""
    kind, turned = column.dtype.kind, -1 if maximize else 0
    if kind == "i":
        _fill_from_integers(np.ascontiguousarray(column, np.int64), turned, points, j)
    elif kind == "u":
        shifted = np.ascontiguousarray(column, np.uint64).view(np.int64) ^ _SIGN
        _fill_from_integers(shifted, turned, points, j)
    elif kind == "f":
        values = np.ascontiguousarray(column, np.float64)
        if not _fill_from_bits(values.view(np.int64), turned, points, j):
            bad = int(np.flatnonzero(~np.isfinite(values))[0])
            raise BadInputError(f"column `{name}` must be finite, got {values[bad]} at item {bad} of the batch")
    else:
        raise BadInputError(f"column `{name}` must be numeric, got {column.dtype}: cast it first")


def points_of(columns: Columns, dims: Sequence[str], maximize: Sequence[str]) -> np.ndarray:
    """One row of keys per item, `(items, dims)`, C-contiguous, all dimensions to be minimised."""
    points = np.empty((len(columns[dims[0]]), len(dims)), np.int64)
    for j, name in enumerate(dims):
        fill_keys(columns[name], name, name in maximize, points, j)
    return points

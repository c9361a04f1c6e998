"""Numbers of twice the precision of a float64, as a pair (value, rest) whose sum is the number.

With them the order in which partial sums are taken shows only beyond the 32nd digit or so of the
greatest intermediate value, and hence practically never in the float64 that is reported. References: Knuth, TAOCP
2, 4.2.2 (two_sum); Dekker 1971 (two_product); Ogita, Rump and Oishi 2005 (sums of n terms).
"""

from __future__ import annotations

import numpy as np
from numba import njit

_SPLIT = 134217729.0
_LOW_HALF = np.int64(0xFFFFFFFF)


@njit(nogil=True, cache=True, inline="always")
def two_sum(a: float, b: float) -> tuple:
    """The rounded sum and what the rounding lost."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@njit(nogil=True, cache=True)
def two_product(a: float, b: float) -> tuple:
    """The rounded product and what the rounding lost; |a|, |b| below 1e300."""
    product = a * b
    wide = _SPLIT * a
    a_high = wide - (wide - a)
    a_low = a - a_high
    wide = _SPLIT * b
    b_high = wide - (wide - b)
    b_low = b - b_high
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


@njit(nogil=True, cache=True)
def add_pairs(a: float, a_rest: float, b: float, b_rest: float) -> tuple:
    total, lost = two_sum(a, b)
    return two_sum(total, lost + (a_rest + b_rest))


@njit(nogil=True, cache=True)
def multiply_pairs(a: float, a_rest: float, b: float, b_rest: float) -> tuple:
    product, lost = two_product(a, b)
    return two_sum(product, lost + (a * b_rest + a_rest * b))


@njit(nogil=True, cache=True)
def split_int(value: int, unsigned: bool) -> tuple:
    """A 64-bit integer as a pair, exactly; `unsigned`: a uint64 read as int64."""
    upper = value >> 32
    if unsigned:
        upper &= _LOW_HALF
    return two_sum(upper * 4294967296.0, float(value & _LOW_HALF))


@njit(nogil=True, cache=True)
def variances(counts: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Population variances from rows (shift, sum, rest, squares, rest) of differences from the shift."""
    result = np.empty(counts.shape[0], np.float64)
    for i in range(counts.shape[0]):
        n = float(counts[i])
        total, rest = two_sum(moments[i, 1], moments[i, 2])
        square, lost = multiply_pairs(total, rest, total, rest)
        quotient = square / n
        product, error = two_product(quotient, n)
        tail = ((square - product) - error + lost) / n
        spread, left = add_pairs(moments[i, 3], moments[i, 4], -quotient, -tail)
        result[i] = max((spread + left) / n, 0.0)
        if np.isnan(spread + left):
            result[i] = np.nan
    return result

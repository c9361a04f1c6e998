"""Exact sums of numbers: words of 32 bits and their signs, added without ever rounding.

A number is a row of int64 words, word k counting for `2**(32*(low + k) + scale)`; words may be negative and
may grow beyond 32 bits, so that adding two numbers is adding their words, in any order, and taking one
away again is exact too. `carry` brings a row back to its one normal form: all words but the last within
[0, 2**32). A word has room for 2**29 additions before that.

    numbers               scale   words of one value
    floats                -1074   3, from word (exponent - 1) // 32 on: 53 bits, moved by less than 32
    squares of floats     -2148   5: 106 bits
    integers                  0   3 (the last one is the sign)
    squares of integers       0   4 and one for the sum

The float64 that is reported is rounded once, from the exact value, to nearest even: sums, means and
variances do not depend on the order of the items nor on how they were parted. Reference: Neal, "Fast exact
summation using small and large superaccumulators", 2015; the words here are as many as the data need.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_MASK = np.int64(0xFFFFFFFF)
_FRACTION = np.int64(2**52 - 1)
_MAGNITUDE = np.int64(2**63 - 1)
_HALF_WORD = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)
#: Zero words below a dividend: the quotient then has more than the 64 bits that rounding looks at.
_BELOW = 4


# -- adding values -----------------------------------------------------------------------------------

@njit(nogil=True, cache=True)
def magnitudes(bits: np.ndarray) -> tuple:
    """The least (zeros aside) and greatest magnitude among floats given by their bits; (-1, -1): only zeros."""
    least, greatest = np.uint64(2**64 - 1), np.int64(0)
    for i in range(bits.shape[0]):
        magnitude = bits[i] & _MAGNITUDE
        greatest = magnitude if magnitude > greatest else greatest
        least = min(least, np.uint64(magnitude) - _ONE)  # a zero wraps round to the greatest number
    if greatest == 0:
        return np.int64(-1), np.int64(-1)
    return np.int64(least + _ONE), greatest


@njit(nogil=True, cache=True)
def add_floats(cells: np.ndarray, bits: np.ndarray, words: np.ndarray, first: int, low: int) -> None:
    """Add floats, given by their bits, to the numbers in `words[cell, first:]`, whose words start at `low`."""
    for i in range(cells.shape[0]):
        row = cells[i]
        if row < 0:
            continue
        exponent = (bits[i] >> 52) & 2047
        normal = np.int64(exponent != 0)
        mantissa = (bits[i] & _FRACTION) | (normal << 52)
        place = exponent - normal
        at = first + max((place >> 5) - low, 0)  # below `low` there are only zeros
        shift = place & 31
        sign = bits[i] >> 63
        lower = (mantissa & _MASK) << shift
        upper = (mantissa >> 32) << shift
        words[row, at] += ((lower & _MASK) ^ sign) - sign
        words[row, at + 1] += (((lower >> 32) + (upper & _MASK)) ^ sign) - sign
        words[row, at + 2] += ((upper >> 32) ^ sign) - sign


@njit(nogil=True, cache=True)
def add_ints(cells: np.ndarray, values: np.ndarray, unsigned: bool, words: np.ndarray, first: int) -> None:
    """`unsigned`: the values are uint64 read as int64."""
    for i in range(cells.shape[0]):
        cell, value = cells[i], values[i]
        if cell >= 0:
            words[cell, first] += value & _MASK
            words[cell, first + 1] += (value >> 32) & _MASK
            if not unsigned:
                words[cell, first + 2] += value >> 63


@njit(nogil=True, cache=True)
def add_float_squares(cells: np.ndarray, bits: np.ndarray, words: np.ndarray, first: int, low: int) -> None:
    for i in range(cells.shape[0]):
        cell = cells[i]
        if cell < 0:
            continue
        exponent = (bits[i] >> 52) & 2047
        normal = np.int64(exponent != 0)
        mantissa = np.uint64((bits[i] & _FRACTION) | (normal << 52))
        place = 2 * (exponent - normal)
        at = first + max((place >> 5) - low, 0)
        shift = np.uint64(place & 31)
        lower, upper = mantissa & _LOW, mantissa >> _HALF_WORD
        square, cross, top = lower * lower, lower * upper, upper * upper
        rest = np.uint64(0)
        for k in range(4):
            if k == 0:
                rest = square
            elif k == 1:
                rest = (rest >> _HALF_WORD) + ((cross & _LOW) << _ONE)
            elif k == 2:
                rest = (rest >> _HALF_WORD) + ((cross >> _HALF_WORD) << _ONE) + (top & _LOW)
            else:
                rest = (rest >> _HALF_WORD) + (top >> _HALF_WORD)
            moved = (rest & _LOW) << shift
            words[cell, at + k] += np.int64(moved & _LOW)
            words[cell, at + k + 1] += np.int64(moved >> _HALF_WORD)


@njit(nogil=True, cache=True)
def add_int_squares(cells: np.ndarray, values: np.ndarray, unsigned: bool, words: np.ndarray, first: int) -> None:
    for i in range(cells.shape[0]):
        cell, value = cells[i], values[i]
        if cell < 0:
            continue
        magnitude = np.uint64(value if unsigned or value >= 0 else -value)  # -2**63 wraps to itself: 2**63
        lower, upper = magnitude & _LOW, magnitude >> _HALF_WORD
        square, cross, top = lower * lower, lower * upper, upper * upper
        words[cell, first] += np.int64(square & _LOW)
        words[cell, first + 1] += np.int64((square >> _HALF_WORD) + ((cross & _LOW) << _ONE))
        words[cell, first + 2] += np.int64(((cross >> _HALF_WORD) << _ONE) + (top & _LOW))
        words[cell, first + 3] += np.int64(top >> _HALF_WORD)


@njit(nogil=True, cache=True)
def carry(words: np.ndarray, first: int, size: int) -> None:
    """Bring the numbers in the columns `first ... first + size - 1` to their normal form, in place."""
    for row in range(words.shape[0]):
        for k in range(first, first + size - 1):
            words[row, k + 1] += words[row, k] >> 32
            words[row, k] &= _MASK


@njit(nogil=True, cache=True)
def place(travelling: np.ndarray, words: np.ndarray, first: int, low: int) -> None:
    """Write numbers that travelled as (low word, words ...) into `words[:, first:]`, whose words start at `low`."""
    for row in range(travelling.shape[0]):
        shift = first + travelling[row, 0] - low
        for k in range(1, travelling.shape[1]):
            if travelling[row, k] != 0:
                words[row, shift + k - 1] += travelling[row, k]


# -- results -------------------------------------------------------------------------------------------

@njit(nogil=True, cache=True)
def _absolute(words: np.ndarray, row: int, limbs: np.ndarray, at: int) -> bool:
    """Write the absolute value of row `row` to `limbs[at:]`, 32 bits each; True if the number is negative."""
    size = words.shape[1]
    rest = np.int64(0)
    for k in range(size):  # the sign is that of the top, once all carries have come there
        rest = (words[row, k] + rest) >> 32
    negative = bool(rest < 0)
    rest = np.int64(0)
    for k in range(size):
        rest += -words[row, k] if negative else words[row, k]
        limbs[at + k] = np.uint64(rest & _MASK)
        rest >>= 32
    limbs[at + size] = np.uint64(rest)
    return negative


@njit(nogil=True, cache=True)
def _divide(limbs: np.ndarray, divisor: int) -> bool:
    """Divide by `divisor` (below 2**32) in place, rounding down; True if something is left over."""
    rest, by = np.uint64(0), np.uint64(divisor)
    for k in range(limbs.shape[0] - 1, -1, -1):
        whole = (rest << _HALF_WORD) | limbs[k]
        limbs[k] = whole // by
        rest = whole - limbs[k] * by
    return bool(rest != 0)


@njit(nogil=True, cache=True)
def _rounded(limbs: np.ndarray, exponent: int, more: bool) -> float:
    """The float64 nearest to `limbs * 2**exponent`, ties to even; `more`: the number is a little greater."""
    top = limbs.shape[0] - 1
    while top >= 0 and limbs[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    length = np.uint64(0)
    while limbs[top] >> length:
        length += _ONE
    second = limbs[top - 1] if top >= 1 else np.uint64(0)
    third = limbs[top - 2] if top >= 2 else np.uint64(0)
    head = (limbs[top] << (np.uint64(64) - length)) | (second << (_HALF_WORD - length)) | (third >> length)
    more = more or (third & ((_ONE << length) - _ONE)) != 0
    for k in range(top - 2):
        more = more or limbs[k] != 0
    highest = 32 * top + np.int64(length) - 1 + exponent
    drop = 11 + max(-1022 - highest, 0)  # a number below the normal ones has fewer bits
    if drop > 64:
        return 0.0
    if drop == 64:
        kept, rest = np.uint64(0), head
    else:
        kept, rest = head >> np.uint64(drop), head & ((_ONE << np.uint64(drop)) - _ONE)
    half = _ONE << np.uint64(drop - 1)
    if rest > half or (rest == half and (more or (kept & _ONE) != 0)):
        kept += _ONE
    if highest > 1024:
        return np.inf
    return math.ldexp(np.float64(kept), int(highest - 63 + drop))


@njit(nogil=True, cache=True)
def totals(words: np.ndarray, exponent: int) -> np.ndarray:
    """The float64 nearest to each number; `exponent` is that of its first word."""
    result = np.empty(words.shape[0], np.float64)
    limbs = np.empty(words.shape[1] + 1, np.uint64)
    for row in range(words.shape[0]):
        negative = _absolute(words, row, limbs, 0)
        value = _rounded(limbs, exponent, False)
        result[row] = -value if negative else value
    return result


@njit(nogil=True, cache=True)
def means(words: np.ndarray, exponent: int, counts: np.ndarray) -> np.ndarray:
    """The float64 nearest to each number divided by its count (below 2**32)."""
    result = np.empty(words.shape[0], np.float64)
    limbs = np.empty(words.shape[1] + 1 + _BELOW, np.uint64)
    for row in range(words.shape[0]):
        limbs[:_BELOW] = 0
        negative = _absolute(words, row, limbs, _BELOW)
        left = _divide(limbs, counts[row])
        value = _rounded(limbs, exponent - 32 * _BELOW, left)
        result[row] = -value if negative else value
    return result


@njit(nogil=True, cache=True)
def _subtract_square(limbs: np.ndarray, at: int, root: np.ndarray) -> None:
    """Take `root * root` away from `limbs[at:]`, which is no less."""
    for i in range(root.shape[0]):
        if root[i] == 0:
            continue
        rest, borrow = np.uint64(0), np.uint64(0)
        for k in range(at + i, limbs.shape[0]):
            if k - at - i < root.shape[0]:
                rest += root[i] * root[k - at - i]
            part = (rest & _LOW) + borrow
            rest >>= _HALF_WORD
            borrow = np.uint64(limbs[k] < part)
            limbs[k] = (limbs[k] - part) & _LOW


@njit(nogil=True, cache=True)
def variances(counts: np.ndarray, sums: np.ndarray, sums_low: int, squares: np.ndarray, squares_low: int,
              scale: int) -> np.ndarray:
    """The float64 nearest to `(n * squares - sum**2) / n**2`, the population variance; counts below 2**32.

    `scale` is the exponent of word 0 of the squares, whether kept or not.
    """
    base = min(2 * sums_low, squares_low)
    size = max(2 * (sums_low + sums.shape[1] + 1), squares_low + squares.shape[1] + 1) - base + 1
    limbs = np.empty(_BELOW + size, np.uint64)
    root, times = np.empty(sums.shape[1] + 1, np.uint64), np.empty(squares.shape[1] + 1, np.uint64)
    result = np.empty(counts.shape[0], np.float64)
    for row in range(counts.shape[0]):
        limbs[:] = 0
        _absolute(squares, row, times, 0)
        rest, at = np.uint64(0), _BELOW + squares_low - base
        for k in range(times.shape[0]):
            rest += times[k] * np.uint64(counts[row])
            limbs[at + k] = rest & _LOW
            rest >>= _HALF_WORD
        limbs[at + times.shape[0]] = rest
        _absolute(sums, row, root, 0)
        _subtract_square(limbs, _BELOW + 2 * sums_low - base, root)
        left = _divide(limbs, counts[row])
        left = _divide(limbs, counts[row]) or left
        result[row] = _rounded(limbs, scale + 32 * (base - _BELOW), left)
    return result

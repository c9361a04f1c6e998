"""Exact sums of many floats at once: each is cut into two or three parts whose float64 sums never round.

Say all floats of a batch are multiples of 2**u and none reaches 2**e. Adding 1.5 * 2**(52 + q) to a float and
taking it away again rounds it to a multiple of 2**q, and what is left over is exact as well. A part between
2**q and 2**(q + 37) can be added up 2**16 times before its sum needs more than the 53 bits of a float64. So
cuts at q = e - 37 and, where the floats reach further down, at e - 75 leave nothing to round until `settle`
moves the sums, as integers, into the words of `kernels.exact`. That takes a third of the time of cutting every
float into words; floats of a range that three parts do not cover still go that way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patterns.queries.kernels.aggregates import NO_ROOM, enter

#: Parts are added up so many times before they are settled.
AT_ONCE = 1 << 16
#: Columns of the matrix of sums: three parts at the most, then the number of items.
WIDTH = 4
_COUNT = 3
_MASK = np.int64(0xFFFFFFFF)
#: Bits of the highest part, and of each other one.
_HIGHEST, _OTHERS = 37, 38
#: Exponents, as they stand in a float64, that leave room for the cuts above and below.
_LEAST_EXPONENT, _GREATEST_EXPONENT = 100, 1900
_BIAS, _LOWEST = 1022, -1074


class Cuts(NamedTuple):
    """How the floats of a batch are cut: what to add and take away, and where the lowest bit of each part is.

    `places` counts bits from the lowest of all floats, 2**-1074; `units` are the parts' lowest bits' inverses.
    """

    first: float
    second: float
    places: np.ndarray
    units: np.ndarray

    @property
    def in_two(self) -> bool:
        return len(self.places) == 2


def cuts_of(least: int, greatest: int) -> Cuts | None:
    """The cuts for floats whose magnitudes, by their bits, lie in this range; None if they do not fit.

    >>> one, two = (int(bits) for bits in np.array([1.0, 2.0]).view(np.int64))
    >>> cuts = cuts_of(one, two)
    >>> cuts.in_two, [int(place) - 1074 for place in cuts.places]
    (True, [-35, -52])
    """
    lowest, highest = least >> 52, greatest >> 52
    if greatest < 0 or lowest < _LEAST_EXPONENT or highest > _GREATEST_EXPONENT:
        return None
    end = highest - _BIAS
    bits = [end - _HIGHEST, lowest - 1 + _LOWEST]
    if bits[0] - bits[1] > _OTHERS:
        bits.insert(1, bits[0] - _OTHERS)
    if bits[-2] - bits[-1] > _OTHERS:
        return None
    first, second = (1.5 * 2.0**(52 + bit) for bit in bits[:2])
    return Cuts(first, second, np.array(bits) - _LOWEST, 2.0**-np.array(bits, np.float64))


@njit(nogil=True, cache=True, inline="always")
def _add_parts(sums: np.ndarray, cell: np.uint64, value: float, first: float, second: float, in_two: bool) -> None:
    upper = (value + first) - first
    rest = value - upper
    sums[cell, 0] += upper
    if in_two:
        sums[cell, 1] += rest
    else:
        middle = (rest + second) - second
        sums[cell, 1] += middle
        sums[cell, 2] += rest - middle


@njit(nogil=True, cache=True, error_model="numpy")
def add_dense(start: int, codes: np.ndarray, ordinates: np.ndarray, place: tuple, slots: np.ndarray, width: int,
              values: np.ndarray, first: float, second: float, in_two: bool, sums: np.ndarray) -> tuple:
    """`kernels.aggregates.locate_dense`, with the sum of a column, into rows of parts; for at most AT_ONCE items."""
    low, high, base, skipped = 1, 0, 0, 0
    for i in range(start, ordinates.shape[0]):
        at = ordinates[i]
        if at < low or at >= high:
            low, high, slot = enter(at, place, slots)
            if slot == NO_ROOM:
                return i, skipped
            base = slot * width
        if base < 0:
            skipped += 1
            continue
        code = codes[i]
        if code >= width:
            return i, skipped
        cell = np.uint64(base + code)  # unsigned: no look for a negative index
        _add_parts(sums, cell, values[i], first, second, in_two)
        sums[cell, _COUNT] += 1.0
    return ordinates.shape[0], skipped


@njit(nogil=True, cache=True)
def add(cells: np.ndarray, values: np.ndarray, first: float, second: float, in_two: bool, sums: np.ndarray) -> None:
    """`kernels.exact.add_floats` into rows of parts, for at most AT_ONCE items."""
    for i in range(cells.shape[0]):
        if cells[i] < 0:
            continue
        cell = np.uint64(cells[i])
        _add_parts(sums, cell, values[i], first, second, in_two)


@njit(nogil=True, cache=True)
def settle(sums: np.ndarray, places: np.ndarray, units: np.ndarray, ints: np.ndarray, first: int, words: int,
           low: int) -> None:
    """Move all parts, and the counts beside them, from `sums`, which is zero afterwards, to the numbers in `ints`.

    A number has `words` words from column `first` on, of which the lowest is word `low`; it is in its normal
    form afterwards if anything was added to it.
    """
    for row in range(sums.shape[0]):
        changed = False
        for part in range(places.shape[0]):
            if sums[row, part] != 0.0:
                whole = np.int64(sums[row, part] * units[part])
                at, shift = first + (places[part] >> 5) - low, places[part] & 31
                ints[row, at] += (whole << shift) & _MASK
                ints[row, at + 1] += whole >> (32 - shift)
                sums[row, part] = 0.0
                changed = True
        if changed:
            for k in range(first, first + words - 1):
                ints[row, k + 1] += ints[row, k] >> 32
                ints[row, k] &= _MASK
        if sums[row, _COUNT] != 0.0:
            ints[row, 0] += np.int64(sums[row, _COUNT])
            sums[row, _COUNT] = 0.0

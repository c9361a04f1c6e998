"""The exact sums behind sum, mean and variance: against fractions, over the whole range of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from patterns.queries.kernels import exact

FLOATS = st.lists(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.floats(-1e3, 1e3),
                            st.sampled_from([0.0, -0.0, 5e-324, 2.0**53 + 2, 1.7e308, -1.7e308])),
                  min_size=1, max_size=8)
NEAR = st.floats(-1e-9, 1e-9).map(lambda value: 100.0 + value)


def nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def variance(values: Sequence[Fraction]) -> Fraction:
    middle = sum(values, Fraction(0)) / len(values)
    return sum(((value - middle) ** 2 for value in values), Fraction(0)) / len(values)


def range_of(bits: np.ndarray, power: int) -> tuple[int, int]:
    least, greatest = exact.magnitudes(bits)
    low, high = (power * max((magnitude >> 52) - 1, 0) >> 5 for magnitude in (max(least, 0), max(greatest, 0)))
    return low, high - low + 1 + 2 * power


@settings(max_examples=400)
@given(values=st.one_of(FLOATS, st.lists(NEAR, min_size=1, max_size=8)), carry=st.booleans())
def test_floats_are_summed_exactly_and_rounded_once(values: list[float], carry: bool) -> None:
    bits, cells, counts = np.array(values).view(np.int64), np.zeros(len(values), np.int64), np.array([len(values)])
    (low, words), (low_squares, words_squares) = range_of(bits, 1), range_of(bits, 2)
    sums, squares = np.zeros((1, words), np.int64), np.zeros((1, words_squares), np.int64)
    exact.add_floats(cells, bits, sums, 0, low)
    exact.add_float_squares(cells, bits, squares, 0, low_squares)
    if carry:
        exact.carry(sums, 0, words)
        exact.carry(squares, 0, words_squares)
    fractions = [Fraction(value) for value in values]
    total = sum(fractions, Fraction(0))
    assert exact.totals(sums, 32 * low - 1074)[0] == nearest(total)
    assert exact.means(sums, 32 * low - 1074, counts)[0] == nearest(total / len(values))
    assert exact.variances(counts, sums, low, squares, low_squares, -2148)[0] == nearest(variance(fractions))


@settings(max_examples=200)
@given(values=st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**64 - 1)), min_size=1, max_size=8),
       signed=st.booleans())
def test_integers_are_summed_exactly(values: list[int], signed: bool) -> None:
    if signed:
        values = [value - 2**63 for value in values]
    array = np.array(values, np.int64 if signed else np.uint64).view(np.int64)
    cells, counts = np.zeros(len(values), np.int64), np.array([len(values)])
    sums, squares = np.zeros((1, 3), np.int64), np.zeros((1, 5), np.int64)
    exact.add_ints(cells, array, not signed, sums, 0)
    exact.add_int_squares(cells, array, not signed, squares, 0)
    exact.carry(sums, 0, 3)
    assert sum(int(word) << 32 * place for place, word in enumerate(sums[0])) == sum(values)
    fractions = [Fraction(value) for value in values]
    assert exact.means(sums, 0, counts)[0] == nearest(sum(fractions, Fraction(0)) / len(values))
    assert exact.variances(counts, sums, 0, squares, 0, 0)[0] == nearest(variance(fractions))

"""The exact sums behind sum, mean and variance: against fractions, over the whole range of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from patterns.queries.kernels import exact, split

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


#: A few floats within some orders of magnitude, each many times.
PILES = st.tuples(st.integers(-900, 800), st.integers(0, 62)).flatmap(lambda place: st.lists(
    st.tuples(st.floats(1.0, 2.0, exclude_max=True), st.integers(0, place[1]), st.booleans(),
              st.one_of(st.integers(1, 9), st.just(split.AT_ONCE // 4))).map(
        lambda one: (math.ldexp(-one[0] if one[2] else one[0], place[0] + one[1]), one[3])), min_size=1, max_size=4))


@settings(max_examples=300)
@given(piles=PILES, zeros=st.integers(0, 3))
def test_floats_in_parts_have_the_same_words_as_one_by_one(piles: list[tuple[float, int]], zeros: int) -> None:
    values = np.concatenate([np.repeat(value, times) for value, times in piles])
    values = np.random.default_rng(0).permutation(np.append(values, np.zeros(zeros)))[:split.AT_ONCE]
    bits, cells = values.view(np.int64), np.arange(len(values)) % 3 - 1  # the items of cell -1 are in no window
    low, words = range_of(bits, 1)
    expected, found = np.zeros((2, words), np.int64), np.zeros((2, words), np.int64)
    exact.add_floats(cells, bits, expected, 0, low)
    exact.carry(expected, 0, words)
    cuts = split.cuts_of(*exact.magnitudes(bits))
    exponents = np.frexp(values[values != 0])[1] if values.any() else np.zeros(1)
    assert (cuts is None) == (not values.any() or np.ptp(exponents) > 60)
    if cuts is not None:
        parts = np.zeros((2, split.WIDTH))
        split.add(cells, values, cuts.first, cuts.second, cuts.in_two, parts)
        split.settle(parts, cuts.places, cuts.units, found, 0, words, low)
        assert not parts.any()
        assert (found == expected).all()
        total = sum(map(Fraction, values[cells == 0]), Fraction(0))
        assert exact.totals(found, 32 * low - 1074)[0] == nearest(total)


def test_parts_at_the_ends_of_their_range_do_not_round() -> None:
    """As many of the greatest and of the least number as are added up at a time, all of one sign."""
    for exponent in (0, -700, 800):
        for below in (22, 60):
            pair = math.ldexp(2.0 - 2.0**-52, exponent), math.ldexp(1.0 + 2.0**-52, exponent - below)
            for value in pair:
                values = np.full(split.AT_ONCE, value)
                cuts = split.cuts_of(*exact.magnitudes(np.array(pair).view(np.int64)))
                assert cuts is not None and cuts.in_two == (below == 22)
                parts, low = np.zeros((1, split.WIDTH)), range_of(np.array(pair).view(np.int64), 1)
                found = np.zeros((1, low[1]), np.int64)
                split.add(np.zeros(len(values), np.int64), values, cuts.first, cuts.second, cuts.in_two, parts)
                split.settle(parts, cuts.places, cuts.units, found, 0, low[1], low[0])
                assert exact.totals(found, 32 * low[0] - 1074)[0] == nearest(Fraction(value) * len(values))

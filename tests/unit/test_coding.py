"""Keys to codes and back, and items to their owners."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patterns.coding import KeyCodes
from patterns.queries.kernels.coding import by_owner, frozen

KINDS: dict[str, tuple[Any, pa.DataType]] = {
    "int64": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "uint64": (st.integers(0, 2**64 - 1), pa.uint64()),
    "int8": (st.integers(-128, 127), pa.int8()),
    "text": (st.text("ab\u00e9", max_size=3), pa.string()),
    "bool": (st.booleans(), pa.bool_()),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_codes_count_keys_in_the_order_of_their_first_appearance(kind: str, data: Any) -> None:
    values, dtype = KINDS[kind]
    coding, known = KeyCodes(), dict[Any, int]()
    for batch in data.draw(st.lists(st.lists(values, max_size=12), max_size=4)):
        wanted = [known.setdefault(key, len(known)) for key in batch]
        assert coding.codes(pa.array(batch, dtype)).tolist() == wanted
    assert coding.keys == list(known)


def test_codes_of_many_integers_stay_right_while_the_table_grows() -> None:
    keys = np.random.default_rng(2).permutation(50_000) * 7_919 - 10**9
    coding = KeyCodes()
    for part in np.array_split(np.repeat(keys, 2), 7):
        coding.codes(pa.array(part))
    assert coding.codes(pa.array(keys)).tolist() == list(range(len(keys)))
    assert coding.keys == keys.tolist()


@pytest.mark.parametrize("shift", [0, -(2**63), 2**63 - 40_000])
def test_codes_of_integers_that_lie_together_and_then_apart(shift: int) -> None:
    """Keys looked up by value, new ones between and outside of them, and one that is far away."""
    coding, known = KeyCodes(), dict[int, int]()
    for part in ([3, 5, 3], [5, 4, 3, 9], [0, 9, 0], [39_999, 3], [12, 5, 39_999]):
        keys = [key + shift for key in part]
        wanted = [known.setdefault(key, len(known)) for key in keys]
        assert coding.codes(pa.array(keys, pa.int64())).tolist() == wanted
    assert coding.keys == list(known)


def test_integers_have_one_code_whether_dictionary_encoded_or_not() -> None:
    coding = KeyCodes()
    plain = pa.array([5, 3, 5])
    assert coding.codes(plain).tolist() == coding.codes(plain.dictionary_encode()).tolist() == [0, 1, 0]


@pytest.mark.parametrize(("keys", "values"), [
    (["long text", "b"], ["long text", "b"]), ([1, -2], [1, -2]), ([True, False], [True, False]), ([0.5], [0.5]),
    ([datetime(2026, 1, 2, 3)], [datetime(2026, 1, 2, 3)]), ([date(2026, 1, 2)], [date(2026, 1, 2)]),
    ([Decimal("1.50")], ["1.50"])])
def test_values_of_codes_are_the_keys(keys: list[Any], values: list[Any]) -> None:
    coding = KeyCodes()
    codes = coding.codes(pa.array(keys))
    found = coding.values(codes)
    assert found.dtype.kind != "O"
    assert found.tolist() == values


@given(codes=st.lists(st.integers(0, 20), max_size=30), degree=st.integers(1, 5))
def test_items_by_owner_keep_their_order(codes: list[int], degree: int) -> None:
    order, starts = by_owner(frozen(np.array(codes, np.int64)), degree)
    for owner in range(degree):
        wanted = [place for place, code in enumerate(codes) if code % degree == owner]
        assert order[starts[owner]:starts[owner + 1]].tolist() == wanted

"""Keys become codes: 0, 1, 2, ... in the order in which they first appear."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

import numpy as np
import pyarrow as pa

from patterns.queries.kernels.coding import FREE, encode, frozen, look_up, settle

#: Integer keys within a span of so many numbers are looked up by their value.
_NARROW = 1 << 15


class KeyCodes:
    """The codes of a stream's keys; `keys[code]` is the key of a code.

    Integers go through tables of their own, in one pass: by their value if they lie close together, else by
    their hash; everything else goes through Arrow's dictionaries.
    """

    def __init__(self) -> None:
        self.keys: list[object] = []
        self._code_of: dict[object, int] = {}
        self._values = np.empty(0, np.int64)
        self._table = np.zeros(1 << 10, np.int64), np.full(1 << 10, FREE, np.int64)
        self._by_value = 0, np.empty(0, np.int64)  # the least key, and the codes from it on
        self._close_together = True

    def codes(self, column: pa.Array) -> np.ndarray:
        """The code of every value; new keys get the next ones."""
        if not len(column):
            return np.empty(0, np.int64)
        if pa.types.is_dictionary(column.type) and pa.types.is_integer(column.type.value_type):
            column = column.dictionary_decode()
        if pa.types.is_integer(column.type):
            return self._integers(column)
        if pa.types.is_time64(column.type) and column.type.unit == "ns":
            column = column.cast(pa.int64())  # as objects of Python they would lose digits
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        translate = np.empty(len(encoded.dictionary), np.int64)
        for place, value in enumerate(encoded.dictionary.to_pylist()):
            code = self._code_of.get(value)
            if code is None:
                code = self._code_of[value] = len(self.keys)
                self.keys.append(value)
            translate[place] = code
        return translate[encoded.indices.to_numpy(zero_copy_only=False)]

    def values(self, codes: np.ndarray) -> np.ndarray:
        """The keys of `codes`, of a type of fixed width: numbers, times and texts as they are, others as text."""
        if len(self._values) < len(self.keys):
            self._values = _fixed_width(self.keys)
        return self._values[codes]

    def _integers(self, column: pa.Array) -> np.ndarray:
        given = column.to_numpy(zero_copy_only=False)
        values = given.view(np.int64) if given.dtype == np.uint64 else given.astype(np.int64, copy=False)
        values = frozen(values)
        result = np.empty(len(values), np.int64)
        known, stop = len(self.keys), look_up(values, *self._by_value, result)
        while stop < len(values):
            stop, used = encode(stop, values, *self._table, len(self.keys), result)
            self._note(given, result[:stop], used)
            if stop < len(values):
                self._enlarge()
        if self._close_together and len(self.keys) > known:
            self._look_up_later()
        return result

    def _note(self, given: np.ndarray, codes: np.ndarray, used: int) -> None:
        """Write down the keys that are new: the codes of `codes` from `len(self.keys)` on, up to `used`."""
        known = len(self.keys)
        if used > known:
            fresh = np.flatnonzero(codes >= known)
            _, first = np.unique(codes[fresh], return_index=True)
            self.keys.extend(given[fresh[first]].tolist())

    def _look_up_later(self) -> None:
        """Make the table by value, if the keys are still close enough together; once apart, they stay so."""
        keys, codes = self._table
        used = codes != FREE
        first, last = int(keys[used].min()), int(keys[used].max())
        self._close_together = last - first < _NARROW
        by_value = np.full(last - first + 1 if self._close_together else 0, FREE, np.int64)
        if self._close_together:
            by_value[keys[used] - first] = codes[used]
        self._by_value = first, by_value

    def _enlarge(self) -> None:
        keys, codes = self._table
        self._table = np.zeros(2 * len(keys), np.int64), np.full(2 * len(keys), FREE, np.int64)
        settle(keys, codes, *self._table)


def _fixed_width(keys: Sequence[object]) -> np.ndarray:
    if all(isinstance(key, datetime | date) for key in keys):
        unit = "ns" if any(getattr(key, "nanosecond", 0) for key in keys) else "us"
        return np.array(keys, f"datetime64[{unit}]" if isinstance(keys[0], datetime) else "datetime64[D]")
    whole = all(isinstance(key, int) and not isinstance(key, bool) for key in keys)
    array = np.array(keys, np.uint64 if whole and max(keys) >= 2**63 else None)  # type: ignore[type-var, operator]
    return array if array.dtype.kind in "biufU" and array.ndim == 1 else np.array([str(key) for key in keys])

"""What a user's function is given and what it may return; its errors, with the place where they happened."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from runtime.errors import UserFunctionError
from runtime.message import Columns

#: Columns of results that are not the function's to name.
RESERVED = ("key", "window_id", "window_start", "window_end", "window", "code", "row", "rank")

#: Kinds of NumPy types that may not be mixed in one column, by what they are called in errors.
_KINDS = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "text", "M": "times", "m": "durations"}


@dataclass(frozen=True, slots=True)
class Items:
    """Items of a window (or of a pane, or a batch of a window), as columns: `items["price"]`, `len(items)`.

    The columns are read-only views, in order of event time (count windows and windows that items trigger:
    of arrival). `key` is the key's value (None without keys); `wid`, `start` and `end` are those of the
    window, the bounds in microseconds (delta windows: on the line of the attribute). They are None where
    the items belong to several windows, as those of a pane do.
    """

    columns: Columns
    key: Any = None
    wid: int | None = None
    start: Any = None
    end: Any = None

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)


def is_compiled(function: Callable[..., Any]) -> bool:
    """Whether `function` was compiled by numba: then it is given arrays, one argument per column."""
    return hasattr(function, "py_func") and hasattr(function, "signatures")


def name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def call(function: Callable[..., Any], items: Items, *before: Any, wid: int | None = None) -> Any:
    """`function(*before, items)`, or, if it is compiled, `function(*before, *columns)`; `wid` is for its errors."""
    given = tuple(items.columns.values()) if is_compiled(function) else (items,)
    return guarded(function, items.key, items.wid if wid is None else wid, *before, *given)


def guarded(function: Callable[..., Any], key: Any, wid: int | None, *arguments: Any) -> Any:
    """`function(*arguments)`; what it raises becomes a UserFunctionError that names key and window."""
    try:
        return function(*arguments)
    except Exception as error:
        raise failure(function, f"raised {type(error).__name__}: {error}", key, wid, traceback.format_exc()) from None


def failure(function: Callable[..., Any], what: str, key: Any, wid: int | None,
            details: str = "") -> UserFunctionError:
    where = "" if wid is None else f" in window {wid}"
    whose = "" if key is None else f" of key {key!r}"
    return UserFunctionError(f"function `{name_of(function)}` {what}{where}{whose}", details)


# -- what comes back ------------------------------------------------------------------------------------

def as_columns(value: Any, name: str) -> dict[str, np.ndarray] | None:
    """What a function returned, as columns of equal length; None if that is not possible.

    One row: a number, a text or a time (column `name`), or a dict of those. Several rows: a list or a
    one-dimensional array (column `name`), a dict of those, a structured array, a pandas or Arrow table.
    No row: None, or an empty table.
    """
    if value is None:
        return {}
    if isinstance(value, pa.Table | pa.RecordBatch):
        return {field: _array(value.column(field).to_numpy(zero_copy_only=False)) for field in value.schema.names}
    if isinstance(value, pd.DataFrame):
        return {str(field): _array(value[field].to_numpy()) for field in value.columns}
    if isinstance(value, np.ndarray) and value.dtype.names:
        return {field: np.atleast_1d(value[field]) for field in value.dtype.names}
    if not isinstance(value, Mapping):
        value = {name: value}
    arrays = {str(field): _array(part) for field, part in value.items()}
    rows = max((len(array) for array in arrays.values() if array.ndim), default=1)
    if any(array.ndim > 1 or array.dtype.kind not in _KINDS for array in arrays.values()):
        return None
    if any(array.ndim and len(array) != rows for array in arrays.values()):
        return None
    return {field: array if array.ndim else np.full(rows, array) for field, array in arrays.items()}


def _array(value: Any) -> np.ndarray:
    if isinstance(value, pa.Array | pa.ChunkedArray | pd.Series):
        value = value.to_numpy() if isinstance(value, pd.Series) else value.to_numpy(zero_copy_only=False)
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return np.empty(0, object)
    if array.dtype.kind == "O" and array.size:
        parts = array.reshape(-1)
        if all(isinstance(part, str) for part in parts):
            return array.astype(str)
        if all(isinstance(part, datetime | date) for part in parts):
            return array.astype("datetime64[us]")
    return array


@dataclass
class ResultRows:
    """Results of windows on their way into columns; every window must have the same columns of the same kinds."""

    function: Callable[..., Any]
    name: str
    _kinds: dict[str, str] | None = None
    _rows: list[tuple[int, int, dict[str, np.ndarray]]] = field(default_factory=list)

    def add(self, window: int, code: int, value: Any, key: Any, wid: int | None) -> None:
        """Take the value of a window; UserFunctionError if it cannot be reported, or not together with the others."""
        columns = as_columns(value, self.name)
        if columns is None or any(array.dtype.kind not in _KINDS for array in columns.values()):
            raise failure(self.function, f"must return a number, a text, a dict of those, arrays of one length or a "
                                         f"table, got {_shown(value)}", key, wid)
        if not columns or not len(next(iter(columns.values()))):
            return
        for reserved in RESERVED:
            if reserved in columns:
                raise failure(self.function, f"must not return a column named `{reserved}`, which the results have "
                                             "already", key, wid)
        kinds = {field: _KINDS[array.dtype.kind] for field, array in columns.items()}
        if self._kinds is None:
            self._kinds = kinds
        if kinds != self._kinds:
            raise failure(self.function, f"must return the same columns in every window, got {_listed(kinds)} after "
                                         f"{_listed(self._kinds)}", key, wid)
        self._rows.append((window, code, columns))

    def take(self) -> Columns:
        """All rows so far, sorted by window, then code, with `window` and `code`."""
        rows, self._rows = sorted(self._rows, key=lambda row: row[:2]), []
        if not rows:
            return {"window": np.empty(0, np.int64), "code": np.empty(0, np.int64)}
        sizes = [len(next(iter(columns.values()))) for _, _, columns in rows]
        return {"window": np.repeat(np.array([row[0] for row in rows], np.int64), sizes),
                "code": np.repeat(np.array([row[1] for row in rows], np.int64), sizes),
                **{name: np.concatenate([columns[name] for _, _, columns in rows]) for name in rows[0][2]}}


def check_alike(first: Columns, columns: Columns) -> None:
    """UserFunctionError if results that came from different workers do not have the same columns of the same kinds."""
    one, other = ({name: _KINDS.get(column.dtype.kind, "") for name, column in part.items() if name not in RESERVED}
                  for part in (first, columns))
    if one != other:
        raise UserFunctionError(f"a function must return the same columns in every window, got {_listed(other)} after "
                                f"{_listed(one)}")


def _listed(kinds: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` ({kind})" for name, kind in kinds.items())


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"


def read_only(columns: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Views of the columns `names` that a function cannot write into."""
    views = {}
    for name in names:
        view = columns[name].view()
        view.flags.writeable = False
        views[name] = view
    return views

"""First stage of queries that call a user's functions: the items of every pane and key, or what `pane` made of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from patterns.queries.function_values import Items, call, failure, read_only
from patterns.queries.rows import limits_of, runs_of, select
from patterns.query import AT, KEY, ROW, TS, Bounds, Frontier, joined
from runtime.message import Columns


class ItemPanes:
    """First stage: items as they are, sorted by pane, key and time (where items trigger windows: by arrival)."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._parts: list[dict[str, np.ndarray]] = []
        self._first = 2**63 - 1

    def add(self, codes: np.ndarray, panes: np.ndarray, columns: Columns) -> None:
        if not len(panes):
            return
        own = [name for name in (AT, KEY, ROW, TS) if name in columns]
        self._parts.append({"pane": np.array(panes), "code": np.array(codes),
                            **{name: np.array(columns[name]) for name in (*self._names, *own)}})
        self._first = min(self._first, int(panes.min()))

    def close(self, before: Frontier) -> Columns:
        if not self._parts or (isinstance(before, int) and before <= self._first):
            return {"pane": np.empty(0, np.int64), "code": np.empty(0, np.int64)}
        items = joined(self._parts)
        ready = items["pane"] < limits_of(before, items["code"])
        closed = select(items, ready)
        order = np.lexsort((closed[ROW if ROW in closed else AT], closed["code"], closed["pane"]))
        rest = select(items, ~ready)
        self._parts = [rest] if len(rest["pane"]) else []
        self._first = int(rest["pane"].min()) if self._parts else 2**63 - 1
        return select(closed, order)


class ValuePanes:
    """First stage of a decomposable function: `pane` of every pane's items, as bytes in the column `value`."""

    def __init__(self, names: Sequence[str], pane: Callable[..., Any]) -> None:
        self._names, self._pane = tuple(names), pane
        self._items = ItemPanes(names)
        self._bounds: Bounds | None = None

    def in_context(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def add(self, codes: np.ndarray, panes: np.ndarray, columns: Columns) -> None:
        self._items.add(codes, panes, columns)

    def close(self, before: Frontier) -> Columns:
        closed = self._items.close(before)
        values = []
        runs = runs_of(closed["pane"], closed["code"])
        for low, high in runs:
            items = Items(read_only({name: closed[name][low:high] for name in self._names}, self._names),
                          key_of(closed, low))
            wid = None if self._bounds is None else self._bounds.holding(int(closed["pane"][low]))
            values.append(packed(call(self._pane, items, wid=wid), self._pane, items.key, wid))
        starts = [low for low, _ in runs]
        keys = {KEY: closed[KEY][starts]} if KEY in closed else {}
        return {"pane": closed["pane"][starts], "code": closed["code"][starts], **bytes_column(values), **keys}


def key_of(columns: Columns, row: int) -> Any:
    """The key's value in a row, as a plain Python value; None without keys."""
    return columns[KEY][row].item() if KEY in columns else None


def packed(value: Any, function: Callable[..., Any], key: Any, wid: int | None) -> bytes:
    try:
        return pickle.dumps(value, protocol=5)
    except Exception as error:
        raise failure(function, f"must return plain data that can be sent on, got {type(value).__name__} ({error})",
                      key, wid) from None


def bytes_column(values: Sequence[bytes]) -> dict[str, np.ndarray]:
    """Byte strings as columns: `size` and `value`, a row of bytes filled up with zeros."""
    width = max((len(value) for value in values), default=0)
    filled = b"".join(value.ljust(width, b"\0") for value in values)
    return {"size": np.array([len(value) for value in values], np.int64),
            "value": np.frombuffer(filled, np.uint8).reshape(len(values), width)}


def unpacked(columns: Columns, low: int, high: int) -> Any:
    """The value in row `low` of partials that `ValuePanes` made."""
    return pickle.loads(columns["value"][low, :columns["size"][low]].tobytes())


def sliced(columns: Columns, low: int, high: int) -> Columns:
    """The items of one pane and key, without what only served to put them in order."""
    # Copied: a quiet key must not keep everybody's items of the time.
    return {name: column[low:high].copy() for name, column in columns.items()
            if name not in ("pane", "code", AT, KEY, ROW)}

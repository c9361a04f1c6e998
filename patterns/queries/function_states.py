"""Second stage of queries that call a user's functions: the panes that open windows hold, and what becomes of them.

How a window is made is a small object per key: from all its items (`WholeWindows`), a state per window that
grows (`GrowingWindows`), one state that panes enter and leave (`SlidingPanes`), or values that are combined
(`CombinedPanes`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from patterns.queries.function_panes import bytes_column, key_of, packed
from patterns.queries.function_values import Items, ResultRows, call, guarded, read_only
from patterns.queries.rows import Waiting, runs_of
from patterns.query import KEY, TS, Bounds, Frontier, joined
from runtime.message import Columns


class Held(Protocol):
    """What one key's open windows hold."""

    @property
    def oldest(self) -> int | None:
        """The first pane that is held."""

    def push(self, pane: int, content: Any) -> None:
        """Take the next pane (or one more part of the last one)."""

    def value(self, window: int) -> Any:
        """What window `window` makes of the panes it holds; it is the next one to fire."""

    def purge(self, window: int) -> None:
        """Forget the panes before `window`; `oldest` is the first one that is left."""


class FunctionWindows:
    """Second stage: fires the windows of every key in order; `make(code)` gives the key's `Held`.

    `unpack(columns, low, high)` makes the content of a pane from its rows. `rows` None: results are
    partials again, as `ValuePanes` makes them.
    """

    def __init__(self, per_window: int, per_slide: int, make: Callable[..., Held],
                 unpack: Callable[[Columns, int, int], Any], rows: ResultRows | None) -> None:
        self.per_window, self.per_slide = per_window, per_slide
        self._make, self._unpack, self._rows = make, unpack, rows
        self._waiting = Waiting()
        self._held: dict[int, tuple[Held, Any]] = {}
        self._due: dict[int, int] = {}
        self._partials: list[tuple[int, int, bytes, Any]] = []
        self.bounds: Bounds | None = None

    def in_context(self, bounds: Bounds) -> None:
        self.bounds = bounds

    def id_of(self, window: int) -> int | None:
        return None if self.bounds is None else self.bounds.window(window)[0]

    def advance(self, partials: Columns, before: Frontier) -> Columns:
        arrived = self._waiting.ready(partials, before)
        for low, high in runs_of(arrived["pane"], arrived["code"]):
            pane, code = int(arrived["pane"][low]), int(arrived["code"][low])
            if pane % self.per_slide >= self.per_window:
                continue  # between hopping windows
            if code not in self._held:
                self._held[code] = self._make(self, key_of(arrived, low)), arrived[KEY][low] if KEY in arrived else None
            self._fire(code, pane)
            for content in self._contents(arrived, low, high):
                self._held[code][0].push(pane, content)
        for code in sorted(self._held):
            self._fire(code, before if isinstance(before, int) else int(before[code]) if code < len(before) else 0)
            if self._held[code][0].oldest is None:
                del self._held[code]
                self._due.pop(code, None)
        return self._fired()

    def _contents(self, columns: Columns, low: int, high: int) -> Iterator[Any]:
        if "size" not in columns:
            yield self._unpack(columns, low, high)
            return
        for row in range(low, high):  # one value each; several if parts of one pane come together
            yield self._unpack(columns, row, row + 1)

    def _fire(self, code: int, before: int) -> None:
        held, key = self._held[code]
        while held.oldest is not None:
            window = max(self._due.get(code, 0), (held.oldest - self.per_window) // self.per_slide + 1)
            if window * self.per_slide + self.per_window > before:
                return
            held.purge(window)
            value = held.value(window)
            if self._rows is None:
                self._partials.append((window, code, value, key))
            else:
                self._rows.add(window, code, value, None if key is None else key.item(), self.id_of(window))
            self._due[code] = window + 1
            held.purge(window + 1)

    def _fired(self) -> Columns:
        if self._rows is not None:
            return self._rows.take()
        partials, self._partials = sorted(self._partials, key=lambda row: row[:2]), []
        keys = {KEY: np.array([key for *_, key in partials])} if partials and partials[0][3] is not None else {}
        return {"window": np.array([window for window, *_ in partials], np.int64),
                "code": np.array([code for _, code, *_ in partials], np.int64),
                **bytes_column([value for _, _, value, _ in partials]), **keys}

    @property
    def size_bytes(self) -> int:
        return sum(getattr(held, "size_bytes", 0) for held, _ in self._held.values())


class PaneItems:
    """The items of one key that open windows hold, pane by pane: what the kinds below have in common."""

    def __init__(self, windows: FunctionWindows, key: Any) -> None:
        self._windows, self._key = windows, key
        self._panes: deque[tuple[int, Columns]] = deque()

    @property
    def oldest(self) -> int | None:
        return self._panes[0][0] if self._panes else None

    def push(self, pane: int, content: Columns) -> None:
        self._panes.append((pane, content))

    def purge(self, window: int) -> None:
        while self._panes and self._panes[0][0] < window * self._windows.per_slide:
            self._panes.popleft()

    def items(self, window: int, names: Sequence[str], parts: Sequence[Columns]) -> Items:
        """The items of `parts`, which belong to `window`."""
        whole = joined(list(parts))
        wid = start = end = None
        if self._windows.bounds is not None:
            wid, start, end = self._windows.bounds.window(window)
            if start is None and TS in whole:  # count windows: the times of the first and the last item
                start, end = int(whole[TS][0]), int(whole[TS][-1])
        return Items(read_only(whole, names), self._key, wid, start, end)

    @property
    def size_bytes(self) -> int:
        return sum(column.nbytes for _, part in self._panes for column in part.values())


class WholeWindows(PaneItems):
    """A function of all items of a window."""

    def __init__(self, windows: FunctionWindows, key: Any, names: Sequence[str], function: Callable[..., Any]) -> None:
        super().__init__(windows, key)
        self._names, self._function = names, function

    def value(self, window: int) -> Any:
        end = window * self._windows.per_slide + self._windows.per_window
        held = [part for pane, part in self._panes if pane < end]
        return call(self._function, self.items(window, self._names, held))


class GrowingWindows(PaneItems):
    """A state per window, to which items are added as their pane closes; the items are not kept."""

    def __init__(self, windows: FunctionWindows, key: Any, names: Sequence[str], init: Callable[[], Any],
                 add: Callable[..., Any], finish: Callable[[Any], Any] | None) -> None:
        super().__init__(windows, key)
        self._names, self._init, self._add, self._finish = names, init, add, finish
        self._states: dict[int, Any] = {}
        self._passed = 0

    def push(self, pane: int, content: Columns) -> None:
        per_window, per_slide = self._windows.per_window, self._windows.per_slide
        for window in range(max(self._passed, (pane - per_window) // per_slide + 1, 0), pane // per_slide + 1):
            items = self.items(window, self._names, [content])
            if window not in self._states:
                self._states[window] = guarded(self._init, self._key, items.wid)
            self._states[window] = call(self._add, items, self._states[window])
        super().push(pane, {})

    def value(self, window: int) -> Any:
        state = self._states[window]
        if self._finish is None:
            return state
        return guarded(self._finish, self._key, self._windows.id_of(window), state)

    def purge(self, window: int) -> None:
        super().purge(window)
        self._passed = window
        for old in [number for number in self._states if number < window]:
            del self._states[old]


class SlidingPanes(PaneItems):
    """One state that panes enter and leave; a fresh one whenever two windows have no pane in common."""

    def __init__(self, windows: FunctionWindows, key: Any, names: Sequence[str], init: Callable[[], Any],
                 push: Callable[..., Any], drop: Callable[..., Any], result: Callable[[Any], Any]) -> None:
        super().__init__(windows, key)
        self._names = names
        self._init, self._enter, self._leave, self._result = init, push, drop, result
        self._inside: deque[tuple[int, Columns]] = deque()
        self._state: Any = None

    def value(self, window: int) -> Any:
        start = window * self._windows.per_slide
        end, wid = start + self._windows.per_window, self._windows.id_of(window)
        if not self._inside or self._inside[-1][0] < start:
            self._inside.clear()
            self._state = guarded(self._init, self._key, wid)
        while self._inside and self._inside[0][0] < start:
            _, part = self._inside.popleft()
            self._state = call(self._leave, self.items(window, self._names, [part]), self._state)
        newest = self._inside[-1][0] if self._inside else -1
        for pane, part in self._panes:
            if newest < pane < end:
                self._state = call(self._enter, self.items(window, self._names, [part]), self._state)
                self._inside.append((pane, part))
        return guarded(self._result, self._key, wid, self._state)


class CombinedPanes:
    """Values of panes in two stacks (see `kernels.two_stacks`): a constant number of calls per pane."""

    def __init__(self, windows: FunctionWindows, key: Any, combine: Callable[[Any, Any], Any],
                 finish: Callable[[Any], Any] | None, final: bool) -> None:
        self._windows, self._key = windows, key
        self._combine, self._finish, self._final = combine, finish, final
        self._front: list[tuple[int, Any]] = []  # youngest first; each value with those of all younger panes here
        self._back: list[tuple[int, Any]] = []
        self._back_value: Any = None
        self._wid: int | None = None

    @property
    def oldest(self) -> int | None:
        if self._front:
            return self._front[-1][0]
        return self._back[0][0] if self._back else None

    def push(self, pane: int, content: Any) -> None:
        self._wid = self._windows.id_of(max((pane - self._windows.per_window) // self._windows.per_slide + 1, 0))
        self._back_value = self._merged(self._back_value, content) if self._back else content
        if self._back and self._back[-1][0] == pane:
            self._back[-1] = pane, self._merged(self._back[-1][1], content)
        else:
            self._back.append((pane, content))

    def value(self, window: int) -> Any:
        self._wid = self._windows.id_of(window)
        if not self._front:
            value = self._back_value
        else:
            value = self._front[-1][1]
            value = self._merged(value, self._back_value) if self._back else value
        if not self._final:
            return packed(value, self._combine, self._key, self._wid)
        return value if self._finish is None else guarded(self._finish, self._key, self._wid, value)

    def purge(self, window: int) -> None:
        start = window * self._windows.per_slide
        while self._front and self._front[-1][0] < start:
            self._front.pop()
        if self._front or not self._back or self._back[0][0] >= start:
            return
        for pane, value in reversed(self._back):
            if pane >= start:
                self._front.append((pane, self._merged(value, self._front[-1][1]) if self._front else value))
        self._back, self._back_value = [], None

    def _merged(self, older: Any, younger: Any) -> Any:
        return guarded(self._combine, self._key, self._wid, older, younger)

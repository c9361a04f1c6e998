"""Queries that are a user's own functions: plain functions, lambdas, or functions compiled by numba.

    Function(f, columns)                            f(items) of every window
    Incremental(init, add, finish, columns)         a state per window; add(state, items) as the items come
    Decomposable(pane, combine, columns)            pane(items) of every pane, combine(older, younger) of neighbours
    Sliding(init, push, drop, result, columns)      one state; push(state, items), drop(state, items) pane by pane

`items` is an `Items`: columns by name, `key`, and (not for a pane) `wid`, `start`, `end`. A function that numba
compiled is given the columns instead, one array each, in the order of `columns`. What the last function returns
is the window's result (see `function_values.as_columns`, and docs/functions.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from patterns.queries.function_panes import ItemPanes, ValuePanes, sliced, unpacked
from patterns.queries.function_states import (CombinedPanes, FunctionWindows, GrowingWindows, Held, SlidingPanes,
                                              WholeWindows)
from patterns.queries.function_values import RESERVED, ResultRows
from patterns.query import PaneState
from runtime.errors import SpecError

Call = Callable[..., Any]
Make = Callable[..., Held]


class UserQuery:
    """What all queries made of functions have in common."""

    columns: tuple[str, ...]
    name: str

    #: The names of the fields that are functions, the one that makes the result last; "?" marks what may be None.
    functions: ClassVar[tuple[str, ...]] = ()
    needs_keys: ClassVar[bool] = True
    needs_times: ClassVar[bool] = True

    def __post_init__(self) -> None:
        kind = type(self).__name__
        for spelt in self.functions:
            function = getattr(self, spelt.rstrip("?"))
            if not callable(function) and not (function is None and spelt.endswith("?")):
                raise SpecError(f"`{spelt.rstrip('?')}` of {kind} must be a function, got {function!r}")
        names: Any = self.columns
        names = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else ()
        if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
            raise SpecError(f"`columns` of {kind} must name the columns that it reads, each once, got {self.columns!r}")
        object.__setattr__(self, "columns", names)
        if not isinstance(self.name, str) or not self.name or self.name in RESERVED:
            raise SpecError(f"`name` of {kind} must be a name that the results do not have yet, got {self.name!r}")

    @property
    def decomposable(self) -> bool:
        return False

    @property
    def selects(self) -> bool:
        return False

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.name,)

    def check(self, dtypes: Mapping[str, np.dtype]) -> None:
        for name in self.columns:
            if name in dtypes and dtypes[name].kind not in "biufUMm":
                raise SpecError(f"column `{name}` must hold numbers, texts or times to be given to a function, got "
                                f"{dtypes[name]}: name the other columns, or cast it")

    def pane_state(self) -> PaneState:
        return ItemPanes(self.columns)

    def _windows(self, per_window: int, per_slide: int, make: Make, function: Call) -> FunctionWindows:
        return FunctionWindows(per_window, per_slide, make, sliced, ResultRows(function, self.name))


@dataclass(frozen=True)
class Function(UserQuery):
    """`function(items)` of every window, given all its items.

    >>> Function(lambda items: items["price"].max() - items["price"].min(), columns=["price"]).columns
    ('price',)
    """

    function: Call
    columns: tuple[str, ...]
    name: str = "value"
    functions: ClassVar[tuple[str, ...]] = ("function",)

    def window_state(self, panes_per_window: int, panes_per_slide: int, *, final: bool = True,
                     split: bool = False) -> FunctionWindows:
        make: Make = partial(WholeWindows, names=self.columns, function=self.function)
        return self._windows(panes_per_window, panes_per_slide, make, self.function)


@dataclass(frozen=True)
class Incremental(UserQuery):
    """A state per window: `init()`, then `state = add(state, items)` for its items in order, then `finish(state)`.

    How many items come at a time is not laid down; items are not kept. Without `finish` the state is the result.
    """

    init: Call
    add: Call
    finish: Call | None
    columns: tuple[str, ...]
    name: str = "value"
    functions: ClassVar[tuple[str, ...]] = ("init", "add", "finish?")

    def window_state(self, panes_per_window: int, panes_per_slide: int, *, final: bool = True,
                     split: bool = False) -> FunctionWindows:
        make: Make = partial(GrowingWindows, names=self.columns, init=self.init, add=self.add, finish=self.finish)
        return self._windows(panes_per_window, panes_per_slide, make, self.finish or self.add)


@dataclass(frozen=True)
class Decomposable(UserQuery):
    """`pane(items)` of every pane; `combine(older, younger)` of two values; `finish(value)` of the window's.

    `combine` must be associative and leave its arguments as they are: values are used again for the next
    window. Say `commutative=False` if it matters which of two values is the older one. Values travel between
    processes: plain data, NumPy arrays included. Without `finish` the window's value is the result.
    """

    pane: Call
    combine: Call
    columns: tuple[str, ...]
    finish: Call | None = None
    name: str = "value"
    commutative: bool = True
    functions: ClassVar[tuple[str, ...]] = ("pane", "combine", "finish?")

    @property
    def decomposable(self) -> bool:
        return True

    def pane_state(self) -> PaneState:
        return ValuePanes(self.columns, self.pane)

    def window_state(self, panes_per_window: int, panes_per_slide: int, *, final: bool = True,
                     split: bool = False) -> FunctionWindows:
        make: Make = partial(CombinedPanes, combine=self.combine, finish=self.finish, final=final)
        rows = ResultRows(self.finish or self.combine, self.name) if final else None
        return FunctionWindows(panes_per_window, panes_per_slide, make, unpacked, rows)


@dataclass(frozen=True)
class Sliding(UserQuery):
    """One state per key that the panes of its windows enter and leave: `push` and `drop` return the new state.

    `init()` makes a state without items; `result(state)` is the window's result. `drop` is given the same
    items that `push` was.
    """

    init: Call
    push: Call
    drop: Call
    result: Call
    columns: tuple[str, ...]
    name: str = "value"
    functions: ClassVar[tuple[str, ...]] = ("init", "push", "drop", "result")

    def window_state(self, panes_per_window: int, panes_per_slide: int, *, final: bool = True,
                     split: bool = False) -> FunctionWindows:
        make: Make = partial(SlidingPanes, names=self.columns, init=self.init, push=self.push, drop=self.drop,
                             result=self.result)
        return self._windows(panes_per_window, panes_per_slide, make, self.result)

"""Window models and the grid they are laid on.

Extents are half open, `[start, end)`. Ids start at 0 at the origin; a window that would start before
the origin does not exist.

Every model puts its items on a line of *ordinates* (event times, arrival positions of a key, or values
of an attribute) and says what progress on that line leaves behind. Time and count windows are context
free: their extents are known beforehand, on a `Grid`. Slide-by-tuple and delta windows are forward-context
aware: an item that arrives says where a window lies, so the first emitter lists them (`patterns.triggers`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import Any

import numpy as np

from runtime.errors import SpecError

_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
#: Times, lengths and other places on a line are no farther from 0: their sums and differences fit 64 bits.
FARTHEST = 2**60
_DURATION = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(us|ms|s|m|h)\s*")

Duration = int | str | timedelta | np.timedelta64


def duration_us(value: Duration, parameter: str = "duration") -> int:
    """Microseconds of `"250ms"`, a `timedelta` or an integer (already microseconds).

    >>> duration_us("250ms"), duration_us("1.5s"), duration_us(42)
    (250000, 1500000, 42)
    """
    if isinstance(value, bool):
        raise SpecError(f"`{parameter}` must be a duration, got {value!r}: "
                        "write \"250ms\", a timedelta or microseconds")
    if isinstance(value, np.timedelta64):
        whole = value.astype("timedelta64[us]")
        if whole != value:
            raise SpecError(f"`{parameter}` must be a whole number of microseconds, got {value!r}")
        return int(whole.astype(np.int64))
    if isinstance(value, timedelta):
        return round(value / timedelta(microseconds=1))
    if isinstance(value, int | np.integer):
        return int(value)
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise SpecError(f"`{parameter}` must be a duration like 250ms, 1s or 5m (units us ms s m h), got {value!r}")
    exact = Fraction(match[1]) * _UNITS_US[match[2]]
    if exact.denominator != 1:
        raise SpecError(f"`{parameter}` must be a whole number of microseconds, got {value!r}")
    return int(exact)


@dataclass(frozen=True, slots=True)
class Grid:
    """Context-free windows on a line of integers: event times, or arrival positions of a key.

    Local window k covers `[origin + k*slide, origin + k*slide + length)` and has the global id
    `first_id + k*id_step`. A farm of n gives replica j the grid `share(j, n)`: every n-th window.
    Panes have length `gcd(length, slide)` and are counted from the origin.

    >>> Grid(6, 2).share(1, 3)
    Grid(length=6, slide=6, origin=2, first_id=1, id_step=3)
    """

    length: int
    slide: int
    origin: int = 0
    first_id: int = 0
    id_step: int = 1

    @property
    def pane(self) -> int:
        return math.gcd(self.length, self.slide)

    @property
    def panes_per_window(self) -> int:
        return self.length // self.pane

    @property
    def panes_per_slide(self) -> int:
        return self.slide // self.pane

    def share(self, replica: int, degree: int) -> Grid:
        """The windows `replica, replica + degree, ...` of this grid, as a grid of their own."""
        return Grid(self.length, self.slide * degree, self.origin + replica * self.slide,
                    self.first_id + replica * self.id_step, self.id_step * degree)

    def pane_of(self, ordinates: np.ndarray) -> np.ndarray:
        """The pane of each ordinate; negative before the origin."""
        return (ordinates - self.origin) // self.pane

    def inside(self, panes: np.ndarray) -> np.ndarray:
        """Which panes belong to a window: not those before the origin, nor those between hopping windows."""
        inside: np.ndarray = panes >= 0
        if self.slide > self.length:
            inside &= panes % self.panes_per_slide < self.panes_per_window
        return inside

    def count_outside(self, ordinates: np.ndarray) -> int:
        """How many of `ordinates` lie in no window."""
        if not len(ordinates) or (self.slide <= self.length and int(ordinates.min()) >= self.origin):
            return 0
        return len(ordinates) - int(np.count_nonzero(self.inside(self.pane_of(ordinates))))

    def first_window(self, ordinates: np.ndarray) -> np.ndarray:
        """The first local window that ends after each ordinate (0 at the least)."""
        return np.maximum((ordinates - self.origin - self.length) // self.slide + 1, 0)

    def last_window(self, ordinates: np.ndarray) -> np.ndarray:
        """The last local window that starts at or before each ordinate; below `first_window`: none holds it."""
        return (ordinates - self.origin) // self.slide

    def frontier(self, ordinate: int) -> int:
        """How many panes from the origin are complete once no ordinate below `ordinate` can come."""
        return max((ordinate - self.origin) // self.pane, 0)

    def dead_below(self, reached: Any) -> Any:
        """The ordinate below which no window lies that is still open when progress has `reached`."""
        return self.origin + np.maximum((reached - self.origin - self.length) // self.slide + 1, 0) * self.slide

    def ends(self, ids: np.ndarray) -> np.ndarray:
        """Where the windows with these global ids end."""
        ends: np.ndarray = self.origin + (ids - self.first_id) // self.id_step * self.slide + self.length
        return ends

    def global_ids(self, windows: np.ndarray) -> np.ndarray:
        return self.first_id + windows * self.id_step


def _check_positive(value: float, parameter: str, given: object) -> None:
    if value <= 0:
        raise SpecError(f"`{parameter}` must be greater than 0, got {given!r}")
    _check_near(value, parameter, given)


def _check_near(value: float, parameter: str, given: object) -> None:
    if isinstance(value, int) and abs(value) > FARTHEST:
        raise SpecError(f"`{parameter}` must be at most 2**{FARTHEST.bit_length() - 1}, got {given!r}")


def _check_items(value: object, parameter: str, kind: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise SpecError(f"`{parameter}` of a {kind} window must be a whole number of items, got {value!r}")
    _check_positive(int(value), parameter, value)


@dataclass(frozen=True)
class TimeWindow:
    """Windows of `length` event time every `slide`; durations as "250ms", a timedelta or microseconds.

    >>> TimeWindow("1s", slide="200ms")
    TimeWindow(length=1000000, slide=200000, origin=0)
    """

    length: Duration
    slide: Duration | None = None
    origin: Duration = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        given = self.slide if self.slide is not None else self.length
        length, slide = duration_us(self.length, "length"), duration_us(given, "slide")
        _check_positive(length, "length", self.length)
        _check_positive(slide, "slide", given)
        origin = duration_us(self.origin, "origin")
        _check_near(origin, "origin", self.origin)
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "slide", slide)
        object.__setattr__(self, "origin", origin)

    def grid(self) -> Grid:
        assert isinstance(self.length, int) and isinstance(self.slide, int) and isinstance(self.origin, int)
        return Grid(self.length, self.slide, self.origin)

    def dead_below(self, reached: Any) -> Any:
        return self.grid().dead_below(reached)


@dataclass(frozen=True)
class CountWindow:
    """Windows of `length` items every `slide` items, counted per key in arrival order.

    >>> CountWindow(300, slide=50)
    CountWindow(length=300, slide=50)
    """

    length: int
    slide: int | None = None

    def __post_init__(self) -> None:
        slide = self.length if self.slide is None else self.slide
        for value, parameter in ((self.length, "length"), (slide, "slide")):
            _check_items(value, parameter, "count")
        object.__setattr__(self, "length", int(self.length))
        object.__setattr__(self, "slide", int(slide))

    def grid(self) -> Grid:
        assert isinstance(self.slide, int)
        return Grid(self.length, self.slide)

    def dead_below(self, reached: Any) -> Any:
        return self.grid().dead_below(reached)


@dataclass(frozen=True)
class SlideByTuple:
    """The last `length` of event time, each time `slide` more items of a key have arrived.

    Item number `(i+1)*slide` of its key triggers window i, which holds what has arrived up to it (and
    itself) and is not older than `length` before it. Its extent is `[t.ts - length, t.ts]`.

    >>> SlideByTuple("5s", slide=1000)
    SlideByTuple(length=5000000, slide=1000)
    """

    length: Duration
    slide: int = 1

    def __post_init__(self) -> None:
        length = duration_us(self.length, "length")
        if length < 0:
            raise SpecError(f"`length` must not be negative, got {self.length!r}")
        _check_near(length, "length", self.length)
        _check_items(self.slide, "slide", "slide-by-tuple")
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "slide", int(self.slide))

    def dead_below(self, reached: Any) -> Any:
        assert isinstance(self.length, int)
        return reached - self.length


@dataclass(frozen=True)
class DeltaWindow:
    """A window whenever `attribute` has grown by `threshold` over its value at the last window (the marker).

    The item that makes it grow triggers: the window holds the earlier items of the key with an attribute
    of at least the trigger's less `length`; its extent, on the attribute's line, is
    `[trigger - length, trigger)`.

    >>> DeltaWindow("a", length=5, threshold=2)
    DeltaWindow(attribute='a', length=5, threshold=2)
    """

    attribute: str
    length: float
    threshold: float

    def __post_init__(self) -> None:
        for name in ("length", "threshold"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
                raise SpecError(f"`{name}` of a delta window must be a number, got {value!r}")
            _check_positive(value.item() if isinstance(value, np.number) else value, name, value)
        if not isinstance(self.attribute, str) or not self.attribute:
            raise SpecError(f"`attribute` of a delta window must be the name of a column, got {self.attribute!r}")

    def dead_below(self, reached: Any) -> Any:
        return reached


#: Their extents are known before any item comes: every pattern can run them.
ContextFree = TimeWindow | CountWindow
#: Items decide where they lie: one node sees all items of a key, or hands windows to agnostic workers.
ContextAware = SlideByTuple | DeltaWindow
Window = ContextFree | ContextAware


def by_key(window: Window) -> bool:
    """Whether each key has its own progress (else the watermark is everybody's)."""
    return isinstance(window, CountWindow | DeltaWindow)

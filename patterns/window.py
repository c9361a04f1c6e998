"""Window models and the grid they are laid on.

Extents are half open, `[start, end)`. Ids start at 0 at the origin; a window that would start before
the origin does not exist.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np

from runtime.errors import SpecError

_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_DURATION = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(us|ms|s|m|h)\s*")

Duration = int | str | timedelta


def duration_us(value: Duration, parameter: str = "duration") -> int:
    """Microseconds of `"250ms"`, a `timedelta` or an integer (already microseconds).

    >>> duration_us("250ms"), duration_us("1.5s"), duration_us(42)
    (250000, 1500000, 42)
    """
    if isinstance(value, bool):
        raise SpecError(f"`{parameter}` must be a duration, got {value!r}: "
                        "write \"250ms\", a timedelta or microseconds")
    if isinstance(value, timedelta):
        return round(value / timedelta(microseconds=1))
    if isinstance(value, int | np.integer):
        return int(value)
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise SpecError(f"`{parameter}` must be a duration like 250ms, 1s or 5m (units us ms s m h), got {value!r}")
    exact = float(match[1]) * _UNITS_US[match[2]]
    if exact != int(exact):
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

    def first_window(self, ordinates: np.ndarray) -> np.ndarray:
        """The first local window that ends after each ordinate (0 at the least)."""
        return np.maximum((ordinates - self.origin - self.length) // self.slide + 1, 0)

    def last_window(self, ordinates: np.ndarray) -> np.ndarray:
        """The last local window that starts at or before each ordinate; below `first_window`: none holds it."""
        return (ordinates - self.origin) // self.slide

    def frontier(self, ordinate: int) -> int:
        """How many panes from the origin are complete once no ordinate below `ordinate` can come."""
        return max((ordinate - self.origin) // self.pane, 0)

    def global_ids(self, windows: np.ndarray) -> np.ndarray:
        return self.first_id + windows * self.id_step


def _check_positive(value: int, parameter: str, given: object) -> None:
    if value <= 0:
        raise SpecError(f"`{parameter}` must be greater than 0, got {given!r}")


@dataclass(frozen=True)
class TimeWindow:
    """Windows of `length` event time every `slide`; durations as "250ms", a timedelta or microseconds.

    >>> TimeWindow("1s", slide="200ms")
    TimeWindow(length=1000000, slide=200000, origin=0)
    """

    length: Duration
    slide: Duration | None = None
    origin: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        given = self.slide if self.slide is not None else self.length
        length, slide = duration_us(self.length, "length"), duration_us(given, "slide")
        _check_positive(length, "length", self.length)
        _check_positive(slide, "slide", given)
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "slide", slide)

    @property
    def context_free(self) -> bool:
        return True

    def grid(self) -> Grid:
        assert isinstance(self.length, int) and isinstance(self.slide, int)
        return Grid(self.length, self.slide, self.origin)


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
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise SpecError(f"`{parameter}` of a count window must be a whole number of items, got {value!r}")
            _check_positive(int(value), parameter, value)
        object.__setattr__(self, "length", int(self.length))
        object.__setattr__(self, "slide", int(slide))

    @property
    def context_free(self) -> bool:
        return True

    def grid(self) -> Grid:
        assert isinstance(self.slide, int)
        return Grid(self.length, self.slide)


Window = TimeWindow | CountWindow

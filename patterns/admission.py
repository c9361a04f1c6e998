"""Who is late: the watermark policies. Decided once, at the intake.

An item is late when its time lies below the watermark at the moment it arrives. A policy sees the
times in arrival order and says which may pass; `watermark` is where it stands afterwards.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from patterns.window import FARTHEST, duration_us
from runtime.errors import BadInputError, SpecError
from runtime.message import START_OF_TIME

_NOT_YET = ("k-slack", "aq")


class Admission(Protocol):
    watermark: int

    def admit(self, times: np.ndarray) -> np.ndarray | None:
        """Which of `times` (arrival order) are in time; None means all of them. Moves the watermark."""


class Trailing:
    """The watermark follows the greatest time seen at a fixed distance: `in order` is distance 0."""

    def __init__(self, distance_us: int = 0) -> None:
        self._distance = distance_us
        self._newest = START_OF_TIME
        self.watermark = START_OF_TIME

    def admit(self, times: np.ndarray) -> np.ndarray | None:
        if not len(times):
            return None
        if self._in_order(times):
            return None
        _check_range(int(times.min()), int(times.max()))
        newest = np.maximum.accumulate(np.r_[np.int64(self._newest), times])
        before = newest[:-1]  # the greatest time when the item arrived
        floor = np.where(before == START_OF_TIME, before, before - self._distance)
        in_time: np.ndarray = times >= floor
        self._newest = int(newest[-1])
        self.watermark = self._newest - self._distance
        return None if in_time.all() else in_time

    def _in_order(self, times: np.ndarray) -> bool:
        """Take in times that rise from the watermark on, of which none can be late; False: look closer."""
        if times[0] < self.watermark or (times[1:] < times[:-1]).any():
            return False
        _check_range(int(times[0]), int(times[-1]))
        self._newest = max(self._newest, int(times[-1]))
        self.watermark = self._newest - self._distance
        return True


def _check_range(first: int, last: int) -> None:
    if first < -FARTHEST or last > FARTHEST:
        raise BadInputError(f"event times must lie within {FARTHEST} us of 1970 (some 36,000 years), got "
                            f"{first if first < -FARTHEST else last} us: check the time column and `time_unit`")


def admission(disorder: str) -> Admission:
    """The policy that `disorder` names; `sort` takes items in order of time, so that none is late."""
    kind, _, bound = disorder.partition(":")
    if disorder in ("sort", "in-order"):
        return Trailing()
    if kind == "bounded" and bound:
        distance_us = duration_us(bound, "disorder")
        if distance_us < 0:
            raise SpecError(f"`disorder` bounded must not be negative, got {bound!r}")
        return Trailing(distance_us)
    if kind in _NOT_YET:
        raise SpecError(f"`disorder` {disorder!r} is not available yet: use sort, which orders the data by time first")
    raise SpecError(f"`disorder` must be sort, in-order, bounded:DURATION, k-slack or aq:PERCENT, got {disorder!r}")

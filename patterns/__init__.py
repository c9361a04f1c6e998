"""Parallel patterns for sliding-window queries. Start with `Stream`; see `docs/patterns.md`."""

from patterns.specs import KeyFarm, PaneFarm, WinFarm, WinMapReduce, WinSeq
from patterns.stream import Stream
from patterns.window import CountWindow, DeltaWindow, SlideByTuple, TimeWindow

__all__ = ["CountWindow", "DeltaWindow", "KeyFarm", "PaneFarm", "SlideByTuple", "Stream", "TimeWindow", "WinFarm",
           "WinMapReduce", "WinSeq"]

"""Windows whose place the items decide, listed at the first emitter as soon as their trigger has arrived.

A *listing* is a message behind the items it speaks of: one row per window with its key code, its id, the
lowest ordinate it holds (`low`) and the last row that may belong to it (`last_row`). Who evaluates
windows needs no trigger logic of its own, so the answer cannot depend on who that is.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patterns.engine import CODE
from patterns.progress import grown, reached_message
from patterns.queries.kernels.triggers import every_nth, grown_by
from patterns.source import nearest_floats
from patterns.window import FARTHEST, ContextAware, DeltaWindow, SlideByTuple
from runtime.errors import BadInputError, SpecError
from runtime.message import Batch, Message, Punctuation


def is_listing(message: Message) -> bool:
    return isinstance(message, Batch) and "windows" in message.meta


class Triggers(Protocol):
    """Lists windows; keeps a little state per key."""

    def take(self, codes: np.ndarray, ordinates: np.ndarray, first_row: int, stamp_ns: int) -> Batch | None:
        """The windows that these items (of rows `first_row`, ...) trigger; None if there is none."""

    def progress(self, watermark: int, codes: np.ndarray, stamp_ns: int) -> Message:
        """What no later window reaches below, after the items of `codes`."""


def triggers(window: ContextAware) -> Triggers:
    return EveryNth(window) if isinstance(window, SlideByTuple) else GrownBy(window)


def _listing(codes: np.ndarray, windows: np.ndarray, low: np.ndarray, last_row: np.ndarray, stamp_ns: int) -> Batch:
    columns = {CODE: codes, "window": windows, "low": low, "last_row": last_row}
    return Batch(columns, stamp_ns, meta={"windows": True})


class EveryNth:
    """Slide by tuple: ordinates are event times, the trigger itself belongs to its window."""

    def __init__(self, window: SlideByTuple) -> None:
        self._window = window
        self._counts = np.zeros(0, np.int64)

    def take(self, codes: np.ndarray, ordinates: np.ndarray, first_row: int, stamp_ns: int) -> Batch | None:
        if not len(codes):
            return None
        self._counts = grown(self._counts, int(codes.max()) + 1)
        places, windows = every_nth(codes, self._window.slide, self._counts)
        if not len(places):
            return None
        return _listing(codes[places], windows, ordinates[places] - self._window.length, first_row + places, stamp_ns)

    def progress(self, watermark: int, codes: np.ndarray, stamp_ns: int) -> Message:
        return Punctuation(watermark, stamp_ns)


class GrownBy:
    """Delta: ordinates are values of the attribute, the trigger comes after its window."""

    def __init__(self, window: DeltaWindow) -> None:
        self._window = window
        self._markers: np.ndarray | None = None
        self._counts = np.zeros(0, np.int64)

    def take(self, codes: np.ndarray, ordinates: np.ndarray, first_row: int, stamp_ns: int) -> Batch | None:
        if not len(codes):
            return None
        if self._markers is None:
            self._markers = np.zeros(0, ordinates.dtype)
        size = int(codes.max()) + 1
        if size > len(self._counts):
            known = len(self._counts)
            self._counts, self._markers = grown(self._counts, size), grown(self._markers, size)
            self._counts[known:] = -1
        places, windows = grown_by(codes, ordinates, self._window.threshold, self._markers, self._counts)
        if not len(places):
            return None
        low = ordinates[places] - np.asarray(self._window.length)
        return _listing(codes[places], windows, low, first_row + places - 1, stamp_ns)

    def progress(self, watermark: int, codes: np.ndarray, stamp_ns: int) -> Message:
        present = np.unique(codes)
        if self._markers is None:
            return reached_message(present, np.zeros(0), stamp_ns)
        markers = self._markers[present].astype(np.float64)
        threshold, length = float(self._window.threshold), float(self._window.length)
        # Less than rounding can take away, so that nothing counts as dead that a window may still hold.
        margin = 8 * np.finfo(np.float64).eps * (np.abs(markers) + threshold + length)
        return reached_message(present, markers + threshold - length - margin, stamp_ns)


def attribute_type(window: DeltaWindow, kind: pa.DataType) -> np.dtype:
    """The type on whose line a delta window is laid: 64-bit integers if everything is whole, else float64."""
    if pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return np.dtype(np.float64)
    if not pa.types.is_integer(kind):
        raise SpecError(f"the attribute `{window.attribute}` of a delta window must be a number, got {kind}: "
                        "name another column")
    whole = isinstance(window.length, int | np.integer) and isinstance(window.threshold, int | np.integer)
    return np.dtype(np.int64 if whole else np.float64)


def attribute_values(window: DeltaWindow, column: pa.Array) -> np.ndarray:
    """The attribute of items on the line of `attribute_type`; BadInputError for one that has no exact place there."""
    if pa.types.is_decimal(column.type):
        return nearest_floats(column)
    kind = attribute_type(window, column.type)
    try:
        values = np.asarray(column.cast(pa.from_numpy_dtype(kind)).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        values = None
    if values is None or (kind.kind == "i" and len(values) and max(-int(values.min()), int(values.max())) > FARTHEST):
        limit = f"2**{FARTHEST.bit_length() - 1}" if kind.kind == "i" else "2**53 (`length` or `threshold` is a float)"
        raise BadInputError(f"the attribute `{window.attribute}` of a delta window must be a whole number of at most "
                            f"{limit}, got {pc.min(column)} to {pc.max(column)}: scale the column")
    return values

"""How far the stream has come: one watermark for all keys, or a figure for each key.

Time and slide-by-tuple windows go by the watermark; count windows by the number of items of a key that
have come, delta windows by the value that no later window of the key reaches below. Progress travels as
messages behind the items it speaks of. A node with several inputs knows only what all of them have
said: the smallest watermark, and per key the smallest figure.
"""

from __future__ import annotations

import numpy as np

from runtime.message import END_OF_TIME, START_OF_TIME, Batch, Message, Punctuation

#: Progress in ordinates: one watermark for all keys, or a figure by key code.
Progress = int | np.ndarray


def reached_message(codes: np.ndarray, reached: np.ndarray, stamp_ns: int) -> Batch:
    """The progress of key `codes[i]` is `reached[i]` by now."""
    return Batch({"code": codes, "reached": reached}, stamp_ns, meta={"progress": True})


def is_progress(message: Message) -> bool:
    return isinstance(message, Punctuation) or (isinstance(message, Batch) and "progress" in message.meta)


class ProgressTracker:
    """The progress that all `inputs` agree on; `by_key`: a figure for each key."""

    def __init__(self, inputs: int, by_key: bool) -> None:
        self._by_key = by_key
        self._watermarks = [START_OF_TIME] * inputs
        self._reached = [np.zeros(0, np.int64) for _ in range(inputs)]
        self.stamp_ns = 0

    def update(self, message: Message, port: int) -> bool:
        """Take in a progress message from `port`; True if the common progress may have moved."""
        assert isinstance(message, Punctuation | Batch)
        self.stamp_ns = max(self.stamp_ns, message.stamp_ns)
        if isinstance(message, Punctuation):
            before = min(self._watermarks)
            self._watermarks[port] = max(self._watermarks[port], message.watermark)
            return min(self._watermarks) > before
        codes, reached = message.columns["code"], message.columns["reached"]
        if len(codes):
            known = self._reached[port].astype(reached.dtype, copy=False)
            self._reached[port] = grown(known, int(codes.max()) + 1)
            self._reached[port][codes] = reached
        return True

    def common(self, message: Message) -> Message:
        """What to tell the next stage after `message`: the progress of all inputs, not of the one that spoke."""
        if isinstance(message, Punctuation):
            return Punctuation(min(self._watermarks), self.stamp_ns)
        assert isinstance(message, Batch)
        codes = message.columns["code"]
        reached = by_code(self.value, codes)
        assert isinstance(reached, np.ndarray)
        return reached_message(codes, reached, self.stamp_ns)

    @property
    def value(self) -> Progress:
        if not self._by_key:
            return min(self._watermarks)
        if len(self._reached) == 1:
            return self._reached[0]
        size = max(len(reached) for reached in self._reached)
        kind = np.result_type(*self._reached)
        return np.minimum.reduce([grown(reached.astype(kind, copy=False), size)[:size] for reached in self._reached])


def grown(array: np.ndarray, size: int) -> np.ndarray:
    """`array` with at least `size` entries, new ones without any progress; grows by doubling."""
    if len(array) >= size:
        return array
    nothing = -np.inf if array.dtype.kind == "f" else 0
    larger = np.full(max(size, 2 * len(array)), nothing, array.dtype)
    larger[: len(array)] = array
    return larger


def by_code(progress: Progress, codes: np.ndarray) -> np.ndarray | int:
    """The progress of each of `codes`; a key that nothing is known of has none."""
    if isinstance(progress, int):
        return progress
    if len(codes) and int(codes.max()) >= len(progress):
        progress = grown(progress, int(codes.max()) + 1)
    result: np.ndarray = progress[codes]
    return result


def has_ended(progress: Progress) -> bool:
    return isinstance(progress, int) and progress == END_OF_TIME

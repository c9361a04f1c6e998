"""How far the stream has come: watermarks for time windows, arrival counts per key for count windows.

Both travel as messages behind the items they speak of. A node with several inputs knows only what all
of them have said: the smallest watermark, and per key the smallest count.
"""

from __future__ import annotations

import numpy as np

from runtime.message import END_OF_TIME, START_OF_TIME, Batch, Message, Punctuation

#: Progress in ordinates: one watermark for all keys, or the number of items that have come, by key code.
Progress = int | np.ndarray


def counts_message(codes: np.ndarray, counts: np.ndarray, stamp_ns: int) -> Batch:
    """`counts[i]` items of key `codes[i]` have come by now (count windows)."""
    return Batch({"code": codes, "count": counts}, stamp_ns, meta={"progress": True})


def is_progress(message: Message) -> bool:
    return isinstance(message, Punctuation) or (isinstance(message, Batch) and "progress" in message.meta)


class ProgressTracker:
    """The progress that all `inputs` agree on."""

    def __init__(self, inputs: int, counted: bool) -> None:
        self._counted = counted
        self._watermarks = [START_OF_TIME] * inputs
        self._counts = [np.zeros(0, np.int64) for _ in range(inputs)]
        self.stamp_ns = 0

    def update(self, message: Message, port: int) -> bool:
        """Take in a progress message from `port`; True if the common progress may have moved."""
        if isinstance(message, Punctuation):
            before = min(self._watermarks)
            self._watermarks[port] = max(self._watermarks[port], message.watermark)
            self.stamp_ns = max(self.stamp_ns, message.stamp_ns)
            return min(self._watermarks) > before
        assert isinstance(message, Batch)
        codes, counts = message.columns["code"], message.columns["count"]
        if len(codes):
            self._counts[port] = grown(self._counts[port], int(codes.max()) + 1)
            self._counts[port][codes] = counts
        self.stamp_ns = max(self.stamp_ns, message.stamp_ns)
        return True

    def common(self, message: Message) -> Message:
        """What to tell the next stage after `message`: the progress of all inputs, not of the one that spoke."""
        if isinstance(message, Punctuation):
            return Punctuation(min(self._watermarks), self.stamp_ns)
        assert isinstance(message, Batch)
        codes = message.columns["code"]
        counts = by_code(self.value, codes)
        assert isinstance(counts, np.ndarray)
        return counts_message(codes, counts, self.stamp_ns)

    @property
    def value(self) -> Progress:
        if not self._counted:
            return min(self._watermarks)
        if len(self._counts) == 1:
            return self._counts[0]
        size = max(len(counts) for counts in self._counts)
        return np.minimum.reduce([grown(counts, size) for counts in self._counts])


def grown(array: np.ndarray, size: int) -> np.ndarray:
    """`array` with at least `size` entries, new ones 0; grows by doubling."""
    if len(array) >= size:
        return array
    larger = np.zeros(max(size, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


def by_code(progress: Progress, codes: np.ndarray) -> np.ndarray | int:
    """The progress of each of `codes`: 0 for a key that nothing is known of."""
    if isinstance(progress, int):
        return progress
    if len(codes) and int(codes.max()) >= len(progress):
        progress = grown(progress, int(codes.max()) + 1)
    result: np.ndarray = progress[codes]
    return result


def has_ended(progress: Progress) -> bool:
    return isinstance(progress, int) and progress == END_OF_TIME

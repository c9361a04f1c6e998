"""How long items are needed: until no window that is open, or still to come, can hold them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from patterns.progress import Progress, by_code, has_ended
from patterns.window import Window, by_key

T = TypeVar("T")

#: Below this many items dead ones are not worth a look.
_FEW = 4_096


@dataclass(frozen=True, slots=True)
class Chunk(Generic[T]):
    """Items that came together: what is kept of them (`content`), and what tells how long it is needed.

    `codes` is None where progress is the same for all keys; then `ordinates` has only the greatest one.
    """

    content: T
    size: int
    codes: np.ndarray | None
    ordinates: np.ndarray

    def alive(self, window: Window, progress: Progress) -> np.ndarray:
        """Which of `ordinates` a window of the model `window` that is not closed at `progress` may hold."""
        reached = progress if self.codes is None else by_code(progress, self.codes)
        still: np.ndarray = self.ordinates >= window.dead_below(reached)
        return still


class LiveItems(Generic[T]):
    """Chunks of items in order of arrival, dropped once no window needs them.

    Where keys have their own progress, one quiet key would keep everybody's items: so the dead ones are
    weeded out with `select(content, mask)` and `join(contents)` each time the number of items doubled.
    `let_go(content)` is called for what is not kept any more.
    """

    def __init__(self, window: Window, select: Callable[[T, np.ndarray], T], join: Callable[[Sequence[T]], T],
                 let_go: Callable[[T], None] | None = None) -> None:
        self._window, self._select, self._join, self._let_go = window, select, join, let_go
        self._each_key = by_key(window)
        self._chunks: deque[Chunk[T]] = deque()
        self._weed_at = _FEW
        self.items = 0

    def add(self, content: T, codes: np.ndarray, ordinates: np.ndarray) -> None:
        """Keep `content`, the items of `codes` at `ordinates` (copied if they are kept)."""
        if not len(ordinates):
            return
        self.items += len(ordinates)
        if self._each_key:
            self._chunks.append(Chunk(content, len(ordinates), np.array(codes), np.array(ordinates)))
        else:
            self._chunks.append(Chunk(content, len(ordinates), None, ordinates.max(keepdims=True)))

    def purge(self, progress: Progress) -> None:
        """Drop what `progress` leaves behind."""
        while self._chunks and (has_ended(progress) or not self._chunks[0].alive(self._window, progress).any()):
            chunk = self._chunks.popleft()
            self.items -= chunk.size
            if self._let_go is not None:
                self._let_go(chunk.content)
        if self._each_key and self.items >= self._weed_at:
            self._weed(progress)
            self._weed_at = max(2 * self.items, _FEW)

    def _weed(self, progress: Progress) -> None:
        masks = [chunk.alive(self._window, progress) for chunk in self._chunks]
        old = list(self._chunks)
        kept = [(chunk, mask) for chunk, mask in zip(old, masks, strict=True) if mask.any()]
        self._chunks.clear()
        self.items = 0
        if kept:
            content = self._join([self._select(chunk.content, mask) for chunk, mask in kept])
            self.add(content, np.concatenate([chunk.codes[mask] for chunk, mask in kept if chunk.codes is not None]),
                     np.concatenate([chunk.ordinates[mask] for chunk, mask in kept]))
        for chunk in old:
            if self._let_go is not None:
                self._let_go(chunk.content)

    def __iter__(self) -> Iterator[T]:
        return (chunk.content for chunk in self._chunks)

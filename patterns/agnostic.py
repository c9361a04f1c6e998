"""Agnostic workers: the emitter keeps the items once, in shared memory, and hands out windows on demand.

    items ─► emitter: chunks in its arena, windows that closed ──task──► worker: reads the chunks in place
                ▲                                                         │    └──results──► collector
                └────────────────────────── feedback ◄────────────────────┘         (in the order of tasks)

A task is a few windows: a listing (`patterns.listed`) and the chunks that may hold their items, none of
it copied. A worker that reports back gets the next task, so that slow windows do not hold up fast ones.
A chunk goes when no window to come needs it and every task that names it has been worked on, in
whatever order the workers finish: the arena counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from patterns.engine import AT, ROW, codes_of, with_rows
from patterns.lifetime import LiveItems
from patterns.listed import ALL_KEYS, Evaluator, Listed, select, together
from patterns.progress import Progress, ProgressTracker, grown, is_progress, reached_message
from patterns.query import Query
from patterns.triggers import is_listing
from patterns.window import ContextAware, Grid, TimeWindow, Window, by_key
from patterns.worker import STAMP, count_windows
from runtime.arena import Arena
from runtime.errors import SpecError
from runtime.message import END_OF_TIME, Batch, Chunks, Columns, Feedback, Message, Punctuation, Ref
from runtime.node import Emit, Node

#: Room for the items of all open windows; memory is taken only as far as it is used.
ARENA_BYTES = 512 << 20
#: Tasks that a worker has at a time: one to work on and one to go on with.
_TASKS_EACH = 2
#: Windows that close together are spread over so many tasks for each worker.
_TASKS_PER_STEP = 4
#: Items of one chunk at the least (a batch with fewer is a chunk of its own).
_CHUNK_ITEMS = 256


class TimeWindows:
    """Which time windows hold items and have closed."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._open = np.empty(0, np.int64)

    def note(self, ordinates: np.ndarray) -> None:
        first, last = self._grid.first_window(ordinates), self._grid.last_window(ordinates)
        self._open = np.union1d(self._open, ids_between(first, last))

    def slides(self, ordinates: np.ndarray) -> np.ndarray:
        """The number of the slide in which each ordinate lies."""
        return self._grid.last_window(ordinates)

    def close(self, progress: Progress, ended: bool) -> Listed:
        ends = self._grid.origin + self._open * self._grid.slide + self._grid.length
        closed = np.ones(len(ends), bool) if ended else ends <= progress
        windows, self._open = self._open[closed], self._open[~closed]
        low = self._grid.origin + windows * self._grid.slide
        return Listed(np.full(len(windows), ALL_KEYS), windows, low, low + self._grid.length)


class CountWindows:
    """Which count windows of which key have closed."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._listed = np.zeros(0, np.int64)

    def note(self, ordinates: np.ndarray) -> None:
        pass

    def close(self, progress: Progress, ended: bool) -> Listed:
        assert isinstance(progress, np.ndarray)
        self._listed = grown(self._listed, len(progress))
        reached = grown(progress, len(self._listed))
        if ended:
            upto = -(-reached // self._grid.slide)
        else:
            upto = np.maximum((reached - self._grid.length) // self._grid.slide + 1, 0)
        upto = np.maximum(upto, self._listed)
        codes, windows = ranges(self._listed, upto)
        self._listed = upto
        low = windows * self._grid.slide
        return Listed(codes, windows, low, low + self._grid.length)


def ranges(starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places and values of all integers in `starts[i] <= value < stops[i]`, by place, ascending."""
    sizes = stops - starts
    places = np.repeat(np.arange(len(starts)), sizes)
    within = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return places, np.repeat(starts, sizes) + within


def ids_between(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Every id in one of the intervals `first[i] ... last[i]` (none where last < first), ascending."""
    some = last >= first
    order = np.argsort(first[some], kind="stable")
    first, last = first[some][order], np.maximum.accumulate(last[some][order])
    begins = np.flatnonzero(np.r_[True, first[1:] > last[:-1]]) if len(first) else np.empty(0, np.int64)
    stops = np.r_[last[begins[1:] - 1], last[-1:]] + 1 if len(first) else begins
    return ranges(first[begins], stops)[1]


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk in the arena, and the span of its ordinates and rows, to see whether a task needs it."""

    ref: Ref
    low: float
    high: float
    first_row: int
    size_bytes: int


class AgnosticEmitter(Node):
    """Keeps the items, forms tasks of the windows that closed, hands them to workers that are free."""

    def __init__(self, window: Window, degree: int) -> None:
        self._degree, self._each_key = degree, by_key(window)
        self._progress = ProgressTracker(1, self._each_key)
        self._closing: TimeWindows | CountWindows | None = None
        if not isinstance(window, ContextAware):
            self._closing = (TimeWindows if isinstance(window, TimeWindow) else CountWindows)(window.grid())
        self._pieces: LiveItems[Piece] = LiveItems(window, self._select, self._join, self._let_go)
        self._tasks: deque[Chunks] = deque()
        self._free_workers = deque(worker for _ in range(_TASKS_EACH) for worker in range(degree))
        self._next_task = self._handed_out = 0
        self._reserve_bytes = 4 << 20

    def attach(self, arena: Arena) -> None:
        self._arena = arena

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        if isinstance(message, Feedback):
            self._free_workers.append(port - 1)
            self._handed_out -= 1
        elif is_progress(message):
            if self._progress.update(message, 0):
                self._close(self._progress.value)
                self._pieces.purge(self._progress.value)
        elif is_listing(message):
            assert isinstance(message, Batch)
            self._add_tasks(Listed.of(message.columns), message.stamp_ns, {})
        else:
            assert isinstance(message, Batch)
            self._keep(with_rows(message))
        return self._hand_out()

    def end(self) -> Iterable[Emit]:
        self._close(self._progress.value, ended=True)
        self._pieces.purge(END_OF_TIME)
        return self._hand_out()

    @property
    def accepts(self) -> bool:
        """Not while the arena is full, nor while there is work enough to do."""
        return len(self._tasks) < 2 * _TASKS_PER_STEP * self._degree and self._arena.room(self._reserve_bytes)

    @property
    def in_flight(self) -> int:
        return self._handed_out + len(self._tasks)

    def gauges(self) -> dict[str, int]:
        return {"state_bytes": self._arena.used_bytes}

    # -- items ----------------------------------------------------------------------------------

    def _keep(self, batch: Batch) -> None:
        self._reserve_bytes = max(self._reserve_bytes, 2 * batch.size_bytes)
        codes, at = codes_of(batch), batch.columns[AT]
        if self._closing is not None:
            self._closing.note(at)
        for start, stop in zip(*self._cuts(at), strict=True):
            part = {name: column[start:stop] for name, column in batch.columns.items()}
            self._pieces.add(self._write(part), codes[start:stop], part[AT])
        if self._pieces.items and self._held_bytes() + self._reserve_bytes > self._arena.capacity_bytes:
            raise SpecError(f"`model` agnostic keeps the items of all open windows in shared memory and has room for "
                            f"{self._arena.capacity_bytes >> 20} MB of them, got more: use model=\"active\", or "
                            "shorter windows")

    def _cuts(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where to cut a batch into chunks: where a slide begins, so that few windows need half a chunk."""
        edges = np.empty(0, np.int64)
        if isinstance(self._closing, TimeWindows):
            edges = np.flatnonzero(np.diff(self._closing.slides(at))) + 1
            if len(edges) * _CHUNK_ITEMS > len(at):
                edges = np.arange(_CHUNK_ITEMS, len(at), _CHUNK_ITEMS)
        return np.r_[0, edges], np.r_[edges, len(at)]

    def _held_bytes(self) -> int:
        return sum(piece.size_bytes for piece in self._pieces)

    def _write(self, columns: Columns) -> Piece:
        at = columns[AT]
        return Piece(self._arena.write(columns), at.min(), at.max(), int(columns[ROW][0]) if ROW in columns else 0,
                     sum(column.nbytes for column in columns.values()))

    def _select(self, piece: Piece, chosen: np.ndarray) -> Piece:
        return self._write(select(self._arena.view(piece.ref), chosen))

    def _join(self, pieces: Sequence[Piece]) -> Piece:
        joined = self._write(together([self._arena.view(piece.ref) for piece in pieces]))
        for piece in pieces:
            self._let_go(piece)
        return joined

    def _let_go(self, piece: Piece) -> None:
        self._arena.free(piece.ref)

    # -- tasks ----------------------------------------------------------------------------------

    def _close(self, progress: Progress, ended: bool = False) -> None:
        if self._closing is not None:
            listed = self._closing.close(progress, ended)
            meta = {} if isinstance(progress, np.ndarray) else {"watermark": progress}
            self._add_tasks(listed, self._progress.stamp_ns, meta)

    def _add_tasks(self, listed: Listed, stamp_ns: int, meta: dict[str, int]) -> None:
        """Tasks for the windows `listed`; `meta` goes with the last of them."""
        size = max(-(-len(listed) // (_TASKS_PER_STEP * self._degree)), 1)
        for start in range(0, len(listed), size):
            part = listed.slice(start, start + size)
            last = meta if start + size >= len(listed) else {}
            refs = tuple(piece.ref for piece in self._pieces if self._needs(part, piece))
            self._arena.lend(refs)  # a task that waits here holds its chunks like one that was sent
            self._tasks.append(Chunks(refs, {"task": self._next_task, "windows": part.packed(), **last}, stamp_ns))
            self._next_task += 1

    def _needs(self, listed: Listed, piece: Piece) -> bool:
        if listed.last_row is not None and piece.first_row > listed.last_row.max():
            return False
        if self._each_key:
            return True  # every key has its own ordinates
        return bool(piece.high >= listed.low.min() and (listed.high is None or piece.low < listed.high.max()))

    def _hand_out(self) -> Iterable[Emit]:
        out = []
        while self._tasks and self._free_workers:
            task = self._tasks.popleft()
            out.append(Emit(task, (self._free_workers.popleft(),)))
            self._handed_out += 1
            for ref in task.refs:
                self._arena.free(ref)
        return out


class AgnosticWorker(Node):
    """Answers the windows of a task from the chunks that come with it; keeps nothing."""

    def __init__(self, query: Query, window: Window) -> None:
        self._evaluator = Evaluator(query, window)
        self._fired = self._chunks = 0

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        assert isinstance(message, Chunks)
        self._chunks += len(message.refs)
        task, listed = message.meta["task"], Listed.unpacked(message.meta["windows"])
        columns = self._evaluator.evaluate(listed, message.chunks)
        rows = len(columns["window"])
        if rows:
            self._fired += count_windows(columns["window"], columns["code"])
            stamp = np.full(rows, message.stamp_ns, np.int64)
            yield Emit(Batch({**columns, STAMP: stamp}, message.stamp_ns, meta={"task": task}), (0,))
        if "watermark" in message.meta:
            yield Emit(Punctuation(message.meta["watermark"], message.stamp_ns), (0,))
        elif listed.codes[0] != ALL_KEYS:
            yield Emit(reached_message(listed.codes, listed.reached, message.stamp_ns), (0,))
        yield Emit(Batch({}, message.stamp_ns, meta={"task": task, "done": True}), (0,))
        yield Emit(Feedback({"task": task}), (1,))

    def gauges(self) -> dict[str, int]:
        return {"windows": self._fired, "chunks": self._chunks, "state_bytes": self._evaluator.size_bytes}


class InTaskOrder(Node):
    """The collector: tasks were formed in the order of their windows, so that is how their results leave.

    Not `ordered`: results leave at once; progress, which speaks of all tasks before it, still waits.
    """

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered
        self._results: dict[int, list[Batch]] = {}
        self._progress: dict[int, Message] = {}
        self._done: dict[int, Message | None] = {}
        self._next = 0

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        if is_progress(message):
            self._progress[port] = message if isinstance(message, Punctuation) else copied(message)
            return ()
        assert isinstance(message, Batch)
        task = message.meta["task"]
        if "done" in message.meta:
            self._done[task] = self._progress.pop(port, None)
            return self._leave()
        result = Batch(message.columns, message.stamp_ns)
        if not self._ordered or task == self._next:
            return (Emit(result),)
        self._results.setdefault(task, []).append(copied(result))
        return ()

    def _leave(self) -> Iterable[Emit]:
        out: list[Emit] = []
        while self._next in self._done:
            progress = self._done.pop(self._next)
            out += [Emit(progress)] if progress is not None else []
            self._next += 1
            out += [Emit(result) for result in self._results.pop(self._next, ())]
        return out


def copied(message: Message) -> Batch:
    """A batch that outlives the memory it came in."""
    assert isinstance(message, Batch)
    return Batch({name: column.copy() for name, column in message.columns.items()}, message.stamp_ns, -1, message.meta)

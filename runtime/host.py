"""A host runs one or more nodes in one process: it receives, processes, sends, and ends them in order.

    receivers ─► node ─► outlets ─► senders            all nodes of a host share one thread and one bell
                   └──► local queue ─► node ─► ...

The same host serves three places: inline (all nodes, local queues, a seeded schedule), a Ray actor
(usually one node) and the driver (the source, the sink and whatever is fused with them). One message
is worked through to the end, all its outputs written, before the next is received; so views of shared
memory stay valid as long as anything may look at them, and a full output holds back the input: that is
how back pressure travels to the source. While an output is full the host still takes feedback, which
is what makes the full output drain in a farm with a loop.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from runtime import statistics as st
from runtime.channel.contract import Receiver, Sender
from runtime.errors import ClosedError, NodeError, WindowfarmError
from runtime.message import Batch, Message, Punctuation
from runtime.node import SOURCE, Emit, Node


@dataclass
class Outlet:
    """One output port: a sender to another process, or a cell and port in this one."""

    sender: Sender | None = None
    cell: Cell | None = None
    port: int = 0
    feedback: bool = False
    waiting: deque[Message] = field(default_factory=deque)


@dataclass
class Inlet:
    """One input port that is fed from another process."""

    receiver: Receiver
    cell: Cell
    port: int
    feedback: bool = False
    open: bool = True


@dataclass
class Cell:
    """A node in its host, with its outlets and its row of statistics."""

    name: str
    node: Node
    words: np.ndarray
    outlets: list[Outlet] = field(default_factory=list)
    open_inputs: int = 0
    feedback_ports: frozenset[int] = frozenset()
    ended: bool = False
    finished: bool = False


class Host:
    """Runs `cells` until all have finished; see the module's head for the rules.

    `source` yields the messages of the cell named "source", or None when there is nothing to send yet;
    `wait(seen, timeout_s)` sleeps until the host's bell is rung and `bell_value()` reads it.
    """

    def __init__(self, cells: Sequence[Cell], inlets: Sequence[Inlet], *,
                 source: Iterator[Message | None] | None = None, seed: int | None = None,
                 bell_value: Callable[[], int] = lambda: 0,
                 wait: Callable[[int, float], object] = lambda seen, timeout_s: time.sleep(0),
                 idle_s: float = 0.5) -> None:
        self._cells = list(cells)
        self._inlets = list(inlets)
        self._source = source
        self._source_cell = next((cell for cell in cells if cell.name == SOURCE), None)
        self._random = random.Random(seed) if seed is not None else None
        self._bell_value, self._wait, self._idle_s = bell_value, wait, idle_s
        self._queue: deque[tuple[Cell, int, Message | None]] = deque()
        self._next_inlet = 0
        self._held: list[Receiver] = []

    def run(self) -> None:
        """Step until every cell has finished; raises what a node raised, with the node's name."""
        while not self.finished:
            seen = self._bell_value()
            if not self.step():
                self._sleep(seen)

    @property
    def finished(self) -> bool:
        return not self._queue and all(cell.finished for cell in self._cells) and not self._blocked

    # -- one step -------------------------------------------------------------------------------

    def step(self) -> bool:
        """Do one thing that can be done now; False if there is nothing."""
        if self._flush():
            return True
        if self._blocked:
            return self._receive(feedback_only=True)
        if self._random is not None and self._random.random() < 0.3 and self._pull():
            return True
        place = self._deliverable()
        if place is not None:
            self._deliver(place)
            return True
        if self._queue:  # what is queued waits for feedback
            return self._receive(feedback_only=True)
        self._release()
        return self._receive(feedback_only=False) or self._pull()

    def _deliverable(self) -> int | None:
        """The place in the local queue to go on with: the oldest, or (inline) that of a random edge."""
        first_of_edge: dict[tuple[str, int], int] = {}
        for place, (cell, port, _) in enumerate(self._queue):
            if cell.node.accepts or port in cell.feedback_ports:
                if self._random is None:
                    return place
                first_of_edge.setdefault((cell.name, port), place)
        if not first_of_edge or self._random is None:
            return None
        return self._random.choice(list(first_of_edge.values()))

    def _pull(self) -> bool:
        cell = self._source_cell
        if self._source is None or cell is None or cell.finished:
            return False
        cell.words[st.WORD["beat"]] += 1
        try:
            message = next(self._source)
        except StopIteration:
            cell.words[st.WORD["state"]] = st.DONE
            self._close(cell)
            return True
        if message is None:
            return False
        if isinstance(message, Batch):
            cell.words[st.WORD["items_out"]] += len(message)
            cell.words[st.WORD["batches_out"]] += 1
        self._send(cell, (Emit(message),))
        return True

    def _receive(self, feedback_only: bool) -> bool:
        for turn in range(len(self._inlets)):
            inlet = self._inlets[(self._next_inlet + turn) % len(self._inlets)]
            if not inlet.open or (feedback_only and not inlet.feedback):
                continue
            if not inlet.feedback and not inlet.cell.node.accepts:
                continue
            try:
                message = inlet.receiver.try_receive()
            except ClosedError:
                if not inlet.receiver.exhausted:
                    raise  # aborted, or the producer died: not the end of this stream
                inlet.open = False
                if not inlet.feedback:
                    self._input_closed(inlet.cell)
                self._next_inlet += turn + 1
                return True
            if message is not None:
                self._next_inlet += turn + 1
                self._held.append(inlet.receiver)
                self._process(inlet.cell, message, inlet.port)
                return True
        return False

    def _deliver(self, place: int) -> None:
        cell, port, message = self._queue[place]
        del self._queue[place]
        if message is None:
            self._input_closed(cell)
        else:
            self._process(cell, message, port)

    # -- nodes ----------------------------------------------------------------------------------

    def _process(self, cell: Cell, message: Message, port: int) -> None:
        if cell.finished:
            return  # a feedback that came after the last task was accounted for
        words = cell.words
        if isinstance(message, Batch):
            words[st.WORD["items_in"]] += len(message)
            words[st.WORD["batches_in"]] += 1
        elif isinstance(message, Punctuation):
            words[st.WORD["watermark"]] = message.watermark
        self._work(cell, lambda: cell.node.process(message, port))
        self._finish_if_done(cell)

    def _input_closed(self, cell: Cell) -> None:
        cell.open_inputs -= 1
        if cell.open_inputs == 0 and not cell.ended:
            cell.ended = True
            self._work(cell, cell.node.end)
            self._finish_if_done(cell)

    def _work(self, cell: Cell, call: Callable[[], object]) -> None:
        words = cell.words
        words[st.WORD["state"]] = st.BUSY
        begin = time.perf_counter_ns()
        try:
            outputs = list(call())  # type: ignore[call-overload]
        except WindowfarmError:
            raise
        except Exception as error:
            raise NodeError(cell.name, f"failed: {type(error).__name__}: {error}", traceback.format_exc()) from error
        words[st.WORD["busy_ns"]] += time.perf_counter_ns() - begin
        words[st.WORD["beat"]] += 1
        words[st.WORD["state"]] = st.IDLE
        for name, value in cell.node.gauges().items():
            words[st.WORD[name]] = value
        self._send(cell, outputs)

    def _finish_if_done(self, cell: Cell) -> None:
        if cell.ended and not cell.finished and cell.node.in_flight == 0:
            self._close(cell)

    def _close(self, cell: Cell) -> None:
        """Close the outputs of `cell`: at once where nothing waits, else after what waits."""
        cell.finished = True
        for outlet in cell.outlets:
            if outlet.cell is not None:
                if not outlet.feedback:
                    self._queue.append((outlet.cell, outlet.port, None))
            elif not outlet.waiting and outlet.sender is not None:
                outlet.sender.close()
        cell.words[st.WORD["state"]] = st.DONE

    # -- outputs --------------------------------------------------------------------------------

    def _send(self, cell: Cell, outputs: Sequence[Emit]) -> None:
        for emit in outputs:
            ports = range(len(cell.outlets)) if emit.to is None else emit.to
            if isinstance(emit.message, Batch) and cell.name != SOURCE:
                cell.words[st.WORD["items_out"]] += len(emit.message)
                cell.words[st.WORD["batches_out"]] += 1
            for port in ports:
                outlet = cell.outlets[port]
                if outlet.cell is not None:
                    self._queue.append((outlet.cell, outlet.port, emit.message))
                    continue
                assert outlet.sender is not None
                for part in _fitting(emit.message, outlet.sender.capacity_bytes):
                    if outlet.waiting or not self._try_send(outlet, part):
                        outlet.waiting.append(part)

    def _try_send(self, outlet: Outlet, message: Message) -> bool:
        assert outlet.sender is not None
        try:
            return outlet.sender.try_send(message)
        except ClosedError:
            if outlet.feedback:
                return True  # the emitter has finished: nobody needs this feedback any more
            raise

    @property
    def _blocked(self) -> bool:
        return any(outlet.waiting for cell in self._cells for outlet in cell.outlets)

    def _flush(self) -> bool:
        """Write out what waits for room; True if anything moved."""
        moved = False
        for cell in self._cells:
            for outlet in cell.outlets:
                while outlet.waiting and self._try_send(outlet, outlet.waiting[0]):
                    outlet.waiting.popleft()
                    moved = True
                    if not outlet.waiting and cell.finished and outlet.sender is not None:
                        outlet.sender.close()
        return moved

    def _release(self) -> None:
        """Nothing in this host looks at received memory any more: hand it back."""
        if self._held:
            for receiver in self._held:
                receiver.release()
            self._held.clear()

    # -- waiting --------------------------------------------------------------------------------

    def _sleep(self, seen: int) -> None:
        begin = time.perf_counter_ns()
        blocked = self._mark_waiting()
        self._wait(seen, 0.001 if self._source_waits else self._idle_s)
        waited = time.perf_counter_ns() - begin
        for cell in self._cells:
            cell.words[st.WORD["blocked_ns" if blocked else "idle_ns"]] += waited

    @property
    def _source_waits(self) -> bool:
        """The source had nothing yet: it must be asked again soon, no bell rings for it."""
        return self._source is not None and self._source_cell is not None and not self._source_cell.finished

    def _mark_waiting(self) -> bool:
        blocked = False
        for cell in self._cells:
            if cell.finished and not self._blocked:
                continue
            full = next((port for port, outlet in enumerate(cell.outlets) if outlet.waiting), None)
            cell.words[st.WORD["state"]] = st.IDLE if full is None else st.BLOCKED
            cell.words[st.WORD["waits_for"]] = -1 if full is None else full
            blocked |= full is not None
        return blocked


def _fitting(message: Message, capacity_bytes: int) -> Iterable[Message]:
    """`message` in slices that a channel of `capacity_bytes` takes (a quarter of it each at the most)."""
    limit = capacity_bytes // 4
    if not isinstance(message, Batch) or message.size_bytes <= limit or len(message) < 2:
        return (message,)
    step = max(len(message) * limit // message.size_bytes, 1)
    return [Batch({name: column[start:start + step] for name, column in message.columns.items()}, message.stamp_ns,
                  message.first_row + start if message.first_row >= 0 else -1, message.meta)
            for start in range(0, len(message), step)]

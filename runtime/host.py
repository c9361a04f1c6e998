"""A host runs one or more nodes in one process: it receives, processes, sends, and ends them in order.

    receivers ─► node ─► outlets ─► senders            all nodes of a host share one thread and one bell
                   └──► local queue ─► node ─► ...

The same host serves three places: inline (all nodes, local queues, a seeded schedule), a Ray actor
(usually one node) and the driver (the source, the sink and whatever is fused with them). One message
is worked through to the end, all its outputs written, before the next is received; so views of shared
memory stay valid as long as anything may look at them, and a full output holds back the input: that is
how back pressure travels to the source. While an output is full the host still takes feedback, which
is what makes the full output drain in a farm with a loop, and input that cannot lead to that output:
the sink stands beside the source, and must drain while the source waits. An output with `overflow_bytes` may keep that
much aside (copied) before it holds back anything: one slow worker then does not block the others.

Chunks that a message names are resolved to views before the node sees it and given back when the node
is done and its outputs are written; an output that would have to wait takes a copy with it.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from runtime import statistics as st
from runtime.arena import Arena, ArenaReader
from runtime.cell import Cell, Inlet, copied
from runtime.errors import ClosedError, NodeError, UserFunctionError, WindowfarmError
from runtime.message import Batch, Chunks, Message, Punctuation, Shared
from runtime.node import SOURCE, Emit
from runtime.outbox import Outbox

_COLUMNS = (Batch, Chunks)
_ITEMS_IN, _BATCHES_IN, _BUSY, _STATE, _BEAT, _LATENCY, _QUEUED = (st.WORD[word] for word in (
    "items_in", "batches_in", "busy_ns", "state", "beat", "latency_ns", "queued_bytes"))
#: The length of the input queues and the nodes' gauges are looked up once in so many messages, and before a sleep.
_LOOK_EVERY, _GAUGE_EVERY = 64, 16


class Host:
    """Runs `cells` until all have finished; see the module's head for the rules.

    `source` yields the messages of the cell named "source", or None when there is nothing to send yet;
    `wait(seen, timeout_s)` sleeps until the host's bell is rung and `bell_value()` reads it; `readers`
    are the arenas, by number, of which chunks may arrive here.
    """

    def __init__(self, cells: Sequence[Cell], inlets: Sequence[Inlet], *,
                 source: Iterator[Message | None] | None = None, seed: int | None = None,
                 bell_value: Callable[[], int] = lambda: 0,
                 wait: Callable[[int, float], object] = lambda seen, timeout_s: time.sleep(0),
                 idle_s: float = 0.5, readers: Mapping[int, Arena | ArenaReader] | None = None) -> None:
        self._cells = list(cells)
        self._inlets = list(inlets)
        self._source = source
        self._source_cell = next((cell for cell in cells if cell.name == SOURCE), None)
        self._random = random.Random(seed) if seed is not None else None
        self._bell_value, self._wait, self._idle_s = bell_value, wait, idle_s
        self._readers = readers or {}
        self._queue: deque[tuple[Cell, int, Message | None]] = deque()
        self._held: list[Callable[[], None]] = []
        self._out = Outbox(self._queue, self._held)
        self._next_inlet = 0
        self._received = 0
        self._unfinished = sum(not cell.finished for cell in self._cells)
        self._empty_pulls = 0                               # how often in a row the source had nothing yet

    def run(self) -> None:
        """Step until every cell has finished; raises what a node raised, with the node's name."""
        while not self.finished:
            seen = self._bell_value()
            if not self.step():
                self._sleep(seen)

    @property
    def finished(self) -> bool:
        return not self._unfinished and not self._queue and not self._out.backlog

    # -- one step -------------------------------------------------------------------------------

    def step(self) -> bool:
        """Do one thing that can be done now; False if there is nothing."""
        if self._out.backlog:
            if self._out.flush():
                return True
            if self._out.blocked:
                return self._step_blocked()
        if self._random is not None and self._random.random() < 0.3 and self._pull():
            return True
        if self._queue:
            place = self._deliverable()
            if place is None:  # what is queued waits for feedback
                return self._receive(feedback_only=True)
            self._deliver(place)
            return True
        self._release()
        return self._receive(feedback_only=False) or self._pull()

    def _step_blocked(self) -> bool:
        """While an output is full: feedback, and what does not lead to that output (the sink beside the source).

        Nobody may wait for memory that this host only keeps because it waits itself, so it is handed back.
        """
        for place, (cell, port, _) in enumerate(self._queue):
            if cell.runs and (cell.node.accepts or port in cell.feedback_ports):
                self._deliver(place)
                return True
        if self._held or self._out.relayed is not None:
            for place, (cell, port, message) in enumerate(self._queue):
                if isinstance(message, Batch):
                    self._queue[place] = cell, port, copied(message)
            self._release()
        return self._receive(feedback_only=True)

    def _deliverable(self) -> int | None:
        """The place in the local queue to go on with: the oldest, or (inline) that of a random edge."""
        ready = (place for place, (cell, port, _) in enumerate(self._queue)
                 if cell.node.accepts or port in cell.feedback_ports)
        if self._random is None:
            return next(ready, None)
        first_of_edge: dict[tuple[str, int], int] = {}
        for place in ready:
            cell, port, _ = self._queue[place]
            first_of_edge.setdefault((cell.name, port), place)
        return self._random.choice(list(first_of_edge.values())) if first_of_edge else None

    def _pull(self) -> bool:
        cell = self._source_cell
        if self._source is None or cell is None or cell.finished:
            return False
        self._empty_pulls += 1
        cell.row[_BEAT] += 1
        try:
            message = next(self._source)
        except StopIteration:
            self._empty_pulls = 0
            self._close(cell)
            return True
        if message is None:
            return False
        self._empty_pulls = 0
        self._out.send(cell, (Emit(message),))
        if self._random is None and self._queue:  # the next step would do just this
            place = self._deliverable()
            if place is not None:
                self._deliver(place)
        return True

    def _receive(self, feedback_only: bool) -> bool:
        inlets = self._inlets
        for turn in range(len(inlets)):
            inlet = inlets[(self._next_inlet + turn) % len(inlets)]
            if not inlet.open:
                continue
            if not inlet.feedback and ((feedback_only and not (self._out.backlog and inlet.cell.runs))
                                       or not inlet.cell.node.accepts):
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
                self._take(inlet, message)
                return True
        return False

    def _take(self, inlet: Inlet, message: Message) -> None:
        if isinstance(message, Batch) or (isinstance(message, Chunks) and message.chunks):
            self._held.append(inlet.receiver.release)
        elif not self._held or inlet.receiver.release not in self._held:
            inlet.receiver.release()  # nothing looks at what came through this channel
        if isinstance(message, Shared):
            shared, reader = message, self._readers[message.ref.arena]
            message = Batch(reader.view(shared.ref), shared.stamp_ns, shared.first_row, shared.meta)
            self._out.relayed = message, shared
        self._received += 1
        if self._received % _LOOK_EVERY == 0:
            self._count_queued()
        self._process(inlet.cell, message, inlet.port)

    def _deliver(self, place: int) -> None:
        cell, port, message = self._queue[place]
        if place:
            del self._queue[place]
        else:
            self._queue.popleft()
        if message is None:
            self._input_closed(cell)
        else:
            self._process(cell, message, port)

    # -- nodes ----------------------------------------------------------------------------------

    def _process(self, cell: Cell, message: Message, port: int) -> None:
        if isinstance(message, Chunks) and message.refs:
            self._process_chunks(cell, message, port)
        else:
            self._process_one(cell, message, port)

    def _process_one(self, cell: Cell, message: Message, port: int) -> None:
        if cell.finished:
            return  # a feedback that came after the last task was accounted for
        row = cell.row
        if isinstance(message, _COLUMNS):
            row[_ITEMS_IN] += len(message)
            row[_BATCHES_IN] += 1
            if message.stamp_ns:
                row[_LATENCY] = time.monotonic_ns() - message.stamp_ns
        elif isinstance(message, Punctuation):
            row[st.WORD["watermark"]] = message.watermark
        self._work(cell, partial(cell.node.process, message, port))
        self._finish_if_done(cell)

    def _process_chunks(self, cell: Cell, message: Chunks, port: int) -> None:
        """Process `message` with its chunks as views, then give them back."""
        refs = message.refs
        readers = {ref.arena: self._readers[ref.arena] for ref in refs}
        chunks = [readers[ref.arena].view(ref) for ref in refs]
        self._out.reading = [reader.extent for reader in readers.values()]
        try:
            self._process_one(cell, Chunks(refs, message.meta, message.stamp_ns, chunks), port)
        finally:
            self._out.reading = []
        for number, reader in readers.items():
            reader.give_back([ref for ref in refs if ref.arena == number])

    def _input_closed(self, cell: Cell) -> None:
        cell.open_inputs -= 1
        if cell.open_inputs == 0 and not cell.ended:
            cell.ended = True
            self._work(cell, cell.node.end)
            self._finish_if_done(cell)

    def _work(self, cell: Cell, call: Callable[[], object]) -> None:
        row = cell.row
        row[_STATE] = st.BUSY
        begin = time.perf_counter_ns()
        try:
            outputs: list[Emit] = list(call())  # type: ignore[call-overload]
        except UserFunctionError as error:
            raise error.at(f"node `{cell.name}`") from None
        except WindowfarmError:
            raise
        except Exception as error:
            raise NodeError(cell.name, f"failed: {type(error).__name__}: {error}", traceback.format_exc()) from error
        row[_BUSY] += time.perf_counter_ns() - begin
        row[_BEAT] += 1
        row[_STATE] = st.IDLE
        if row[_BEAT] % _GAUGE_EVERY == 0 or cell.ended:
            _read_gauges(cell)
        if outputs:
            self._out.send(cell, outputs)
        arena = cell.arena
        if arena is not None:
            arena.settle()

    def _finish_if_done(self, cell: Cell) -> None:
        if cell.ended and not cell.finished and cell.node.in_flight == 0:
            self._close(cell)

    def _close(self, cell: Cell) -> None:
        """Close the outputs of `cell`: at once where nothing waits, else after what waits."""
        cell.finished = True
        self._unfinished -= 1
        _read_gauges(cell)
        for outlet in cell.outlets:
            if outlet.cell is not None:
                if not outlet.feedback:
                    self._queue.append((outlet.cell, outlet.port, None))
            elif not outlet.waiting and outlet.sender is not None:
                outlet.sender.close()
        cell.row[_STATE] = st.DONE

    # -- waiting --------------------------------------------------------------------------------

    def _release(self) -> None:
        """Nothing in this host looks at received memory any more: hand it back."""
        if self._out.relayed is not None:
            ref = self._out.relayed[1].ref
            self._readers[ref.arena].give_back((ref,))
            self._out.relayed = None
        if self._held:
            for give_back in self._held:
                give_back()
            self._held.clear()

    def _sleep(self, seen: int) -> None:
        begin = time.perf_counter_ns()
        blocked = self._mark_waiting()
        # A source that had nothing yet must be asked again: no bell rings for it.
        again_s = min(0.001 * (1 + self._empty_pulls // 50), 0.005) if self._empty_pulls else self._idle_s
        self._wait(seen, again_s)
        waited = time.perf_counter_ns() - begin
        for cell in self._cells:
            cell.row[st.WORD["blocked_ns" if blocked else "idle_ns"]] += waited

    def _mark_waiting(self) -> bool:
        blocked = False
        for cell in self._cells:
            if cell.finished and not self._out.backlog:
                continue
            _read_gauges(cell)
            full = next((port for port, outlet in enumerate(cell.outlets) if outlet.waiting), None)
            cell.row[_STATE] = st.IDLE if full is None else st.BLOCKED
            cell.row[st.WORD["waits_for"]] = -1 if full is None else full
            blocked |= full is not None
        self._count_queued()
        return blocked

    def _count_queued(self) -> None:
        for cell in self._cells:
            cell.row[_QUEUED] = 0
        for inlet in self._inlets:
            if inlet.open:
                inlet.cell.row[_QUEUED] += inlet.receiver.queued_bytes


def _read_gauges(cell: Cell) -> None:
    for name, value in cell.node.gauges().items():
        cell.row[st.WORD[name]] = value
    if cell.arena is not None:
        cell.row[st.WORD["arena_bytes"]] = cell.arena.used_bytes
        cell.row[st.WORD["arena_peak_bytes"]] = cell.arena.peak_bytes

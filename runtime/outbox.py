"""The way out of a host: messages go to channels or to cells beside, wait where there is no room, in order.

Memory that a message looks at may be given back before a waiting message is sent: such a message is copied
(`Outbox.reading`). A batch that lies in another node's arena and leaves unchanged is passed on as a ref.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from runtime import statistics as st
from runtime.cell import Cell, Outlet, copied, fitting, refs_of
from runtime.errors import ClosedError, TooLargeError
from runtime.message import Batch, Chunks, Message, Shared
from runtime.node import Emit

_COLUMNS = (Batch, Chunks)
_ITEMS_OUT, _BATCHES_OUT = st.WORD["items_out"], st.WORD["batches_out"]


class Outbox:
    """What the cells of a host send; `queue` is the host's own, for the cells in it; `held` the memory it looks at."""

    def __init__(self, queue: deque[tuple[Cell, int, Message | None]], held: Sequence[object]) -> None:
        self._queue, self._held = queue, held
        self.backlog: list[tuple[Cell, Outlet]] = []        # the outlets at which something waits
        self.relayed: tuple[Batch, Shared] | None = None    # the batch in hand that lies in another's arena
        self.reading: list[np.ndarray] = []                 # memory that is given back right after this call

    def send(self, cell: Cell, outputs: Sequence[Emit]) -> None:
        passed_on = self._passed_on(cell, outputs) if self.relayed is not None else None
        for emit in outputs:
            message = emit.message
            ports = range(len(cell.outlets)) if emit.to is None else emit.to
            if isinstance(message, _COLUMNS):
                cell.row[_ITEMS_OUT] += len(message)
                cell.row[_BATCHES_OUT] += 1
            if passed_on is not None and isinstance(message, Batch):
                shared: Shared | None = passed_on
            else:
                shared = cell.shared(message, ports) if cell.multicast else None
            for port in ports:
                outlet = cell.outlets[port]
                if cell.arena is not None and isinstance(message, Chunks):
                    cell.arena.lend(message.refs)
                if outlet.cell is not None:
                    self._queue.append((outlet.cell, outlet.port, self._own(message, always=False)))
                elif shared is not None and outlet.reader >= 0:
                    self._put(cell, outlet, shared)
                else:
                    self._put(cell, outlet, message)

    def _passed_on(self, cell: Cell, outputs: Sequence[Emit]) -> Shared | None:
        """The message in hand as it came, if it leaves this process unchanged, once, and nothing else looks at it.

        Whoever receives it then gives it back in this host's stead: the hold passes on.
        """
        batches = [emit for emit in outputs if isinstance(emit.message, _COLUMNS)]
        if self.relayed is None or self._queue or len(batches) != 1 or batches[0].message is not self.relayed[0]:
            return None
        ports = range(len(cell.outlets)) if batches[0].to is None else batches[0].to
        if len(ports) != 1 or cell.outlets[ports[0]].reader < 0 or cell.outlets[ports[0]].feedback:
            return None
        shared = self.relayed[1]
        self.relayed = None
        return shared

    def _put(self, cell: Cell, outlet: Outlet, message: Message) -> None:
        assert outlet.sender is not None
        if not outlet.waiting:
            try:
                if self._try_send(cell, outlet, message):
                    return
            except TooLargeError:
                if len(fitting(message, outlet.sender.capacity_bytes)) == 1:
                    raise
                self._put_parts(cell, outlet, message)
                return
            self.backlog.append((cell, outlet))
        elif len(fitting(message, outlet.sender.capacity_bytes)) > 1:
            self._put_parts(cell, outlet, message)
            return
        message = self._own(message, always=bool(outlet.overflow_bytes or self._held or self.relayed))
        outlet.waiting.append(message)
        outlet.waiting_bytes += _size_of(message)

    def _put_parts(self, cell: Cell, outlet: Outlet, message: Message) -> None:
        assert outlet.sender is not None
        for part in fitting(message, outlet.sender.capacity_bytes):
            self._put(cell, outlet, part)

    def _own(self, message: Message, always: bool) -> Message:
        """`message`, copied if its columns lie in memory that is given back before it is sent."""
        if isinstance(message, Batch) and (always or (self.reading and self._is_lent(message))):
            return copied(message)
        return message

    def _is_lent(self, batch: Batch) -> bool:
        return any(np.may_share_memory(column, memory)
                   for column in batch.columns.values() for memory in self.reading)

    def _try_send(self, cell: Cell, outlet: Outlet, message: Message) -> bool:
        assert outlet.sender is not None
        arena = cell.arena
        refs = () if arena is None or isinstance(message, Batch) else refs_of(message)
        try:
            if not refs:
                return outlet.sender.try_send(message)
            assert arena is not None
            if outlet.reader < 0:  # no memory in common: the columns themselves travel
                assert isinstance(message, Chunks)
                sent = outlet.sender.try_send(replace(message, refs=(), chunks=[arena.view(ref) for ref in refs]))
                if sent:
                    arena.give_back(refs)
                return sent
            if not arena.credit(len(refs)) or not outlet.sender.try_send(message):
                return False
            arena.sent(len(refs))
            return True
        except ClosedError:
            if outlet.feedback:
                if arena is not None:
                    arena.give_back(refs)
                return True  # the emitter has finished: nobody needs this feedback any more
            raise

    @property
    def blocked(self) -> bool:
        return any(outlet.blocks for _, outlet in self.backlog)

    def flush(self) -> bool:
        """Write out what waits for room; True if anything moved."""
        moved = False
        for cell, outlet in self.backlog:
            while outlet.waiting and self._try_send(cell, outlet, outlet.waiting[0]):
                outlet.waiting_bytes -= _size_of(outlet.waiting.popleft())
                moved = True
            if not outlet.waiting and cell.finished and outlet.sender is not None:
                outlet.sender.close()
        if moved:
            self.backlog = [(cell, outlet) for cell, outlet in self.backlog if outlet.waiting]
        return moved


def _size_of(message: Message) -> int:
    """What a waiting message counts against `overflow_bytes`; one without columns counts a little, too."""
    return 64 + (message.size_bytes if isinstance(message, Batch) else 0)

"""The arena against a model that keeps its own copies, under any order of calls (hypothesis)."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from runtime.channel.segment import ArenaSpec, Segment, SegmentLayout
from runtime.errors import FullError, SpecError
from runtime.message import Ref


class ArenaMachine(RuleBasedStateMachine):
    """One owner and two readers; the model says what each may still look at, and who holds what."""

    @initialize(capacity=st.sampled_from([4096, 8192, 20480]))
    def start(self, capacity: int) -> None:
        layout = SegmentLayout(3, (), arenas=(ArenaSpec(0, (1, 2), capacity),))
        self.segment = Segment.create("model", layout)
        self.arena = self.segment.arena(0)
        other = Segment.attach(self.segment.address)
        self.readers = {number: other.arena_reader(0, number) for number in (1, 2)}
        self.contents: dict[Ref, np.ndarray] = {}               # all that somebody holds
        self.owned: list[Ref] = []
        self.lent: list[tuple[int, list[Ref]]] = []             # messages under way or being read
        self.returned: list[Ref] = []                           # given back, not collected yet
        self.written = 0

    @rule(rows=st.integers(0, 700))
    def write(self, rows: int) -> None:
        self.written += 1
        column = np.arange(rows) * self.written
        columns = {"x": column, "y": column.astype(np.int16)[::2]}
        need = self.arena.need(columns)
        if need > self.arena.capacity_bytes:
            with pytest.raises(SpecError):
                self.arena.write(columns)
        elif not self.arena.room(need):
            with pytest.raises(FullError):
                self.arena.write(columns)
            assert self.contents, "an empty arena has room for all that fits at all"
        else:
            ref = self.arena.write(columns)
            self.contents[ref] = column
            self.owned.append(ref)
        self.returned.clear()                                   # `room` collects when it has to

    @precondition(lambda self: self.owned)
    @rule(data=st.data(), reader=st.sampled_from([1, 2]), copies=st.integers(1, 3))
    def lend(self, data: st.DataObject, reader: int, copies: int) -> None:
        refs = [data.draw(st.sampled_from(self.owned)) for _ in range(copies)]
        self.arena.lend(refs)
        assert self.arena.credit(len(refs))
        self.arena.sent(len(refs))
        self.lent.append((reader, refs))

    @precondition(lambda self: self.owned)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        ref = data.draw(st.sampled_from(self.owned))
        self.owned.remove(ref)
        self.arena.free(ref)
        self.arena.settle()

    @precondition(lambda self: self.lent)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        reader, refs = self.lent.pop(data.draw(st.integers(0, len(self.lent) - 1)))
        self.readers[reader].give_back(refs)
        self.returned += refs

    @rule()
    def collect(self) -> None:
        assert self.arena.collect() >= 0
        self.returned.clear()
        held = {*self.owned, *(ref for _, refs in self.lent for ref in refs)}
        self.contents = {ref: column for ref, column in self.contents.items() if ref in held}
        used = sum(self.arena.need({"x": column, "y": column.astype(np.int16)[::2]})
                   for column in self.contents.values())
        assert self.arena.used_bytes == used

    @invariant()
    def what_is_held_is_whole(self) -> None:
        for ref in getattr(self, "owned", ()):
            assert np.array_equal(self.arena.view(ref)["x"], self.contents[ref])
        for reader, refs in getattr(self, "lent", ()):
            for ref in refs:
                assert np.array_equal(self.readers[reader].view(ref)["x"], self.contents[ref])

    @invariant()
    def sizes_are_bounded(self) -> None:
        if hasattr(self, "arena"):
            assert 0 <= self.arena.used_bytes <= self.arena.peak_bytes <= self.arena.capacity_bytes


TestArena = ArenaMachine.TestCase
TestArena.settings = settings(max_examples=60, stateful_step_count=50)

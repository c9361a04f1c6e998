"""What nodes hold stays flat however long the stream is: measured over a stream of fifty windows."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from patterns import CountWindow, DeltaWindow, SlideByTuple, TimeWindow
from patterns.admission import admission
from patterns.build import Job, build
from patterns.intake import Intake, IntakeSpec
from patterns.lines import line
from patterns.queries import Count, Skyline
from patterns.source import TimeColumn
from patterns.specs import parse_pattern
from patterns.window import ContextAware, Window
from runtime.inline import run_inline
from runtime.message import Message
from runtime.node import Node
from runtime.topology import Graph, graph

LENGTH, WINDOWS, BATCHES_PER_WINDOW, BATCH = 4_000, 50, 8, 50

GRID_PATTERNS = ("win_seq", "win_farm(2)", "win_farm(3,agnostic)", "key_farm(2)", "pane_farm(2,2)",
                 "pane_farm(2,2,level=0)", "win_mapreduce(2,2)", "win_farm(pane_farm(2,1),2)",
                 "key_farm(win_mapreduce(2,1),2)")
ITEM_PATTERNS = ("win_seq", "key_farm(2)", "win_farm(2,agnostic)")


def batches() -> Iterator[pa.RecordBatch]:
    """Items evenly spread over fifty windows; of eight keys the last falls quiet after the first window."""
    rng = np.random.default_rng(3)
    for number in range(WINDOWS * BATCHES_PER_WINDOW):
        ts = np.linspace(number, number + 1, BATCH, endpoint=False) * (LENGTH / BATCHES_PER_WINDOW)
        keys = rng.integers(0, 8 if number < BATCHES_PER_WINDOW else 7, BATCH)
        yield pa.record_batch({"ts": ts.astype(np.int64), "key": keys, "a": rng.random(BATCH), "b": rng.random(BATCH),
                               "c": ts / LENGTH})


class Watched:
    """The nodes of a graph as they run, and the size of all they hold."""

    def __init__(self, built: Graph) -> None:
        self.nodes: list[Node] = []
        self.graph = replace(built, nodes=tuple(replace(spec, make=self._making(spec.make)) for spec in built.nodes))

    def _making(self, make: Any) -> Any:
        def made() -> Node:
            self.nodes.append(make())
            return self.nodes[-1]
        return made

    def held_bytes(self) -> int:
        total = 0
        for node in self.nodes:
            state = dict(node.__dict__)
            arena = state.pop("_arena", None)
            state = {name: value for name, value in state.items() if name != "_pieces"}
            total += len(pickle.dumps(state)) + (arena.used_bytes if arena is not None else 0)
        return total


def peaks(pattern: str, window: Window, query: Any) -> tuple[int, int]:
    """The most that was held over the second and the last fifth of the stream."""
    listed = isinstance(window, ContextAware)
    spec = IntakeSpec(TimeColumn("ts"), "key", tuple(query.columns), query.selects or listed, False,
                      also_read=("c",))
    intake = Intake(spec, admission("in-order"), line(window, 1))
    watched = Watched(graph(build(parse_pattern(pattern), Job(query, window, keyed=True))))
    sizes: list[int] = []

    def messages() -> Iterator[Message]:
        for batch in batches():
            yield from intake.take(batch, 1).messages
            sizes.append(watched.held_bytes())

    run_inline(watched.graph, messages(), lambda message: None)
    fifth = len(sizes) // 5
    return max(sizes[fifth:2 * fifth]), max(sizes[-fifth:])


@pytest.mark.parametrize("query", [Skyline("a", "b"), Count()], ids=["skyline", "count"])
@pytest.mark.parametrize("window", [TimeWindow(LENGTH, slide=LENGTH // 4), CountWindow(40, slide=10)],
                         ids=["time", "count"])
@pytest.mark.parametrize("pattern", GRID_PATTERNS)
def test_memory_over_fifty_windows_stays_flat(pattern: str, window: Window, query: Any) -> None:
    early, late = peaks(pattern, window, query)
    assert late < 1.5 * early


@pytest.mark.parametrize("window", [SlideByTuple(LENGTH, slide=50), DeltaWindow("c", length=1.0, threshold=0.25)],
                         ids=["slide-by-tuple", "delta"])
@pytest.mark.parametrize("pattern", ITEM_PATTERNS)
def test_memory_over_fifty_triggered_windows_stays_flat(pattern: str, window: Window) -> None:
    early, late = peaks(pattern, window, Skyline("a", "b"))
    assert late < 1.5 * early

"""The inline executor: every node in this process and thread, on a seeded schedule.

For tests, debugging and small data: the same graph and the same state objects as on Ray, and with the
same seed the same order of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn

import numpy as np

from runtime.arena import Arena
from runtime.errors import StateError
from runtime.host import Host
from runtime.message import Message
from runtime.node import SINK, SOURCE, Node, Sink
from runtime.statistics import WORDS, NodeStats
from runtime.topology import Graph
from runtime.wiring import arena_owners, wire


def run_inline(graph: Graph, source: Iterator[Message | None], take: Callable[[Message], None], *,
               seed: int | None = None) -> tuple[NodeStats, ...]:
    """Push `source` through `graph` into `take`; `seed` shuffles the schedule (None: oldest message first)."""
    nodes: dict[str, Node] = {SOURCE: Node(), **{spec.name: spec.make() for spec in graph.nodes}, SINK: Sink(take)}
    words = {name: np.zeros(len(WORDS), np.int64) for name in nodes}
    arenas = {number: Arena.local(number, spec.arena_bytes) for number, spec in enumerate(arena_owners(graph))}
    by_node = {spec.name: arenas[number] for number, spec in enumerate(arena_owners(graph))}
    cells, inlets = wire(graph, nodes, words, _no_channel, _no_channel, by_node, _no_channel)
    Host(cells, inlets, source=source, seed=seed, readers=arenas).run()
    return tuple(NodeStats.from_words(name, row) for name, row in words.items())


def _no_channel(edge: int) -> NoReturn:
    raise StateError(f"edge {edge} of an inline graph leads out of the process")

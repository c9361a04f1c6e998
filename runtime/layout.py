"""Where everything of a graph stands in the run's segment, and how a process takes its host from it."""

from __future__ import annotations

from collections.abc import Iterator

from runtime.arena import Arena, ArenaReader
from runtime.channel.segment import ArenaSpec, RingSpec, Segment, SegmentLayout
from runtime.host import Host
from runtime.message import Message
from runtime.node import SINK, SOURCE, Node
from runtime.statistics import WORDS
from runtime.topology import Graph
from runtime.wiring import DRIVER, arena_owners, arena_readers, crossing_edges, place_of, wire


class Layout:
    """Numbers for the places of a graph: a row of words and a bell for every node, a ring for every crossing edge."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.number = {name: place for place, name in enumerate(
            (SOURCE, SINK, *(spec.name for spec in graph.nodes)))}
        self.ring = {edge: place for place, edge in enumerate(crossing_edges(graph))}
        rings = tuple(RingSpec(self.bell(place_of(graph, graph.edges[edge].source)),
                               self.bell(place_of(graph, graph.edges[edge].target)),
                               graph.edges[edge].capacity_bytes) for edge in self.ring)
        self.arenas = {spec.name: place for place, spec in enumerate(arena_owners(graph))}
        arenas = tuple(ArenaSpec(self.bell(spec.place), tuple(map(self.bell, arena_readers(graph, spec))),
                                 spec.arena_bytes) for spec in arena_owners(graph))
        self.segment = SegmentLayout(len(self.number), rings, max(64, len(WORDS)), arenas)

    def bell(self, host: str) -> int:
        """The bell of a host is that of its first node."""
        if host == DRIVER:
            return self.number[SOURCE]
        return self.number[self.graph.hosts()[host][0].name]

    def host(self, segment: Segment, name: str, nodes: dict[str, Node],
             source: Iterator[Message | None] | None = None) -> Host:
        """The host `name`, wired to its peers through `segment`."""
        own = {node: segment.arena(number) for node, number in self.arenas.items() if node in nodes}
        cells, inlets = wire(self.graph, nodes, {node: segment.words(self.number[node]) for node in nodes},
                             lambda edge: segment.sender(self.ring[edge]),
                             lambda edge: segment.receiver(self.ring[edge]), own,
                             lambda edge: self.bell(place_of(self.graph, self.graph.edges[edge].target)))
        bell = segment.bell(self.bell(name))
        readers: dict[int, Arena | ArenaReader] = {self.arenas[node]: arena for node, arena in own.items()}
        for number, spec in enumerate(self.segment.arenas):
            if number not in readers and self.bell(name) in spec.readers:
                readers[number] = segment.arena_reader(number, self.bell(name))
        return Host(cells, inlets, source=source, bell_value=bell.value, wait=bell.wait, readers=readers)

"""Where everything of a graph stands in the run's segment, and how a process takes its host from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from runtime.arena import Arena, ArenaReader
from runtime.channel.contract import Receiver, Sender
from runtime.channel.remote import Link, RemoteReceiver, RemoteSender
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
        self.far_ends: list[RemoteSender | RemoteReceiver] = []     # those of the hosts made here
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
             source: Iterator[Message | None] | None = None, far: Mapping[int, Link] | None = None) -> Host:
        """The host `name`, wired to its peers through `segment`; `far` are the links of edges to other machines."""
        far = far or {}
        bell = segment.bell(self.bell(name))
        own = {node: segment.arena(number) for node, number in self.arenas.items() if node in nodes}

        def sender(edge: int) -> Sender:
            if edge in far:
                end = RemoteSender(far[edge], bell, self.graph.edges[edge].capacity_bytes, lambda: segment.aborted,
                                   self._edge_name(edge))
                self.far_ends.append(end)
                return end
            return segment.sender(self.ring[edge])

        def receiver(edge: int) -> Receiver:
            if edge in far:
                end = RemoteReceiver(far[edge], bell, self.graph.edges[edge].capacity_bytes, lambda: segment.aborted,
                                     self._edge_name(edge))
                self.far_ends.append(end)
                return end
            return segment.receiver(self.ring[edge])

        def reader(edge: int) -> int:
            return -1 if edge in far else self.bell(place_of(self.graph, self.graph.edges[edge].target))

        words = {node: segment.words(self.number[node]) for node in nodes}
        cells, inlets = wire(self.graph, nodes, words, sender, receiver, own, reader)
        readers: dict[int, Arena | ArenaReader] = {self.arenas[node]: arena for node, arena in own.items()}
        for number, spec in enumerate(self.segment.arenas):
            if number not in readers and self.bell(name) in spec.readers:
                readers[number] = segment.arena_reader(number, self.bell(name))
        return Host(cells, inlets, source=source, bell_value=bell.value, wait=bell.wait, readers=readers)

    def _edge_name(self, edge: int) -> str:
        return f"channel {self.graph.edges[edge].source} -> {self.graph.edges[edge].target}"

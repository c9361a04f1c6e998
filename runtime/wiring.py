"""From a graph to the cells of one host: who is here, what goes to whom, through what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from runtime.arena import Arena
from runtime.cell import Cell, Inlet, Outlet
from runtime.channel.contract import Receiver, Sender
from runtime.node import SINK, SOURCE, Node
from runtime.topology import Graph, NodeSpec

#: The host of the source, the sink and all that is fused with them.
DRIVER = "driver"


def place_of(graph: Graph, name: str) -> str:
    """The host in which node `name` runs."""
    if name in (SOURCE, SINK):
        return DRIVER
    return next(spec.place for spec in graph.nodes if spec.name == name)


def arena_owners(graph: Graph) -> Sequence[NodeSpec]:
    """The nodes with an arena; the place in the list is the arena's number."""
    return [spec for spec in graph.nodes if spec.arena_bytes]


def arena_readers(graph: Graph, spec: NodeSpec) -> Sequence[str]:
    """The other hosts at which chunks of node `spec` may arrive: those behind it in the graph."""
    reached, ahead = {spec.name: None}, [spec.name]
    while ahead:
        for edge in graph.outputs(ahead.pop()):
            if edge.target not in reached:
                reached[edge.target] = None
                ahead.append(edge.target)
    return [place for place in dict.fromkeys(place_of(graph, name) for name in reached) if place != spec.place]


def wire(graph: Graph, nodes: Mapping[str, Node], words: Mapping[str, np.ndarray],
         sender: Callable[[int], Sender], receiver: Callable[[int], Receiver],
         arenas: Mapping[str, Arena], reader: Callable[[int], int]) -> tuple[list[Cell], list[Inlet]]:
    """Cells and inlets of a host that runs `nodes`; `sender` and `receiver` open the channel of an edge.

    `arenas` are those of the nodes here, by node; `reader(edge)` is the number of the target's
    process (-1: it shares no memory with this one).
    """
    cells = {name: _cell(graph, name, node, words[name], arenas.get(name)) for name, node in nodes.items()}
    specs = {spec.name: spec for spec in graph.nodes}
    inlets = []
    for number, edge in enumerate(graph.edges):
        if edge.source in cells:
            here = cells.get(edge.target)
            port = graph.inputs(edge.target).index(edge)
            outlet = Outlet(None if here else sender(number), here, port, edge.feedback)
            if not here:
                outlet.reader = reader(number)
            if edge.source in specs:
                outlet.overflow_bytes = specs[edge.source].overflow_bytes
            cells[edge.source].outlets.append(outlet)
        elif edge.target in cells:
            cell = cells[edge.target]
            inlets.append(Inlet(receiver(number), cell, graph.inputs(edge.target).index(edge), edge.feedback))
    return list(cells.values()), inlets


def _cell(graph: Graph, name: str, node: Node, words: np.ndarray, arena: Arena | None) -> Cell:
    edges = graph.inputs(name)
    loops = frozenset(port for port, edge in enumerate(edges) if edge.feedback)
    shares = any(spec.name == name and spec.multicast == "shared" for spec in graph.nodes)
    if arena is not None:
        node.attach(arena)
    return Cell(name, node, words, len(edges) - len(loops), loops, arena, shares)


def crossing_edges(graph: Graph) -> Sequence[int]:
    """Numbers of the edges between two hosts: those that need a channel between processes."""
    return [number for number, edge in enumerate(graph.edges)
            if place_of(graph, edge.source) != place_of(graph, edge.target)]

"""From a graph to the cells of one host: who is here, what goes to whom, through what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from runtime.channel.contract import Receiver, Sender
from runtime.host import Cell, Inlet, Outlet
from runtime.node import SINK, SOURCE, Node
from runtime.topology import Graph

#: The host of the source, the sink and all that is fused with them.
DRIVER = "driver"


def place_of(graph: Graph, name: str) -> str:
    """The host in which node `name` runs."""
    if name in (SOURCE, SINK):
        return DRIVER
    return next(spec.place for spec in graph.nodes if spec.name == name)


def wire(graph: Graph, nodes: Mapping[str, Node], words: Mapping[str, np.ndarray],
         sender: Callable[[int], Sender], receiver: Callable[[int], Receiver]) -> tuple[list[Cell], list[Inlet]]:
    """Cells and inlets of a host that runs `nodes`; `sender` and `receiver` open the channel of an edge."""
    cells = {name: _cell(graph, name, node, words[name]) for name, node in nodes.items()}
    inlets = []
    for number, edge in enumerate(graph.edges):
        if edge.source in cells:
            here = cells.get(edge.target)
            port = graph.inputs(edge.target).index(edge)
            outlet = Outlet(None if here else sender(number), here, port, edge.feedback)
            cells[edge.source].outlets.append(outlet)
        elif edge.target in cells:
            cell = cells[edge.target]
            inlets.append(Inlet(receiver(number), cell, graph.inputs(edge.target).index(edge), edge.feedback))
    return list(cells.values()), inlets


def _cell(graph: Graph, name: str, node: Node, words: np.ndarray) -> Cell:
    edges = graph.inputs(name)
    loops = frozenset(port for port, edge in enumerate(edges) if edge.feedback)
    return Cell(name, node, words, open_inputs=len(edges) - len(loops), feedback_ports=loops)


def crossing_edges(graph: Graph) -> Sequence[int]:
    """Numbers of the edges between two hosts: those that need a channel between processes."""
    return [number for number, edge in enumerate(graph.edges)
            if place_of(graph, edge.source) != place_of(graph, edge.target)]

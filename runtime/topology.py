"""Graphs of nodes, and the building blocks that make them: pipe, farm, all-to-all, feedback, fuse.

A block is a piece of graph with open entries and exits; blocks compose to bigger blocks, and
`graph(block)` closes one with the driver's source and sink and checks it before anything starts.

    >>> farm_of_two = farm(node("emitter", Node), [node("worker-0", Node), node("worker-1", Node)],
    ...                    node("collector", Node))
    >>> print(graph(farm_of_two).explain())
    source -> emitter
    emitter -> worker-0, worker-1
    worker-0 -> collector
    worker-1 -> collector
    collector -> sink
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from runtime.errors import SpecError
from runtime.node import SINK, SOURCE, Node

# Small enough to stay in the processor's cache: a ring of 16 MiB moves half as many rows per second.
DEFAULT_CAPACITY_BYTES = 4 << 20
FEEDBACK_CAPACITY_BYTES = 256 << 10
LEAST_CAPACITY_BYTES = 1024
DEFAULT_ARENA_BYTES = 32 << 20
MULTICASTS = ("copy", "shared")


@dataclass(frozen=True)
class NodeSpec:
    """A node to be: `make()` builds its state object where it will run. `host` names its process.

    Nodes with the same host share a process ("" is the node's own, "driver" the caller's). With
    `arena_bytes` the node gets an arena of that size (`Node.attach`). `multicast` says what becomes of a
    batch for several other processes: "copy" writes it into the channel of each, "shared" once into the
    arena, and the readers count it down. Up to `overflow_bytes` may wait at each output before the node
    takes no more input, so that one slow receiver does not hold up the others.
    """

    name: str
    make: Callable[[], Node] = field(compare=False)
    host: str = ""
    arena_bytes: int = 0
    multicast: str = "copy"
    overflow_bytes: int = 0

    def __post_init__(self) -> None:
        if self.multicast not in MULTICASTS:
            raise SpecError(f"`multicast` must be one of {', '.join(MULTICASTS)}, got {self.multicast!r}")
        for name in ("arena_bytes", "overflow_bytes"):
            if getattr(self, name) < 0:
                raise SpecError(f"`{name}` must be at least 0, got {getattr(self, name)}")
        if 0 < self.arena_bytes < 4096 or (self.multicast == "shared" and not self.arena_bytes):
            raise SpecError(f"`arena_bytes` must be at least 4096 to have an arena, got {self.arena_bytes}")

    @property
    def place(self) -> str:
        return self.host or self.name


@dataclass(frozen=True)
class Edge:
    source: str
    target: str
    feedback: bool = False
    capacity_bytes: int = DEFAULT_CAPACITY_BYTES


@dataclass(frozen=True)
class Block:
    """Nodes and edges with open ends: `entries` take the input, `exits` give the output."""

    nodes: tuple[NodeSpec, ...]
    edges: tuple[Edge, ...]
    entries: tuple[str, ...]
    exits: tuple[str, ...]


def node(name: str, make: Callable[[], Node], host: str = "", *, arena_bytes: int = 0,
         overflow_bytes: int = 0) -> Block:
    """A block of one node; see `NodeSpec`."""
    return Block((NodeSpec(name, make, host, arena_bytes, overflow_bytes=overflow_bytes),), (), (name,), (name,))


def pipe(*blocks: Block) -> Block:
    """One block after the other; several exits before several entries become an all-to-all."""
    if not blocks:
        raise SpecError("a pipe must hold at least one block, got none")
    edges = [edge for block in blocks for edge in block.edges]
    for left, right in zip(blocks, blocks[1:], strict=False):
        edges += [Edge(source, target) for source in left.exits for target in right.entries]
    return Block(_all_nodes(blocks), tuple(edges), blocks[0].entries, blocks[-1].exits)


def parallel(blocks: Sequence[Block]) -> Block:
    """Blocks side by side: their entries and exits together."""
    return Block(_all_nodes(blocks), tuple(edge for block in blocks for edge in block.edges),
                 tuple(name for block in blocks for name in block.entries),
                 tuple(name for block in blocks for name in block.exits))


def farm(emitter: Block, workers: Sequence[Block], collector: Block | None = None, *,
         feedback: bool = False, multicast: str = "copy") -> Block:
    """Emitter, replicated workers, and a collector if there is one; `feedback`: workers report to the emitter.

    `multicast` is what becomes of a batch that the emitter sends to several workers; see `NodeSpec`.
    """
    if not workers:
        raise SpecError("`workers` of a farm must hold at least one block, got none")
    if multicast != "copy":
        emitter = replace(emitter, nodes=tuple(
            replace(spec, multicast=multicast, arena_bytes=spec.arena_bytes or DEFAULT_ARENA_BYTES)
            if spec.name in emitter.exits else spec for spec in emitter.nodes))
    whole = pipe(emitter, parallel(workers), *([collector] if collector else []))
    if not feedback:
        return whole
    loops = tuple(Edge(name, target, True, FEEDBACK_CAPACITY_BYTES)
                  for worker in workers for name in worker.exits for target in emitter.exits)
    return replace(whole, edges=whole.edges + loops)


def all_to_all(left: Sequence[Block], right: Sequence[Block]) -> Block:
    """Every left block feeds every right block."""
    return pipe(parallel(left), parallel(right))


def fuse(block: Block, host: str) -> Block:
    """All nodes of `block` in one process named `host`."""
    return replace(block, nodes=tuple(replace(spec, host=host) for spec in block.nodes))


def _all_nodes(blocks: Iterable[Block]) -> tuple[NodeSpec, ...]:
    return tuple(spec for block in blocks for spec in block.nodes)


@dataclass(frozen=True)
class Graph:
    """A closed graph: every edge has both ends, the driver's `source` and `sink` included."""

    nodes: tuple[NodeSpec, ...]
    edges: tuple[Edge, ...]

    def inputs(self, name: str) -> list[Edge]:
        """Edges into `name`; the place in the list is the input port."""
        return [edge for edge in self.edges if edge.target == name]

    def outputs(self, name: str) -> list[Edge]:
        """Edges out of `name`; the place in the list is the output port."""
        return [edge for edge in self.edges if edge.source == name]

    def hosts(self) -> Mapping[str, list[NodeSpec]]:
        """Nodes by process, in graph order."""
        places: dict[str, list[NodeSpec]] = {}
        for spec in self.nodes:
            places.setdefault(spec.place, []).append(spec)
        return places

    def explain(self) -> str:
        """The graph as text: one line per node, feedback in brackets, fused nodes marked."""
        lines = []
        for name in (SOURCE, *(spec.name for spec in self.nodes)):
            targets = [edge.target for edge in self.outputs(name) if not edge.feedback]
            loops = [edge.target for edge in self.outputs(name) if edge.feedback]
            line = f"{name} -> {', '.join(targets) or 'nothing'}"
            lines.append(line + (f" (feedback to {', '.join(loops)})" if loops else "") + self._extras(name))
        fused = [f"in {place}: {', '.join(spec.name for spec in specs)}"
                 for place, specs in self.hosts().items() if len(specs) > 1 or specs[0].host]
        return "\n".join(lines + fused)

    def _extras(self, name: str) -> str:
        spec = next((spec for spec in self.nodes if spec.name == name), None)
        if spec is None or not (spec.arena_bytes or spec.overflow_bytes):
            return ""
        parts = [f"arena of {spec.arena_bytes:,} bytes"] if spec.arena_bytes else []
        parts += ["batches written once for all readers"] if spec.multicast == "shared" else []
        parts += [f"{spec.overflow_bytes:,} bytes may wait at each output"] if spec.overflow_bytes else []
        return f" [{', '.join(parts)}]"

    def to_dot(self) -> str:
        """The graph in Graphviz's language; processes are boxes around their nodes."""
        lines = ["digraph windowfarm {", "  rankdir=LR; node [shape=box, style=rounded];",
                 f'  "{SOURCE}" [shape=oval]; "{SINK}" [shape=oval];']
        for number, (place, specs) in enumerate(self.hosts().items()):
            names = "; ".join(f'"{spec.name}"' for spec in specs)
            lines.append(f'  subgraph cluster_{number} {{ label="{place}"; color=grey; {names}; }}')
        for edge in self.edges:
            style = " [style=dashed, constraint=false]" if edge.feedback else ""
            lines.append(f'  "{edge.source}" -> "{edge.target}"{style};')
        return "\n".join([*lines, "}"])


def graph(block: Block) -> Graph:
    """`block` between the driver's source and sink, checked."""
    edges = ([Edge(SOURCE, name) for name in block.entries] + list(block.edges)
             + [Edge(name, SINK) for name in block.exits])
    # A farm's output port n must be its worker n: forward edges first, in declared order, then feedback.
    ordered = tuple(edge for edge in edges if not edge.feedback) + tuple(edge for edge in edges if edge.feedback)
    closed = Graph(block.nodes, ordered)
    _check(closed)
    return closed


def _check(closed: Graph) -> None:
    """SpecError if the graph could not start, would mix up ports, or would never end."""
    names = [spec.name for spec in closed.nodes]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"node names must be unique, got {name!r} twice: give each node a name of its own")
        if name in (SOURCE, SINK, "driver") or not name:
            raise SpecError(f"a node must not be called `source`, `sink`, `driver` or nothing, got {name!r}")
    known = {*names, SOURCE, SINK}
    for edge in closed.edges:
        for end in (edge.source, edge.target):
            if end not in known:
                raise SpecError(f"edge {edge.source} -> {edge.target} names the unknown node {end!r}: "
                                "add it to the graph")
        if edge.capacity_bytes < LEAST_CAPACITY_BYTES:
            raise SpecError(f"`capacity_bytes` must be at least {LEAST_CAPACITY_BYTES}, got {edge.capacity_bytes}")
        if sum((other.source, other.target, other.feedback) == (edge.source, edge.target, edge.feedback)
               for other in closed.edges) > 1:
            raise SpecError(f"edge {edge.source} -> {edge.target} must be declared once, got it twice")
    for name in names:
        if not any(not edge.feedback for edge in closed.inputs(name)):
            raise SpecError(f"node {name!r} has no input: connect it to the source")
    order = _forward_order(closed)
    for name in names:
        if name not in order:
            raise SpecError(f"node {name!r} lies on a loop of forward edges: declare the way back as feedback")
    if not closed.inputs(SINK):
        raise SpecError("nothing leads to the sink: leave an exit open, at which the results come out")
    for edge in closed.edges:
        if edge.feedback and not (edge.source in names and edge.target in names
                                  and edge.source in _behind(closed, edge.target)):
            raise SpecError(f"feedback must lead back to a node that comes before, got {edge.source} -> {edge.target}: "
                            "declare it as a forward edge")


def _behind(closed: Graph, name: str) -> set[str]:
    """The nodes that get, directly or not, what `name` sends forward."""
    reached, ahead = set[str](), [name]
    while ahead:
        for edge in closed.outputs(ahead.pop()):
            if not edge.feedback and edge.target not in reached:
                reached.add(edge.target)
                ahead.append(edge.target)
    return reached


def _forward_order(closed: Graph) -> list[str]:
    """Nodes in the order of the data; those on a forward loop are missing."""
    missing = {spec.name: sum(not edge.feedback for edge in closed.inputs(spec.name)) for spec in closed.nodes}
    missing[SINK] = sum(not edge.feedback for edge in closed.inputs(SINK))
    order, ready = [], [SOURCE]
    while ready:
        name = ready.pop()
        order.append(name)
        for edge in closed.outputs(name):
            if not edge.feedback:
                missing[edge.target] -= 1
                if missing[edge.target] == 0:
                    ready.append(edge.target)
    return order

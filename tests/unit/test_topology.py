"""Building blocks and the graphs they make: what is refused, what is printed, what is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from runtime.errors import SpecError
from runtime.node import Node
from runtime.placement import placed
from runtime.topology import Block, Edge, NodeSpec, all_to_all, farm, fuse, graph, node, parallel, pipe
from runtime.wiring import arena_readers, crossing_edges


def one(name: str) -> Block:
    return node(name, Node)


def workers(count: int) -> list[Block]:
    return [one(f"worker-{number}") for number in range(count)]


LOOPED = farm(one("emitter"), workers(2), one("collector"), feedback=True)


def test_farm_ports_are_workers_in_order_then_feedback() -> None:
    closed = graph(LOOPED)
    assert [edge.target for edge in closed.outputs("emitter")] == ["worker-0", "worker-1"]
    assert [(edge.target, edge.feedback) for edge in closed.outputs("worker-1")] == [("collector", False),
                                                                                     ("emitter", True)]
    assert [edge.source for edge in closed.inputs("emitter")] == ["source", "worker-0", "worker-1"]


def test_all_to_all_joins_every_left_with_every_right() -> None:
    closed = graph(all_to_all([one("a"), one("b")], [one("c"), one("d")]))
    assert {(edge.source, edge.target) for edge in closed.edges if "s" not in (edge.source[0], edge.target[0])} == {
        (left, right) for left in "ab" for right in "cd"}


def test_explain_names_nodes_feedback_processes_and_arenas() -> None:
    block = fuse(LOOPED, "one process")
    block = replace(block, nodes=tuple(replace(spec, arena_bytes=8192, multicast="shared", overflow_bytes=100)
                                       if spec.name == "emitter" else spec for spec in block.nodes))
    assert graph(block).explain() == """\
source -> emitter
emitter -> worker-0, worker-1 [arena of 8,192 bytes, batches written once for all readers, \
100 bytes may wait at each output]
worker-0 -> collector (feedback to emitter)
worker-1 -> collector (feedback to emitter)
collector -> sink
in one process: emitter, worker-0, worker-1, collector"""


def test_to_dot_draws_every_node_edge_and_process_once() -> None:
    text = graph(LOOPED).to_dot()
    assert text.startswith("digraph windowfarm {") and text.endswith("}")
    assert text.count("->") == 1 + 2 + 2 + 1 + 2
    assert text.count("style=dashed") == 2 and text.count("subgraph") == 4
    assert text.count("{") == text.count("}")


def test_shared_multicast_gives_the_emitter_an_arena_that_all_behind_it_read() -> None:
    closed = graph(farm(one("emitter"), workers(2), one("collector"), multicast="shared"))
    emitter = closed.nodes[0]
    assert emitter.multicast == "shared" and emitter.arena_bytes > 0
    assert list(arena_readers(closed, emitter)) == ["worker-0", "worker-1", "collector", "driver"]


def test_fused_nodes_need_no_channel_between_processes() -> None:
    assert crossing_edges(graph(fuse(LOOPED, "driver"))) == []
    assert len(crossing_edges(graph(LOOPED))) == len(graph(LOOPED).edges)
    assert len(crossing_edges(placed(graph(LOOPED), True, 2))) == 2 + 2 + 2


def with_edge(edge: Edge) -> Callable[[], object]:
    return lambda: graph(replace(LOOPED, edges=(*LOOPED.edges, edge)))


@pytest.mark.parametrize("build, reason", [
    (lambda: graph(parallel([one("a"), one("a")])), "unique, got 'a' twice"),
    (lambda: graph(one("sink")), "must not be called"),
    (lambda: graph(one("")), "must not be called"),
    (lambda: farm(one("emitter"), []), "at least one block"),
    (lambda: pipe(), "at least one block"),
    (lambda: graph(Block((), (), (), ())), "nothing leads to the sink"),
    (lambda: graph(replace(one("a"), exits=())), "nothing leads to the sink"),
    (lambda: graph(replace(pipe(one("a"), one("b")), entries=("b",))), "'a' has no input"),
    (with_edge(Edge("worker-0", "nobody")), "unknown node 'nobody'"),
    (with_edge(Edge("worker-0", "collector")), "once, got it twice"),
    (with_edge(Edge("collector", "emitter")), "on a loop of forward edges"),
    (with_edge(Edge("emitter", "worker-0", feedback=True)), "lead back to a node that comes before"),
    (with_edge(Edge("emitter", "emitter", feedback=True)), "lead back to a node that comes before"),
    (with_edge(Edge("worker-0", "worker-1", feedback=True)), "lead back to a node that comes before"),
    (with_edge(Edge("worker-0", "source", feedback=True)), "lead back to a node that comes before"),
    (with_edge(Edge("emitter", "collector", capacity_bytes=10)), "`capacity_bytes` must be at least"),
    (lambda: NodeSpec("a", Node, multicast="sometimes"), "`multicast` must be one of copy, shared"),
    (lambda: NodeSpec("a", Node, multicast="shared"), "`arena_bytes` must be at least 4096"),
    (lambda: NodeSpec("a", Node, arena_bytes=100), "`arena_bytes` must be at least 4096"),
    (lambda: NodeSpec("a", Node, overflow_bytes=-1), "`overflow_bytes` must be at least 0"),
])
def test_graph_that_cannot_run_is_refused_before_anything_starts(build: Callable[[], object], reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        build()

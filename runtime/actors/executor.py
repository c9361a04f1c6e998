"""The Ray executor: one actor per host, data through shared-memory rings, control through Ray.

    driver: source, sink, what is fused ──ring──► actor "run/worker-0" ──ring──► driver
            supervisor thread: watches the actors' `run` calls, their processes and their progress

Ray starts, names, places and stops the actors; they find the run's segment by its address. A call of
`run` lasts as long as the stream does, so its end, or its error, is the actor's end.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import ray

from runtime.channel.segment import Segment, SegmentAddress
from runtime.errors import ClosedError
from runtime.layout import Layout
from runtime.message import Message
from runtime.node import SINK, SOURCE, Node, Sink
from runtime.actors.session import dashboard_address, ensure_ray
from runtime.statistics import NodeStats
from runtime.actors.supervisor import Supervisor
from runtime.topology import Graph
from runtime.wiring import DRIVER

_log = logging.getLogger(__name__)


class NodeActor:
    """An actor process: builds the nodes of one host and runs them to the end of the stream."""

    def __init__(self, graph: Graph, host: str, address: SegmentAddress) -> None:
        self._segment = Segment.attach(address)
        nodes = {spec.name: spec.make() for spec in graph.hosts()[host]}
        self._host = Layout(graph).host(self._segment, host, nodes)

    def ready(self) -> int:
        """The process id, once everything is built and attached."""
        return os.getpid()

    def run(self) -> None:
        """Run to the end; an error of a node is raised here, in the driver's sight."""
        self._host.run()


def run_on_ray(graph: Graph, source: Iterator[Message | None], take: Callable[[Message], None], *,
               name: str = "windowfarm", pattern: str = "graph", stall_s: float = 300.0,
               on_start: Callable[[str | None], None] | None = None,
               ) -> tuple[tuple[NodeStats, ...], int, str | None]:
    """Push `source` through `graph` on Ray actors into `take`.

    Gives the nodes' figures, the size of the shared memory and the dashboard's address. Actors are named
    `<run>/<pattern>/<role>-<i>`, the run being `name` and six random digits.
    """
    ensure_ray()
    run = f"{name}-{uuid.uuid4().hex[:6]}"
    layout = Layout(graph)
    segment = Segment.create(run, layout.segment)
    actors: dict[str, Any] = {}
    supervisor = None
    try:
        actors = _start_actors(graph, f"{run}/{pattern}", segment.address)
        nodes: dict[str, Node] = {SOURCE: Node(), **{spec.name: spec.make() for spec in graph.hosts().get(DRIVER, [])},
                                  SINK: Sink(take)}
        host = layout.host(segment, DRIVER, nodes, source)
        supervisor = Supervisor(graph, actors, segment, layout.number, stall_s)
        supervisor.start()
        if on_start is not None:
            on_start(dashboard_address())
        try:
            host.run()
        except ClosedError:
            supervisor.raise_failure()
            raise
        supervisor.finish()
        figures = tuple(NodeStats.from_words(node, segment.words(number).copy())
                        for node, number in layout.number.items())
        return figures, segment.size_bytes, dashboard_address()
    finally:
        segment.abort()
        if supervisor is not None:
            supervisor.stop()
        for actor in actors.values():
            ray.kill(actor)
        segment.close()


def _start_actors(graph: Graph, prefix: str, address: SegmentAddress) -> dict[str, Any]:
    hosts = [host for host in graph.hosts() if host != DRIVER]
    if not hosts:
        return {}
    # A share of the cores each, so that a farm larger than the machine still starts.
    share = min(1.0, int(1000 * ray.cluster_resources().get("CPU", 1) / len(hosts)) / 1000)
    remote = ray.remote(num_cpus=max(share, 0.001), max_restarts=0)(NodeActor)
    actors = {host: remote.options(name=f"{prefix}/{host}").remote(graph, host, address) for host in hosts}
    ray.get([actor.ready.remote() for actor in actors.values()])
    return actors

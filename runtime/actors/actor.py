"""What runs in an actor's process."""

from __future__ import annotations

import os
from collections.abc import Mapping

from runtime.channel.liveness import own_identity
from runtime.channel.remote import Link
from runtime.channel.segment import Segment, SegmentAddress
from runtime.layout import Layout
from runtime.topology import Graph


class NodeActor:
    """An actor process: builds the nodes of one host and runs them to the end of the stream."""

    def __init__(self, graph: Graph, host: str, address: SegmentAddress, far: Mapping[int, Link], core: int | None,
                 nice: int) -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})
        os.nice(nice)
        self._segment = Segment.attach(address)
        nodes = {spec.name: spec.make() for spec in graph.hosts()[host]}
        self._host = Layout(graph).host(self._segment, host, nodes, far=far)

    def ready(self) -> tuple[int, int]:
        """The process's number and start time, once everything is built and attached."""
        return own_identity()

    def run(self) -> None:
        """Run to the end; an error of a node is raised here, in the driver's sight."""
        self._host.run()

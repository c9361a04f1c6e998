"""The Ray executor: one actor per host, data through shared-memory rings, control through Ray.

    driver: source, sink, what is fused ──ring──► actor "run/worker-0" ──ring──► driver
            supervisor thread: watches the actors' `run` calls, their processes and their progress

Ray starts, names, places and stops the actors; they find the run's segment by its address. A call of
`run` lasts as long as the stream does, so its end, or its error, is the actor's end.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

from runtime.actors.crew import Crew
from runtime.actors.metrics import Metrics
from runtime.actors.session import dashboard_address, ensure_ray
from runtime.actors.supervisor import Supervisor
from runtime.channel.segment import Segment
from runtime.errors import ClosedError
from runtime.layout import Layout
from runtime.message import Message
from runtime.node import SINK, SOURCE, Node, Sink
from runtime.placement import ActorOptions
from runtime.statistics import NodeStats
from runtime.topology import Graph
from runtime.wiring import DRIVER


def run_on_ray(graph: Graph, source: Iterator[Message | None], take: Callable[[Message], None], *,
               name: str = "windowfarm", pattern: str = "graph", stall_s: float = 300.0,
               on_start: Callable[[str | None], None] | None = None, actor_options: ActorOptions | None = None,
               ) -> tuple[tuple[NodeStats, ...], int, str | None]:
    """Push `source` through `graph` on Ray actors into `take`.

    Gives the nodes' figures, the size of the shared memory and the dashboard's address. Actors are named
    `<run>/<pattern>/<role>-<i>`, the run being `name` and six random digits.
    """
    ensure_ray()
    run = f"{name}-{uuid.uuid4().hex[:6]}"
    layout = Layout(graph)
    segment = Segment.create(run, layout.segment)
    crew = Crew(graph, f"{run}/{pattern}", segment, actor_options or ActorOptions())
    supervisor = None
    try:
        crew.wait_until_ready()
        nodes: dict[str, Node] = {SOURCE: Node(), **{spec.name: spec.make() for spec in graph.hosts().get(DRIVER, [])},
                                  SINK: Sink(take)}
        host = layout.host(segment, DRIVER, nodes, source, crew.site.links(DRIVER))
        supervisor = Supervisor(layout, crew, segment, stall_s, Metrics(run, pattern))
        supervisor.start()
        if on_start is not None:
            on_start(dashboard_address())
        try:
            host.run()
        except ClosedError:
            supervisor.raise_failure()
            raise
        supervisor.finish()
        crew.site.fetch(segment, layout.number)
        figures = tuple(NodeStats.from_words(node, segment.words(number).copy())
                        for node, number in layout.number.items())
        return figures, segment.size_bytes, dashboard_address()
    finally:
        segment.abort()
        crew.site.abort()
        if supervisor is not None:
            supervisor.stop()
        crew.dismiss()
        for end in layout.far_ends:
            end.join()  # no thread of the run may meet a Ray that was shut down
        segment.close()

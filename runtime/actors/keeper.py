"""What a run needs on every machine it uses: a segment for the actors there, and mailboxes for what comes from afar.

    machine 1 (driver)                                  machine 2
    segment 1: driver, emitter, worker-0 ── Ray ──►  keeper 2: mailbox ──► worker-1   segment 2
    keeper 1: mailbox ◄───────────────────── Ray ──  worker-1

Rings need common memory; so every machine has a segment of the run's whole layout, of which only the parts
that are used take memory. An edge whose two ends are on one machine is a ring, any other goes through the
mailbox of its target's keeper (`runtime.channel.remote`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from runtime.channel.remote import Item, Mailbox
from runtime.channel.segment import Segment, SegmentAddress, SegmentLayout
from runtime.topology import Graph
from runtime.wiring import crossing_edges, place_of


class Keeper:
    """An actor of several threads that keeps one machine's segment and mailboxes."""

    def __init__(self, edges: Iterable[int]) -> None:
        self._mailboxes = {edge: Mailbox() for edge in edges}
        self._segment: Segment | None = None

    def create(self, name: str, layout: SegmentLayout) -> SegmentAddress:
        """Make this machine's segment; it lives as long as the keeper."""
        self._segment = Segment.create(name, layout)
        return self._segment.address

    def words(self, numbers: list[int]) -> list[np.ndarray]:
        """The statistics of some nodes of this machine."""
        return [self._segment.words(number).copy() for number in numbers] if self._segment else []

    def abort(self) -> None:
        if self._segment is not None:
            self._segment.abort()

    def call(self, edge: int, method: str, *arguments: Any) -> Any:
        """A call of the mailbox of `edge`."""
        return getattr(self._mailboxes[edge], method)(*arguments)


class RayLink:
    """The way to the mailbox of one edge, over Ray calls; can be given to other processes."""

    def __init__(self, keeper: Any, edge: int) -> None:
        self._keeper, self._edge = keeper, edge

    def put(self, number: int, item: Item) -> None:
        columns = dict(item.columns)
        self._keeper.call.remote(self._edge, "put", number, Item(item.head, columns, item.size_bytes))

    def end(self, count: int) -> None:
        self._keeper.call.remote(self._edge, "end", count)

    def take(self) -> tuple[list[Item], bool]:
        found: tuple[list[Item], bool] = ray.get(self._keeper.call.remote(self._edge, "take"))
        return found

    def release(self, size_bytes: int, closed: bool = False) -> None:
        self._keeper.call.remote(self._edge, "release", size_bytes, closed)

    def released(self, known: int) -> tuple[int, bool]:
        found: tuple[int, bool] = ray.get(self._keeper.call.remote(self._edge, "released", known))
        return found


class Site:
    """The machines of one run: where each host lives, what connects them, and the figures of those far away."""

    def __init__(self, graph: Graph, places: Mapping[str, str], own: str, run: str, layout: SegmentLayout) -> None:
        self._graph, self._places, self._own = graph, places, own
        self._keepers: dict[str, Any] = {}
        self.addresses: dict[str, SegmentAddress] = {}
        targets = {edge: self._machine(graph.edges[edge].target) for edge in crossing_edges(graph) if self.is_far(edge)}
        if not targets:
            return
        for machine in dict.fromkeys([own, *places.values()]):
            edges = [edge for edge, target in targets.items() if target == machine]
            remote = ray.remote(num_cpus=0, max_concurrency=8 + 6 * len(edges))(Keeper)
            where = NodeAffinitySchedulingStrategy(machine, soft=False)
            self._keepers[machine] = remote.options(scheduling_strategy=where).remote(edges)
            if machine != own:
                self.addresses[machine] = ray.get(self._keepers[machine].create.remote(run, layout))

    def _machine(self, node: str) -> str:
        return self._places.get(place_of(self._graph, node), self._own)

    def is_far(self, edge: int) -> bool:
        """Whether the two ends of `edge` are on different machines."""
        return self._machine(self._graph.edges[edge].source) != self._machine(self._graph.edges[edge].target)

    def links(self, host: str) -> dict[int, RayLink]:
        """The links of the edges that connect `host` with other machines."""
        return {number: RayLink(self._keepers[self._machine(edge.target)], number)
                for number, edge in enumerate(self._graph.edges)
                if host in (place_of(self._graph, edge.source), place_of(self._graph, edge.target))
                and self.is_far(number)}

    def fetch(self, segment: Segment, number: Mapping[str, int]) -> None:
        """Copy the figures of the nodes on other machines into this machine's segment."""
        for machine in self.addresses:
            numbers = [number[spec.name] for spec in self._graph.nodes if self._machine(spec.name) == machine]
            for place, row in zip(numbers, ray.get(self._keepers[machine].words.remote(numbers)), strict=True):
                segment.words(place)[:] = row

    def abort(self) -> None:
        """End every channel on the other machines."""
        for machine in self.addresses:
            self._keepers[machine].abort.remote()

    def dismiss(self) -> None:
        for keeper in self._keepers.values():
            ray.kill(keeper)


def machines_of(hosts: list[str], cores: Mapping[str, int], own: str) -> dict[str, str]:
    """A machine for each of `hosts`: the driver's own as long as it has cores, then the least loaded.

    `cores` are the machines with their number of cores. Staying at home comes first, because a ring is a
    hundred times as fast as a call.
    """
    load, places = dict.fromkeys(cores, 0), {}
    for host in hosts:
        free = [machine for machine in sorted(cores, key=lambda machine: (machine != own, machine))
                if load[machine] < cores[machine]]
        places[host] = free[0] if free else min(cores, key=lambda machine: (load[machine] / max(cores[machine], 1),
                                                                            machine != own))
        load[places[host]] += 1
    return places

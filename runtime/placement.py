"""Which process runs which node, and how: fuse before you replicate."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from runtime.errors import SpecError
from runtime.topology import Graph, NodeSpec
from runtime.wiring import DRIVER


@dataclass(frozen=True)
class ActorOptions:
    """How actor processes run. None of it changes an answer.

    `pin` ties each actor to one core, in turn; `nice` makes them give way to other processes (0 to 19);
    `preload` is the file of a memory allocator (jemalloc, TBB, ...) that is loaded into them before
    anything else (`LD_PRELOAD`); `start_s` is how long they may take to start.
    """

    pin: bool = False
    nice: int = 0
    preload: str = ""
    start_s: float = 120.0

    def __post_init__(self) -> None:
        if not 0 <= self.nice <= 19:
            raise SpecError(f"`nice` must be between 0 and 19, got {self.nice}")
        if self.preload and not os.path.isfile(self.preload):
            raise SpecError(f"`preload` must be the file of a shared library, got {self.preload!r}: there is none")
        if self.start_s <= 0:
            raise SpecError(f"`start_s` must be greater than 0, got {self.start_s}")

    def core(self, number: int) -> int | None:
        """The core of actor `number`, or None if it may run anywhere."""
        cores = sorted(os.sched_getaffinity(0))
        return cores[number % len(cores)] if self.pin else None


def is_helper(spec: NodeSpec) -> bool:
    """Emitters and collectors: they move items and hold no windows."""
    role = spec.name.rsplit("/", 1)[-1]
    return role.startswith(("emitter", "collector"))


def placed(graph: Graph, fuse: bool | str, cores: int) -> Graph:
    """`graph` with its emitters and collectors in the driver's process, if `fuse` says so.

    "auto" fuses when there are more nodes than cores: an actor that only forwards would then take time
    from one that works. The outermost emitter and collector stand next to the source and the sink, so
    nothing crosses a process for it; inner ones stay with their replica.
    """
    if fuse not in (True, False, "auto"):
        raise SpecError(f"`fuse` must be True, False or \"auto\", got {fuse!r}")
    if fuse is False or (fuse == "auto" and len(graph.nodes) + 1 <= cores):
        return graph
    nodes = tuple(replace(spec, host=DRIVER) if is_helper(spec) and "/" not in spec.name and not spec.host else spec
                  for spec in graph.nodes)
    return replace(graph, nodes=nodes)

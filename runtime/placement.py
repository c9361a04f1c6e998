"""Which process runs which node: fuse before you replicate."""

from __future__ import annotations

from dataclasses import replace

from runtime.errors import SpecError
from runtime.topology import Graph, NodeSpec
from runtime.wiring import DRIVER


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

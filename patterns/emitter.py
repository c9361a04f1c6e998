"""The emitter: hands items to workers by a routing rule, and tells all of them how far the stream is."""

from __future__ import annotations

from collections.abc import Iterable

from patterns.progress import is_progress
from patterns.routing import Routing
from runtime.message import Batch, Message
from runtime.node import Emit, Node


class Emitter(Node):
    """Routes batches; progress goes to every worker, so that quiet keys and idle workers fire too."""

    def __init__(self, routing: Routing) -> None:
        self._routing = routing

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        if is_progress(message) or not isinstance(message, Batch):
            return (Emit(message),)
        return [Emit(part, ports) for part, ports in self._routing.route(message)]

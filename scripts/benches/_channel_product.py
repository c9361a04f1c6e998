"""The product's side of the channel benchmark: real graphs on real hosts, each host a forked process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from runtime.channel.segment import ArenaSpec, RingSpec, Segment, SegmentLayout
from runtime.layout import Layout
from runtime.message import Batch, Feedback, Message, Punctuation
from runtime.node import SINK, SOURCE, Emit, Node, Sink
from runtime.topology import Graph, farm, graph, node
from runtime.wiring import DRIVER
from scripts.benches._children import Child, Measured, cpu_s

IN_FLIGHT = 4           # batches per worker


def batch_of(rows: int) -> Batch:
    """Rows of 64 bytes: eight columns of eight."""
    return Batch({f"c{place}": np.arange(rows, dtype=np.int64) + place for place in range(8)})


def stamped(batch: Batch) -> Batch:
    return Batch(batch.columns, time.monotonic_ns())


class Checker(Node):
    """Adds up the first column and notes how old each batch is; tells its figures at the end."""

    def __init__(self, acknowledge: bool = False) -> None:
        self._total, self._acknowledge = 0, acknowledge
        self._ages: list[int] = []

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        assert isinstance(message, Batch)
        self._ages.append(time.monotonic_ns() - message.stamp_ns)
        self._total += int(message.columns["c0"].sum())
        return (Emit(Punctuation(0)),) if self._acknowledge else ()

    def end(self) -> Iterable[Emit]:
        return (Emit(Batch({"ages": np.array(self._ages, np.int64)}, self._total)),)


class OnDemand(Node):
    """Hands each batch to the worker with the fewest in flight, `IN_FLIGHT` each at the most."""

    def __init__(self, degree: int) -> None:
        self._open = [0] * degree

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        if isinstance(message, Feedback):
            self._open[message.meta["worker"]] -= 1
            return ()
        worker = self._open.index(min(self._open))
        self._open[worker] += 1
        return (Emit(message, (worker,)),)

    @property
    def in_flight(self) -> int:
        return sum(self._open)

    @property
    def accepts(self) -> bool:
        return min(self._open) < IN_FLIGHT


class Reporting(Node):
    """Sends every batch on and reports to the emitter."""

    def __init__(self, number: int) -> None:
        self._meta = {"worker": number}

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        return (Emit(message, (0,)), Emit(Feedback(self._meta), (1,)))


class Everyone(Node):
    """Sends every batch to every worker."""

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        return (Emit(message),)


def warm_up() -> None:
    """Load every compiled part into this process, so that its children have them from the start."""
    layout = SegmentLayout(2, (RingSpec(0, 1, 4096),), arenas=(ArenaSpec(0, (1,), 4096),))
    with Segment.create("warm", layout) as segment:
        sender, receiver, arena, bell = segment.sender(0), segment.receiver(0), segment.arena(0), segment.bell(0)
        receiver.try_receive()
        while sender.try_send(batch_of(1)):
            receiver.try_receive()
        receiver.release()
        ref = arena.write(batch_of(1).columns)
        arena.lend([ref])
        segment.arena_reader(0, 1).give_back([ref])
        arena.collect()
        bell.ring()
        bell.wait(bell.value(), 0.0)


def hop_graph(acknowledge: bool) -> Graph:
    return graph(node("consumer", partial(Checker, acknowledge)))


def farm_graph(degree: int) -> Graph:
    return graph(farm(node("emitter", partial(OnDemand, degree), host=DRIVER),
                      [node(f"worker-{number}", partial(Reporting, number)) for number in range(degree)],
                      node("collector", Checker), feedback=True, multicast="shared"))


def multicast_graph(degree: int, multicast: str) -> Graph:
    return graph(farm(node("emitter", Everyone, host=DRIVER),
                      [node(f"worker-{number}", Checker) for number in range(degree)], multicast=multicast))


def run(closed: Graph, source: Callable[[], Iterator[Message | None]], took: Callable[[Message], None],
        expected: int) -> Measured:
    """Run `closed` with every host in a process of its own; checks the total of all `Checker`s."""
    layout = Layout(closed)
    totals: list[int] = []
    ages: list[int] = []

    def take(message: Message) -> None:
        if isinstance(message, Batch):
            totals.append(message.stamp_ns)
            ages.extend(message.columns["ages"].tolist())
        took(message)

    with Segment.create("bench", layout.segment) as segment:
        children = [Child.start(partial(_host, closed, segment, name)) for name in closed.hosts() if name != DRIVER]
        nodes: dict[str, Node] = {SOURCE: Node(), SINK: Sink(take),
                                  **{spec.name: spec.make() for spec in closed.hosts().get(DRIVER, [])}}
        host = layout.host(segment, DRIVER, nodes, source())
        begin, cpu = time.perf_counter(), cpu_s()
        host.run()
        seconds, cpu = time.perf_counter() - begin, cpu_s() - cpu
        cpu += sum(child.result()[1] for child in children)
    assert sum(totals) == expected, f"checksum {sum(totals)}, not {expected}"
    return Measured(seconds, cpu, ages)


def _host(closed: Graph, segment: Segment, name: str, ready: Callable[[], None]) -> None:
    nodes = {spec.name: spec.make() for spec in closed.hosts()[name]}
    host = Layout(closed).host(segment, name, nodes)
    ready()
    host.run()


def stream(closed: Graph, rows: int, batches: int, copies: int = 1) -> Measured:
    """`batches` as fast as they go."""
    batch = batch_of(rows)
    expected = batches * copies * int(batch.columns["c0"].sum())
    return run(closed, lambda: (stamped(batch) for _ in range(batches)), lambda message: None, expected)


def ping(rows: int, rounds: int) -> Measured:
    """One batch at a time: the next one leaves when the last has been acknowledged."""
    batch, ready = batch_of(rows), [True]

    def source() -> Iterator[Message | None]:
        for _ in range(rounds):
            while not ready[0]:
                yield None
            ready[0] = False
            yield stamped(batch)

    def took(message: Message) -> None:
        ready[0] = True

    return run(hop_graph(True), source, took, rounds * int(batch.columns["c0"].sum()))


def idle(seconds: float) -> float:
    """Share of a core that one of the four processes of a farm takes while nothing happens."""
    def waiting(seconds: float) -> Measured:
        def source() -> Iterator[Message | None]:
            yield stamped(batch_of(1))
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                yield None
        return run(farm_graph(2), source, lambda message: None, 0)

    return (waiting(seconds).cpu_s - waiting(0.0).cpu_s) / seconds / 4     # without what starting takes


def on_ray(degree: int, rows: int, batches: int) -> Measured:
    """The farm on Ray actors, as every pattern runs: seconds from the first batch to the collector's answer."""
    from runtime.actors import run_on_ray
    batch, times, totals, ages = batch_of(rows), [0.0, 0.0], [0], list[int]()

    def source() -> Iterator[Message | None]:
        times[0] = time.perf_counter()
        for _ in range(batches):
            yield stamped(batch)

    def take(message: Message) -> None:
        if isinstance(message, Batch):
            times[1] = time.perf_counter()
            totals[0] += message.stamp_ns
            ages.extend(message.columns["ages"].tolist())

    run_on_ray(farm_graph(degree), source(), take)
    assert totals[0] == batches * int(batch.columns["c0"].sum()), "wrong checksum"
    return Measured(times[1] - times[0], math.nan, ages)

"""Hosts on the inline executor: chunks, multicast, back pressure, ends with feedback, errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from runtime.cell import Cell, Inlet, Outlet
from runtime.channel.local import LocalBell, LocalChannel
from runtime.errors import NodeError
from runtime.host import Host
from runtime.inline import run_inline
from runtime.message import Batch, Feedback, Message, Punctuation
from runtime.node import SINK, SOURCE, Emit, Node, Sink
from runtime.statistics import WORDS
from runtime.topology import Graph, farm, graph, node, pipe
from tests.nodes import ChunkEmitter, FailAt, Forward, InTurn, Summing, ToAll, numbers


def sums_of(closed: Graph, source: Iterator[Message | None], seed: int | None = None) -> list[int]:
    found: list[int] = []

    def take(message: Message) -> None:
        assert isinstance(message, Batch)
        found.extend(message.columns["sum"].tolist())

    run_inline(closed, source, take, seed=seed)
    return found


def chunk_farm(degree: int, span: int, arena_bytes: int) -> Graph:
    return graph(farm(node("emitter", lambda: ChunkEmitter(degree, span, 1024), arena_bytes=arena_bytes),
                      [node(f"worker-{i}", lambda: Summing(True)) for i in range(degree)],
                      node("collector", Forward), feedback=True))


def window_sums(batches: int, rows: int, span: int) -> list[int]:
    totals = [int(batch.columns["c0"].sum()) for batch in numbers(batches, rows)]
    return [total for start in range(batches - span + 1) for total in totals[start:start + span]]


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_inline_chunks_are_seen_by_every_task_that_names_them(seed: int | None) -> None:
    found = sums_of(chunk_farm(3, 4, 1 << 16), numbers(40), seed)
    assert sorted(found) == sorted(window_sums(40, 64, 4))


@pytest.mark.parametrize("seed", [None, 3])
def test_inline_chunks_with_an_arena_of_few_slabs_wait_and_go_on(seed: int | None) -> None:
    closed = chunk_farm(2, 2, 4096)
    stats = run_inline(closed, numbers(50), lambda message: None, seed=seed)
    emitter = next(row for row in stats if row.name == "emitter")
    assert emitter.items_in == 50 * 64 and emitter.arena_bytes == 0
    assert 2048 <= emitter.arena_peak_bytes <= 4096


def test_host_outputs_that_wait_keep_their_chunks() -> None:
    """A worker that sends on what it reads: the slab is written again before the collector looks."""

    class Mirror(Node):
        def process(self, message: Message, port: int) -> Iterable[Emit]:
            chunks = getattr(message, "chunks")
            yield Emit(Batch({"sum": chunks[-1]["c0"]}), (0,))
            yield Emit(Feedback(), (1,))

    closed = graph(farm(node("emitter", lambda: ChunkEmitter(1, 1, 1024), arena_bytes=4096),
                        [node("worker-0", Mirror)], node("collector", Forward), feedback=True))
    found = sums_of(closed, numbers(60), seed=5)
    assert sorted(found) == list(range(60 * 64))


def test_host_farm_with_feedback_ends_only_when_nothing_is_in_flight() -> None:
    workers = [node(f"worker-{i}", lambda: Summing(True)) for i in range(2)]
    closed = graph(farm(node("emitter", lambda: InTurn(2)), workers, feedback=True))
    for seed in range(5):
        stats = {row.name: row for row in run_inline(closed, numbers(30), lambda message: None, seed=seed)}
        assert stats["worker-0"].batches_in + stats["worker-1"].batches_in == 30
        assert stats["sink"].batches_in == 30


def test_host_node_that_raises_is_named_with_its_traceback() -> None:
    closed = graph(pipe(node("first", Forward), node("second", lambda: FailAt(3))))
    with pytest.raises(NodeError, match="node `second` failed: ValueError: the apple is rotten") as caught:
        run_inline(closed, numbers(9), lambda message: None)
    assert "in process" in caught.value.details


def test_inline_multicast_shared_gives_what_copy_gives() -> None:
    for multicast in ("copy", "shared"):
        closed = graph(farm(node("emitter", ToAll), [node(f"worker-{i}", Summing) for i in range(3)],
                            multicast=multicast))
        assert sorted(sums_of(closed, numbers(5))) == sorted(window_sums(5, 64, 1) * 3)


class Worker:
    """One output of a host under test, over a small channel, read by the test."""

    def __init__(self, capacity: int) -> None:
        self.channel = LocalChannel(LocalBell(), LocalBell(), capacity)

    def take(self) -> Message | None:
        message = self.channel.receiver.try_receive()
        self.channel.receiver.release()
        return message


def emitter_host(overflow_bytes: int, degree: int = 2) -> tuple[Host, LocalChannel, list[Worker]]:
    source, workers = LocalChannel(LocalBell(), LocalBell(), 1000), [Worker(1) for _ in range(degree)]
    cell = Cell("emitter", InTurn(degree), np.zeros(len(WORDS), np.int64), open_inputs=1)
    cell.outlets = [Outlet(worker.channel.sender, overflow_bytes=overflow_bytes) for worker in workers]
    return Host([cell], [Inlet(source.receiver, cell, 0)]), source, workers


@pytest.mark.parametrize("overflow_bytes, passed", [(0, 1), (1 << 20, 10)])
def test_host_slow_worker_holds_up_the_others_only_without_overflow(overflow_bytes: int, passed: int) -> None:
    host, source, workers = emitter_host(overflow_bytes)
    for batch in numbers(20):
        source.sender.send(batch)
    quick = 0
    for _ in range(100):
        host.step()
        quick += workers[1].take() is not None              # worker 0 takes nothing
    assert abs(quick - passed) <= 1
    waited = 0
    while host.step() or workers[0].channel.queue:
        message = workers[0].take()
        if message is not None:
            assert isinstance(message, Batch) and message.first_row % 128 == 64
            waited += 1
        workers[1].take()
    assert waited == 10


def test_host_overflow_is_bounded() -> None:
    host, source, workers = emitter_host(overflow_bytes=3 * (64 + 8 * 64), degree=1)
    for batch in numbers(20):
        source.sender.send(batch)
    while host.step():
        pass
    assert len(source.queue) == 20 - 1 - 4                  # one in the channel, three aside, one too many
    assert workers[0].take() is not None


def test_host_punctuation_sets_the_watermark() -> None:
    closed = graph(node("only", Forward))
    seen: list[Message] = []
    run_inline(closed, iter([Punctuation(5), None, Punctuation(9)]), seen.append)
    assert seen == [Punctuation(5), Punctuation(9)]


def test_host_batch_too_large_for_its_channel_arrives_in_slices() -> None:
    bells = LocalBell(), LocalBell()
    channel = LocalChannel(*bells, capacity=100, capacity_bytes=4096)
    cell = Cell("emitter", Forward(), np.zeros(len(WORDS), np.int64), open_inputs=1)
    cell.outlets = [Outlet(channel.sender)]
    source = LocalChannel(LocalBell(), LocalBell())
    source.sender.send(next(numbers(1, 2000)))
    source.sender.close()
    host, seen = Host([cell], [Inlet(source.receiver, cell, 0)]), []
    while not host.finished or channel.queue:
        host.step()
        if channel.queue:
            message = channel.receiver.try_receive()
            assert isinstance(message, Batch) and message.first_row == sum(map(len, seen))
            seen.append(message.columns["c0"].copy())
            channel.receiver.release()
    assert np.array_equal(np.concatenate(seen), np.arange(2000)) and len(seen) > 3


class Twice(Node):
    """Sends every batch on twice."""

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        return (Emit(message), Emit(message))


def test_host_with_source_and_sink_drains_the_sink_while_the_source_waits() -> None:
    there, back = (LocalChannel(LocalBell(), LocalBell(), 2) for _ in range(2))
    seen: list[Message] = []
    source, sink = (Cell(name, made, np.zeros(len(WORDS), np.int64), open_inputs=count) for name, made, count in (
        (SOURCE, Node(), 0), (SINK, Sink(seen.append), 1)))
    source.outlets = [Outlet(there.sender)]
    worker = Cell("worker", Twice(), np.zeros(len(WORDS), np.int64), open_inputs=1)
    worker.outlets = [Outlet(back.sender)]
    driver = Host([source, sink], [Inlet(back.receiver, sink, 0)], source=iter(list(numbers(50))))
    other = Host([worker], [Inlet(there.receiver, worker, 0)])
    for _ in range(2000):
        driver.step()
        other.step()
    assert driver.finished and other.finished and len(seen) == 100

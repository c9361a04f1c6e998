"""Graphs on Ray actors: farms of any degree, chunks in the arena, multicast, feedback."""

from __future__ import annotations

from functools import partial

import pytest

from runtime.actors import run_on_ray
from runtime.message import Batch, Message
from runtime.statistics import NodeStats
from runtime.topology import Graph, farm, graph, node
from tests.nodes import ChunkEmitter, Forward, InTurn, Summing, ToAll, numbers


pytestmark = pytest.mark.usefixtures("ray")


def sums_of(closed: Graph, batches: int, rows: int = 1024) -> tuple[list[int], dict[str, NodeStats]]:
    found: list[int] = []

    def take(message: Message) -> None:
        assert isinstance(message, Batch)
        found.extend(message.columns["sum"].tolist())

    stats, _, _ = run_on_ray(closed, numbers(batches, rows), take)
    return sorted(found), {row.name: row for row in stats}


def batch_sums(batches: int, rows: int = 1024) -> list[int]:
    return [int(batch.columns["c0"].sum()) for batch in numbers(batches, rows)]


@pytest.mark.parametrize("degree", [1, 2, 4, 16])
def test_farm_of_any_degree_with_feedback_gives_the_same(degree: int) -> None:
    workers = [node(f"worker-{i}", partial(Summing, True)) for i in range(degree)]
    closed = graph(farm(node("emitter", partial(InTurn, degree), host="driver"), workers, feedback=True))
    found, stats = sums_of(closed, 100)
    assert found == batch_sums(100)
    assert all(stats[f"worker-{i}"].batches_in for i in range(degree))


def test_chunks_in_a_small_arena_are_read_by_all_their_tasks() -> None:
    degree, span, batches = 2, 3, 400
    closed = graph(farm(node("emitter", partial(ChunkEmitter, degree, span, 9000), arena_bytes=64 << 10),
                        [node(f"worker-{i}", partial(Summing, True)) for i in range(degree)], feedback=True))
    found, stats = sums_of(closed, batches)
    totals = batch_sums(batches)
    assert found == sorted(total for start in range(batches - span + 1) for total in totals[start:start + span])
    assert 0 < stats["emitter"].arena_peak_bytes <= 64 << 10
    assert stats["emitter"].arena_bytes <= 64 << 10


@pytest.mark.parametrize("multicast", ["copy", "shared"])
def test_multicast_reaches_every_worker(multicast: str) -> None:
    closed = graph(farm(node("emitter", ToAll), [node(f"worker-{i}", Summing) for i in range(2)],
                        node("collector", Forward, host="driver"), multicast=multicast))
    found, stats = sums_of(closed, 300)
    assert found == sorted(batch_sums(300) * 2)
    assert (stats["emitter"].arena_peak_bytes > 0) == (multicast == "shared")


def test_farm_starts_beside_an_actor_that_has_all_cores() -> None:
    import ray

    class Greedy:
        def here(self) -> bool:
            return True

    greedy = ray.remote(num_cpus=ray.cluster_resources()["CPU"])(Greedy).remote()
    assert ray.get(greedy.here.remote())
    try:
        found, _ = sums_of(graph(node("only", Summing)), 20)
    finally:
        ray.kill(greedy)
    assert found == batch_sums(20)

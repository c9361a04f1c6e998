"""Actors that fail, die or stop: one error that names the node, nothing left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial

import pytest

from runtime.actors import run_on_ray
from runtime.errors import NodeError, SpecError, StalledError
from runtime.message import Batch, Message
from runtime.placement import ActorOptions
from runtime.topology import Block, Graph, farm, graph, node, pipe
from tests.nodes import FailAt, Forward, InTurn, Where, numbers

pytestmark = pytest.mark.usefixtures("ray")


RUN = f"failures{os.getpid()}"


def left_behind() -> set[str]:
    """Processes that have a segment of these runs open, other than this one."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) != os.getpid():
            try:
                found |= {pid for fd in os.listdir(f"/proc/{pid}/fd")
                          if f"memfd:windowfarm-{RUN}" in os.readlink(f"/proc/{pid}/fd/{fd}")}
            except OSError:
                continue
    return found


def shared_files() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if "windowfarm" in name}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert left_behind() == set() and shared_files() == set()


def farm_of(worker: Block) -> Graph:
    return graph(farm(node("emitter", partial(InTurn, 2)), [node("worker-0", Forward), worker],
                      node("collector", Forward)))


def endless() -> Iterator[Message | None]:
    while True:
        yield from numbers(100, 1024)


def run(closed: Graph, **options: object) -> None:
    run_on_ray(closed, endless(), lambda message: None, name=RUN, **options)  # type: ignore[arg-type]


def test_node_that_raises_is_named_with_the_original_traceback() -> None:
    with pytest.raises(NodeError, match="node `worker-1` failed: ValueError: the apple is rotten") as caught:
        run(farm_of(node("worker-1", partial(FailAt, 20))))
    assert "tests/nodes.py" in caught.value.details and "raise ValueError" in caught.value.details


def test_node_whose_init_raises_is_named() -> None:
    with pytest.raises(NodeError, match="node `worker-1` .*while it started"):
        run(farm_of(node("worker-1", partial(FailAt, "no number", 7, 8))))


@pytest.mark.parametrize("place, role", list(enumerate(["emitter", "worker-1", "collector"])))
def test_process_that_is_killed_is_named(place: int, role: str) -> None:
    pids: list[int] = []                            # emitter, worker, collector, as one batch met them

    def take(message: Message) -> None:
        if isinstance(message, Batch) and message.first_row // 1024 % 2 == 0 and not pids:
            pids.extend(message.meta["pids"])

    def source() -> Iterator[Message | None]:
        for batch in endless():
            yield batch
            if pids:
                os.kill(pids[place], signal.SIGKILL)
                break
        yield from endless()

    closed = graph(farm(node("emitter", partial(Where, InTurn, 2)),
                        [node(f"worker-{i}", partial(Where, Forward)) for i in range(2)],
                        node("collector", partial(Where, Forward))))
    with pytest.raises(NodeError, match=f"node `{role}` died"):
        run_on_ray(closed, source(), take, name=RUN)


def test_process_that_is_stopped_raises_who_waits_for_whom() -> None:
    with pytest.raises(StalledError) as caught:
        run(farm_of(node("worker-1", partial(FailAt, 5, "SIGSTOP"))), stall_s=1.0)
    text = str(caught.value)
    assert "node `worker-1` (process" in text and "stopped) did not move for 1 s" in text
    assert "emitter: blocked, waits for room to worker-1" in text


def test_options_pin_and_nice_reach_the_actors() -> None:
    where: list[dict[str, object]] = []

    def take(message: Message) -> None:
        if isinstance(message, Batch):
            where.append(dict(message.meta))

    closed = graph(pipe(node("first", Forward), node("second", partial(Where, Forward))))
    run_on_ray(closed, numbers(1), take, actor_options=ActorOptions(pin=True, nice=3))
    assert where[0]["nice"] == os.nice(0) + 3
    cores = sorted(os.sched_getaffinity(0))
    assert where[0]["cores"] == (cores[1 % len(cores)],)


def test_options_preload_is_loaded_before_anything_else() -> None:
    library = next(f"/lib/{folder}/libm.so.6" for folder in ("x86_64-linux-gnu", "aarch64-linux-gnu")
                   if os.path.exists(f"/lib/{folder}/libm.so.6"))
    where: list[dict[str, object]] = []

    def take(message: Message) -> None:
        if isinstance(message, Batch):
            where.append(dict(message.meta))

    run_on_ray(graph(node("only", partial(Where, Forward))), numbers(1), take,
               actor_options=ActorOptions(preload=library))
    assert where[0]["preload"] == library


def test_options_impossible_are_refused() -> None:
    for options in ({"nice": -1}, {"nice": 20}, {"preload": "/no/such/file.so"}, {"start_s": 0}):
        with pytest.raises(SpecError, match="`"):
            ActorOptions(**options)  # type: ignore[arg-type]

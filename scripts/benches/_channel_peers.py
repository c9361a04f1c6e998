"""The peers of the channel benchmark: unix sockets, ZeroMQ and Ray calls, each written as well as it goes.

All of them move the same batch: eight columns, with a msgpack head that names and describes them; none
copies a column before it has to. All check the same sum over the first column.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgpack
import numpy as np

from scripts.benches._channel_product import IN_FLIGHT, batch_of
from scripts.benches._children import Child, Measured, cpu_s

_SIZES = struct.Struct("<qq")       # of the head and of all columns; 0: the end
Columns = dict[str, np.ndarray]
#: The next batch and its stamp; None: the end.
Take = Callable[[], tuple[int, Columns] | None]
Give = Callable[[int, Columns | None], None]


def head_of(stamp: int, columns: Columns) -> bytes:
    """What a receiver has to know about `columns`."""
    packed: bytes = msgpack.packb((stamp, [(name, column.dtype.str, column.shape)
                                           for name, column in columns.items()]))
    return packed


def batch_from(head: Any, buffers: Sequence[Any]) -> tuple[int, Columns]:
    """The batch that `head` describes, as views of `buffers`."""
    stamp, fields = msgpack.unpackb(head, use_list=False)
    return stamp, {name: np.frombuffer(buffer, dtype).reshape(shape)
                   for (name, dtype, shape), buffer in zip(fields, buffers, strict=True)}


def check(take: Take, acknowledge: Callable[[], None] | None, ready: Callable[[], None]) -> tuple[int, list[int]]:
    """Receive to the end: the sum over the first column, and how old each batch was."""
    ready()
    total, ages = 0, []
    while (found := take()) is not None:
        stamp, columns = found
        ages.append(time.monotonic_ns() - stamp)
        total += int(columns["c0"].sum())
        if acknowledge is not None:
            acknowledge()
    return total, ages


def forward(take: Take, give: Give, report: Callable[[], None], ready: Callable[[], None]) -> None:
    """A worker: receive, send on, report."""
    ready()
    while (found := take()) is not None:
        give(*found)
        report()
    give(0, None)


def joined(columns: Columns) -> Columns:
    """`columns` with all but the first in one buffer: what a peer could do if it knew that they have one type."""
    first, *rest = columns.values()
    return {"c0": first, "rest": np.concatenate(rest)}


def emit(gives: list[Give], reports: Callable[[bool], list[int]], columns: Columns, batches: int) -> None:
    """An emitter: to the worker with the fewest in flight, `IN_FLIGHT` each at the most."""
    in_flight = [0] * len(gives)
    for _ in range(batches):
        for worker in reports(min(in_flight) >= IN_FLIGHT):
            in_flight[worker] -= 1
        worker = in_flight.index(min(in_flight))
        in_flight[worker] += 1
        gives[worker](time.monotonic_ns(), columns)
    while sum(in_flight):
        for worker in reports(True):
            in_flight[worker] -= 1
    for give in gives:
        give(0, None)


# ---------------------------------------------------------------------------------------------- unix sockets

def socket_give(end: socket.socket, stamp: int, columns: Columns | None) -> None:
    if columns is None:
        end.sendall(_SIZES.pack(0, 0))
        return
    head = head_of(stamp, columns)
    parts = [memoryview(column).cast("B") for column in columns.values()]  # type: ignore[arg-type]
    size = sum(map(len, parts))
    sent = end.sendmsg([_SIZES.pack(len(head), size), head, *parts])
    sent -= _SIZES.size + len(head)
    if sent < size:
        for part in parts:
            if sent < len(part):
                end.sendall(part[max(sent, 0):])
            sent -= len(part)


class SocketTake:
    """Receives into one buffer, which is used again and again."""

    def __init__(self, end: socket.socket) -> None:
        self._end, self._memory, self._sizes = end, memoryview(bytearray(1)), memoryview(bytearray(_SIZES.size))

    def __call__(self) -> tuple[int, Columns] | None:
        self._fill(self._sizes)
        head, size = _SIZES.unpack(self._sizes)
        if not head:
            return None
        if len(self._memory) < head + size:
            self._memory = memoryview(bytearray(head + size))
        memory = self._memory[:head + size]
        self._fill(memory)
        step = size // 8
        return batch_from(memory[:head], [memory[place:place + step] for place in range(head, head + size, step)])

    def _fill(self, memory: memoryview) -> None:
        while memory:
            memory = memory[self._end.recv_into(memory):]


def socket_hop(rows: int, batches: int, acknowledged: bool) -> Measured:
    near, far = socket.socketpair()
    acknowledge = (lambda: far.sendall(b"x")) if acknowledged else None
    child = Child.start(partial(check, SocketTake(far), acknowledge))
    return _feed(partial(socket_give, near), (lambda: near.recv(1)) if acknowledged else None, child, rows, batches)


def socket_farm(rows: int, batches: int, degree: int) -> Measured:
    pairs = [socket.socketpair() for _ in range(degree)]
    outs = [socket.socketpair() for _ in range(degree)]
    feedback = socket.socketpair()
    collector = Child.start(partial(_collect_sockets, [out[1] for out in outs]))
    children = [Child.start(partial(forward, SocketTake(pairs[i][1]), partial(socket_give, outs[i][0]),
                                    partial(feedback[1].sendall, bytes([i])))) for i in range(degree)]

    def reports(wait: bool) -> list[int]:
        feedback[0].setblocking(wait)
        try:
            return list(feedback[0].recv(100))
        except BlockingIOError:
            return []

    return _farm([partial(socket_give, pair[0]) for pair in pairs], reports, children, collector, rows, batches)


def _collect_sockets(ends: list[socket.socket], ready_to_begin: Callable[[], None]) -> tuple[int, list[int]]:
    takes, poll = {end.fileno(): SocketTake(end) for end in ends}, select.poll()
    ready: list[int] = []
    for end in ends:
        poll.register(end, select.POLLIN)

    def take() -> tuple[int, Columns] | None:
        while takes:
            if not ready:
                ready.extend(descriptor for descriptor, _ in poll.poll() if descriptor in takes)
                continue
            descriptor = ready.pop()
            found = takes[descriptor]()
            if found is not None:
                return found
            poll.unregister(descriptor)
            del takes[descriptor]
        return None

    return check(take, None, ready_to_begin)


# ---------------------------------------------------------------------------------------------- ZeroMQ

@contextlib.contextmanager
def zmq_sockets() -> Iterator[Callable[..., Any]]:
    """Opens sockets; at the end, what they have sent is delivered."""
    import zmq
    context = zmq.Context()

    def opened(kind: str, address: str, bind: bool = False) -> Any:
        end: Any = context.socket(getattr(zmq, kind))
        end.set_hwm(2 * IN_FLIGHT)
        (end.bind if bind else end.connect)(address)
        return end

    yield opened
    context.destroy(linger=5000)


def zmq_give(end: Any, stamp: int, columns: Columns | None) -> None:
    if columns is None:
        end.send(b"")
    else:
        end.send_multipart([head_of(stamp, columns), *columns.values()], copy=False)


def zmq_take(end: Any, producers: int = 1) -> Take:
    left = [producers]

    def take() -> tuple[int, Columns] | None:
        while left[0]:
            head, *columns = end.recv_multipart(copy=False)
            if columns:
                return batch_from(head.buffer, columns)
            left[0] -= 1
        return None

    return take


def zmq_hop(rows: int, batches: int, acknowledged: bool) -> Measured:
    with _addresses() as at:
        def consume(ready: Callable[[], None]) -> tuple[int, list[int]]:
            with zmq_sockets() as opened:
                data, back = opened("PULL", at("data"), bind=True), opened("PUSH", at("back"))
                return check(zmq_take(data), (lambda: back.send(b"x")) if acknowledged else None, ready)

        with zmq_sockets() as opened:
            back = opened("PULL", at("back"), bind=True)
            child = Child.start(consume)
            data = opened("PUSH", at("data"))
            return _feed(partial(zmq_give, data), back.recv if acknowledged else None, child, rows, batches)


def zmq_farm(rows: int, batches: int, degree: int, join: bool = False) -> Measured:
    with _addresses() as at:
        def work(number: int, ready: Callable[[], None]) -> None:
            with zmq_sockets() as opened:
                data, out = opened("PULL", at(f"in-{number}"), bind=True), opened("PUSH", at("out"))
                back = opened("PUSH", at("back"))
                forward(zmq_take(data), partial(zmq_give, out), partial(back.send, bytes([number])), ready)

        def collect(ready: Callable[[], None]) -> tuple[int, list[int]]:
            with zmq_sockets() as opened:
                return check(zmq_take(opened("PULL", at("out"), bind=True), degree), None, ready)

        with zmq_sockets() as opened:
            reports = partial(_zmq_reports, opened("PULL", at("back"), bind=True))
            collector = Child.start(collect)
            children = [Child.start(partial(work, number)) for number in range(degree)]
            ends = [opened("PUSH", at(f"in-{number}")) for number in range(degree)]
            return _farm([partial(zmq_give, end) for end in ends], reports, children, collector, rows, batches, join)


def _zmq_reports(back: Any, wait: bool) -> list[int]:
    import zmq
    found = [back.recv()[0]] if wait else []
    with contextlib.suppress(zmq.Again):
        while True:
            found.append(back.recv(zmq.NOBLOCK)[0])
    return found


@contextlib.contextmanager
def _addresses() -> Iterator[Callable[[str], str]]:
    with tempfile.TemporaryDirectory() as folder:
        yield lambda name: f"ipc://{os.path.join(folder, name)}"


# ---------------------------------------------------------------------------------------------- Ray calls

class RayChecker:
    """The consumer (or collector) as a Ray actor: a batch is an argument of a call."""

    def __init__(self) -> None:
        self._total, self._ages = 0, []  # type: tuple[int, list[int]]

    def take(self, stamp: int, columns: Columns) -> None:
        self._ages.append(time.monotonic_ns() - stamp)
        self._total += int(columns["c0"].sum())

    def cpu(self) -> float:
        return cpu_s()

    def answer(self) -> tuple[int, list[int]]:
        total, ages = self._total, self._ages
        self._total, self._ages = 0, []
        return total, ages


class RayForward:
    """A worker as a Ray actor: gives the batch back, its reference goes to the collector."""

    def work(self, columns: Columns) -> Columns:
        return columns

    def cpu(self) -> float:
        return cpu_s()


class RayPeer:
    """Ray calls between actors, started once."""

    def __init__(self, degree: int) -> None:
        import ray
        self._ray = ray
        self._checker = ray.remote(num_cpus=0.1)(RayChecker).remote()
        self._workers = [ray.remote(num_cpus=0.1)(RayForward).remote() for _ in range(degree)]
        ray.get([actor.cpu.remote() for actor in (self._checker, *self._workers)])

    def hop(self, rows: int, batches: int, acknowledged: bool) -> Measured:
        def feed(columns: Columns) -> None:
            calls: list[Any] = []
            for _ in range(batches):
                calls.append(self._checker.take.remote(time.monotonic_ns(), columns))
                if acknowledged or len(calls) >= 2 * IN_FLIGHT:
                    self._ray.get(calls.pop(0))
            self._ray.get(calls)
        return self._measure(feed, rows, batches)

    def farm(self, rows: int, batches: int) -> Measured:
        def feed(columns: Columns) -> None:
            calls: list[Any] = []
            for number in range(batches):
                stamp = time.monotonic_ns()
                done = self._workers[number % len(self._workers)].work.remote(columns)
                calls.append(self._checker.take.remote(stamp, done))
                if len(calls) >= IN_FLIGHT * len(self._workers):
                    self._ray.get(calls.pop(0))
            self._ray.get(calls)
        return self._measure(feed, rows, batches)

    def _measure(self, feed: Callable[[Columns], None], rows: int, batches: int) -> Measured:
        columns = dict(batch_of(rows).columns)
        actors = (self._checker, *self._workers)
        before = cpu_s() + sum(self._ray.get([actor.cpu.remote() for actor in actors]))
        begin = time.perf_counter()
        feed(columns)
        seconds = time.perf_counter() - begin
        used = cpu_s() + sum(self._ray.get([actor.cpu.remote() for actor in actors])) - before
        total, ages = self._ray.get(self._checker.answer.remote())
        return _checked(Measured(seconds, used, ages), total, rows, batches)


# ---------------------------------------------------------------------------------------------- all of them

def _feed(give: Give, acknowledged: Callable[[], Any] | None, child: Child, rows: int, batches: int) -> Measured:
    columns = dict(batch_of(rows).columns)
    begin, cpu = time.perf_counter(), cpu_s()
    for _ in range(batches):
        give(time.monotonic_ns(), columns)
        if acknowledged is not None:
            acknowledged()
    give(0, None)
    (total, ages), used = child.result()
    return _checked(Measured(time.perf_counter() - begin, cpu_s() - cpu + used, ages), total, rows, batches)


def _farm(gives: list[Give], reports: Callable[[bool], list[int]], children: list[Child], collector: Child,
          rows: int, batches: int, join: bool = False) -> Measured:
    columns = dict(batch_of(rows).columns)
    if join:
        columns = joined(columns)
    begin, cpu = time.perf_counter(), cpu_s()
    emit(gives, reports, columns, batches)
    (total, ages), used = collector.result()
    seconds, cpu = time.perf_counter() - begin, cpu_s() - cpu + used
    cpu += sum(child.result()[1] for child in children)
    return _checked(Measured(seconds, cpu, ages), total, rows, batches)


def _checked(measured: Measured, total: int, rows: int, batches: int) -> Measured:
    expected = batches * rows * (rows - 1) // 2
    if total != expected:
        raise AssertionError(f"checksum {total}, not {expected}")
    return measured

"""Helpers of the channel tests: the same channel in several forms, and peers in other processes."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from runtime.channel.contract import AnyBell, Receiver, Sender, wait_for
from runtime.channel.local import LocalBell, LocalChannel
from runtime.channel.remote import Link, Mailbox, RemoteReceiver, RemoteSender
from runtime.channel.segment import RingSpec, Segment, SegmentAddress, SegmentLayout
from runtime.message import Batch, Message

ROOT = Path(__file__).resolve().parent.parent
#: Longer than anything takes that works; tests wait for events, never for time to pass.
PATIENCE_S = 60.0
_KEEPER: list[Any] = []                             # of the contract on Ray: the actor, and numbers not used yet


@dataclass
class Pair:
    """Both ends of a channel, and the bells of their nodes."""

    sender: Sender
    receiver: Receiver
    producer_bell: AnyBell
    consumer_bell: AnyBell


def local_pair(capacity_bytes: int) -> Pair:
    """A channel inside this process; holds as many small messages as a ring of that size."""
    bells = LocalBell(), LocalBell()
    channel = LocalChannel(*bells, capacity=max(1, capacity_bytes // 64), capacity_bytes=capacity_bytes)
    return Pair(channel.sender, channel.receiver, *bells)


def ring_pair(capacity_bytes: int) -> Pair:
    """A ring with both ends in this process, each through a mapping of its own."""
    segment = Segment.create("test", SegmentLayout(2, (RingSpec(0, 1, capacity_bytes),)))
    other = Segment.attach(segment.address)
    pair = Pair(segment.sender(0), other.receiver(0), segment.bell(0), other.bell(1))
    other.close()
    return pair


def remote_pair(capacity_bytes: int) -> Pair:
    """A channel through a mailbox, as between machines; the calls to it are plain ones, or Ray's if told so."""
    link: Link = Mailbox()
    if os.environ.get("WINDOWFARM_REMOTE_PAIR") == "ray":
        link = _ray_link()
    bells = LocalBell(), LocalBell()
    return Pair(RemoteSender(link, bells[0], capacity_bytes), RemoteReceiver(link, bells[1], capacity_bytes), *bells)


def _ray_link() -> Link:
    """A mailbox of its own in a keeper on a node of the Ray cluster that this process is not on."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
    from runtime.actors.keeper import Keeper, RayLink
    if not _KEEPER:
        own = ray.get_runtime_context().get_node_id()
        other = next(node["NodeID"] for node in ray.nodes() if node["Alive"] and node["NodeID"] != own)
        remote = ray.remote(num_cpus=0, max_concurrency=400)(Keeper)
        where = NodeAffinitySchedulingStrategy(other, soft=False)
        _KEEPER.extend([remote.options(scheduling_strategy=where).remote(range(100)), iter(range(100))])
    return RayLink(_KEEPER[0], next(_KEEPER[1]))


def batch(rows: int, start: int = 0) -> Batch:
    """`rows` items whose contents follow from `start`."""
    return Batch({"id": np.arange(start, start + rows), "x": np.arange(rows * 3.0).reshape(rows, 3) + start,
                  "tag": np.arange(start, start + rows).astype(np.int16)}, stamp_ns=start, first_row=start)


def same(left: Message, right: Message) -> bool:
    """Whether two messages are equal, columns included."""
    if not (isinstance(left, Batch) and isinstance(right, Batch)):
        return left == right
    return (list(left.columns) == list(right.columns)
            and all(left.columns[name].dtype == right.columns[name].dtype
                    and np.array_equal(left.columns[name], right.columns[name]) for name in left.columns)
            and (left.stamp_ns, left.first_row) == (right.stamp_ns, right.first_row)
            and dict(left.meta) == dict(right.meta))


def receive(receiver: Receiver, bell: AnyBell, timeout_s: float = PATIENCE_S) -> Message:
    """The next message; AssertionError if there is none for a very long time."""
    message = wait_for(receiver.try_receive, bell, (receiver,), timeout_s)
    assert message is not None, "nothing arrived"
    return message


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether `condition` comes true; at once where nothing is between the two ends, soon elsewhere."""
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until_s:
            return False
    return True


@contextlib.contextmanager
def other_process(code: str, address: SegmentAddress) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs `code` with `segment` attached; it is killed and reaped at the end."""
    prelude = ("import os, sys, pickle, signal\n"
               "from runtime.channel.segment import Segment\n"
               "from runtime.message import *\n"
               "from tests.channels import *\n"
               f"segment = Segment.attach(pickle.loads({pickle.dumps(address)!r}))\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", prelude + code], cwd=ROOT, env=environment,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def forked(work: Callable[[], None]) -> int:
    """The number of a child that does `work` and ends, 0 or 1 being its code; `reap` it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def reap(pid: int) -> int:
    """Wait for child `pid`; its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

"""Channels: a hop, a farm with feedback and a multicast, against unix sockets, ZeroMQ and Ray calls.

Rows have 64 bytes. Every process of the product is a real host of a real graph (`runtime.host`); hosts are
forked here, so that product and peers differ in the channel only, and once they run on Ray actors. Sums
over the data are checked in every measurement. Latency is the age of a batch at its arrival: in the hop one
batch is under way at a time, in the farm as many as the emitter allows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from scripts.benches import _channel_peers as peers
from scripts.benches import _channel_product as product
from scripts.benches._children import Measured

REPEATS = 5
SIZES = (1, 64, 1024, 8192, 65_536)
FARM_SIZES = (1024, 8192, 65_536)
Case = tuple[str, str, Callable[[], Measured], int, int]


def run(quick: bool) -> Iterator[dict[str, Any]]:
    """A few batches through each channel if `quick`, else everything."""
    product.warm_up()
    if quick:
        yield from measured(_quick_cases(), 1)
        return
    yield from measured(_hop_cases(), REPEATS)
    yield from measured(_farm_cases(), REPEATS)
    yield from measured(_multicast_cases(), REPEATS)
    for repeat in range(3):
        yield record("idle farm of 2", "windowfarm", "CPU per process", product.idle(4.0) * 100, "% of a core", repeat)
    yield from _with_ray()


def _quick_cases() -> Iterator[Case]:
    yield "hop 1024", "windowfarm", partial(product.stream, product.hop_graph(False), 1024, 20), 1024, 20
    yield "hop 1024", "unix socket", partial(peers.socket_hop, 1024, 20, False), 1024, 20
    yield "farm 1024", "windowfarm", partial(product.stream, product.farm_graph(2), 1024, 20), 1024, 20
    yield "farm 1024", "zeromq", partial(peers.zmq_farm, 1024, 20, 2), 1024, 20
    for multicast, subject in (("shared", "windowfarm"), ("copy", "copy per worker")):
        closed = product.multicast_graph(2, multicast)
        yield "multicast 2 x 1024", subject, partial(product.stream, closed, 1024, 20, 2), 1024, 20


def _hop_cases() -> Iterator[Case]:
    for rows in SIZES:
        many, few = _batches(rows), min(_batches(rows), 500)
        yield f"hop {rows}", "windowfarm", partial(product.stream, product.hop_graph(False), rows, many), rows, many
        yield f"hop {rows}", "unix socket", partial(peers.socket_hop, rows, many, False), rows, many
        yield f"hop {rows}", "zeromq", partial(peers.zmq_hop, rows, many, False), rows, many
        yield f"ping {rows}", "windowfarm", partial(product.ping, rows, few), rows, few
        yield f"ping {rows}", "unix socket", partial(peers.socket_hop, rows, few, True), rows, few
        yield f"ping {rows}", "zeromq", partial(peers.zmq_hop, rows, few, True), rows, few


def _farm_cases() -> Iterator[Case]:
    for rows in FARM_SIZES:
        many = _batches(rows)
        yield f"farm {rows}", "windowfarm", partial(product.stream, product.farm_graph(2), rows, many), rows, many
        yield f"farm {rows}", "unix socket", partial(peers.socket_farm, rows, many, 2), rows, many
        yield f"farm {rows}", "zeromq", partial(peers.zmq_farm, rows, many, 2), rows, many
        yield f"farm {rows}", "zeromq, joined columns", partial(peers.zmq_farm, rows, many, 2, True), rows, many


def _multicast_cases() -> Iterator[Case]:
    for degree in (2, 4, 8):
        for multicast, subject in (("shared", "windowfarm"), ("copy", "copy per worker")):
            closed = product.multicast_graph(degree, multicast)
            yield f"multicast {degree} x 8192", subject, partial(product.stream, closed, 8192, 300, degree), 8192, 300


def _with_ray() -> Iterator[dict[str, Any]]:
    """Ray calls, and the product's farm on Ray actors, in one Ray session."""
    from runtime.actors import ensure_ray, stop_ray
    ensure_ray(num_cpus=2, include_dashboard=False, object_store_memory=256 << 20)
    try:
        ray = peers.RayPeer(2)
        cases: list[Case] = []
        for rows in (1024, 8192):
            few = 200
            cases.append((f"hop {rows}", "ray calls", partial(ray.hop, rows, few, False), rows, few))
            cases.append((f"ping {rows}", "ray calls", partial(ray.hop, rows, few, True), rows, few))
            cases.append((f"farm {rows}", "ray calls", partial(ray.farm, rows, few), rows, few))
            many = 5 * _batches(rows)
            cases.append((f"farm {rows}", "windowfarm on ray actors", partial(product.on_ray, 2, rows, many),
                          rows, many))
        yield from measured(iter(cases), REPEATS)
    finally:
        stop_ray()


def _batches(rows: int) -> int:
    """So many that a measurement takes a fraction of a second."""
    return max(100, min(3000, (200 << 20) // (64 * rows)))


def measured(cases: Iterator[Case], repeats: int) -> Iterator[dict[str, Any]]:
    """The records of each case; the repetitions of one case follow each other."""
    for case, subject, measure, rows, batches in cases:
        for repeat in range(repeats):
            figures = measure()
            quantiles = statistics.quantiles(figures.latencies_ns, n=100, method="inclusive")
            for metric, value, unit in (
                    ("throughput", rows * batches / figures.seconds, "rows/s"),
                    ("latency p50", quantiles[49] / 1e3, "us"), ("latency p99", quantiles[98] / 1e3, "us"),
                    ("CPU per batch", figures.cpu_s / batches * 1e6, "us")):
                if math.isnan(value):
                    continue                                # CPU time of Ray's own processes is not known
                yield record(case, subject, metric, value, unit, repeat)


def record(case: str, subject: str, metric: str, value: float, unit: str, repeat: int) -> dict[str, Any]:
    return {"bench": "channels", "case": case, "subject": subject, "metric": metric, "value": value,
            "unit": unit, "repeat": repeat}

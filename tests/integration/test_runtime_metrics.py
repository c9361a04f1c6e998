"""The figures of a run, read from Ray's metrics endpoint over plain HTTP."""

from __future__ import annotations

import re
import time
import urllib.request
from functools import partial

import pytest

from runtime.actors import metrics_address, run_on_ray
from runtime.actors.metrics import COUNTERS, GAUGES
from runtime.topology import farm, graph, node
from tests.channels import PATIENCE_S
from tests.nodes import InTurn, Summing, numbers

pytestmark = pytest.mark.usefixtures("ray")


def scraped(run: str) -> dict[tuple[str, str], float]:
    """(metric, node) and value, of the run whose name begins with `run`."""
    address = metrics_address()
    assert address is not None
    with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    found = {}
    for name, labels, value in re.findall(r"^ray_windowfarm_(\w+)\{(.*)\} (\S+)$", text, re.MULTILINE):
        tags = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if tags["run"].startswith(run):
            found[name, tags["node"]] = float(value)
    return found


def test_metrics_of_every_node_are_on_the_endpoint() -> None:
    batches, rows, names = 200, 512, ("source", "emitter", "worker-0", "worker-1", "sink")
    closed = graph(farm(node("emitter", partial(InTurn, 2)),
                        [node(f"worker-{i}", partial(Summing, True)) for i in range(2)], feedback=True))
    stats, _, _ = run_on_ray(closed, numbers(batches, rows), lambda message: None, name="measured")
    until_s = time.monotonic() + PATIENCE_S
    found = scraped("measured")
    while found.get(("items_in_total", "sink")) != batches and time.monotonic() < until_s:
        found = scraped("measured")                     # Ray collects them every two seconds
    for row in stats:
        assert found.get(("items_in_total", row.name), 0) == row.items_in
        assert found.get(("items_out_total", row.name), 0) == row.items_out
        assert found.get(("busy_seconds_total", row.name), 0) == pytest.approx(row.busy_s)
    for gauge in GAUGES:
        assert {place for name, place in found if name == gauge} == set(names)
    assert 0 < found["utilisation", "worker-0"] <= 1
    assert found["items_in_total", "emitter"] == batches * rows
    assert {name for name, _ in found} <= {*COUNTERS, *GAUGES, "utilisation"}

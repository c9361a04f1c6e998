"""The figures of every node as Ray metrics, so that Ray's dashboard, Prometheus and Grafana show them.

The figures lie in the run's shared memory; the supervisor reads them there and publishes them from the
driver, so that actors do nothing for it. Names get Ray's prefix: `ray_windowfarm_items_in_total` and so
on; the tags are the run's name, the pattern and the node. `docs/monitoring.md` says what each one means.
"""

from __future__ import annotations

import numpy as np
import ray
from ray.util.metrics import Counter, Gauge

from runtime.statistics import WORD

_TAGS = ("run", "pattern", "node")
_PREFIX = "windowfarm_"

#: Counters: words of a row that only grow, with the factor that makes the unit of the name.
COUNTERS: dict[str, tuple[str, float, str]] = {
    "items_in_total": ("items_in", 1, "items that came in"),
    "items_out_total": ("items_out", 1, "items that went out"),
    "batches_in_total": ("batches_in", 1, "batches that came in"),
    "batches_out_total": ("batches_out", 1, "batches that went out"),
    "busy_seconds_total": ("busy_ns", 1e-9, "time spent in the node's own code"),
    "blocked_seconds_total": ("blocked_ns", 1e-9, "time spent waiting for room at an output"),
    "idle_seconds_total": ("idle_ns", 1e-9, "time spent waiting for input"),
    "late_total": ("late", 1, "items that came too late for all their windows"),
    "outside_total": ("outside", 1, "items that lie in no window"),
    "windows_total": ("windows", 1, "windows fired"),
}

#: Gauges: words of a row that go up and down.
GAUGES: dict[str, tuple[str, float, str]] = {
    "queued_bytes": ("queued_bytes", 1, "bytes that wait in the inputs"),
    "state_bytes": ("state_bytes", 1, "size of the node's state"),
    "arena_bytes": ("arena_bytes", 1, "bytes in use in the node's arena"),
    "latency_seconds": ("latency_ns", 1e-9, "age of the newest batch when it arrived at the node"),
}


def metrics_address() -> str | None:
    """Where this machine's Ray gives out its metrics in Prometheus's text form, or None if it does not."""
    for node in ray.nodes():
        if node["Alive"] and node["NodeID"] == ray.get_runtime_context().get_node_id() and node["MetricsExportPort"]:
            return f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    return None


class Metrics:
    """Publishes the rows of one run."""

    def __init__(self, run: str, pattern: str) -> None:
        self._tags = {"run": run, "pattern": pattern}
        self._counters = {name: Counter(_PREFIX + name, text, _TAGS) for name, (_, _, text) in COUNTERS.items()}
        self._gauges = {name: Gauge(_PREFIX + name, text, _TAGS) for name, (_, _, text) in GAUGES.items()}
        self._utilisation = Gauge(_PREFIX + "utilisation", "share of the last interval spent working (rho)", _TAGS)
        self._last: dict[str, np.ndarray] = {}

    def publish(self, node: str, words: np.ndarray) -> None:
        """Publish the row `words` of `node`: what it has grown by since the last time, and what it holds."""
        row = words.copy()
        last = self._last.get(node, np.zeros_like(row))
        self._last[node] = row
        tags = {**self._tags, "node": node}
        for name, (word, factor, _) in COUNTERS.items():
            grown = int(row[WORD[word]]) - int(last[WORD[word]])
            if grown > 0:
                self._counters[name].inc(grown * factor, tags)
        for name, (word, factor, _) in GAUGES.items():
            self._gauges[name].set(int(row[WORD[word]]) * factor, tags)
        spent = [int(row[WORD[word]]) - int(last[WORD[word]]) for word in ("busy_ns", "blocked_ns", "idle_ns")]
        if sum(spent) > 0:
            self._utilisation.set(spent[0] / sum(spent), tags)

"""Figures of each node: counted where the node runs, read from anywhere.

Every node has one row of int64 words. Under the Ray executor the row lies in the run's shared-memory
segment, so that the driver can show it live without a message; inline it is an ordinary array.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

#: The words of a node's row, in order. Times are nanoseconds, `state` is one of `NODE_STATES`.
WORDS = ("items_in", "items_out", "batches_in", "batches_out", "busy_ns", "blocked_ns", "idle_ns",
         "late", "outside", "windows", "state_bytes", "queued_bytes", "state", "waits_for", "beat", "watermark",
         "latency_ns", "arena_bytes", "arena_peak_bytes", "chunks")
WORD = {name: number for number, name in enumerate(WORDS)}

#: What a node is doing: waiting for input, working, waiting for room at output `waits_for`, done.
NODE_STATES = ("starting", "idle", "busy", "blocked", "done")
STARTING, IDLE, BUSY, BLOCKED, DONE = range(5)


@dataclass(frozen=True)
class NodeStats:
    """One node's figures over a run; see `docs/monitoring.md` for the meaning of each."""

    name: str
    items_in: int = 0
    items_out: int = 0
    batches_in: int = 0
    batches_out: int = 0
    busy_s: float = 0.0
    blocked_s: float = 0.0
    idle_s: float = 0.0
    late: int = 0
    outside: int = 0
    windows: int = 0
    state_bytes: int = 0
    queued_bytes: int = 0
    arena_bytes: int = 0
    arena_peak_bytes: int = 0
    chunks: int = 0
    latency_ms: float = 0.0
    state: str = "done"

    @property
    def utilisation(self) -> float:
        """Share of the node's time spent working."""
        total = self.busy_s + self.blocked_s + self.idle_s
        return self.busy_s / total if total else 0.0

    @classmethod
    def from_words(cls, name: str, words: np.ndarray) -> NodeStats:
        figures: dict[str, Any] = {word: int(words[WORD[word]]) for word in (
            "items_in", "items_out", "batches_in", "batches_out", "late", "outside", "windows",
            "state_bytes", "queued_bytes", "arena_bytes", "arena_peak_bytes", "chunks")}
        figures["latency_ms"] = int(words[WORD["latency_ns"]]) / 1e6
        for word in ("busy", "blocked", "idle"):
            figures[f"{word}_s"] = int(words[WORD[f"{word}_ns"]]) / 1e9
        return cls(name=name, state=NODE_STATES[int(words[WORD["state"]])], **figures)


@dataclass(frozen=True)
class Stats:
    """The figures of a run. Prints as a short table; `to_json()` is what `--stats` writes."""

    items_in: int = 0
    items_late: int = 0
    items_bad: int = 0
    items_outside: int = 0
    windows: int = 0
    result_rows: int = 0
    startup_s: float = 0.0
    run_s: float = 0.0
    items_per_s: float = 0.0
    latency_ms: Mapping[str, float | None] = field(default_factory=lambda: {"p50": None, "p99": None})
    pattern: str = ""
    executor: str = ""
    shared_memory_bytes: int = 0
    nodes: tuple[NodeStats, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        figures = asdict(self)
        for node, stats in zip(figures["nodes"], self.nodes, strict=True):
            node["utilisation"] = round(stats.utilisation, 4)
        return figures

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        latency = ", ".join(f"{name} {value:.1f} ms" for name, value in self.latency_ms.items() if value is not None)
        lines = [f"{self.items_in:,} items in, {self.items_late:,} late, {self.items_bad:,} bad; "
                 f"{self.windows:,} windows, {self.result_rows:,} result rows",
                 f"{self.pattern} on {self.executor}: start-up {self.startup_s:.2f} s, run {self.run_s:.2f} s, "
                 f"{self.items_per_s:,.0f} items/s" + (f", latency {latency}" if latency else "")]
        lines += [f"  {node.name}: {node.items_in:,} in, {node.items_out:,} out, busy {node.busy_s:.2f} s "
                  f"({node.utilisation:.0%}), {node.state}" for node in self.nodes]
        return "\n".join(lines)

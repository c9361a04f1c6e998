"""What a run gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from runtime.statistics import Stats


@dataclass(frozen=True)
class Report:
    """Results and figures of a run.

    `results` has one row per window and key (or one per reported item), ordered by key, window, time,
    arrival. `late` and `bad` hold the rows that were left out, as they came. `latencies` has a row for each
    step at which windows closed: `window_id`, `windows`, `latency_ms`.
    """

    results: pa.Table
    stats: Stats
    late: pa.Table = field(repr=False)
    bad: pa.Table = field(repr=False)
    graph: str = field(default="", repr=False)
    choice: str = field(default="", repr=False)
    dashboard: str | None = None
    latencies: pa.Table = field(default_factory=lambda: pa.table({}), repr=False)

    def to_pandas(self) -> Any:
        return self.results.to_pandas()

"""A picture of an aggregate over time: one line per key."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pyarrow as pa

matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

_MOST_KEYS = 8


def draw_aggregate(results: pa.Table, column: str, path: Path, kind: str = "png") -> bool:
    """Draw `column` of every window against its end, for the keys with most windows; False if there is no window."""
    if not results.num_rows:
        return False
    frame = results.to_pandas()
    figure, axes = plt.subplots(figsize=(9, 5), dpi=120)
    if "key" in frame:
        shown = frame["key"].value_counts(sort=True).index[:_MOST_KEYS]
        for key in sorted(shown, key=str):
            part = frame[frame["key"] == key]
            axes.plot(part["window_end"], part[column].astype(np.float64), label=str(key), linewidth=1)
        axes.legend(fontsize=8)
    else:
        axes.plot(frame["window_end"], frame[column].astype(np.float64), linewidth=1)
    axes.set_xlabel("window_end")
    axes.set_ylabel(column)
    axes.set_title(f"{column} of {len(frame):,} windows", fontsize=10)
    figure.autofmt_xdate()
    figure.tight_layout()
    figure.savefig(path, format=kind)
    plt.close(figure)
    return True

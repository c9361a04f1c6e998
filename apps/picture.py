"""A picture of a run: the last window's skyline, and skyline sizes and latencies over the windows."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patterns.report import Report

matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402


def draw_run(report: Report, dims: tuple[str, ...], maximize: tuple[str, ...], path: Path, kind: str = "png") -> bool:
    """Draw the run's last skyline and its course to `path` (a png, pdf, svg); False if there is no window."""
    if not report.results.num_rows:
        return False
    figure = plt.figure(figsize=(9, 7.5), dpi=120, layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(2.2, 1))
    _last_skyline(above.subplots(), report.results, dims, maximize)
    sizes, latencies = below.subplots(1, 2)
    _sizes(sizes, report.results)
    _latencies(latencies, report.latencies)
    figure.savefig(path, format=kind)
    plt.close(figure)
    return True


def _last_skyline(axes: plt.Axes, results: pa.Table, dims: tuple[str, ...], maximize: tuple[str, ...]) -> None:
    last, about = last_window(results)
    points = np.column_stack([np.asarray(last.column(name).to_numpy(), np.float64) for name in dims])
    if len(dims) <= 2:
        _scatter(axes, points, dims, maximize)
    else:
        _parallel(axes, points, dims, maximize)
    start, end = last.column("window_start")[0].as_py(), last.column("window_end")[0].as_py()
    axes.set_title(f"Skyline of {about}: {last.num_rows} items\n{start} to {end}", fontsize=10)


def _sizes(axes: plt.Axes, results: pa.Table) -> None:
    """Items of each window's skyline; of all keys together where there are keys."""
    ids, counts = np.unique(results.column("window_id").to_numpy(), return_counts=True)
    axes.plot(ids - ids[0], counts, lw=1, marker="." if len(ids) < 100 else None)
    axes.set_xlabel(f"window, counted from {ids[0]}")
    axes.set_ylabel("items of the skyline")
    axes.set_ylim(bottom=0)


def _latencies(axes: plt.Axes, latencies: pa.Table) -> None:
    """Time from a window's closing item to its result, over the windows."""
    ids = latencies.column("window_id").to_numpy()
    axes.plot(ids - ids.min(), latencies.column("latency_ms").to_numpy(), lw=1, color="tab:orange",
              marker="." if len(ids) < 100 else None)
    axes.set_xlabel(f"window, counted from {ids.min()}")
    axes.set_ylabel("latency (ms)")
    axes.set_ylim(bottom=0)


def last_window(results: pa.Table) -> tuple[pa.Table, str]:
    """The rows of the last window, with keys that of the key that has most of them, and which one it is."""
    ids = results.column("window_id").to_numpy()
    last = results.filter(pa.array(ids == ids.max()))
    about = f"window {int(ids.max())}"
    if "key" in last.column_names:
        counts = last.column("key").value_counts()
        key = counts.field("values")[int(np.argmax(counts.field("counts").to_numpy()))]
        last, about = last.filter(pc.equal(last.column("key"), key)), f"{about} of `{key}`"
    return last, about


def _label(name: str, maximize: tuple[str, ...]) -> str:
    return f"{name} ({'more' if name in maximize else 'less'} is better)"


def _scatter(axes: plt.Axes, points: np.ndarray, dims: tuple[str, ...], maximize: tuple[str, ...]) -> None:
    """One or two dimensions: the items and the staircase that bounds what they dominate."""
    x, y = points[:, 0], points[:, -1]
    order = np.lexsort((y, x))
    # Where small x is good, an item's height holds from it to the right, else from it to the left.
    axes.step(x[order], y[order], where="pre" if dims[0] in maximize else "post", color="tab:blue", alpha=.5)
    axes.scatter(x, y, color="tab:blue", s=18, zorder=3)
    axes.set_xlabel(_label(dims[0], maximize))
    axes.set_ylabel(_label(dims[-1], maximize))


def _parallel(axes: plt.Axes, points: np.ndarray, dims: tuple[str, ...], maximize: tuple[str, ...]) -> None:
    """More dimensions: one axis each, one line per item; up is better everywhere."""
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    height = (points - low) / span
    for place, name in enumerate(dims):
        if name not in maximize:
            height[:, place] = 1 - height[:, place]
        best, worst = (high, low) if name in maximize else (low, high)
        axes.text(place, 1.03, f"{best[place]:g}", ha="center", fontsize=8)
        axes.text(place, -0.06, f"{worst[place]:g}", ha="center", fontsize=8)
        axes.axvline(place, color="grey", lw=.6)
    colours = plt.get_cmap("viridis")(height[:, 0])
    width = float(np.clip(60 / len(points), .4, 1.2))  # many lines: thin ones
    for line, colour in zip(height, colours, strict=True):
        axes.plot(range(len(dims)), line, color=colour, alpha=.7, lw=width)
    axes.set_xticks(range(len(dims)), [_label(name, maximize) for name in dims], fontsize=9)
    axes.set_yticks([])
    axes.set_ylim(-0.1, 1.1)
    axes.set_ylabel("better  →")

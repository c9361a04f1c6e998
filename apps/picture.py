"""A picture of the last window's skyline."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pyarrow as pa

matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402


def draw_last_skyline(results: pa.Table, dims: tuple[str, ...], maximize: tuple[str, ...], path: Path,
                      kind: str = "png") -> bool:
    """Draw the skyline of the last window of `results` to `path` (a png, pdf, svg); False if there is no window."""
    if not results.num_rows:
        return False
    ids = results.column("window_id").to_numpy()
    last = results.filter(pa.array(ids == ids.max()))
    points = np.column_stack([np.asarray(last.column(name).to_numpy(), np.float64) for name in dims])
    figure, axes = plt.subplots(figsize=(9, 5), dpi=120)
    if len(dims) <= 2:
        _scatter(axes, points, dims, maximize)
    else:
        _parallel(axes, points, dims, maximize)
    start, end = last.column("window_start")[0].as_py(), last.column("window_end")[0].as_py()
    axes.set_title(f"Skyline of window {int(ids.max())}: {last.num_rows} items\n{start} to {end}", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, format=kind)
    plt.close(figure)
    return True


def _label(name: str, maximize: tuple[str, ...]) -> str:
    return f"{name} ({'more' if name in maximize else 'less'} is better)"


def _scatter(axes: plt.Axes, points: np.ndarray, dims: tuple[str, ...], maximize: tuple[str, ...]) -> None:
    """One or two dimensions: the items and the staircase they form."""
    x, y = points[:, 0], points[:, -1]
    order = np.lexsort((y, x))
    axes.step(x[order], y[order], where="pre" if len(maximize) == 1 else "post", color="tab:blue", alpha=.5)
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
    for line, colour in zip(height, colours, strict=True):
        axes.plot(range(len(dims)), line, color=colour, alpha=.6, lw=1)
    axes.set_xticks(range(len(dims)), [_label(name, maximize) for name in dims], fontsize=9)
    axes.set_yticks([])
    axes.set_ylim(-0.1, 1.1)
    axes.set_ylabel("better  →")

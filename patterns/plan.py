"""`pattern="auto"`: which pattern to run, from what is known before the run, in a sentence."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from patterns.build import Job
from patterns.specs import KeyFarm, PaneFarm, Pattern, WinFarm, WinMapReduce, WinSeq
from patterns.window import ContextAware, CountWindow, TimeWindow, Window

#: A pane with fewer items is hardly smaller after its stage than before.
_FEW_ITEMS = 4
#: From so many items on, a pane is work for a node of its own.
_MANY_ITEMS = 500


@dataclass(frozen=True)
class Choice:
    pattern: Pattern
    why: str


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Known:
    """What is known of the stream beforehand: distinct keys, the busiest one's share, items in a pane; None: not."""

    keys: int | None = None
    top_share: float | None = None
    items_per_pane: float | None = None


def look_at(keys: np.ndarray | None, times: np.ndarray, window: Window) -> Known:
    """What the first items of a stream tell: their keys (as codes) and their event times in microseconds."""
    per_pane = None
    if isinstance(window, TimeWindow) and len(times) > 1:
        span = max(int(times.max()) - int(times.min()), 1)
        per_pane = len(times) * window.grid().pane / span
    elif isinstance(window, CountWindow):
        per_pane = float(window.grid().pane)
    if keys is None or not len(keys):
        return Known(items_per_pane=per_pane)
    counts = np.bincount(keys)
    return Known(int(np.count_nonzero(counts)), float(counts.max()) / len(keys), per_pane)


def _two_stages_pay(job: Job, known: Known) -> bool:
    """Whether a node for panes and one for windows are faster than one for both, beside the driver on two cores."""
    if isinstance(job.window, ContextAware) or job.keyed or not getattr(job.query, "costly_panes", False):
        return False
    large = known.items_per_pane is None or known.items_per_pane >= _MANY_ITEMS
    return job.query.decomposable and job.grid.slide < job.grid.length and large


def choose(job: Job, workers: int | None = None, known: Known = Known()) -> Choice:
    """Follow the decision tree: keys, then decomposability, then sliding, then pane length.

    `workers` is the degree the user asked for (None: the cores but one, which the driver needs to feed them).
    """
    degree = workers or max(cores() - 1, 1)
    if workers is None and cores() == 2 and _two_stages_pay(job, known):
        return Choice(PaneFarm(1, 1), "2 cores and a query whose panes cost as much as its windows: panes in one node, "
                                      "windows in another")
    if degree == 1:
        why = "one worker" if workers else f"{cores()} cores, of which one feeds the other"
        return Choice(WinSeq(), f"{why}: all windows in one node")
    if job.keyed and (known.keys is None or known.keys >= 2 * degree) and (known.top_share or 0) <= 1.5 / degree:
        return Choice(KeyFarm(workers=degree), f"a keyed stream with enough keys for {degree} workers: a key to each")
    if isinstance(job.window, ContextAware):
        return Choice(WinFarm(workers=degree, model="agnostic"),
                      "items decide where windows lie: one node finds them, free workers get them")
    few = "few keys, or one that outweighs the others; " if job.keyed else ""
    if not job.query.decomposable:
        return Choice(WinFarm(workers=degree), f"{few}the query needs whole windows: each window to one worker")
    if job.grid.slide >= job.grid.length:
        return Choice(WinMapReduce(degree, 1), f"{few}windows that do not overlap: each one split over the workers")
    if known.items_per_pane is not None and known.items_per_pane < _FEW_ITEMS:
        return Choice(WinFarm(workers=degree), f"{few}panes of so few items that nothing is gained by reducing them: "
                                               "whole windows to different workers")
    return Choice(PaneFarm(degree, 1), f"{few}sliding windows of a decomposable query: panes are worked on once, "
                                       "in different workers, and windows are made of panes")

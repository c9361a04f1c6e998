"""`pattern="auto"`: which pattern to run, from what is known before the run, in a sentence."""

from __future__ import annotations

import os
from dataclasses import dataclass

from patterns.build import Job
from patterns.specs import KeyFarm, PaneFarm, Pattern, WinFarm, WinMapReduce, WinSeq
from patterns.window import ContextAware


@dataclass(frozen=True)
class Choice:
    pattern: Pattern
    why: str


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def choose(job: Job, workers: int | None = None, *, keys: int | None = None, top_share: float = 0.0) -> Choice:
    """Follow the decision tree: keys, then decomposability, then sliding, then pane length.

    `workers` is the degree the user asked for (None: the cores); `keys` the number of distinct keys if
    known and `top_share` the share of the busiest one.
    """
    degree = workers or cores()
    if degree == 1:
        return Choice(WinSeq(), "one worker: everything in one node")
    if job.keyed and (keys is None or keys >= 2 * degree) and top_share <= 1.5 / degree:
        return Choice(KeyFarm(workers=degree), f"a keyed stream with enough keys for {degree} workers: a key to each")
    if isinstance(job.window, ContextAware):
        return Choice(WinFarm(workers=degree, model="agnostic"),
                      "items decide where windows lie: one node finds them, free workers get them")
    if not job.query.decomposable:
        return Choice(WinFarm(workers=degree), "the query needs whole windows: whole windows to different workers")
    if job.grid.slide < job.grid.length:
        return Choice(PaneFarm(degree, 1), "sliding windows of a decomposable query: panes are worked on once, "
                                           "in different workers, and windows are made of panes")
    return Choice(WinMapReduce(degree, 1), "windows that do not overlap: each one is split over the workers")

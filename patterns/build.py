"""From a pattern's spec to its graph: every pattern is emitters, workers and collectors in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from patterns.collector import Collector
from patterns.emitter import Emitter
from patterns.query import Query
from patterns.routing import ByKey, ByPane, ByWindow, InTurn, Routing
from patterns.specs import Inner, KeyFarm, PaneFarm, Pattern, WinFarm, WinMapReduce, WinSeq
from patterns.window import Grid
from patterns.worker import MergeWorker, PaneWorker, WindowWorker
from runtime.errors import SpecError
from runtime.node import Node
from runtime.topology import Block, all_to_all, farm, node, pipe


@dataclass(frozen=True)
class Job:
    """What the nodes of a pattern have in common."""

    query: Query
    grid: Grid
    counted: bool
    keyed: bool
    name: str = ""

    def at(self, role: str) -> str:
        return f"{self.name}{role}"

    def inside(self, prefix: str, grid: Grid) -> Job:
        return replace(self, grid=grid, name=f"{self.name}{prefix}/")


def build(pattern: Pattern, job: Job) -> Block:
    """The block of `pattern`; SpecError, with a pattern that can, if the query cannot run on it."""
    check(pattern, job)
    if isinstance(pattern, WinSeq):
        return _win_seq(job)
    if isinstance(pattern, WinFarm):
        return _win_farm(pattern, job)
    if isinstance(pattern, KeyFarm):
        return _key_farm(pattern, job)
    if isinstance(pattern, PaneFarm):
        return _two_stages(pattern, job)
    return _two_stages(pattern, job)


def check(pattern: Pattern, job: Job) -> None:
    inner: Pattern = pattern.inner if isinstance(pattern, WinFarm | KeyFarm) else pattern
    if isinstance(inner, PaneFarm | WinMapReduce) and not job.query.decomposable:
        raise SpecError(f"`pattern` {pattern} needs a query whose panes can be combined, got {job.query!r}: "
                        "use win_farm or win_seq, or give the query a combine step")
    if isinstance(pattern, KeyFarm) and not job.keyed:
        raise SpecError("`pattern` key_farm needs a key, got a stream without one: "
                        "name the key column (key_by, --key), or use win_farm")


def _emitter(job: Job, routing: Routing, role: str = "emitter") -> Block:
    return node(job.at(role), partial(Emitter, routing))


def _collector(job: Job, inputs: int, role: str = "collector") -> Block:
    return node(job.at(role), partial(Collector, job.grid, job.counted, inputs=inputs))


def _win_seq(job: Job) -> Block:
    return node(job.at("worker-0"), partial(WindowWorker, job.query, job.grid, job.counted))


def _inner(pattern: Inner, job: Job) -> Block:
    """An inner pattern: no collector of its own, the outer one restores the order (level 1)."""
    return _win_seq(job) if isinstance(pattern, WinSeq) else _two_stages(pattern, job, collect=False)


def _win_farm(pattern: WinFarm, job: Job) -> Block:
    degree, grid = pattern.workers, job.grid
    if isinstance(pattern.inner, WinSeq):
        workers = [node(job.at(f"worker-{replica}"), partial(
            WindowWorker, job.query, grid, job.counted, replica=replica, degree=degree, keyed=job.keyed))
            for replica in range(degree)]
        routing: Routing = ByWindow(grid, degree, job.keyed)
    else:
        workers = [_inner(pattern.inner, job.inside(f"replica-{replica}", grid.share(replica, degree)))
                   for replica in range(degree)]
        routing = ByWindow(grid, degree, False)
    return _farm(job, routing, workers)


def _key_farm(pattern: KeyFarm, job: Job) -> Block:
    workers = [_inner(pattern.inner, job.inside(f"replica-{replica}", job.grid))
               if not isinstance(pattern.inner, WinSeq)
               else node(job.at(f"worker-{replica}"), partial(WindowWorker, job.query, job.grid, job.counted))
               for replica in range(pattern.workers)]
    return _farm(job, ByKey(pattern.workers), workers)


def _farm(job: Job, routing: Routing, workers: Sequence[Block]) -> Block:
    exits = sum(len(worker.exits) for worker in workers)
    if any(len(worker.entries) > 1 for worker in workers):
        raise SpecError("an inner pattern must have one entry")
    return farm(_emitter(job, routing), workers, _collector(job, exits) if exits > 1 else None)


def _two_stages(pattern: PaneFarm | WinMapReduce, job: Job, collect: bool = True) -> Block:
    """PaneFarm (panes, then windows of panes) and WinMapReduce (parts of windows, then their sum)."""
    grid = job.grid
    routing: Routing
    makers: Sequence[Callable[[], Node]]
    if isinstance(pattern, PaneFarm):
        first, second, routing = pattern.plq, pattern.wlq, ByPane(grid, pattern.plq)
        makers = [partial(PaneWorker, job.query, grid, job.counted)] * first
        names, merged, split = ("plq", "wlq"), grid, False
    else:
        first, second, routing = pattern.map, pattern.reduce, InTurn(pattern.map)
        makers = [partial(WindowWorker, job.query, grid, job.counted, final=False)] * first
        # Partials of window i count as pane i of a line on which that pane ends where the window does.
        merged = Grid(grid.slide, grid.slide, grid.origin + grid.length - grid.slide, grid.first_id, grid.id_step)
        names, split = ("map", "reduce"), True
    stage1 = [node(job.at(f"{names[0]}-{i}"), make) for i, make in enumerate(makers)]
    stage2 = [node(job.at(f"{names[1]}-{i}"), partial(
        MergeWorker, job.query, merged, job.counted, inputs=first, replica=i, degree=second, split=split))
        for i in range(second)]
    whole = all_to_all(stage1, stage2)
    # A single first worker needs no emitter, unless an outer farm needs one entry.
    if first > 1:
        whole = pipe(_emitter(job, routing), whole)
    if collect and second > 1:
        whole = pipe(whole, _collector(job, second))
    return whole

"""From a pattern's spec to its graph: every pattern is emitters, workers and collectors in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from patterns.agnostic import ARENA_BYTES, AgnosticEmitter, AgnosticWorker, InTaskOrder
from patterns.collector import Collector, PartialCollector, UnorderedCollector
from patterns.emitter import Emitter
from patterns.listed import ListedWorker
from patterns.query import Query
from patterns.routing import ByKey, ByPane, ByWindow, InTurn, Nested, Routing, ToAll
from patterns.specs import Inner, KeyFarm, PaneFarm, Pattern, WinFarm, WinMapReduce, WinSeq
from patterns.window import ContextAware, Grid, Window, by_key
from patterns.worker import MergeWorker, PaneWorker, WindowWorker
from runtime.errors import SpecError
from runtime.node import Node
from runtime.topology import Block, all_to_all, farm, fuse, node, parallel, pipe


@dataclass(frozen=True)
class Job:
    """What the nodes of a pattern have in common; `lines` is the grid of a replica, if it is not the window's."""

    query: Query
    window: Window
    keyed: bool
    name: str = ""
    lines: Grid | None = None

    @property
    def grid(self) -> Grid:
        assert not isinstance(self.window, ContextAware)
        return self.lines or self.window.grid()

    @property
    def by_key(self) -> bool:
        """Whether keys have their own progress."""
        return by_key(self.window)

    def at(self, role: str) -> str:
        return f"{self.name}{role}"

    def inside(self, prefix: str, grid: Grid) -> Job:
        return replace(self, lines=grid, name=f"{self.name}{prefix}/")


def build(pattern: Pattern, job: Job) -> Block:
    """The block of `pattern`; SpecError, with a pattern that can, if the query or its windows cannot run on it."""
    check(pattern, job)
    if isinstance(pattern, WinSeq):
        return _worker(job, 0)
    if isinstance(pattern, WinFarm):
        return _agnostic_farm(pattern, job) if pattern.model == "agnostic" else _win_farm(pattern, job)
    if isinstance(pattern, KeyFarm):
        return _key_farm(pattern, job)
    return _two_stages(pattern, job).whole(job, pattern.ordered)


def check(pattern: Pattern, job: Job) -> None:
    inner: Pattern = pattern.inner if isinstance(pattern, WinFarm | KeyFarm) else pattern
    if isinstance(job.window, ContextAware):
        active = isinstance(pattern, WinFarm) and pattern.model == "active"
        if active or isinstance(inner, PaneFarm | WinMapReduce):
            raise SpecError(f"`pattern` {pattern} needs windows whose place is known before their items come, got "
                            f"{job.window!r}: use win_seq, key_farm, or a win_farm with agnostic workers")
    if isinstance(pattern, WinFarm) and pattern.model == "agnostic" and not isinstance(inner, WinSeq):
        raise SpecError(f"`inner` must be nothing when the workers of a win_farm are agnostic, got {inner}: "
                        "a window is one task there; use model=\"active\"")
    if isinstance(inner, PaneFarm | WinMapReduce) and not job.query.decomposable:
        raise SpecError(f"`pattern` {pattern} needs a query whose panes can be combined, got {job.query!r}: "
                        "use win_farm or win_seq, or give the query a combine step")
    if isinstance(inner, WinMapReduce) and not getattr(job.query, "commutative", True):
        raise SpecError(f"`pattern` {pattern} deals the items of a pane out to several workers, which needs a combine "
                        f"step that does not depend on their order, got {job.query!r}: use pane_farm")
    if isinstance(pattern, KeyFarm) and not job.keyed:
        raise SpecError("`pattern` key_farm needs a key, got a stream without one: "
                        "name the key column (key_by, --key), or use win_farm")


# -- one stage ------------------------------------------------------------------------------------

def _emitter(job: Job, routing: Routing, role: str = "emitter") -> Block:
    return node(job.at(role), partial(Emitter, routing))


def _collector(job: Job, inputs: int, ordered: bool) -> Block:
    if not ordered:
        return node(job.at("collector"), partial(UnorderedCollector, job.by_key, inputs=inputs))
    return node(job.at("collector"), partial(Collector, job.grid, job.by_key, inputs=inputs))


def _worker(job: Job, number: int) -> Block:
    """A worker that holds all windows of the items it is sent."""
    name = job.at(f"worker-{number}")
    if isinstance(job.window, ContextAware):
        return node(name, partial(ListedWorker, job.query, job.window))
    return node(name, partial(WindowWorker, job.query, job.grid, job.by_key))


def _win_farm(pattern: WinFarm, job: Job) -> Block:
    degree, grid = pattern.workers, job.grid
    if not isinstance(pattern.inner, WinSeq):
        replicas = [job.inside(f"replica-{replica}", grid.share(replica, degree)) for replica in range(degree)]
        return _nested_farm(pattern, job, ByWindow(grid, degree, False), replicas, pattern.inner)
    workers = [node(job.at(f"worker-{replica}"), partial(
        WindowWorker, job.query, grid, job.by_key, replica=replica, degree=degree, keyed=job.keyed))
        for replica in range(degree)]
    return _farm(job, _emitter(job, ByWindow(grid, degree, job.keyed)), workers, pattern.ordered)


def _key_farm(pattern: KeyFarm, job: Job) -> Block:
    routing = ByKey(pattern.workers)
    if not isinstance(pattern.inner, WinSeq):
        replicas = [job.inside(f"replica-{replica}", job.grid) for replica in range(pattern.workers)]
        return _nested_farm(pattern, job, routing, replicas, pattern.inner)
    workers = [_worker(job, replica) for replica in range(pattern.workers)]
    # Where items decide on windows there is no grid to order by, and no need: a key has one worker.
    ordered = pattern.ordered and not isinstance(job.window, ContextAware)
    return _farm(job, _emitter(job, routing), workers, ordered)


def _farm(job: Job, emitter: Block, workers: Sequence[Block], ordered: bool) -> Block:
    exits = sum(len(worker.exits) for worker in workers)
    return farm(emitter, workers, _collector(job, exits, ordered) if exits > 1 else None)


def _agnostic_farm(pattern: WinFarm, job: Job) -> Block:
    """The emitter keeps the items, workers get windows on demand and read them in place."""
    degree = pattern.workers
    emitter = node(job.at("emitter"), partial(AgnosticEmitter, job.window, degree), arena_bytes=ARENA_BYTES)
    workers = [node(job.at(f"worker-{replica}"), partial(AgnosticWorker, job.query, job.window))
               for replica in range(degree)]
    collector = node(job.at("collector"), partial(InTaskOrder, pattern.ordered))
    return farm(emitter, workers, collector, feedback=True)


# -- two stages -----------------------------------------------------------------------------------

@dataclass(frozen=True)
class Stages:
    """A two-stage pattern in parts, so that an outer pattern can leave out what it does itself."""

    routing: Routing
    degree: int
    emitter: Block | None
    body: Block

    def whole(self, job: Job, ordered: bool) -> Block:
        block = self.body if self.emitter is None else pipe(self.emitter, self.body)
        exits = len(block.exits)
        return pipe(block, _collector(job, exits, ordered)) if exits > 1 else block


def _nested_farm(pattern: WinFarm | KeyFarm, job: Job, routing: Routing, replicas: Sequence[Job],
                 inner: Inner) -> Block:
    """A farm of two-stage patterns.

    Level 0: each replica is the whole inner pattern. Level 1: without its collector, the outer one orders.
    Level 2: without its emitter either, the outer one does its work too.
    """
    assert not isinstance(inner, WinSeq)
    stages = [_two_stages(inner, replica) for replica in replicas]
    if pattern.level == 2:
        routing = Nested(routing, tuple((stage.routing, stage.degree) for stage in stages))
        return _farm(job, _emitter(job, routing), [stage.body for stage in stages], pattern.ordered)
    if pattern.level == 1:
        blocks = [stage.body if stage.emitter is None else pipe(stage.emitter, stage.body) for stage in stages]
    else:
        blocks = [stage.whole(replica, True) for stage, replica in zip(stages, replicas, strict=True)]
    return _farm(job, _emitter(job, routing), blocks, pattern.ordered)


def _two_stages(pattern: PaneFarm | WinMapReduce, job: Job) -> Stages:
    """PaneFarm (panes, then windows of panes) and WinMapReduce (parts of windows, then their sum).

    Level 0: a collector and an emitter between the stages. Level 1: those two in one process, and none
    for a stage of one worker. Level 2: every first worker feeds every second one.
    """
    grid = job.grid
    routing: Routing
    make: Callable[[], Node]
    if isinstance(pattern, PaneFarm):
        first, second, routing = pattern.plq, pattern.wlq, ByPane(grid, pattern.plq)
        make = partial(PaneWorker, job.query, grid, job.by_key)
        names, merged, split = ("plq", "wlq"), grid, False
    else:
        first, second, routing = pattern.map, pattern.reduce, InTurn(pattern.map)
        make = partial(WindowWorker, job.query, grid, job.by_key, final=False)
        # Partials of window i count as pane i of a line on which that pane ends where the window does.
        merged = Grid(grid.slide, grid.slide, grid.origin + grid.length - grid.slide, grid.first_id, grid.id_step)
        names, split = ("map", "reduce"), True
    between = _between(job, names, merged, first, second, pattern.level)
    inputs = first if between is None else 1
    stage1 = [node(job.at(f"{names[0]}-{i}"), make) for i in range(first)]
    stage2 = [node(job.at(f"{names[1]}-{i}"), partial(
        MergeWorker, job.query, merged, job.by_key, inputs=inputs, replica=i, degree=second, split=split))
        for i in range(second)]
    if between is None:
        body = all_to_all(stage1, stage2)
    else:
        body = pipe(pipe(parallel(stage1), between), parallel(stage2))
    emitter = _emitter(job, routing) if first > 1 or pattern.level == 0 else None
    return Stages(routing if first > 1 else ToAll(), first, emitter, body)


def _between(job: Job, names: tuple[str, str], merged: Grid, first: int, second: int, level: int) -> Block | None:
    """What stands between the stages: nothing (level 2), or a collector of partials and an emitter."""
    if level == 2:
        return None
    collector = node(job.at(f"{names[0]}-collector"), partial(PartialCollector, merged, job.by_key, inputs=first))
    emitter = _emitter(job, ToAll(), f"{names[1]}-emitter")
    if level == 0:
        return pipe(collector, emitter)
    if second == 1:
        return collector if first > 1 else None
    return fuse(pipe(collector, emitter), job.at(f"{names[1]}-emitter")) if first > 1 else emitter


def at_level(pattern: Pattern, level: int) -> Pattern:
    """`pattern` with every part of it at transformation `level`."""
    if isinstance(pattern, WinSeq):
        return pattern
    if isinstance(pattern, WinFarm | KeyFarm) and not isinstance(pattern.inner, WinSeq):
        return replace(pattern, level=level, inner=replace(pattern.inner, level=level))
    return replace(pattern, level=level)

"""The supervisor: notices a dead, failing or stuck actor, stops the rest, and says which node it was."""

from __future__ import annotations

import contextlib
import threading
import time

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayError

from runtime import statistics as st
from runtime.actors.crew import Crew, error_of, node_error
from runtime.actors.metrics import Metrics
from runtime.channel.liveness import state_of
from runtime.channel.segment import Segment
from runtime.errors import ClosedError, NodeError, StalledError, WindowfarmError
from runtime.layout import Layout
from runtime.node import SINK, SOURCE
from runtime.wiring import place_of

_LOOK_EVERY_S = 0.5
#: How long the actors may take to say why they ended, once one of them found a channel broken.
_ECHO_S = 2.0


class Supervisor:
    """Watches the `run` calls and the processes of `crew` from a thread; the first failure aborts the segment.

    Aborting makes every channel of the run raise, in the driver too, so that nobody goes on waiting.
    """

    def __init__(self, layout: Layout, crew: Crew, segment: Segment, stall_s: float, metrics: Metrics) -> None:
        self._layout, self._graph, self._number = layout, layout.graph, layout.number
        self._crew, self._segment, self._stall_s, self._metrics = crew, segment, stall_s, metrics
        self._calls = {actor.run.remote(): host for host, actor in crew.actors.items()}
        self._failure: WindowfarmError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="windowfarm-supervisor", daemon=True)
        self._moved: dict[str, tuple[int, float]] = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Wait for the thread, and for the actors to see that the run was aborted, if they can."""
        self._stop.set()
        self._thread.join()
        self._publish()
        if self._calls:
            done, _ = ray.wait(list(self._calls), num_returns=len(self._calls), timeout=_LOOK_EVERY_S)
            for call in done:
                error_of(call)  # else Ray prints it

    def finish(self) -> None:
        """Wait for the actors to return after the stream has ended; raises the failure if there is one."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def raise_failure(self) -> None:
        """A channel broke: raise the failure behind it, once it is known."""
        self._thread.join(timeout=10.0)
        if self._failure is not None:
            raise self._failure

    # -- the thread -----------------------------------------------------------------------------

    def _watch(self) -> None:
        waiting = list(self._calls)
        while waiting and not self._stop.is_set():
            self._publish()
            done, waiting = ray.wait(waiting, num_returns=1, timeout=_LOOK_EVERY_S)
            errors = [(self._calls[call], error) for call in done if (error := error_of(call)) is not None]
            if errors:
                self._fail(self._first_cause(errors, waiting))
                return
            # Ray may take its time to tell; the process table does not.
            dead = [host for host in self._crew.dead() if host in {self._calls[call] for call in waiting}]
            if dead and not ray.wait(waiting, num_returns=1, timeout=_LOOK_EVERY_S)[0]:
                self._fail(NodeError(dead[0], f"died: its process {self._crew.pid(dead[0])} is gone"))
                return
            stuck = self._stuck() if waiting else None
            if stuck is not None:
                self._fail(StalledError(self._describe_stall(stuck)))
                return

    def _publish(self) -> None:
        with contextlib.suppress(RayError):
            self._crew.site.fetch(self._segment, self._number)
        for name, number in self._number.items():
            self._metrics.publish(name, self._segment.words(number))

    def _fail(self, failure: WindowfarmError) -> None:
        self._failure = failure
        self._segment.abort()
        self._crew.site.abort()

    def _first_cause(self, errors: list[tuple[str, Exception]], waiting: list[ray.ObjectRef]) -> WindowfarmError:
        """The failure behind `errors`: a closed channel is only the echo of another node's end."""
        if all(isinstance(error, ClosedError) for _, error in errors) and waiting:
            done, _ = ray.wait(waiting, num_returns=len(waiting), timeout=_ECHO_S)
            errors = errors + [(self._calls[call], error) for call in done if (error := error_of(call)) is not None]
        errors.sort(key=lambda pair: _rank(pair[1]))
        host, error = errors[0]
        if isinstance(error, WindowfarmError) and not isinstance(error, ClosedError):
            return error
        return node_error(host, error)

    # -- progress -------------------------------------------------------------------------------

    def _stuck(self) -> str | None:
        """A node that has something to do and has not moved for `stall_s`: the one that holds up the others."""
        now_s, stuck = time.monotonic(), []
        for name, number in self._number.items():
            words = self._segment.words(number)
            beat, state = int(words[st.WORD["beat"]]), int(words[st.WORD["state"]])
            if self._moved.get(name, (-1, 0.0))[0] != beat or not self._has_work(name, state):
                self._moved[name] = beat, now_s
            elif now_s - self._moved[name][1] > self._stall_s:
                stuck.append((self._blame(name, state), name))
        return min(stuck)[1] if stuck else None

    def _blame(self, name: str, state: int) -> int:
        """The smaller, the more likely the cause: who waits for room is not, who is stopped or in a call is."""
        if state_of(self._crew.pid(place_of(self._graph, name))) == "stopped":
            return 0
        if state == st.BLOCKED:
            return 4
        return 1 if state == st.BUSY else 3 if name in (SOURCE, SINK) else 2

    def _has_work(self, name: str, state: int) -> bool:
        """Whether `name` is in a call, waits for room, or does not take what lies in its inputs."""
        if state in (st.BUSY, st.BLOCKED):
            return True
        return state != st.DONE and any(self._segment.queued_bytes(ring) for edge, ring in self._layout.ring.items()
                                        if self._graph.edges[edge].target == name)

    def _describe_stall(self, stuck: str) -> str:
        pid = self._crew.pid(place_of(self._graph, stuck))
        process = f" (process {pid}, {state_of(pid)})" if pid else ""
        lines = []
        for name, number in self._number.items():
            words = self._segment.words(number)
            state = int(words[st.WORD["state"]])
            line = f"  {name}: {st.NODE_STATES[state]}"
            if state == st.BLOCKED:
                line += f", waits for room to {self._graph.outputs(name)[int(words[st.WORD['waits_for']])].target}"
            elif state == st.IDLE:
                line += f", waits for {', '.join(edge.source for edge in self._graph.inputs(name)) or 'nothing'}"
            lines.append(line)
        return (f"node `{stuck}`{process} did not move for {self._stall_s:g} s; who waits for whom:\n"
                + "\n".join(lines))


def _rank(error: Exception) -> int:
    """The causes first: a node's own error, then a death, then channels that broke because of either."""
    if isinstance(error, ClosedError):
        return 2
    return 1 if isinstance(error, ActorDiedError | ActorUnavailableError) else 0

"""The supervisor: notices a dead, failing or stuck actor, stops the rest, and says which node it was."""

from __future__ import annotations

import threading
import time
from typing import Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayError, RayTaskError

from runtime import statistics as st
from runtime.channel.segment import Segment
from runtime.errors import ClosedError, NodeError, StalledError, WindowfarmError
from runtime.topology import Graph

_LOOK_EVERY_S = 0.5


class Supervisor:
    """Watches the `run` calls of `actors` from a thread; the first failure aborts the segment.

    Aborting makes every channel of the run raise, in the driver too, so that nobody goes on waiting.
    """

    def __init__(self, graph: Graph, actors: dict[str, Any], segment: Segment, number: dict[str, int],
                 stall_s: float) -> None:
        self._graph, self._segment, self._number, self._stall_s = graph, segment, number, stall_s
        self._calls = {actor.run.remote(): host for host, actor in actors.items()}
        self._failure: WindowfarmError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="windowfarm-supervisor", daemon=True)
        self._beats, self._moved_s = -1, time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

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
            done, waiting = ray.wait(waiting, num_returns=1, timeout=_LOOK_EVERY_S)
            errors = [(self._calls[call], error) for call in done if (error := _error_of(call)) is not None]
            if errors:
                self._fail(self._first_cause(errors, waiting))
                return
            if waiting and self._stalled():
                self._fail(StalledError(self._describe_stall()))
                return

    def _fail(self, failure: WindowfarmError) -> None:
        self._failure = failure
        self._segment.abort()

    def _first_cause(self, errors: list[tuple[str, Exception]], waiting: list[Any]) -> WindowfarmError:
        """The failure behind `errors`: a closed channel is only the echo of another node's end."""
        if all(isinstance(error, ClosedError) for _, error in errors) and waiting:
            done, _ = ray.wait(waiting, num_returns=len(waiting), timeout=2.0)
            errors = errors + [(self._calls[call], error) for call in done if (error := _error_of(call)) is not None]
        errors.sort(key=lambda pair: isinstance(pair[1], ClosedError))
        host, error = errors[0]
        if isinstance(error, WindowfarmError) and not isinstance(error, ClosedError):
            return error
        reason = "died: its process is gone" if isinstance(error, ActorDiedError | ActorUnavailableError) else "failed"
        return NodeError(host, reason, str(error).strip())

    # -- progress -------------------------------------------------------------------------------

    def _stalled(self) -> bool:
        beats = sum(int(self._segment.words(number)[st.WORD["beat"]]) for number in self._number.values())
        if beats != self._beats:
            self._beats, self._moved_s = beats, time.monotonic()
        return time.monotonic() - self._moved_s > self._stall_s

    def _describe_stall(self) -> str:
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
        return f"nothing moved for {self._stall_s:g} s; who waits for whom:\n" + "\n".join(lines)


def _error_of(call: Any) -> Exception | None:
    try:
        ray.get(call)
    except RayTaskError as error:
        cause = getattr(error, "cause", None)
        return cause if isinstance(cause, Exception) else error
    except RayError as error:
        return error
    return None

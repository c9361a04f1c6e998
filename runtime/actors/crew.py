"""The actors of one run: started together, known by their processes, and gone when the run is."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import time
from typing import Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from runtime.actors.actor import NodeActor
from runtime.actors.keeper import Site, machines_of
from runtime.channel.liveness import alive
from runtime.channel.segment import Segment, holders
from runtime.errors import NodeError, StalledError
from runtime.placement import ActorOptions
from runtime.topology import Graph
from runtime.wiring import DRIVER

_GONE_AFTER_S = 5.0


class Crew:
    """One actor per host of `graph` but the driver's, named `<prefix>/<host>`, on the machines that Ray has."""

    def __init__(self, graph: Graph, prefix: str, segment: Segment, options: ActorOptions) -> None:
        hosts = [host for host in graph.hosts() if host != DRIVER]
        self._options, self._segment = options, segment.address
        self._processes: dict[str, tuple[int, int]] = {}
        self._own = ray.get_runtime_context().get_node_id()
        cores = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]}
        self._places = machines_of(hosts, cores, self._own)
        self.site = Site(graph, self._places, self._own, segment.address.name, segment.layout)
        self.actors: dict[str, Any] = {}
        free = ray._private.state.available_resources_per_node()
        remote = ray.remote(max_restarts=0)(NodeActor)
        for number, host in enumerate(hosts):
            machine = self._places[host]
            share = self._share(machine, free.get(machine, {}).get("CPU", 0.0))
            self.actors[host] = remote.options(
                name=f"{prefix}/{host}", num_cpus=share,
                scheduling_strategy=NodeAffinitySchedulingStrategy(machine, soft=False),
                **({"runtime_env": _preloading(options.preload)} if options.preload else {}),
            ).remote(graph, host, self.site.addresses.get(machine, segment.address), self.site.links(host),
                     options.core(number), options.nice)

    def _share(self, machine: str, free_cores: float) -> float:
        """A share of the cores that nobody has asked for, so that any farm starts beside anything else."""
        sharing = sum(place == machine for place in self._places.values())
        return min(1.0, int(1000 * max(free_cores - 0.01, 0.0) / sharing) / 1000)

    def wait_until_ready(self) -> None:
        """Return when every actor is built; NodeError or StalledError, with its name, if one is not."""
        calls = {actor.ready.remote(): host for host, actor in self.actors.items()}
        waiting = list(calls)
        until_s = time.monotonic() + self._options.start_s
        while waiting:
            done, waiting = ray.wait(waiting, num_returns=1, timeout=max(until_s - time.monotonic(), 0))
            if not done:
                raise StalledError(f"actors did not start within {self._options.start_s:g} s: "
                                   f"{', '.join(calls[call] for call in waiting)}; are all cores taken?")
            for call in done:
                error = error_of(call)
                if error is not None:
                    raise node_error(calls[call], error, "while it started")
                self._processes[calls[call]] = ray.get(call)

    def pid(self, host: str) -> int:
        """The number of the process of `host`, 0 if it has not started or is on another machine."""
        return self._at_home().get(host, (0, 0))[0]

    def dead(self) -> list[str]:
        """The hosts on this machine whose process is gone."""
        return [host for host, process in self._at_home().items() if not alive(*process)]

    def _at_home(self) -> dict[str, tuple[int, int]]:
        return {host: process for host, process in self._processes.items() if self._places[host] == self._own}

    def dismiss(self) -> None:
        """End all actors and wait until their processes are gone, also those that are stopped.

        Ray asks an actor to end; one that hangs or was stopped does not hear it. An actor that had not
        reported yet is found by the run's segment, which nobody else has.
        """
        for actor in self.actors.values():
            with contextlib.suppress(RayError):
                ray.kill(actor)
        self.site.dismiss()
        until_s = time.monotonic() + _GONE_AFTER_S
        while (left := self._left()) and time.monotonic() < until_s:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)

    def _left(self) -> list[int]:
        if len(self._processes) < len(self.actors):
            return holders(self._segment)
        return [pid for pid, started in self._at_home().values() if alive(pid, started)]


def error_of(call: Any) -> Exception | None:
    """The error that a finished `call` ended with: the actor's own, if it raised one."""
    try:
        ray.get(call)
    except RayTaskError as error:
        cause = getattr(error, "cause", None)
        return cause if isinstance(cause, Exception) else error
    except RayError as error:
        return error
    return None


def node_error(host: str, error: Exception, when: str = "") -> NodeError:
    """`error` of the actor of `host` as one that names it."""
    died = isinstance(error, ActorDiedError | ActorUnavailableError)
    reason = "died: its process is gone" if died else f"failed: {type(error).__name__}"
    return NodeError(host, f"{reason} {when}".strip(), str(error).strip())


def _preloading(library: str) -> dict[str, Any]:
    """An environment whose processes load `library` first."""
    environment: dict[str, Any] = {"env_vars": {"LD_PRELOAD": library}}
    if shlex.quote(sys.executable) != sys.executable:
        # Ray puts the path of Python into a shell command as it is, and a space in it would never start.
        environment["py_executable"] = shlex.quote(sys.executable)
    return environment

"""Child processes of a benchmark: forked, each returns one value and its CPU time."""

from __future__ import annotations

import os
import pickle
import resource
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any


def cpu_s() -> float:
    """CPU time of this process so far, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@dataclass
class Child:
    """A forked process that does `work(ready)` and sends back what it returned; `ready()` says that it can begin."""

    pid: int
    pipe: int

    @classmethod
    def start(cls, work: Callable[[Callable[[], None]], Any]) -> Child:
        read, write = os.pipe()
        pid = os.fork()
        if pid:
            os.close(write)
            os.read(read, 1)
            return cls(pid, read)
        answer: tuple[str, Any, float] = ("error", "", 0.0)
        try:
            before = cpu_s()
            answer = ("done", work(partial(_say_ready, write)), cpu_s() - before)
        except BaseException:
            answer = ("error", traceback.format_exc(), 0.0)
        finally:
            with os.fdopen(write, "wb") as file:
                pickle.dump(answer, file)
            os._exit(0)

    def result(self) -> tuple[Any, float]:
        """What the child returned and the CPU seconds it used; raises what it raised."""
        with os.fdopen(self.pipe, "rb") as file:
            kind, value, used_s = pickle.load(file)
        os.waitpid(self.pid, 0)
        if kind == "error":
            raise RuntimeError(f"a child of the benchmark failed:\n{value}")
        return value, used_s


def _say_ready(pipe: int) -> None:
    os.write(pipe, b"r")


@dataclass
class Measured:
    """One measurement: seconds from the first batch to the last, CPU seconds of all processes, latencies in ns."""

    seconds: float
    cpu_s: float
    latencies_ns: list[int]

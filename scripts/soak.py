"""A long run with everything at random, or many runs with a killed process each: `scripts/soak.py soak|kill`.

    soak    3 workers on Ray for `--seconds`: batches of 1 to 20,000 rows, to one worker or to all, random
            stalls in the source, the workers and the collector; every item is accounted for by checksum.
    kill    `--runs` times: a farm on Ray, and the process of a random role is killed at a random moment,
            also while it starts. Each run must end with an error that names that node, and leave nothing.
    driver  `--runs` times: the process with the source is killed; nothing of the run may outlive it.

Run it with `.venv/bin/python scripts/soak.py soak`. Prints one JSON line at the end; exit code 1 on a fault.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402

from runtime.actors import ensure_ray, run_on_ray, stop_ray  # noqa: E402
from runtime.errors import NodeError, WindowfarmError  # noqa: E402
from runtime.message import Batch, Feedback, Message  # noqa: E402
from runtime.node import Emit, Node  # noqa: E402
from runtime.topology import Graph, farm, graph, node  # noqa: E402

WORKERS = 3
LIMIT_S = 90.0          # a run of the kill test that takes longer hangs


class Stalling(Node):
    """Now and then sleeps for a moment."""

    def __init__(self, seed: int, folder: str = "", role: str = "") -> None:
        self._random = random.Random(seed)
        if folder:
            (Path(folder) / role).write_text(str(os.getpid()))

    def stall(self) -> None:
        if self._random.random() < 0.01:
            time.sleep(self._random.random() * 0.05)


class SoakEmitter(Stalling):
    """Every batch to a random worker, every tenth or so to all of them."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._open = 0

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        if isinstance(message, Feedback):
            self._open -= 1
            return ()
        everyone = bool(message.meta["all"]) if isinstance(message, Batch) else False
        self._open += WORKERS if everyone else 1
        return (Emit(message, range(WORKERS) if everyone else (self._random.randrange(WORKERS),)),)

    @property
    def in_flight(self) -> int:
        return self._open

    @property
    def accepts(self) -> bool:
        return self._open < 40


class SoakWorker(Stalling):
    """Sends on what it gets, sometimes as it is and sometimes changed there and back, and reports."""

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        assert isinstance(message, Batch)
        self.stall()
        if self._random.random() < 0.5:
            message = Batch({name: column + 0 for name, column in message.columns.items()}, meta=message.meta)
        return (Emit(message, (0,)), Emit(Feedback({}), (1,)))


class SoakCollector(Stalling):
    """Counts and sums; gives its figures at the end."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._sums = np.zeros(3, np.int64)

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        assert isinstance(message, Batch)
        self.stall()
        with np.errstate(over="ignore"):
            self._sums += checksum(message)
        return ()

    def end(self) -> Iterable[Emit]:
        return (Emit(Batch({"sums": self._sums})),)


def checksum(batch: Batch) -> np.ndarray:
    """Items, sum of the values, and sum of values by place: wrong if one item is lost, doubled or changed."""
    value, weight = batch.columns["value"], batch.columns["weight"]
    with np.errstate(over="ignore"):
        return np.array([len(batch), value.sum(), (value * weight.astype(np.int64)).sum()], np.int64)


def soak_graph(seed: int, folder: str = "") -> Graph:
    return graph(farm(node("emitter", partial(SoakEmitter, seed, folder, "emitter")),
                      [node(f"worker-{number}", partial(SoakWorker, seed + 1 + number, folder, f"worker-{number}"))
                       for number in range(WORKERS)],
                      node("collector", partial(SoakCollector, seed + 9, folder, "collector")),
                      feedback=True, multicast="shared"))


class SoakSource:
    """Random batches until `until_s` (monotonic), and what must come out of them."""

    def __init__(self, seed: int, until_s: float) -> None:
        self._random, self._until_s = random.Random(seed), until_s
        self._numbers = np.random.default_rng(seed)
        self.expected, self.batches = np.zeros(3, np.int64), 0

    def messages(self) -> Iterator[Message | None]:
        while time.monotonic() < self._until_s:
            rows = int(10 ** (self._random.random() * 4.3))
            everyone = self._random.random() < 0.1
            batch = Batch({"value": self._numbers.integers(-2**40, 2**40, rows),
                           "weight": self._numbers.integers(1, 99, rows).astype(np.int16)},
                          time.monotonic_ns(), meta={"all": int(everyone)})
            self.batches += 1
            with np.errstate(over="ignore"):
                self.expected += checksum(batch) * (WORKERS if everyone else 1)
            yield batch
            if self._random.random() < 0.002:
                until_s = time.monotonic() + self._random.random() * 0.3
                while time.monotonic() < until_s:
                    yield None


def soak(seconds: float, seed: int) -> dict[str, Any]:
    source, found = SoakSource(seed, time.monotonic() + seconds), np.zeros(3, np.int64)

    def take(message: Message) -> None:
        if isinstance(message, Batch):
            np.add(found, message.columns["sums"], out=found)

    stats, shared_bytes, _ = run_on_ray(soak_graph(seed), source.messages(), take, name="soak")
    arena = next(row for row in stats if row.name == "emitter")
    return {"seconds": seconds, "batches": source.batches, "items": int(source.expected[0]),
            "items_seen": int(found[0]), "right": bool((found == source.expected).all()),
            "shared_bytes": shared_bytes, "arena_peak_bytes": arena.arena_peak_bytes, "arena_bytes": arena.arena_bytes}


# ---------------------------------------------------------------------------------------------- kills

def holders(run: str) -> list[int]:
    """Processes other than this one that have a segment of `run` open."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if pid != os.getpid() and any(f"memfd:windowfarm-{run}" in os.readlink(f"/proc/{pid}/fd/{fd}")
                                          for fd in os.listdir(f"/proc/{pid}/fd")):
                found.append(pid)
        except OSError:
            continue
    return found


def kill_one(number: int, seed: int) -> dict[str, Any]:
    """One run in which one process is killed; what happened."""
    chance, name = random.Random(seed * 100_003 + number), f"kill{os.getpid()}"
    role = chance.choice(["emitter", "collector", *(f"worker-{worker}" for worker in range(WORKERS))])
    shared, killed = set(os.listdir("/dev/shm")), [0.0]
    with tempfile.TemporaryDirectory() as folder:
        def kill() -> None:
            while not (file := Path(folder) / role).exists() or not file.read_text():
                time.sleep(0.001)
            time.sleep(chance.random() ** 2 * 0.6)
            killed[0] = time.monotonic()
            os.kill(int(file.read_text()), signal.SIGKILL)

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        source = SoakSource(number, time.monotonic() + LIMIT_S)
        try:
            run_on_ray(soak_graph(number, folder), source.messages(), lambda message: None, name=name)
            outcome = "no error"
        except NodeError as error:
            outcome = "named" if error.node == role else f"named {error.node}: {error.reason}"
        except WindowfarmError as error:
            outcome = f"{type(error).__name__}: {error}"
        noticed_s = time.monotonic() - killed[0]
        thread.join()
    left = [f"process {pid}" for pid in holders(name)] + sorted(
        entry for entry in set(os.listdir("/dev/shm")) - shared if "windowfarm" in entry)
    return {"role": role, "outcome": outcome, "noticed_s": noticed_s, "left": left}


def kills(runs: int, seed: int) -> dict[str, Any]:
    outcomes, faults, noticed = {}, [], []  # type: tuple[dict[str, int], list[Any], list[float]]
    for number in range(runs):
        faulthandler.dump_traceback_later(LIMIT_S + 30, exit=True)      # a hang
        found = kill_one(number, seed)
        faulthandler.cancel_dump_traceback_later()
        outcomes[found["role"]] = outcomes.get(found["role"], 0) + 1
        noticed.append(found["noticed_s"])
        if found["outcome"] != "named" or found["left"]:
            faults.append({"run": number, **found})
            print(json.dumps(faults[-1]), file=sys.stderr, flush=True)
    return {"runs": runs, "killed": outcomes, "right": not faults, "faults": len(faults),
            "noticed_s": {"median": statistics.median(noticed), "max": max(noticed)}}


def driver_kills(runs: int, seed: int) -> dict[str, Any]:
    """Kill the process with the source; its actors and its Ray must go, too."""
    faults = []
    for number in range(runs):
        chance = random.Random(seed + number)
        child = subprocess.Popen([sys.executable, __file__, "soak", "--seconds", "60"], start_new_session=True,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until_s = time.monotonic() + 60
        while len(held := _children_of(child.pid)) < WORKERS + 2 and time.monotonic() < until_s:
            time.sleep(0.05)
        time.sleep(chance.random())
        child.kill()
        child.wait()
        until_s = time.monotonic() + 30
        while (left := [pid for pid in held if Path(f"/proc/{pid}").exists()]) and time.monotonic() < until_s:
            time.sleep(0.1)
        if left or len(held) < WORKERS + 2:
            faults.append({"run": number, "left": left, "held": held})
            print(json.dumps(faults[-1]), file=sys.stderr, flush=True)
    return {"runs": runs, "right": not faults, "faults": len(faults)}


def _children_of(pid: int) -> list[int]:
    """The actors of the run whose driver is `pid`: they hold its segment."""
    for fd in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            target = os.readlink(fd)
        except OSError:
            continue
        if "memfd:windowfarm-soak" in target:
            run = target.partition("memfd:windowfarm-")[2].split(" ")[0]
            return [holder for holder in holders(run) if holder != pid]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["soak", "kill", "driver"])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.what == "driver":
        answer = driver_kills(options.runs, options.seed)
    else:
        ensure_ray(include_dashboard=False)
        answer = (soak(options.seconds, options.seed) if options.what == "soak"
                  else kills(options.runs, options.seed))
        stop_ray()
    print(json.dumps({"test": options.what, **answer}))
    return 0 if answer["right"] else 1


if __name__ == "__main__":
    sys.exit(main())

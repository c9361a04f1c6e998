"""How long each engine takes from a new process to its first answer, and the product to its first window.

A cold start is the first one of a fresh process, imports and all (the files have been read before: a cold disk
cache cannot be made without the administrator's rights); a warm start is the second one inside the same process.
The peers are the engines as they come, without our settings.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPEATS = 5

_TWICE = """
import json, time
def timed():
    started = time.perf_counter()
    {start}
    spent = time.perf_counter() - started
    {stop}
    return spent
print(json.dumps({{"cold": timed(), "warm": timed()}}))
"""

OURS_SPARK = _TWICE.format(
    start="from spark_glue.session import start_session; assert start_session().range(1).count() == 1",
    stop="start_session().stop()")
PLAIN_SPARK = _TWICE.format(
    start="from pyspark.sql import SparkSession; assert SparkSession.builder.getOrCreate().range(1).count() == 1",
    stop="SparkSession.getActiveSession().stop()")
_ECHO = "assert ray.get(ray.remote(lambda: 1).remote()) == 1"
OURS_RAY = _TWICE.format(
    start=f"import ray; from runtime.actors import ensure_ray, stop_ray; ensure_ray(); {_ECHO}", stop="stop_ray()")
PLAIN_RAY = _TWICE.format(start=f"import ray; ray.init(log_to_driver=False, logging_level='ERROR'); {_ECHO}",
                          stop="ray.shutdown()")

ENGINES = {"spark": {"windowfarm": OURS_SPARK, "plain spark": PLAIN_SPARK},
           "ray": {"windowfarm": OURS_RAY, "plain ray": PLAIN_RAY}}
IMPORTS = {"plain spark": "pyspark.sql", "plain ray": "ray", "windowfarm": "patterns"}


def run(quick: bool) -> Iterator[dict[str, Any]]:
    """Imports alone if `quick`, else both engines and the main job."""
    for repeat in range(1 if quick else REPEATS):
        for subject, module in IMPORTS.items():
            spent, _ = timed([sys.executable, "-c", f"import {module}"])
            yield record(f"import {module}", subject, spent, repeat)
    for repeat in range(0 if quick else REPEATS):
        for engine, programs in ENGINES.items():
            for subject, program in programs.items():
                yield from starts(engine, subject, program, repeat)
        for executor in ("inline", "ray"):
            yield from main_job(executor, repeat)


def starts(engine: str, subject: str, program: str, repeat: int) -> Iterator[dict[str, Any]]:
    """Cold and warm start of one engine."""
    _, answer = timed([sys.executable, "-c", program])
    for case, spent in json.loads(answer.splitlines()[-1]).items():
        yield record(f"{engine}, {case}", subject, spent, repeat)


def main_job(executor: str, repeat: int) -> Iterator[dict[str, Any]]:
    """The whole command on ten rows, both engines and all, and its own account of the time to the first batch."""
    with tempfile.TemporaryDirectory() as folder:
        data, stats = Path(folder) / "tiny.csv", Path(folder) / "stats.json"
        data.write_text("ts,a,b\n" + "".join(f"{row},{row % 3},{row % 5}\n" for row in range(10)))
        spent, _ = timed([sys.executable, "-m", "apps.skyline", "--quiet", "--input", str(data), "--executor",
                          executor, "--time", "ts", "--dims", "a,b", "--window", "5us",
                          "--output", f"{folder}/out.parquet", "--stats", str(stats)])
        figures = json.loads(stats.read_text())
        assert figures["windows"] == 2
        yield record(f"job on {executor}, to the first window", "windowfarm",
                     figures["startup_s"] + figures["latency_ms"]["p50"] / 1000, repeat)
        yield record(f"job on {executor}, in all", "windowfarm", spent, repeat)


def timed(command: list[str]) -> tuple[float, str]:
    """Seconds that `command` took, and what it printed."""
    started = time.perf_counter()
    # The tasks' Python is ours for plain Spark too: `python3` of the PATH need not have pyspark.
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
                          env={**os.environ, "PYSPARK_PYTHON": sys.executable, "JAVA_HOME": java()})
    return time.perf_counter() - started, done.stdout


def java() -> str:
    """A home of Java that plain Spark starts with."""
    from spark_glue.java import home_for_spark, java_home
    return str(home_for_spark(java_home()))


def record(case: str, subject: str, value: float, repeat: int) -> dict[str, Any]:
    return {"bench": "startup", "case": case, "subject": subject, "metric": "time", "value": value,
            "unit": "s", "repeat": repeat}

"""How long each engine takes from a new process to its first answer, and the product to its first window.

Cold is the first start of a fresh process after the files were read once before (a cold disk cache cannot be
made without the administrator's rights); warm is a second start inside the same process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

REPEATS = 5

SPARK = """
import json, time
def once():
    started = time.perf_counter()
    from spark_glue.session import start_session
    spark = start_session()
    assert spark.range(1).collect()[0].id == 0
    spent = time.perf_counter() - started
    spark.stop()
    return spent
print(json.dumps({"cold": once(), "warm": once()}))
"""

RAY = """
import json, time
def once():
    started = time.perf_counter()
    import ray
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
             _node_ip_address="127.0.0.1")
    class Echo:
        def reply(self): return 1
    assert ray.get(ray.remote(Echo).remote().reply.remote()) == 1
    spent = time.perf_counter() - started
    ray.shutdown()
    return spent
print(json.dumps({"cold": once(), "warm": once()}))
"""

IMPORTS = {"spark": "pyspark.sql", "ray": "ray", "windowfarm": "patterns"}


def run(quick: bool) -> Iterator[dict[str, Any]]:
    """Imports alone if `quick`, else both engines and the main job."""
    for repeat in range(1 if quick else REPEATS):
        for subject, module in IMPORTS.items():
            spent, _ = timed([sys.executable, "-c", f"import {module}"])
            yield record(f"import {module}", subject, spent, repeat)
    if quick:
        return
    for repeat in range(REPEATS):
        for subject, program in (("spark", SPARK), ("ray", RAY)):
            _, answer = timed([sys.executable, "-c", program])
            for case, spent in json.loads(answer.splitlines()[-1]).items():
                yield record(f"{case} start", subject, spent, repeat)
        if find_spec("apps") and find_spec("apps.skyline"):
            yield from main_job(repeat)


def main_job(repeat: int) -> Iterator[dict[str, Any]]:
    """The whole command on ten rows, and its own account of the time before the first batch."""
    with tempfile.TemporaryDirectory() as folder:
        data, stats = Path(folder) / "tiny.csv", Path(folder) / "stats.json"
        data.write_text("ts,a,b\n" + "".join(f"{row},{row % 3},{row % 5}\n" for row in range(10)))
        spent, _ = timed([sys.executable, "-m", "apps.skyline", "--quiet", "--input", str(data),
                          "--time", "ts", "--dims", "a,b", "--window", "5us",
                          "--output", f"{folder}/out.parquet", "--stats", str(stats)])
        yield record("tiny job", "windowfarm", spent, repeat)
        yield record("tiny job, before the first batch", "windowfarm",
                     json.loads(stats.read_text())["startup_s"], repeat)


def timed(command: list[str]) -> tuple[float, str]:
    """Seconds that `command` took, and what it printed."""
    started = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - started, done.stdout


def record(case: str, subject: str, value: float, repeat: int) -> dict[str, Any]:
    return {"bench": "startup", "case": case, "subject": subject, "metric": "time", "value": value,
            "unit": "s", "repeat": repeat}

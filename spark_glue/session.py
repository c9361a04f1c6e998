"""Start Spark on this machine: quiet, closed to the network, in UTC, and fast.

Spark is started as a child of this process and ends with it. It may be started in a background thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
from pyspark import SparkContext
from pyspark.sql import SparkSession

from runtime.errors import SpecError
from runtime.workspace import remove_folder, temporary_folder
from spark_glue.java import home_for_spark, java_home

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_PATIENCE_S = 5.0
_folders: list[Path] = []


def start_session(app_name: str = "windowfarm", cores: int | None = None, ui: bool = False) -> SparkSession:
    """The Spark session of this process, started if there is none; end it with `stop_session`.

    `cores` is how many tasks run at once (all of the machine's by default); `ui` starts Spark's web page, on
    the loopback address like everything else. A session that is already there is given back as it is.
    """
    if cores is not None and cores < 1:
        raise SpecError(f"`cores` must be 1 or more, got {cores}: leave it out to use all of the machine's")
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if SparkContext._gateway is None:       # else the Java process of an earlier session is used again
        os.environ["JAVA_HOME"] = str(home_for_spark(java_home()))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # The tasks' Python is this one: `python3` of the PATH need not have our packages.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if not _folders:
        _folders.append(temporary_folder("spark"))
    builder = SparkSession.builder.master(f"local[{cores or '*'}]").appName(app_name)
    for name, value in settings(cores or os.cpu_count() or 1, ui).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stop_session() -> None:
    """End the Spark session of this process, its Java process and its files; nothing happens if there is none."""
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    java = getattr(gateway, "proc", None)
    if context is not None and java is not None and java.poll() is None:
        context.stop()
    if gateway is not None:
        _end(java, gateway)
        SparkContext._gateway = SparkContext._jvm = None
    _forget()
    while _folders:
        remove_folder(_folders.pop())


def kill_session() -> None:
    """End the Java process at once, whatever it is doing: calls that wait for it fail. `stop_session` does the rest."""
    java = getattr(SparkContext._gateway, "proc", None)
    if java is not None and java.poll() is None:
        # Both would print a traceback about the connection that breaks now.
        server = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
        if server is not None:
            server.handle_error = lambda request, address: None
        logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
        java.kill()
        java.wait()


def is_alive() -> bool:
    """Whether this process has a Java process that runs."""
    java = getattr(SparkContext._gateway, "proc", None)
    return java is not None and java.poll() is None


def _end(java: subprocess.Popen[bytes] | None, gateway: Any) -> None:
    if java is None:
        return
    if java.poll() is None:
        with contextlib.suppress(Exception):
            gateway.shutdown()
    if java.stdin is not None:
        java.stdin.close()  # Spark's Java process ends when this pipe does
    try:
        java.wait(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        java.kill()
        java.wait()


def _forget() -> None:
    """Let a new session start in this process, also after the Java process of the last one was killed."""
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    with contextlib.suppress(AttributeError):
        SparkSession._activeSession = None


def settings(cores: int, ui: bool) -> dict[str, str]:
    """Every setting that differs from Spark's own, with the reason where it is not plain."""
    return {
        # closed to the network
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": str(ui).lower(),
        # quiet
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": java_options(),
        "spark.local.dir": str(_folders[-1]),
        # the same answer everywhere
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",           # an overflow is an error, not another number
        "spark.sql.csv.parser.columnPruning.enabled": "false",      # a row is malformed whatever is read of it
        "spark.sql.legacy.parquet.nanosAsLong": "true",             # `ingest` makes them timestamps again
        "spark.sql.caseSensitive": "true",
        # fast on one machine
        "spark.driver.memory": f"{memory_mb()}m",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.shuffle.compress": "false",
        "spark.python.worker.reuse": "true",
    }


def java_options() -> str:
    """Options of the Java process: the log settings, and nothing on the terminal about them."""
    return (f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()} -Xlog:disable -Xlog:all=off "
            f"-XX:-UsePerfData -Djava.io.tmpdir=\"{_folders[-1]}\"")


def memory_mb() -> int:
    """A quarter of the machine's memory, between 1 and 8 GB: Spark sorts there and spills to disk beyond."""
    quarter = int(psutil.virtual_memory().total) // (4 << 20)
    return max(1024, min(8192, quarter))

"""Start Spark on this machine: quiet, closed to the network, in UTC, and fast.

Spark is started as a child of this process and ends with it. It may be started in a background thread.
"""

from __future__ import annotations

import os
from pathlib import Path

import psutil
from pyspark import SparkContext
from pyspark.sql import SparkSession

from runtime.errors import SpecError
from spark_glue.java import home_for_spark, java_home

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


def start_session(app_name: str = "windowfarm", cores: int | None = None, ui: bool = False) -> SparkSession:
    """The Spark session of this process, started if there is none; stop it with `.stop()`.

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
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(f"local[{cores or '*'}]").appName(app_name)
    for name, value in settings(cores or os.cpu_count() or 1, ui).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


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
    return f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()} -Xlog:disable -Xlog:all=off"


def memory_mb() -> int:
    """A quarter of the machine's memory, between 1 and 8 GB: Spark sorts there and spills to disk beyond."""
    quarter = int(psutil.virtual_memory().total) // (4 << 20)
    return max(1024, min(8192, quarter))

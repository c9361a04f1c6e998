"""The only place that knows Spark: session, reading, checking, ordering, handing over, writing.

The modules in the order in which data pass: `session` (and `java`), `files`, `schemas`, `ingest`, and in the tasks
`readers`, `check`, `segments`; then `handoff` and, on the way back, `collect`. `skyline` is for people who just want
the skyline of a DataFrame. What is named here is imported when it is asked for, so that `spark_glue.java` works, and
is fast, where Spark is not needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {"skyline": "preference", "start_session": "session", "stop_session": "session", "open_inputs": "ingest",
          "ordered_source": "ingest", "to_dataframe": "collect", "write_parquet": "collect"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'spark_glue' has no attribute {name!r}")
    return getattr(import_module(f"spark_glue.{_HOMES[name]}"), name)

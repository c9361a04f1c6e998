"""Ray on this machine: closed to the outside, quiet, started once."""

from __future__ import annotations

import logging
import os
from typing import Any

import ray

_LOOPBACK = "127.0.0.1"


def ensure_ray(**options: Any) -> bool:
    """Start Ray unless this process is connected to one already; True if it was started here.

    Everything listens on loopback only, the dashboard too, and log lines of actors stay in Ray's log
    folder. The object store is small: data do not go through it.
    """
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    settings: dict[str, Any] = {"include_dashboard": True, "dashboard_host": _LOOPBACK,
                                "_node_ip_address": _LOOPBACK, "object_store_memory": 96 << 20,
                                "logging_level": logging.ERROR, "log_to_driver": False}
    ray.init(**{**settings, **options})
    return True


def stop_ray() -> None:
    ray.shutdown()


def dashboard_address() -> str | None:
    """Where a browser finds the Ray dashboard, or None if it does not run."""
    try:
        address = ray._private.worker.get_dashboard_url()
    except Exception:
        return None
    return f"http://{address}" if address else None

"""Ray on this machine: closed to the outside, quiet, started once, gone without a trace."""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray

from runtime.workspace import remove_folder, temporary_folder

_LOOPBACK = "127.0.0.1"
_folder: list[Path] = []


def ensure_ray(**options: Any) -> bool:
    """Start Ray unless this process is connected to one already; True if it was started here.

    Everything listens on loopback only, the dashboard too, and asks for a token (`dashboard_token`). Log
    lines of actors stay in Ray's log folder, which goes with the session. The object store is small: data
    do not go through it. Call it from the main thread: Ray's processes end with the thread that started them.
    """
    if ray.is_initialized():
        return False
    _require_token()
    _stay_on_loopback()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_metrics_report_interval_ms", "2000")
    os.environ.setdefault("RAY_worker_niceness", "0")  # else actors give way to the driver that waits for them
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    _folder.append(temporary_folder("ray", longest=36))
    inside = _folder[-1] / "r"  # Ray opens its folder to everybody; the one around it stays private
    settings: dict[str, Any] = {"address": "local", "include_dashboard": True, "dashboard_host": _LOOPBACK,
                                "_node_ip_address": _LOOPBACK, "object_store_memory": 96 << 20,
                                "_temp_dir": str(inside),
                                "logging_level": logging.ERROR, "log_to_driver": False}
    # The supervisor says which node died; Ray would print pages about it to standard output.
    ray._private.worker.print_to_stdstream = lambda *_, **__: None
    on_terminate = signal.getsignal(signal.SIGTERM)
    with _temporary_files_in(_folder[-1]):
        ray.init(**{**settings, **options})
    if on_terminate is not None:
        signal.signal(signal.SIGTERM, on_terminate)  # Ray's own would end the process on the spot
    return True


@atexit.register
def stop_ray() -> None:
    """End the Ray that `ensure_ray` started, and remove its files."""
    if _folder:
        ray.shutdown()
        while _folder:
            remove_folder(_folder.pop())


def dashboard_address() -> str | None:
    """Where a browser finds the Ray dashboard, or None if it does not run."""
    try:
        address = ray._private.worker.get_dashboard_url()
    except Exception:
        return None
    return f"http://{address}" if address else None


def dashboard_token() -> str | None:
    """What the dashboard and every other part of Ray asks for; None if the user's own token is used."""
    return os.environ.get("RAY_AUTH_TOKEN")


def _require_token() -> None:
    """Switch token authentication on, with a secret of this process unless the user has set one."""
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        if "RAY_AUTH_TOKEN_PATH" not in os.environ:
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        ray._raylet.Config.initialize("")  # Ray has read its settings when it was imported


def _stay_on_loopback() -> None:
    """Make Ray bind to the loopback address: its parameter for that is overruled where clusters are possible."""
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    ray._private.ray_constants.ENABLE_RAY_CLUSTER = False  # read when Ray was imported


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Ray's processes leave temporary files behind when they are ended: in a folder that goes."""
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before

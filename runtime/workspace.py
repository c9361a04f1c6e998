"""Temporary folders that nobody has to clean up: they go when this process does, however it ends."""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

# Reads until the pipe breaks, which the kernel does when this process ends, by `kill -9` too. Then it ends what still
# has a file of the folder open to write (an engine's helpers can outlive the engine) and removes the folder. In a
# session of its own, so that Ctrl-C does not reach it.
_SWEEPER = """
read -r _
for _ in 1 2 3 4 5; do
    for open in $(find /proc/[0-9]*/fd -lname "$1/*" -perm -200 2>/dev/null); do
        process=${open#/proc/}
        process=${process%%/*}
        [ "$process" = "$2" ] || kill -9 "$process"
    done
    rm -rf -- "$1" && exit
    sleep 1
done
"""
_PATIENCE_S = 10.0
_sweepers: dict[Path, subprocess.Popen[bytes]] = {}


def temporary_folder(purpose: str, longest: int = 4096) -> Path:
    """A new, private folder in the system's place for temporary files, removed at the end of this process.

    If its path were longer than `longest`, it is in /tmp: the paths of sockets are limited.
    """
    prefix = f"windowfarm-{purpose}-"
    where = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=where if len(where + prefix) + 9 <= longest else "/tmp"))
    _sweepers[folder] = subprocess.Popen(
        ["/bin/sh", "-c", _SWEEPER, "sh", str(folder), str(os.getpid())], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a folder made by `temporary_folder` now, and end the processes that write there."""
    sweeper = _sweepers.pop(folder, None)
    if sweeper is not None and sweeper.stdin is not None:
        sweeper.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            sweeper.wait(timeout=_PATIENCE_S)


@atexit.register
def _remove_all() -> None:
    for folder in list(_sweepers):
        remove_folder(folder)

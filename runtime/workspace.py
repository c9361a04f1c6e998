"""Temporary folders that nobody has to clean up: they go when this process does, however it ends."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from pathlib import Path

# Reads until the pipe breaks, which the kernel does when this process ends, by `kill -9` too; then gives the
# engines, which notice the same, a moment to end. In a session of its own, so that Ctrl-C does not reach it.
_SWEEPER = 'read -r _; for _ in 1 2 3 4 5; do rm -rf -- "$1" 2>/dev/null && [ ! -e "$1" ] && exit; sleep 1; done'
_sweepers: dict[Path, subprocess.Popen[bytes]] = {}


def temporary_folder(purpose: str, longest: int = 4096) -> Path:
    """A new, private folder in the system's place for temporary files, removed at the end of this process.

    If its path were longer than `longest`, it is in /tmp: the paths of sockets are limited.
    """
    prefix = f"windowfarm-{purpose}-"
    where = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=where if len(where + prefix) + 9 <= longest else "/tmp"))
    _sweepers[folder] = subprocess.Popen(["/bin/sh", "-c", _SWEEPER, "sh", str(folder)], stdin=subprocess.PIPE,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         start_new_session=True)
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a folder made by `temporary_folder` now."""
    shutil.rmtree(folder, ignore_errors=True)
    sweeper = _sweepers.pop(folder, None)
    if sweeper is not None and sweeper.stdin is not None:
        sweeper.stdin.close()
        if not folder.exists():
            sweeper.wait()


@atexit.register
def _remove_all() -> None:
    for folder in list(_sweepers):
        remove_folder(folder)

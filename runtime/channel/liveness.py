"""Is a process still the one that it was? Its number alone does not tell: numbers are used again."""

from __future__ import annotations

import os


def start_time(pid: int) -> int:
    """When process `pid` was started, in clock ticks since boot; 0 if it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    fields = text.rpartition(b")")[2].split()       # the command's name, in brackets, may hold anything
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def own_identity() -> tuple[int, int]:
    """The number and the start time of this process."""
    pid = os.getpid()
    return pid, start_time(pid)


def alive(pid: int, started: int) -> bool:
    """Whether the process that had number `pid` and start time `started` still runs."""
    return started != 0 and start_time(pid) == started


def state_of(pid: int) -> str:
    """What process `pid` is doing, in a word."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            letter = file.read().rpartition(b")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"
    return {b"R": "running", b"S": "sleeping", b"D": "waiting for a disk", b"T": "stopped", b"t": "stopped",
            b"Z": "gone", b"X": "gone"}.get(letter, "idle")

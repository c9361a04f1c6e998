"""Write `requirements.lock` from the ranges in `setup.cfg`: every version pinned, in sections.

Run it with `.venv/bin/python scripts/lib/lock.py` after a change to `setup.cfg`; it asks the package
registry which versions fit together and installs nothing. A section holds what it adds to the ones before
it: `scripts/run` installs `build` and `runtime`, `scripts/test` also `test`, `scripts/bench` also `bench`;
`java` only where there is none.
"""

from __future__ import annotations

import configparser
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAD = """\
# Every version that windowfarm is tested with. Made by scripts/lib/lock.py from setup.cfg; do not edit.
"""


def wanted() -> dict[str, list[str]]:
    """The direct requirements of each section, in the order in which sections build on each other."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    extras = config["options.extras_require"]
    return {"build": _lines(extras["build"]), "runtime": _lines(config["options"]["install_requires"]),
            **{name: _lines(extras[name]) for name in ("test", "bench", "java")}}


def resolve(requirements: list[str], versions: dict[str, str] | None = None) -> dict[str, str]:
    """Name and version of everything that `requirements` need, none of them other than in `versions`."""
    with tempfile.TemporaryDirectory() as folder:
        report, pins = Path(folder) / "report.json", Path(folder) / "pins.txt"
        pins.write_text("".join(f"{name}=={version}\n" for name, version in (versions or {}).items()))
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed",
                        "--report", str(report), "-c", str(pins), *requirements],
                       check=True)
        found = json.loads(report.read_text())["install"]
    return {item["metadata"]["name"].lower().replace("_", "-"): item["metadata"]["version"] for item in found}


def main() -> None:
    """Resolve all sections together, so that they agree, and write the lock file."""
    sections = wanted()
    versions = resolve([need for needs in sections.values() for need in needs])
    lines, needed, written = [HEAD], [], set[str]()
    for section, needs in sections.items():
        needed += needs
        names = resolve(needed, versions).keys()
        lines += [f"# [{section}]", *(f"{name}=={versions[name]}" for name in sorted(names - written)), ""]
        written |= names
    (ROOT / "requirements.lock").write_text("\n".join(lines).rstrip() + "\n")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


if __name__ == "__main__":
    main()

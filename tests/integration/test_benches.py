"""A smoke of every benchmark: it runs, gives records, and its answers are right (it checks them itself)."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def names() -> list[str]:
    spec = importlib.util.spec_from_file_location("bench_runner", ROOT / "scripts" / "lib" / "bench.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [str(name) for name in module.names()]


@pytest.mark.parametrize("name", names())
def test_benchmark_quick_runs_and_gives_records(name: str, tmp_path: Path) -> None:
    output = tmp_path / "records.json"
    done = subprocess.run([sys.executable, "-P", str(ROOT / "scripts" / "lib" / "bench.py"), name, "--quick",
                           "--json", str(output)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in output.read_text().splitlines()]
    assert records and {record["bench"] for record in records} == {name}
    assert all(record["value"] >= 0 for record in records)


def test_benchmark_unknown_name_lists_those_that_exist() -> None:
    done = subprocess.run([sys.executable, "-P", str(ROOT / "scripts" / "lib" / "bench.py"), "nothing"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and "startup" in done.stderr

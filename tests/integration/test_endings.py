"""How a run ends that does not end by itself, and that nothing is left of it; what a run shows to the network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from patterns import Stream, TimeWindow, WinFarm
from patterns.queries import Skyline
from runtime.actors.session import dashboard_address, dashboard_token

DIMS = [f"d{number}" for number in range(8)]


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of a run of some seconds: items that hardly dominate each other, many windows."""
    folder, rng, count = tmp_path_factory.mktemp("long"), np.random.default_rng(5), 1_200_000
    columns = {name: rng.random(count) for name in DIMS}
    pq.write_table(pa.table({"ts": np.arange(count) * 5, **columns}), folder / "long.parquet")
    return [sys.executable, "-P", "-m", "apps.skyline", "--input", str(folder / "long.parquet"), "--time", "ts",
            "--dims", ",".join(DIMS), "--window", "1s", "--slide", "2ms", "--pattern", "win_farm", "--workers", "2",
            "--output", str(folder / "out.parquet")]


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A short folder for temporary files (paths of sockets are limited), which must be empty again at the end."""
    folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/wf-XXXXXX"], text=True).strip())
    yield folder
    left = sorted(path.name for path in folder.iterdir())
    subprocess.run(["rm", "-rf", "--", str(folder)], check=True)
    assert left == []


def started(command: list[str], temporary: Path) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """The command at the moment when its actors run, and all processes that it has started."""
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True,
                           env={**os.environ, "TMPDIR": str(temporary)})
    assert run.stderr is not None
    for line in run.stderr:
        if "dashboard" in line:
            break
    return run, psutil.Process(run.pid).children(recursive=True)


def ended(run: subprocess.Popen[str], processes: list[psutil.Process]) -> tuple[int, str]:
    """Exit code and last words of `run`; it must end within 30 s and leave no process."""
    _, said = run.communicate(timeout=30)
    _, left = psutil.wait_procs(processes, timeout=5)
    assert not left
    return run.returncode, " ".join(said.split())


def _name(process: psutil.Process) -> str:
    """The name of a process; nothing if it has ended in the meantime, as helpers of the engines do."""
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""


def test_interrupt_in_mid_run_ends_with_130_and_nothing_left(long_run: list[str], temporary: Path) -> None:
    before = set(os.listdir("/dev/shm"))
    run, processes = started(long_run, temporary)
    os.killpg(run.pid, signal.SIGINT)  # as the terminal does it: to every process of the command
    code, said = ended(run, processes)
    assert code == 130 and "interrupted" in said and "Traceback" not in said
    assert set(os.listdir("/dev/shm")) <= before
    assert not Path(long_run[-1]).exists()


def test_bad_row_found_by_spark_is_said_in_one_paragraph(temporary: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [0, 1], "d0": [1.0, None]}), tmp_path / "null.parquet")
    command = [sys.executable, "-P", "-m", "apps.skyline", "--input", str(tmp_path / "null.parquet"), "--time", "ts",
               "--dims", "d0", "--window", "1s", "--quiet"]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(temporary)})
    assert run.returncode == 2 and run.stdout == ""
    assert run.stderr.startswith("apps.skyline: column `d0` must hold") and len(run.stderr.splitlines()) <= 3


def test_interrupt_while_the_program_is_loaded_ends_with_130() -> None:
    code = "import sys; sys.argv = ['-m']; import apps, os, signal; os.kill(os.getpid(), signal.SIGINT)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (130, "interrupted\n")


def test_killed_worker_ends_the_run_with_its_name_and_nothing_left(long_run: list[str], temporary: Path) -> None:
    run, processes = started(long_run, temporary)
    worker = next(process for process in processes if "NodeActor" in _name(process))
    worker.kill()
    code, said = ended(run, processes)
    assert code == 1 and "node `worker-" in said and "died" in said and "Traceback" not in said
    assert not Path(long_run[-1]).exists()


def test_actors_while_they_run_have_readable_names_in_the_dashboard(ray: None) -> None:
    listed: list[Any] = []

    def look(address: str | None) -> None:
        request = urllib.request.Request(f"{address}/api/v0/actors?filter_keys=state&filter_predicates=%3D"
                                         "&filter_values=ALIVE",
                                         headers={"Authorization": f"Bearer {dashboard_token()}"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            listed.extend(json.load(reply)["data"]["result"]["result"])

    data = {"ts": np.arange(50), "a": np.arange(50) % 7, "b": np.arange(50) % 5}
    (Stream.of(data, "ts").window(TimeWindow(10, slide=5)).apply(Skyline("a", "b"), pattern=WinFarm(workers=2))
     .run(executor="ray", name="offers", on_start=look))
    names = sorted(actor["name"] for actor in listed if actor["name"].startswith("offers-"))
    assert [name.split("/", 1)[1] for name in names] == ["win_farm/worker-0", "win_farm/worker-1"]


def test_engines_listen_on_the_loopback_address_only(spark: Any, ray: None) -> None:
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    open_to = {connection.laddr.ip for process in processes for connection in _listening(process)}
    assert open_to and all(address in ("127.0.0.1", "::1", "::ffff:127.0.0.1") for address in open_to)


def _listening(process: psutil.Process) -> list[Any]:
    try:
        return [connection for connection in process.net_connections("inet") if connection.status == "LISTEN"]
    except psutil.NoSuchProcess:
        return []


def test_dashboard_without_the_token_is_closed(ray: None) -> None:
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{dashboard_address()}/api/v0/actors", timeout=30)

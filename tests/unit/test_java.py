"""Which Java is taken, by its version and place."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_glue.java import home_for_spark, java_on_machine, major_version, version_of


@pytest.mark.parametrize("text, version", [("17.0.15", 17), ("1.8.0_402", 8), ("21", 21), ("25-ea", 25), ("", None)])
def test_major_version_of_a_version_string(text: str, version: int | None) -> None:
    assert major_version(text) == version


def fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    java.chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return folder


def test_java_home_old_is_passed_over_for_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(new / "bin"))
    assert (version_of(old), version_of(new)) == (11, 21)
    assert java_on_machine() == new
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java_on_machine() is None


def test_home_for_spark_drops_the_module_that_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess
    monkeypatch.setattr("sys.prefix", str(tmp_path / "an environment"))
    (tmp_path / "an environment").mkdir()
    home = home_for_spark(fake_java(tmp_path / "it's a java", "21"))
    said = subprocess.run([home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-cp", "a b"],
                          capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["-cp", "a b"]

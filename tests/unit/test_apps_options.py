"""Windows from the command line, exit codes, and files that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.common_exit import attempt
from apps.common_options import columns, parser, window_of
from patterns import CountWindow, TimeWindow
from runtime.errors import BadInputError, NodeError, SpecError, StalledError
from spark_glue.collect import replacing


@pytest.mark.parametrize("window, slide, model", [
    ("1s", "200ms", TimeWindow(1_000_000, 200_000)), ("1.5s", None, TimeWindow(1_500_000)),
    ("300", "50", CountWindow(300, 50)), ("300", None, CountWindow(300)), ("2h", "1m", TimeWindow("2h", "1m"))])
def test_window_of_options_is_its_model(window: str, slide: str | None, model: object) -> None:
    assert window_of(window, slide) == model


def test_negative_value_is_a_value_and_not_an_option() -> None:
    options = parser("x", "", "")
    options.add_argument("--window")
    options.add_argument("--slide")
    assert options.parse(["--window", "-1s", "--slide=-2"]).window == "-1s"


def test_columns_with_spaces_are_trimmed() -> None:
    assert columns("a, b ,c", "--dims") == ("a", "b", "c")


@pytest.mark.parametrize("error, code, said", [
    (SpecError("no"), 2, "x: no"), (BadInputError("row 3"), 2, "x: row 3"), (KeyboardInterrupt(), 130, "interrupted"),
    (NodeError("worker-1", "died", "first\nsecond"), 1, "node `worker-1` died"), (StalledError("stuck"), 1, "stuck"),
    (ZeroDivisionError("by zero"), 1, "unexpected ZeroDivisionError: by zero")])
def test_attempt_turns_errors_into_codes(error: BaseException, code: int, said: str,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise error
    assert attempt(work, "x") == code
    assert said in capsys.readouterr().err


def test_replacing_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "r.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as partial:
        partial.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old" and [left.name for left in tmp_path.iterdir()] == ["r.txt"]
    with replacing(path) as partial:
        partial.write_text("new")
    assert path.read_text() == "new" and [left.name for left in tmp_path.iterdir()] == ["r.txt"]

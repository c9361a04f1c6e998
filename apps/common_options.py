"""Command-line options that all programs share: where items come from, windows, how to run, where results go."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from patterns.window import CountWindow, TimeWindow, duration_us
from runtime.errors import SpecError

_NEGATIVE = re.compile(r"-[0-9.]")
_WHOLE = re.compile(r"-?[0-9]+")
_PICTURES = ("png", "pdf", "svg", "jpg", "jpeg", "webp")
_NOT_PARQUET = ("csv", "tsv", "txt", "json", "jsonl", "ndjson", "xlsx", "arrow", "feather", "orc", "avro")


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are `SpecError`s and which takes `--window -1s` for a value."""

    def error(self, message: str) -> NoReturn:
        raise SpecError(f"{message}; see --help")

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        joined: list[str] = []
        for argument in arguments:
            if joined and joined[-1].startswith("--") and "=" not in joined[-1] and _NEGATIVE.match(argument):
                joined[-1] += f"={argument}"
            else:
                joined.append(argument)
        return self.parse_args(joined)


def parser(program: str, description: str, examples: str) -> Parser:
    return Parser(prog=program, description=description, epilog=examples, allow_abbrev=False,
                  formatter_class=argparse.RawDescriptionHelpFormatter)


def add_input_options(to: argparse.ArgumentParser) -> None:
    group = to.add_argument_group("items")
    group.add_argument("--input", nargs="+", metavar="PATH", help="Parquet, CSV or JSON lines: files or folders")
    group.add_argument("--time", metavar="COL", help="event times: a timestamp, or integers of --time-unit")
    group.add_argument("--time-unit", choices=("us", "ms", "s", "ns"), default="us",
                       help="unit of integer times (default: us)")
    group.add_argument("--key", metavar="COL", help="windows are formed for each value of this column")
    group.add_argument("--disorder", default="sort", metavar="POLICY",
                       help="sort (default): Spark orders by time, nothing is late; in-order, bounded:200ms, "
                            "k-slack and aq:1%% are not available yet")
    group.add_argument("--on-bad-row", choices=("fail", "drop"), default="fail",
                       help="a null, NaN, infinity or text in a column that is read: stop and name it, or leave the "
                            "row out and count it")
    group.add_argument("--limit", type=count, metavar="N", help="only the first N items in time order")


def add_window_options(to: argparse.ArgumentParser) -> None:
    group = to.add_argument_group("windows")
    group.add_argument("--window", metavar="LENGTH", help="1s, 200ms (us ms s m h): time; a plain number: items")
    group.add_argument("--slide", metavar="LENGTH", help="distance between windows (default: their length)")


def add_run_options(to: argparse.ArgumentParser) -> None:
    group = to.add_argument_group("how to run (never changes the answer)")
    group.add_argument("--pattern", default="auto",
                       help="auto (default), win_seq, win_farm, key_farm, pane_farm, win_mapreduce, also with degrees "
                            "and nested: win_farm(pane_farm(2,1),2)")
    group.add_argument("--workers", type=count, metavar="N",
                       help="degree of the pattern (default: the cores but one, which feeds them)")
    group.add_argument("--executor", choices=("ray", "inline"), default="ray",
                       help="ray (default): actors; inline: everything in this process")
    group.add_argument("--spark-ui", action="store_true", help="serve Spark's web page while it runs")


def add_output_options(to: argparse.ArgumentParser) -> None:
    group = to.add_argument_group("what comes out")
    group.add_argument("--output", type=Path, metavar="R.parquet", help="results")
    group.add_argument("--stats", type=Path, metavar="S.json", help="figures of the run and of each node")
    group.add_argument("--plot", type=Path, metavar="P.png", help="a picture")
    group.add_argument("--quiet", action="store_true", help="print nothing but errors")


def count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def columns(text: str | None, option: str) -> tuple[str, ...]:
    """The names in `a,b,c`."""
    names = tuple(name.strip() for name in (text or "").split(",")) if text else ()
    if any(not name for name in names):
        raise SpecError(f"`{option}` must be names of columns with commas between them, got {text!r}")
    return names


def window_of(window: str, slide: str | None) -> TimeWindow | CountWindow:
    """The window model that `--window` and `--slide` describe; SpecError in the options' own names."""
    given = {"--window": window, **({"--slide": slide} if slide is not None else {})}
    counted = {option: bool(_WHOLE.fullmatch(text.strip())) for option, text in given.items()}
    if len(set(counted.values())) > 1:
        raise SpecError(f"`--window` and `--slide` must both be durations or both be numbers of items, got "
                        f"{window} and {slide}: write units for both (1s, 200ms) or for neither")
    lengths = {option: int(text) if counted[option] else duration_us(text, option) for option, text in given.items()}
    for option, length in lengths.items():
        if length <= 0:
            raise SpecError(f"`{option}` must be greater than 0, got {given[option]}: write a duration like 200ms, "
                            "or a number of items")
    length, step = lengths["--window"], lengths.get("--slide")
    return CountWindow(length, step) if counted["--window"] else TimeWindow(length, step)


def check_disorder(text: str) -> None:
    """Only `sort` runs from here so far; the others are named as such, anything else is unknown."""
    kind = text.partition(":")[0]
    if text == "sort":
        return
    if kind in ("in-order", "bounded", "k-slack", "aq"):
        raise SpecError(f"`--disorder` {text} is not available yet: use sort, which orders the items by time "
                        "first")
    raise SpecError(f"`--disorder` must be sort, in-order, bounded:DURATION, k-slack or aq:PERCENT, got {text!r}")


def check_outputs(**paths: Path | None) -> None:
    """Every file can be written where it shall go, in the format that its name tells, and none over another."""
    seen: dict[Path, str] = {}
    for option, path in paths.items():
        if path is None:
            continue
        if not path.parent.is_dir():
            raise SpecError(f"`--{option}` must be in a folder that exists, got `{path}`: make `{path.parent}` first")
        if path.is_dir():
            raise SpecError(f"`--{option}` must be a file, got the folder `{path}`: name a file in it")
        kind = path.suffix.lstrip(".").lower()
        if option == "output" and kind in _NOT_PARQUET:
            raise SpecError(f"`--output` is written as Parquet, got `{path}`: name it {path.stem}.parquet")
        if option == "plot" and kind and kind not in _PICTURES:
            raise SpecError(f"`--plot` must be a picture ({', '.join(_PICTURES)}), got `{path}`")
        for place in (path, bad_rows_path(path)) if option == "output" else (path,):
            other = seen.setdefault(place.resolve(), option)
            if other != option:
                raise SpecError(f"`--{other}` and `--{option}` must be different files, got `{path}` for both")


def bad_rows_path(output: Path) -> Path:
    """Where the rows go that were left out of the results in `output`."""
    return output.with_name(f"{output.stem}.bad.parquet")


def check_apart(inputs: Iterable[str], **paths: Path | None) -> None:
    """No file that is read is written over."""
    read = {Path(name).resolve() for name in inputs}
    for option, path in paths.items():
        if path is None:
            continue
        for place in (path, bad_rows_path(path)) if option == "output" else (path,):
            if place.resolve() in read:
                raise SpecError(f"`--{option}` must not be one of the files of --input, got `{path}`"
                                f"{'' if place == path else f', beside which `{place}` would be written'}: "
                                "name another file")

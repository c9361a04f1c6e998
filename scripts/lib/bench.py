"""The one benchmark runner: `scripts/bench NAME... [--quick] [--json FILE]`.

A benchmark is a module in `scripts/benches` with

    def run(quick: bool) -> Iterator[dict]

which yields records `{bench, case, subject, metric, value, unit, repeat}`. Subjects are the product
(`windowfarm`) and its peers, measured in the same run; `quick` asks for a smoke test of about a second.
The module checks its answers itself and raises if one is wrong.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

BENCHES = Path(__file__).resolve().parents[1] / "benches"
PRODUCT = "windowfarm"
FIELDS = ("bench", "case", "subject", "metric", "value", "unit", "repeat")

Record = dict[str, Any]


def names() -> list[str]:
    """The benchmarks there are."""
    return sorted(path.stem for path in BENCHES.glob("[a-z]*.py"))


def load(name: str) -> Callable[[bool], Iterator[Record]]:
    """The `run` function of benchmark `name`."""
    spec = importlib.util.spec_from_file_location(f"benches.{name}", BENCHES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module     # dataclasses and pickle look a module up by its name
    spec.loader.exec_module(module)
    run: Callable[[bool], Iterator[Record]] = module.run
    return run


def records_of(name: str, quick: bool) -> Iterator[Record]:
    """The records of one benchmark, each checked for its fields."""
    for record in load(name)(quick):
        if set(record) != set(FIELDS):
            raise ValueError(f"a record of `{name}` must have the fields {FIELDS}, got {sorted(record)}")
        yield record


def is_rate(unit: str) -> bool:
    """Whether more is better: units are rates (`rows/s`) or costs (`s`, `ms`, `bytes`)."""
    return unit.endswith("/s")


def summary(records: Sequence[Record]) -> Table:
    """Median and spread of every case, subject and metric."""
    table = Table("bench", "case", "subject", "metric", "median", "min", "max", "unit", "n", box=None)
    for key, values in _grouped(records).items():
        bench, case, subject, metric, unit = key
        figures = [f"{figure:,.4g}" for figure in (statistics.median(values), min(values), max(values))]
        table.add_row(bench, case, subject, metric, *figures, unit, str(len(values)))
    return table


def ratios(records: Sequence[Record]) -> list[tuple[str, str, str, str, float]]:
    """(bench, case, metric, peer, how many times better the product's median is than the peer's)."""
    medians = {key: statistics.median(values) for key, values in _grouped(records).items()}
    found = []
    for (bench, case, subject, metric, unit), peer in medians.items():
        mine = medians.get((bench, case, PRODUCT, metric, unit))
        if subject != PRODUCT and mine and peer:
            found.append((bench, case, metric, subject, mine / peer if is_rate(unit) else peer / mine))
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Run benchmarks, compare with peers.")
    parser.add_argument("name", nargs="*", help=f"one or more of: {', '.join(names())}; or `all`")
    parser.add_argument("--quick", action="store_true", help="a smoke test of about a second each")
    parser.add_argument("--json", type=argparse.FileType("a"), metavar="FILE", help="append JSON lines")
    options = parser.parse_args(arguments)
    chosen = names() if options.name == ["all"] else options.name
    unknown = [name for name in chosen if name not in names()]
    if unknown or not chosen:
        problem = f"no benchmark `{unknown[0]}`" if unknown else "name a benchmark"
        print(f"{problem}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    return report(chosen, options.quick, options.json)


def report(chosen: Sequence[str], quick: bool, sink: TextIO | None) -> int:
    """Run `chosen`, write each record to `sink` as it comes, print the tables at the end."""
    records: list[Record] = []
    for name in chosen:
        for record in records_of(name, quick):
            records.append(record)
            if sink is not None:
                print(json.dumps(record), file=sink, flush=True)
            print("{bench} {case} {subject} {metric} {value:,.4g} {unit} (#{repeat})".format(**record),
                  file=sys.stderr)
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(summary(records))
    for bench, case, metric, peer, ratio in ratios(records):
        console.print(f"{bench} {case} {metric}: {PRODUCT} is {ratio:.3g} times as good as {peer}")
    return 0


def _grouped(records: Sequence[Record]) -> dict[tuple[str, str, str, str, str], list[float]]:
    groups: dict[tuple[str, str, str, str, str], list[float]] = {}
    for record in records:
        key = (record["bench"], record["case"], record["subject"], record["metric"], record["unit"])
        groups.setdefault(key, []).append(record["value"])
    return groups


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

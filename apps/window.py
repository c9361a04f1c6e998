"""Aggregates of every window of any data set, through Spark and Ray.

With no arguments it runs on a built-in stream of hotel offers.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from apps import common_options as given
from apps import offers
from apps.common_engines import Engines
from apps.common_exit import attempt, run_process
from apps.common_job import Outcome, prepare, run
from apps.common_output import print_summary, write_picture, write_results
from apps.common_view import View
from patterns.queries import Count, Max, Mean, Min, Quantile, Sum, Variance
from patterns.queries.aggregates import Aggregate, Aggregates
from runtime.errors import SpecError

_PROGRAM = "apps.window"
_DEMO_ITEMS = 400_000
_DEMO_AGGREGATES = "count,mean:price,min:price,quantile:price:0.9"
_OF_COLUMN: dict[str, Callable[[str], Aggregate]] = {
    "sum": Sum, "min": Min, "max": Max, "mean": Mean, "variance": Variance, "median": Quantile}
_KNOWN = "count, sum:COL, min:COL, max:COL, mean:COL, variance:COL, median:COL, quantile:COL:SHARE"
_DESCRIPTION = f"""\
Aggregates of every window of a stream: {_KNOWN}.
Spark reads and orders the items, Ray runs the windows. Answers are exact and the same with every pattern.
Without --input it runs on a built-in stream of hotel offers."""
_EXAMPLES = """\
examples:
  apps.window
      the built-in stream
  apps.window --input trades/ --time traded_at --agg sum:price,count --key symbol --window 1s --slide 100ms \\
          --output sums.parquet
      a folder of files; for each symbol, the last second every 100 ms
  apps.window --input a.csv --time ts --time-unit ms --agg mean:load,quantile:load:0.99 --window 500 --slide 100
      windows of 500 items

Rows of results: the key if there is one, window_id, window_start, window_end, then a column for each aggregate:
count, sum_COL, min_COL, max_COL, mean_COL, variance_COL, quantile_COL_0_5.
Exit codes: 0 done, 2 wrong arguments or input, 1 anything else, 130 Ctrl-C."""


def main(arguments: Sequence[str]) -> int:
    """Run the program; returns its exit code. Engines that run already are used and left running."""
    engines = Engines()
    code = attempt(partial(_main, arguments, engines, time.monotonic()), _PROGRAM)
    engines.stop(code)
    return code


def _main(arguments: Sequence[str], engines: Engines, began_s: float) -> None:
    options = _parser().parse(arguments)
    given.check_disorder(options.disorder)
    if options.input is None:
        _fill_in_demo(options)
    for option in ("time", "agg", "window"):
        if getattr(options, option) is None:
            raise SpecError(f"`--{option}` must be given with --input, got nothing; see --help")
    query, window = aggregates(options.agg), given.window_of(options.window, options.slide)
    given.check_outputs(output=options.output, stats=options.stats, plot=options.plot)
    if not options.input:
        options.input = [_demo_input(engines)]
    job = prepare(options, query, window)
    view = View(options.quiet)
    try:
        outcome = run(job, engines, view, began_s, "window")
        view.stage("writing")
        written = _write(outcome, options, query)
    finally:
        view.close()
    if not options.quiet:
        print_summary(outcome, {"last row": _shown(outcome, query)}, written, time.monotonic() - began_s)


# -- arguments ---------------------------------------------------------------------------------------

def _parser() -> given.Parser:
    parser = given.parser(_PROGRAM, _DESCRIPTION, _EXAMPLES)
    parser.add_argument("--agg", metavar="sum:price,count", help=f"aggregates with commas between them: {_KNOWN}")
    given.add_input_options(parser)
    given.add_window_options(parser)
    given.add_run_options(parser)
    given.add_output_options(parser)
    return parser


def aggregates(text: str) -> Aggregates:
    """The aggregates that `--agg` names.

    >>> aggregates("count,sum:price,quantile:price:0.9").outputs
    ('count', 'sum_price', 'quantile_price_0_9')
    """
    return Aggregates(tuple(_aggregate(part.strip(), text) for part in text.split(",")))


def _aggregate(part: str, text: str) -> Aggregate:
    name, _, rest = part.partition(":")
    column, _, share = rest.rpartition(":") if name == "quantile" else (rest, "", "")
    if name == "count" and not rest:
        return Count()
    if name in _OF_COLUMN and column:
        return _OF_COLUMN[name](column)
    if name == "quantile" and column:
        try:
            return Quantile(column, float(share))
        except ValueError:
            raise SpecError(f"`--agg` quantile must have a share from 0 to 1, got {part!r}: write "
                            f"quantile:{column}:0.95") from None
    raise SpecError(f"`--agg` must be aggregates such as sum:price,count ({_KNOWN}), got {part!r} in {text!r}")


def _fill_in_demo(options: Namespace) -> None:
    """What was not said, as it suits the built-in stream."""
    options.time, options.agg = options.time or offers.TIME, options.agg or _DEMO_AGGREGATES
    if options.window is None:
        options.window, options.slide = offers.WINDOW, options.slide or offers.SLIDE


def _demo_input(engines: Engines) -> str:
    folder = engines.folder / "offers"
    folder.mkdir()
    offers.write_offers(folder, _DEMO_ITEMS)
    return str(folder)


# -- what comes out ----------------------------------------------------------------------------------

def _write(outcome: Outcome, options: Namespace, query: Aggregates) -> dict[str, Path]:
    """Write what was asked for; where each thing went."""
    def draw(path: Path, kind: str) -> bool:
        from apps.picture_windows import draw_aggregate  # matplotlib takes a second
        return draw_aggregate(outcome.report.results, query.outputs[0], path, kind)

    return {**write_results(outcome, options), **write_picture(draw, options.plot)}


def _shown(outcome: Outcome, query: Aggregates) -> str:
    """The last row of the results, so that something can be seen without opening a file."""
    results = outcome.report.results
    if not results.num_rows:
        return "none"
    last = results.slice(results.num_rows - 1).to_pylist()[0]
    values = ", ".join(f"{name} {last[name]:,.6g}" for name in query.outputs)
    whose = f" of {last['key']}" if "key" in last else ""
    return f"window {last['window_id']}{whose}: {values}"


if __name__ == "__main__":
    run_process(main)

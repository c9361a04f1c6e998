"""Aggregates of every window of any data set, through Spark and Ray.

With no arguments it runs on a built-in stream of hotel offers.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from apps import common_options as given
from apps import offers
from apps.common_exit import run_process
from apps.common_job import Outcome
from apps.common_program import Program
from patterns.queries import Count, Max, Mean, Min, Quantile, Sum, Variance
from patterns.queries.aggregates import Aggregate, Aggregates
from runtime.errors import SpecError

_PROGRAM = "apps.window"
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
    program = Program(_PROGRAM, _parser, lambda options: aggregates(options.agg), _fill_in_demo, _draw, _about,
                      needed=("time", "agg", "window"))
    return program.main(arguments)


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


# -- what comes out ----------------------------------------------------------------------------------

def _draw(outcome: Outcome, query: Aggregates, path: Path, kind: str) -> bool:
    from apps.picture_windows import draw_aggregate  # matplotlib takes a second
    return draw_aggregate(outcome.report.results, query.outputs[0], path, kind)


def _about(outcome: Outcome, query: Aggregates) -> dict[str, str]:
    """The last row of the results, so that something can be seen without opening a file."""
    results = outcome.report.results
    if not results.num_rows:
        return {}
    last = results.slice(results.num_rows - 1).to_pylist()[0]
    values = ", ".join(f"{name} {last[name]:,.6g}" for name in query.outputs)
    whose = f" of {last['key']}" if "key" in last else ""
    return {"last row": f"window {last['window_id']}{whose}: {values}"}


if __name__ == "__main__":
    run_process(main)

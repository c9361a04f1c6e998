"""The main job: the skyline of every window of a stream, through Spark and Ray.

With no arguments it runs on a built-in stream of hotel offers.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from apps import common_options as given
from apps import offers
from apps.common_exit import run_process
from apps.common_job import Outcome
from apps.common_program import Program
from patterns.queries import Skyline
from runtime.errors import SpecError

_PROGRAM = "apps.skyline"
_DEMO_FOLDER = Path("skyline-demo")
_DESCRIPTION = """\
The skyline of every window of a stream: the items that no other item of the window dominates, that is, none
is as good in all dimensions and better in one. Spark reads and orders the items, Ray runs the windows.
Without --input it runs on a built-in stream of hotel offers and writes to the folder `skyline-demo`."""
_EXAMPLES = """\
examples:
  apps.skyline
      the built-in stream
  apps.skyline --input offers/ --time booked_at --dims price,distance --maximize rating \\
          --window 1s --slide 200ms --output skylines.parquet
      a folder of files; price and distance small, rating great
  apps.skyline --input a.csv b.csv --time ts --time-unit ms --dims price,distance --key city --window 500
      for each city, windows of 500 items
  apps.skyline --input offers.parquet --time ts --dims price,distance --window 10s --slide 1s \\
          --pattern 'win_farm(pane_farm(2,1),2)' --stats run.json
      a pattern of your choice, and its figures

Rows of results: window_id, window_start, window_end, the key if there is one, then the item as it came.
Exit codes: 0 done, 2 wrong arguments or input, 1 anything else, 130 Ctrl-C."""


def main(arguments: Sequence[str]) -> int:
    """Run the program; returns its exit code. Engines that run already are used and left running."""
    return Program(_PROGRAM, _parser, _query, _fill_in_demo, _draw, _about, demo_folder=_DEMO_FOLDER).main(arguments)


# -- arguments ---------------------------------------------------------------------------------------

def _parser() -> given.Parser:
    parser = given.parser(_PROGRAM, _DESCRIPTION, _EXAMPLES)
    parser.add_argument("--dims", metavar="a,b,c", help="columns to compare; smaller is better")
    parser.add_argument("--maximize", metavar="b", help="columns of which more is better (need not be in --dims)")
    given.add_input_options(parser)
    given.add_window_options(parser)
    given.add_run_options(parser)
    given.add_output_options(parser)
    return parser


def _query(options: Namespace) -> Skyline:
    dims, maximize = given.columns(options.dims, "--dims"), given.columns(options.maximize, "--maximize")
    if not dims and not maximize:
        raise SpecError("`--dims` must name at least one column, got none: write --dims price,distance")
    return Skyline(*dims, maximize=maximize)


def _fill_in_demo(options: Namespace) -> None:
    """What was not said, as it suits the built-in stream."""
    options.time = options.time or offers.TIME
    if options.dims is None and options.maximize is None:
        options.dims, options.maximize = ",".join(offers.DIMS), ",".join(offers.MAXIMIZE)
    if options.window is None:
        options.window, options.slide = offers.WINDOW, options.slide or offers.SLIDE
    options.output = options.output or _DEMO_FOLDER / "skylines.parquet"
    options.plot = options.plot or _DEMO_FOLDER / "last-skyline.png"


# -- what comes out ----------------------------------------------------------------------------------

def _draw(outcome: Outcome, query: Skyline, path: Path, kind: str) -> bool:
    from apps.picture import draw_run  # matplotlib takes a second
    return draw_run(outcome.report, query.dims, query.maximize, path, kind)


def skyline_sizes(results: pa.Table) -> np.ndarray:
    """How many items each window's skyline has."""
    names = ["key", "window_id"] if "key" in results.column_names else ["window_id"]
    return results.group_by(names).aggregate([([], "count_all")]).column("count_all").to_numpy()


def _about(outcome: Outcome, query: Skyline) -> dict[str, str]:
    sizes = skyline_sizes(outcome.report.results)
    if not len(sizes):
        return {}
    return {"skyline sizes": f"{sizes.min():,} to {sizes.max():,}, median {np.median(sizes):,.0f}; "
                             f"{outcome.stats.result_rows:,} rows in all"}


if __name__ == "__main__":
    run_process(main)

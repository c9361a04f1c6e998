"""What comes out of a job: files, and a table of its figures."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from apps.common_job import Outcome
from apps.common_options import bad_rows_path
from spark_glue.collect import replacing, write_parquet


def write_all(outcome: Outcome, options: Namespace, draw: Callable[[Path, str], bool]) -> dict[str, Path]:
    """Write what was asked for, all of it or nothing; where each thing went.

    Results, rows that were left out, figures, and the picture, which `draw(file, kind)` makes; no file is made if
    it says that there is nothing to draw.
    """
    written: dict[str, Path] = {}
    with contextlib.ExitStack() as files:  # they take their names when all are complete
        if options.output is not None:
            write_parquet(outcome.report.results, files.enter_context(replacing(options.output)))
            written["results"] = options.output
            if outcome.bad.num_rows:
                written["rows left out"] = bad_rows_path(options.output)
                write_parquet(outcome.bad, files.enter_context(replacing(written["rows left out"])))
        if options.stats is not None:
            files.enter_context(replacing(options.stats)).write_text(outcome.stats.to_json() + "\n")
            written["figures"] = options.stats
        if options.plot is not None:
            if draw(files.enter_context(replacing(options.plot)), options.plot.suffix.lstrip(".").lower() or "png"):
                written["picture"] = options.plot
            else:
                options.plot.unlink(missing_ok=True)  # an older picture would be taken for this run's
    return written


def print_summary(outcome: Outcome, about_results: Mapping[str, str], written: Mapping[str, Path],
                  total_s: float) -> None:
    """Print items, windows, `about_results`, rates, nodes and files as a table."""
    stats, report = outcome.stats, outcome.report
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    left_out = [f"{count:,} {what}" for count, what in (
        (stats.items_bad, "bad"), (stats.items_late, "late"), (stats.items_outside, "in no window")) if count]
    table.add_row("items", f"{stats.items_in:,}" + (f" ({', '.join(left_out)})" if left_out else ""))
    table.add_row("windows", f"{stats.windows:,}" + ("" if stats.windows else " (there were no items in windows)"))
    if stats.windows:
        for what, text in about_results.items():
            table.add_row(what, text)
        table.add_row("throughput", f"{stats.items_per_s:,.0f} items/s ({stats.run_s:.2f} s)")
        table.add_row("latency", ", ".join(f"{name} {value:,.1f} ms" for name, value in stats.latency_ms.items()
                                           if value is not None))
    table.add_row("time in all", f"{total_s:.1f} s, of which {stats.startup_s:.1f} s start-up and reading")
    table.add_row("pattern", f"{stats.pattern} on {stats.executor} ({report.choice})")
    for node in stats.nodes:
        table.add_row(f"  {node.name}", f"{node.items_in:,} in, {node.items_out:,} out, busy {node.utilisation:.0%}")
    if report.dashboard:
        table.add_row("dashboard", f"{report.dashboard} (while it ran)")
    for what, path in written.items():
        table.add_row(what, str(path))
    if "results" not in written:
        table.add_row("results", "not written: give --output")
    console = Console(highlight=False)
    console.width = max(console.width, 100) if not console.is_terminal else console.width
    console.print(table)

"""A program from its arguments to its exit code: what `apps.skyline` and `apps.window` have in common."""

from __future__ import annotations

import contextlib
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from apps import common_options as given
from apps import offers
from apps.common_engines import Engines
from apps.common_exit import DONE, attempt
from apps.common_job import Outcome, prepare, run
from apps.common_output import print_summary, write_all
from apps.common_view import View
from patterns.query import Query
from runtime.errors import SpecError

DEMO_ITEMS = 400_000
Asked = TypeVar("Asked", bound=Query)


@dataclass(frozen=True)
class Program(Generic[Asked]):
    """What is special about a program.

    `query` makes the query from the options, `fill_in_demo` sets what was not said about the built-in stream,
    `draw(outcome, query, file, kind)` makes the picture (False: there is nothing to draw), `about` says
    something of the results in the summary. `needed` options have no default but in the demo, whose
    results go to `demo_folder`, if it has one.
    """

    name: str
    parser: Callable[[], given.Parser]
    query: Callable[[Namespace], Asked]
    fill_in_demo: Callable[[Namespace], None]
    draw: Callable[[Outcome, Asked, Path, str], bool]
    about: Callable[[Outcome, Asked], Mapping[str, str]]
    needed: tuple[str, ...] = ("time", "window")
    demo_folder: Path | None = None

    def main(self, arguments: Sequence[str]) -> int:
        """Run the program; returns its exit code. Engines that run already are used and left running."""
        engines = Engines()
        was_there = self.demo_folder is not None and self.demo_folder.exists()
        code = attempt(partial(self._main, arguments, engines, time.monotonic()), self.name)
        engines.stop(code)
        if code != DONE and self.demo_folder is not None and not was_there:
            with contextlib.suppress(OSError):  # there is none, or something is in it
                self.demo_folder.rmdir()
        return code

    def _main(self, arguments: Sequence[str], engines: Engines, began_s: float) -> None:
        options = self.parser().parse(arguments)
        given.check_disorder(options.disorder)
        if options.input is None:
            if self.demo_folder is not None and (options.output is None or options.plot is None):
                self.demo_folder.mkdir(exist_ok=True)
            self.fill_in_demo(options)
        for option in self.needed:
            if getattr(options, option) is None:
                raise SpecError(f"`--{option}` must be given with --input, got nothing; see --help")
        query, window = self.query(options), given.window_of(options.window, options.slide)
        given.check_outputs(output=options.output, stats=options.stats, plot=options.plot)
        if not options.input:
            options.input = [_demo_input(engines)]
        job = prepare(options, query, window)
        view = View(options.quiet)
        try:
            outcome = run(job, engines, view, began_s, self.name.partition(".")[2])
            view.stage("writing")
            written = write_all(outcome, options, partial(self.draw, outcome, query))
        finally:
            view.close()
        if not options.quiet:
            print_summary(outcome, self.about(outcome, query), written, time.monotonic() - began_s)


def _demo_input(engines: Engines) -> str:
    folder = engines.folder / "offers"
    folder.mkdir()
    offers.write_offers(folder, DEMO_ITEMS)
    return str(folder)

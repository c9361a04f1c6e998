"""What a user sees while a job runs: what goes on, a progress bar, the dashboard's address."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class View:
    """Progress on standard error: a bar on a terminal, a line per stage elsewhere, nothing if `quiet`."""

    def __init__(self, quiet: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False, quiet=quiet)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        if self._console.is_terminal and not quiet:
            self._bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                                 TextColumn("items"), TimeElapsedColumn(), console=self._console, transient=True)
            self._task = self._bar.add_task("starting", total=None)
            self._bar.start()

    def stage(self, text: str) -> None:
        """Say what goes on now."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text)
        else:
            self._console.print(text, soft_wrap=True)

    def dashboard(self, address: str | None, token: str | None) -> None:
        """Where the run can be watched, and the word that the page asks for."""
        if address:
            secret = f" (token {token})" if token else " (token: `ray get-auth-token`)"
            self._console.print(f"Ray dashboard while it runs: {address}{secret}", soft_wrap=True)

    def progress(self, items: int, total: int | None) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=items, total=total)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

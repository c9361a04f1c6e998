"""Spark and Ray for one job: started side by side, only those that are needed, ended whatever happens."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from apps.common_exit import DONE, leave_within
from runtime.errors import NodeError
from runtime.workspace import remove_folder, temporary_folder

Answer = TypeVar("Answer")
_PATIENCE_S = 15.0


class Engines:
    """The engines of one run. What ran before stays; what was started here is ended by `stop`."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._owns_spark = self._owns_ray = False
        self._spark_thread: threading.Thread | None = None

    @property
    def folder(self) -> Path:
        """A folder for this run's temporary files."""
        if self._folder is None:
            self._folder = temporary_folder("run")
        return self._folder

    def on_spark(self, work: Callable[[Any], Answer], *, ui: bool = False, keep: bool = False) -> Future[Answer]:
        """Start Spark in the background and give it `work`; Spark ends with the work, unless `keep`."""
        future: Future[Answer] = Future()

        def run() -> None:
            try:
                answer = self._with_spark(work, ui)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(answer)
                if not keep:
                    self._stop_spark()

        self._spark_thread = threading.Thread(target=run, name="windowfarm-spark", daemon=True)
        self._spark_thread.start()
        return future

    def _with_spark(self, work: Callable[[Any], Answer], ui: bool) -> Answer:
        from spark_glue import session  # seconds to import: only where it is needed
        self._owns_spark = not session.is_alive()
        try:
            return work(session.start_session(ui=ui))
        except Exception as error:
            if isinstance(error, OSError) or not session.is_alive():  # what a broken connection raises
                raise NodeError("spark", "died: its Java process is gone", str(error)) from None
            raise

    def start_ray(self) -> None:
        """Start Ray, here in the main thread: its processes end with the thread that started them."""
        from runtime.actors import ensure_ray
        self._owns_ray = True  # before, so that a start that is broken off is cleaned up too
        self._owns_ray = ensure_ray()

    def stop(self, code: int = DONE) -> None:
        """End what was started here, with `code` in view if that takes too long; Ctrl-C no longer counts."""
        before = None
        if threading.current_thread() is threading.main_thread() and (self._owns_ray or self._owns_spark):
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        if code != DONE and (self._owns_ray or self._owns_spark):
            leave_within(_PATIENCE_S, code)
        self._stop_spark(at_once=code != DONE)
        if self._owns_ray:
            from runtime.actors import stop_ray
            stop_ray()
            self._owns_ray = False
        if self._folder is not None:
            remove_folder(self._folder)
        if before is not None and code == DONE:
            signal.signal(signal.SIGINT, before)

    def _stop_spark(self, at_once: bool = False) -> None:
        if not self._owns_spark:
            return
        from spark_glue import session
        if at_once and self._spark_thread is not None and self._spark_thread.is_alive():
            session.kill_session()  # it is at work, and nobody needs that any more
        if self._spark_thread is not None and self._spark_thread is not threading.current_thread():
            self._spark_thread.join(timeout=5.0)
        if self._owns_spark:
            self._owns_spark = False
            session.stop_session()

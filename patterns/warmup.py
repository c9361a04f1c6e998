"""`python -m patterns.warmup`: compile every kernel into the cache, so that no run has to wait for it.

The set-up calls it once; when all is cached it takes about as long as the imports.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import numpy as np

from patterns import CountWindow, Stream, TimeWindow, WinFarm, WinSeq, queries
from patterns.queries import Skyline
from runtime.channel.segment import RingSpec, Segment, SegmentLayout
from runtime.message import Batch, Punctuation

#: Kernels are compiled for each number of dimensions; these are the ones that most people ask for.
DIMS = (2, 3, 4, 6, 8)


def warm_up() -> None:
    """Compile, or read from the cache, the kernels of the queries, the intake and the channels."""
    for module in _modules():
        _call(module.warm_up)
    _streams()
    _channel()


def _modules() -> Iterator[ModuleType]:
    """The modules of `patterns.queries` that know how to warm themselves up."""
    for found in pkgutil.iter_modules(queries.__path__, f"{queries.__name__}."):
        module = importlib.import_module(found.name)
        if callable(getattr(module, "warm_up", None)):
            yield module


def _call(function: object) -> None:
    assert callable(function)
    if "dims" in inspect.signature(function).parameters:
        for dims in DIMS:
            function(dims)
    else:
        function()


def _streams() -> None:
    """Tiny streams through everything that is compiled outside of the queries: with and without keys, both windows."""
    data = {"ts": np.arange(64), "key": np.arange(64) % 3, "a": np.arange(64.0), "b": np.arange(64)}
    for window in (TimeWindow(16, slide=4), CountWindow(8, slide=2)):
        for stream in (Stream.of(data, "ts"), Stream.of(data, "ts").key_by("key")):
            for pattern in (WinSeq(), WinFarm(workers=2)):
                stream.window(window).apply(Skyline("a", "b"), pattern=pattern).run(executor="inline")


def _channel() -> None:
    """One message through a ring of shared memory."""
    with Segment.create("warmup", SegmentLayout(2, (RingSpec(0, 1, 1 << 16),))) as segment:
        sender, receiver = segment.sender(0), segment.receiver(0)
        bell = segment.bell(1)
        seen = bell.value()
        for message in (Batch({"a": np.arange(8)}), Punctuation(1)):
            assert sender.try_send(message) and receiver.try_receive() is not None
            receiver.release()
        bell.wait(seen, 0.001)
        segment.abort()


if __name__ == "__main__":
    warm_up()

"""Routing as a building block: a node that hands each item to one output, to all, or where a rule says.

    >>> emitter = Router(ByColumn("user", 2))
    >>> sent = list(emitter.process(Batch({"user": np.array(["ada", "bob", "ada"])}), 0))
    >>> sum(len(emit.message) for emit in sent)
    3

The patterns have rules of their own (by window, by pane); these are the ones that need no window. Never the
built-in `hash()`: it differs from process to process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from runtime.errors import SpecError
from runtime.message import Batch, Message
from runtime.node import Emit, Node

#: The output port of each item of a batch, or None: everything goes everywhere.
Rule = Callable[[Batch], np.ndarray | None]


@dataclass(frozen=True)
class ByColumn:
    """All items with the same value of `column` to the same of `degree` outputs, in every process and run."""

    column: str
    degree: int

    def __post_init__(self) -> None:
        if self.degree < 1:
            raise SpecError(f"`degree` must be at least 1, got {self.degree}")

    def __call__(self, batch: Batch) -> np.ndarray:
        return stable_hash(batch.columns[self.column]) % self.degree


def everywhere(batch: Batch) -> None:
    """The rule of a broadcast."""


class Router(Node):
    """Sends each item where `rule` says, in order; what is not a batch goes to all outputs."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def process(self, message: Message, port: int) -> Iterable[Emit]:
        if not isinstance(message, Batch):
            return (Emit(message),)
        ports = self._rule(message)
        if ports is None:
            return (Emit(message),)
        if ports.shape != (len(message),) or ports.dtype.kind not in "iu":
            raise SpecError(f"`rule` of a router must give one whole number per item, got {ports.dtype} of shape "
                            f"{ports.shape} for {len(message)} items")
        return [Emit(message.select(ports == chosen), (int(chosen),)) for chosen in np.unique(ports)]


def stable_hash(values: np.ndarray) -> np.ndarray:
    """A well-mixed number from 0 to 2**63 - 1 for each value, the same in every process and run.

    Equal values of one type have equal numbers. Whole numbers, times and truth values go through
    splitmix64, floats by their bits (0.0 and -0.0 are equal), text by the BLAKE2 digest of each distinct value.
    """
    if values.dtype.kind in "US":
        distinct, places = np.unique(values, return_inverse=True)
        digests = [hashlib.blake2b(str(value).encode() if values.dtype.kind == "U" else bytes(value), digest_size=8)
                   for value in distinct]
        return np.array([int.from_bytes(digest.digest(), "little") >> 1 for digest in digests], np.int64)[places]
    if values.dtype.kind == "f":
        values = (values.astype(np.float64) + 0.0).view(np.int64)
    elif values.dtype.kind in "mM":
        values = values.view(np.int64)
    elif values.dtype.kind not in "iub":
        raise SpecError(f"a key must be a number, a time or text, got {values.dtype}")
    with np.errstate(over="ignore"):
        mixed = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(1)).astype(np.int64)

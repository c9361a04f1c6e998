"""The errors of windowfarm, named by whose fault they are.

Every constructor argument goes to `super().__init__`, so that an error keeps its contents when it is
pickled on the way from an actor to the driver.
"""

from __future__ import annotations


class WindowfarmError(Exception):
    """Any error that windowfarm raises on purpose."""


class SpecError(WindowfarmError, ValueError):
    """A specification that cannot be run: the caller's to mend. Raised before anything starts."""


class TooLargeError(SpecError):
    """A message that a channel can never take, however long it waits."""


class BadInputError(WindowfarmError):
    """Data that the query cannot read: a null, a NaN, text where a number must be, an unreadable file."""


class UserFunctionError(WindowfarmError):
    """A user's function raised; the message names pattern, node, key and window, `details` holds its traceback."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message, details)

    def at(self, place: str) -> UserFunctionError:
        """The same error, with where it happened added to its message."""
        return UserFunctionError(f"{self.args[0]}, {place}", self.args[1])

    def __str__(self) -> str:
        return f"{self.args[0]}\n{self.args[1]}" if self.args[1] else str(self.args[0])


class NodeError(WindowfarmError):
    """A node of the graph died or failed: `node` is its name, `reason` what happened, `details` a traceback."""

    def __init__(self, node: str, reason: str, details: str = "") -> None:
        super().__init__(node, reason, details)
        self.node, self.reason, self.details = node, reason, details

    def __str__(self) -> str:
        text = f"node `{self.node}` {self.reason}"
        return f"{text}\n{self.details}" if self.details else text


class StalledError(WindowfarmError):
    """Nothing moved for the configured time; the message lists who waits for whom."""


class StateError(WindowfarmError):
    """A rule of windowfarm's own was broken: a bug here, not in the caller's code."""


class ClosedError(WindowfarmError):
    """The channel was closed: by its producer (end of stream), or because the other side is gone."""


class FullError(WindowfarmError):
    """An arena has no room for a chunk now; a node asks `Arena.room` before it takes more input."""

"""What can be asked of a window."""

from patterns.queries.skyline import Skyline

__all__ = ["Skyline"]

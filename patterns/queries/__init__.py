"""What can be asked of a window."""

from patterns.queries.aggregates import Count, Max, Mean, Min, Quantile, Sum, Variance
from patterns.queries.skyline import Skyline

__all__ = ["Count", "Max", "Mean", "Min", "Quantile", "Skyline", "Sum", "Variance"]

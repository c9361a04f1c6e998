"""What can be asked of a window."""

from patterns.queries.aggregates import Count, Max, Mean, Min, Quantile, Sum, Variance
from patterns.queries.functions import Decomposable, Function, Incremental, Sliding
from patterns.queries.skyline import Skyline

__all__ = ["Count", "Decomposable", "Function", "Incremental", "Max", "Mean", "Min", "Quantile", "Skyline", "Sliding",
           "Sum", "Variance"]

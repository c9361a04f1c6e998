"""What can be asked of a window."""

from patterns.queries.aggregates import Count, Max, Mean, Min, Quantile, Sum, Variance
from patterns.queries.dominance import Skyline
from patterns.queries.functions import Decomposable, Function, Incremental, Sliding
from patterns.queries.k_dominant import KDominant, TopDelta
from patterns.queries.static import skyline
from patterns.queries.top_k import TopK
from patterns.queries.warm import warm_up

__all__ = ["Count", "Decomposable", "Function", "Incremental", "KDominant", "Max", "Mean", "Min", "Quantile",
           "Skyline", "Sliding", "Sum", "TopDelta", "TopK", "Variance", "skyline", "warm_up"]

"""Compiled kernels of the queries: the only modules of `patterns` that import numba."""

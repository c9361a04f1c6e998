"""The built-in stream: offers of hotels, in bursts, as a small data set on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TIME, DIMS, MAXIMIZE = "ts", ("price", "distance_km", "rating", "reviews"), ("rating", "reviews")
WINDOW, SLIDE = "1s", "200ms"


def arrivals_us(count: int, mean_rate: float, dispersion: float, rng: np.random.Generator) -> np.ndarray:
    """Arrival times of a two-state Markovian process with a mean rate (items/s) and an index of dispersion.

    The slow state's mean gap is F times the mean, the fast state's 1/F of it; after each arrival the
    state changes with the probabilities that give the wanted index of dispersion (1 would be Poisson).
    """
    factor, mean_us = 4.0, 1e6 / mean_rate
    to_slow = 2 * (factor - 1) ** 2 / (factor * (factor + 1) * (dispersion - 1))
    to_fast = factor * to_slow
    gaps: list[np.ndarray] = []
    left, fast = count, True
    while left > 0:
        run = min(left, int(rng.geometric(to_slow if fast else to_fast)))
        gaps.append(rng.exponential(mean_us / factor if fast else mean_us * factor, run))
        left, fast = left - run, not fast
    return np.cumsum(np.concatenate(gaps)).astype(np.int64)


def offers(count: int, seed: int = 7) -> pa.Table:
    """`count` offers: near the centre is dear, and what many like is seldom cheap."""
    rng = np.random.default_rng(seed)
    start_us = 1_767_225_600_000_000  # 2026-01-01
    names = pa.array([f"hotel-{number:04d}" for number in range(2000)])
    distance = np.round(rng.gamma(2.0, 2.5, count), 2)
    rating = np.round(np.clip(rng.normal(7.6, 1.1, count), 1, 10), 1)
    price = 25 + 4 * np.maximum(rating - 5, 0) + 10 / (1 + distance) + rng.gamma(2.0, 45.0, count)
    reviews = np.rint(rng.lognormal(1.5 + 0.55 * rating, 0.12)).astype(np.int64)
    return pa.table({
        "ts": pa.array(start_us + arrivals_us(count, 20_000, 1_000, rng), pa.timestamp("us", tz="UTC")),
        "offer": np.arange(count),
        "hotel": names.take(pa.array(rng.integers(0, len(names), count))),
        "price": np.round(price, 2),
        "distance_km": distance,
        "rating": rating,
        "reviews": reviews,
    })


def write_offers(folder: Path, count: int, files: int = 4) -> None:
    """The offers as Parquet files, shuffled within each file as if by several writers."""
    table, rng = offers(count), np.random.default_rng(11)
    edges = np.linspace(0, count, files + 1).astype(int)
    for number, (low, high) in enumerate(zip(edges, edges[1:], strict=False)):
        pq.write_table(table.slice(low, high - low).take(pa.array(rng.permutation(high - low))),
                       folder / f"offers-{number}.parquet")

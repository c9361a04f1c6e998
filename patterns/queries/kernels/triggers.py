"""Which items trigger a window: one pass over a batch, for windows whose place the items decide."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def every_nth(codes: np.ndarray, slide: int, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the items that are number slide, 2*slide, ... of their key, and their windows' ids.

    `counts` (items so far, by code) is brought up to date.
    """
    places = np.empty(len(codes), np.int64)
    windows = np.empty(len(codes), np.int64)
    found = 0
    for place in range(len(codes)):
        count = counts[codes[place]] + 1
        counts[codes[place]] = count
        if count % slide == 0:
            places[found] = place
            windows[found] = count // slide - 1
            found += 1
    return places[:found], windows[:found]


@njit(nogil=True, cache=True)
def grown_by(codes: np.ndarray, values: np.ndarray, threshold: float, markers: np.ndarray,
             counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the items that exceed their key's marker by `threshold`, and their windows' ids.

    A key without a marker (`counts` of its code is -1) takes its first item as one; each trigger is the
    next marker. `markers` and `counts` (windows so far, by code) are brought up to date.
    """
    places = np.empty(len(codes), np.int64)
    windows = np.empty(len(codes), np.int64)
    found = 0
    for place in range(len(codes)):
        code = codes[place]
        if counts[code] < 0:
            counts[code] = 0
            markers[code] = values[place]
        elif values[place] - markers[code] >= threshold:
            places[found] = place
            windows[found] = counts[code]
            counts[code] += 1
            markers[code] = values[place]
            found += 1
    return places[:found], windows[:found]

"""Integer keys to dense codes, and items to the workers that own them: one pass each."""

from __future__ import annotations

import numpy as np
from numba import njit

#: The code of a free place in the table of keys.
FREE = -1
_MIX = np.int64(-7046029254386353131)


def frozen(array: np.ndarray) -> np.ndarray:
    """A contiguous, read-only view: kernels are compiled for one kind of array, wherever it comes from."""
    array = np.ascontiguousarray(array)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


@njit(nogil=True, cache=True)
def find(keys: np.ndarray, codes: np.ndarray, key: int) -> int:
    """The place of `key` in an open-addressing table, or the free place where it belongs."""
    mask = keys.shape[0] - 1
    mixed = key * _MIX
    place = (mixed ^ (mixed >> 32)) & mask
    while codes[place] != FREE and keys[place] != key:
        place = (place + 1) & mask
    return place


@njit(nogil=True, cache=True)
def encode(start: int, values: np.ndarray, keys: np.ndarray, codes: np.ndarray, used: int,
           result: np.ndarray) -> tuple:
    """Write the code of each value from `start` on; a new key takes the next code, `used`.

    Returns the item it stopped at, because the table is half full, and the number of keys.
    """
    last, code = np.int64(0), np.int64(FREE)
    for i in range(start, values.shape[0]):
        if values[i] != last or code == FREE:  # keys often come in runs
            place = find(keys, codes, values[i])
            if codes[place] == FREE:
                if 2 * used >= keys.shape[0]:
                    return i, used
                keys[place] = values[i]
                codes[place] = used
                used += 1
            last, code = values[i], codes[place]
        result[i] = code
    return values.shape[0], used


@njit(nogil=True, cache=True)
def look_up(values: np.ndarray, first: int, codes: np.ndarray, result: np.ndarray) -> int:
    """Write the code of each value, `codes[value - first]`; the item where that fails, because the key is not there."""
    size = np.uint64(codes.shape[0])
    for i in range(values.shape[0]):
        place = np.uint64(values[i] - first)  # unsigned: below `first` is beyond the end
        if place >= size or codes[place] == FREE:
            return i
        result[i] = codes[place]
    return values.shape[0]


@njit(nogil=True, cache=True)
def settle(keys: np.ndarray, codes: np.ndarray, new_keys: np.ndarray, new_codes: np.ndarray) -> None:
    """Put all keys of one table into another, which is empty and larger."""
    for i in range(keys.shape[0]):
        if codes[i] != FREE:
            place = find(new_keys, new_codes, keys[i])
            new_keys[place] = keys[i]
            new_codes[place] = codes[i]


@njit(nogil=True, cache=True)
def by_owner(codes: np.ndarray, degree: int) -> tuple:
    """The items in the order of their owners, `code mod degree`, and where each owner's items start."""
    starts = np.zeros(degree + 1, np.int64)
    owners = np.empty(codes.shape[0], np.int64)
    for i in range(codes.shape[0]):
        owner = codes[i] & (degree - 1) if degree & (degree - 1) == 0 else codes[i] % degree
        owners[i] = owner
        starts[owner + 1] += 1
    for owner in range(degree):
        starts[owner + 1] += starts[owner]
    order = np.empty(codes.shape[0], np.int64)
    place = starts.copy()
    for i in range(codes.shape[0]):
        order[place[owners[i]]] = i
        place[owners[i]] += 1
    return order, starts

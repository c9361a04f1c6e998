"""The slow oracle: what every window holds and what every query answers, straight from the definitions.

Plain Python and lists; nothing of the product is imported, nothing is clever, nothing is incremental.
A stream is a list of items in arrival order; an item is a mapping with `ts` (microseconds), perhaps
`key`, and columns. Windows are given as a dict

    (key, window id) -> (start, end, indices of the items held)

in order of window id, then of the key's first appearance. Windows without items do not appear. Indices
are in (ts, arrival) order for time windows and in arrival order otherwise. A stream without keys has
the key `None`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

Item = Mapping[str, Any]
Extent = tuple[int, int, list[int]]
Windows = dict[tuple[Hashable, int], Extent]
Point = Sequence[float]
Update = tuple[int, str, int]


# -- windows ---------------------------------------------------------------------------------------

def by_key(items: Sequence[Item]) -> dict[Hashable, list[int]]:
    """The indices of each key's items, in arrival order; keys in order of first appearance."""
    groups: dict[Hashable, list[int]] = {}
    for index, item in enumerate(items):
        groups.setdefault(item.get("key"), []).append(index)
    return groups


def time_windows(items: Sequence[Item], length: int, slide: int, origin: int = 0) -> Windows:
    """Window i holds the items with `origin + i*slide <= ts < origin + i*slide + length`, i >= 0."""
    found: Windows = {}
    for key, indices in by_key(items).items():
        ordered = sorted(indices, key=lambda index: (items[index]["ts"], index))
        last = max((items[index]["ts"] - origin) // slide for index in indices)
        for wid in range(last + 1):
            start = origin + wid * slide
            held = [index for index in ordered if start <= items[index]["ts"] < start + length]
            found[key, wid] = start, start + length, held
    return _in_order(found, items)


def count_windows(items: Sequence[Item], length: int, slide: int) -> Windows:
    """Window i holds the arrival positions `i*slide <= n < i*slide + length` of its key."""
    found: Windows = {}
    for key, indices in by_key(items).items():
        for wid in range(len(indices) // slide + 1):
            start = wid * slide
            found[key, wid] = start, start + length, indices[start:start + length]
    return _in_order(found, items)


def slide_by_tuple_windows(items: Sequence[Item], length: int, slide: int) -> Windows:
    """Window i is triggered by item number `(i+1)*slide` of its key, t: items so far from `t.ts - length` on.

    The extent is `[t.ts - length, t.ts + 1)`; an item that came before t with a greater `ts` is held too.
    """
    found: Windows = {}
    for key, indices in by_key(items).items():
        for wid in range(len(indices) // slide):
            number = (wid + 1) * slide
            end = items[indices[number - 1]]["ts"]
            held = [index for index in indices[:number] if items[index]["ts"] >= end - length]
            found[key, wid] = end - length, end + 1, held
    return _in_order(found, items)


def delta_windows(items: Sequence[Item], attribute: str, length: float, threshold: float) -> Windows:
    """An item with `a - marker.a >= threshold` triggers: earlier items with `a >= trigger.a - length`.

    The first item of a key is its first marker; each trigger becomes the marker and takes the next id,
    also when its window holds nothing. The extent is `[trigger.a - length, trigger.a)`.
    """
    found: Windows = {}
    for key, indices in by_key(items).items():
        marker, wid = items[indices[0]][attribute], 0
        for position, index in enumerate(indices):
            value = items[index][attribute]
            if value - marker >= threshold:
                held = [other for other in indices[:position] if items[other][attribute] >= value - length]
                found[key, wid] = value - length, value, held
                marker, wid = value, wid + 1
    return _in_order(found, items)


def _in_order(found: Windows, items: Sequence[Item]) -> Windows:
    """`found` without empty windows, ordered by window id, then by the key's first appearance."""
    rank = {key: number for number, key in enumerate(by_key(items))}
    names = sorted((name for name, extent in found.items() if extent[2]),
                   key=lambda name: (name[1], rank[name[0]]))
    return {name: found[name] for name in names}


# -- progress --------------------------------------------------------------------------------------

def in_order(times: Sequence[int]) -> tuple[list[int], list[int]]:
    """Watermark after each item, and the indices of the late items, when the watermark is `t_max`."""
    return bounded(times, 0)


def bounded(times: Sequence[int], delay: int) -> tuple[list[int], list[int]]:
    """Watermark after each item, and the indices of the late items, when the watermark is `t_max - delay`."""
    watermarks: list[int] = []
    late: list[int] = []
    for index, ts in enumerate(times):
        if watermarks and ts < watermarks[-1]:
            late.append(index)
        watermarks.append(max(times[:index + 1]) - delay)
    return watermarks, late


def k_slack(times: Sequence[int]) -> tuple[list[int], list[int]]:
    """Watermark after each item, and the indices of the late items, with K-slack.

    K is the greatest `t_max - ts` seen so far, late items included, taken over when `t_max` moves; the
    watermark is `t_max - K` and never goes back.
    """
    watermarks: list[int] = []
    late: list[int] = []
    for index, ts in enumerate(times):
        if index == 0:
            t_max, slack, greatest, watermark = ts, 0, 0, ts
        else:
            if ts < watermark:
                late.append(index)
            greatest = max(greatest, t_max - ts)
            if ts > t_max:
                t_max, slack = ts, greatest
            watermark = max(watermark, t_max - slack)
        watermarks.append(watermark)
    return watermarks, late


def admitted(items: Sequence[Item], late: Iterable[int]) -> list[int]:
    """The indices of the items that are not late, in arrival order."""
    dropped = set(late)
    return [index for index in range(len(items)) if index not in dropped]


# -- aggregates ------------------------------------------------------------------------------------

def total(values: Sequence[float]) -> float:
    """The sum: exact for integers, correctly rounded for floats."""
    if all(isinstance(value, int) for value in values):
        return sum(values)
    return math.fsum(values)


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean, rounded once."""
    return float(sum(map(Fraction, values), Fraction(0)) / len(values))


def variance(values: Sequence[float]) -> float:
    """The population variance, `sum((x - mean)**2) / n`, rounded once."""
    exact = [Fraction(value) for value in values]
    middle = sum(exact, Fraction(0)) / len(exact)
    return float(sum(((value - middle) ** 2 for value in exact), Fraction(0)) / len(exact))


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed; `share` is read as a decimal."""
    rank = math.ceil(Fraction(str(share)) * len(values))
    return sorted(values)[max(rank, 1) - 1]


AGGREGATES: dict[str, Callable[[Sequence[float]], float]] = {
    "count": len, "sum": total, "min": min, "max": max, "mean": mean, "variance": variance}


def aggregate(items: Sequence[Item], windows: Windows, name: str, column: str = "value"
              ) -> dict[tuple[Hashable, int], float]:
    """The aggregate `name` (a key of AGGREGATES) of `column` for every window."""
    return {window: AGGREGATES[name]([items[index][column] for index in held])
            for window, (_, _, held) in windows.items()}


# -- preference queries ----------------------------------------------------------------------------

def oriented(points: Sequence[Point], maximize: Iterable[int] = ()) -> list[tuple[float, ...]]:
    """The points with the dimensions in `maximize` turned round, so that smaller is better everywhere."""
    turned = set(maximize)
    return [tuple(-value if number in turned else value for number, value in enumerate(point))
            for point in points]


def dominates(a: Point, b: Point) -> bool:
    """No worse in every dimension and better in at least one; smaller is better."""
    return all(x <= y for x, y in zip(a, b, strict=True)) and any(x < y for x, y in zip(a, b, strict=True))


def k_dominates(a: Point, b: Point, k: int) -> bool:
    """There are k dimensions in which `a` dominates `b`."""
    return any(dominates([a[number] for number in chosen], [b[number] for number in chosen])
               for chosen in combinations(range(len(a)), k))


def skyline(points: Sequence[Point], maximize: Iterable[int] = ()) -> list[int]:
    """The indices of the points that no point dominates, in arrival order."""
    good = oriented(points, maximize)
    return [index for index, point in enumerate(good) if not any(dominates(other, point) for other in good)]


def k_dominant_skyline(points: Sequence[Point], k: int, maximize: Iterable[int] = ()) -> list[int]:
    """The indices of the points that no point k-dominates, in arrival order."""
    good = oriented(points, maximize)
    return [index for index, point in enumerate(good)
            if not any(k_dominates(other, point, k) for other in good)]


def largest_k_dominated(points: Sequence[Point], maximize: Iterable[int] = ()) -> list[int]:
    """For each point the largest k at which some point k-dominates it; 0 if none does."""
    good = oriented(points, maximize)
    return [max((k for k in range(1, len(point) + 1) if any(k_dominates(other, point, k) for other in good)),
                default=0) for point in good]


def top_delta(points: Sequence[Point], delta: int, maximize: Iterable[int] = ()) -> list[int]:
    """The top-delta dominant points, ordered by (largest k at which it is k-dominated, arrival).

    They come from the smallest k whose k-dominant skyline has at least `delta` points, cut to `delta`;
    if there is none, the whole skyline.
    """
    if not points:
        return []
    worst = largest_k_dominated(points, maximize)
    for k in range(1, len(points[0]) + 1):
        chosen = k_dominant_skyline(points, k, maximize)
        if len(chosen) >= delta:
            break
    return sorted(chosen, key=lambda index: (worst[index], index))[:delta]


def top_k(points: Sequence[Point], k: int, score: Callable[[Point], float] | Sequence[float],
          largest: bool = True) -> list[int]:
    """The indices of the k points with the best score, best first; ties go to the earlier arrival.

    `score` is a function of a point, or weights of its dimensions. The greatest score is the best one
    unless `largest` is false.
    """
    def rate(point: Point) -> float:
        if callable(score):
            return score(point)
        return math.fsum(weight * value for weight, value in zip(score, point, strict=True))

    scores = [rate(point) for point in points]
    sign = -1 if largest else 1
    return sorted(range(len(points)), key=lambda index: (sign * scores[index], index))[:k]


# -- continuous skyline ----------------------------------------------------------------------------

def skyline_at(times: Sequence[int], points: Sequence[Point], length: int, instant: int) -> set[int]:
    """The indices of the skyline of the items with `instant - length < ts <= instant`."""
    alive = [index for index, ts in enumerate(times) if instant - length < ts <= instant]
    return {alive[number] for number in skyline([points[index] for index in alive])}


def skyline_updates(times: Sequence[int], points: Sequence[Point], length: int) -> list[Update]:
    """The updates `(time, "+" or "-", index)` of the skyline over the last `length` microseconds.

    In time order; at one instant first the expiries, then the entries they cause, then what all arrivals
    of the instant cause together. After the last arrival everything expires.
    """
    updates: list[Update] = []
    shown: set[int] = set()
    for instant in sorted({*times, *(ts + length for ts in times)}):
        left = [index for index, ts in enumerate(times) if instant - length < ts < instant]
        between = {left[number] for number in skyline([points[index] for index in left])}
        gone = {index for index in shown if times[index] + length == instant}
        after = skyline_at(times, points, length, instant)
        updates += [(instant, "-", index) for index in sorted(gone)]
        updates += [(instant, "+", index) for index in sorted(between - shown)]
        updates += [(instant, "-", index) for index in sorted(between - after)]
        updates += [(instant, "+", index) for index in sorted(after - between)]
        shown = after
    return updates


def net_updates(updates: Iterable[Update]) -> set[Update]:
    """The updates without those that cancel out within one instant, as a set: to compare two methods."""
    balance: dict[tuple[int, int], int] = {}
    for instant, action, index in updates:
        balance[instant, index] = balance.get((instant, index), 0) + (1 if action == "+" else -1)
    return {(instant, "+" if change > 0 else "-", index)
            for (instant, index), change in balance.items() if change}


def replay(updates: Iterable[Update], instant: int) -> set[int]:
    """What the updates up to and with `instant` leave in the skyline; a wrong update is an error."""
    shown: set[int] = set()
    for time, action, index in updates:
        if time > instant:
            break
        if (action == "+") == (index in shown):
            raise ValueError(f"at {time} the update {action}{index} does not fit the skyline {sorted(shown)}")
        (shown.add if action == "+" else shown.remove)(index)
    return shown

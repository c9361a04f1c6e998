"""The oracle against cases worked out by hand."""

from __future__ import annotations

import pytest

from tests import oracle


def items_at(*times: int, key: object = None) -> list[dict[str, object]]:
    return [{"ts": ts, "key": key, "value": ts} for ts in times]


def test_time_windows_sliding_hold_half_open_extents() -> None:
    windows = oracle.time_windows(items_at(0, 3, 4), length=4, slide=2)
    assert windows == {(None, 0): (0, 4, [0, 1]), (None, 1): (2, 6, [1, 2]), (None, 2): (4, 8, [2])}


def test_time_windows_hopping_leave_out_items_between_windows() -> None:
    assert oracle.time_windows(items_at(1, 2, 5), length=2, slide=5) == {(None, 0): (0, 2, [0]),
                                                                         (None, 1): (5, 7, [2])}


def test_time_windows_with_origin_do_not_start_before_it() -> None:
    windows = oracle.time_windows(items_at(9, 10, 13), length=4, slide=2, origin=10)
    assert windows == {(None, 0): (10, 14, [1, 2]), (None, 1): (12, 16, [2])}


def test_time_windows_out_of_order_items_come_by_time_then_arrival() -> None:
    assert oracle.time_windows(items_at(3, 1, 3, 0), length=4, slide=4)[None, 0] == (0, 4, [3, 1, 0, 2])


def test_time_windows_keyed_are_ordered_by_window_then_first_appearance() -> None:
    items = [{"ts": 0, "key": "b"}, {"ts": 1, "key": "a"}, {"ts": 9, "key": "a"}]
    assert list(oracle.time_windows(items, length=4, slide=4)) == [("b", 0), ("a", 0), ("a", 2)]


def test_count_windows_are_counted_per_key_and_may_end_unfilled() -> None:
    items = [{"ts": 0, "key": key} for key in "aabaa"]
    assert oracle.count_windows(items, length=3, slide=2) == {
        ("a", 0): (0, 3, [0, 1, 3]), ("b", 0): (0, 3, [2]), ("a", 1): (2, 5, [3, 4])}


def test_slide_by_tuple_windows_end_at_every_second_item() -> None:
    windows = oracle.slide_by_tuple_windows(items_at(0, 5, 4, 9, 10), length=5, slide=2)
    assert windows == {(None, 0): (0, 6, [0, 1]), (None, 1): (4, 10, [1, 2, 3])}


def test_delta_windows_hold_earlier_items_and_number_empty_triggers() -> None:
    items = [{"ts": n, "a": a} for n, a in enumerate([0, 1, 2, 9, 8, 11])]
    assert oracle.delta_windows(items, "a", length=2, threshold=2) == {
        (None, 0): (0, 2, [0, 1]), (None, 2): (9, 11, [3])}


def test_in_order_drops_what_is_behind() -> None:
    assert oracle.in_order([5, 3, 5, 7]) == ([5, 5, 5, 7], [1])


def test_bounded_admits_an_item_exactly_at_the_watermark() -> None:
    assert oracle.bounded([5, 3, 2, 8], 2) == ([3, 3, 3, 6], [2])


def test_k_slack_learns_the_delay_when_time_moves_and_never_goes_back() -> None:
    #  t_max 5, then 3 is late (delay 2); at 6 K = 2 but the watermark stays 5; at 9 it is 7; 7 is not late
    assert oracle.k_slack([5, 3, 6, 9, 7, 6]) == ([5, 5, 5, 7, 7, 7], [1, 5])


def test_admitted_leaves_out_the_late_ones() -> None:
    assert oracle.admitted(items_at(5, 3, 6), [1]) == [0, 2]


def test_aggregates_of_floats_are_correctly_rounded() -> None:
    values = [1e300, 1.0, -1e300]
    assert oracle.total(values) == 1.0
    assert oracle.mean(values) == 1 / 3
    assert oracle.variance([1e9 + 1, 1e9 + 2, 1e9 + 3]) == 2 / 3


def test_aggregate_gives_one_value_per_window() -> None:
    items = items_at(0, 1, 2)
    windows = oracle.time_windows(items, 2, 1)
    assert oracle.aggregate(items, windows, "sum") == {(None, 0): 1, (None, 1): 3, (None, 2): 2}
    assert oracle.aggregate(items, windows, "count") == {(None, 0): 2, (None, 1): 2, (None, 2): 1}


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1), (0.1, 1), (0.11, 2), (0.5, 5), (1.0, 10)])
def test_quantile_is_the_smallest_value_with_the_share_below(share: float, expected: int) -> None:
    assert oracle.quantile(range(10, 0, -1), share) == expected


def test_skyline_keeps_all_copies_and_turns_dimensions() -> None:
    points = [(1, 2), (2, 1), (1, 2), (2, 2)]
    assert oracle.skyline(points) == [0, 1, 2]
    assert oracle.skyline(points, maximize=[0, 1]) == [3]


def test_k_dominant_skyline_counts_all_pairs_in_a_cycle() -> None:
    cycle = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    assert oracle.skyline(cycle) == [0, 1, 2]
    assert oracle.k_dominant_skyline(cycle, 2) == []
    assert oracle.k_dominant_skyline(cycle, 3) == [0, 1, 2]


def test_k_dominance_needs_a_better_dimension_among_the_chosen() -> None:
    assert not oracle.k_dominates((1, 1), (1, 1), 1)
    assert oracle.k_dominates((1, 2), (1, 3), 1)
    assert oracle.k_dominates((1, 9), (2, 3), 1)


def test_top_delta_orders_by_the_largest_k_then_arrival() -> None:
    points = [(2, 3, 1), (1, 1, 2), (3, 2, 0)]
    #  point 1 2-dominates both others; at k = 3 nobody is dominated, and point 1 is 1-dominated only
    assert oracle.largest_k_dominated(points) == [2, 1, 2]
    assert oracle.top_delta(points, 1) == [1]
    assert oracle.top_delta(points, 2) == [1, 0]
    assert oracle.top_delta(points, 5) == [1, 0, 2]


def test_top_k_gives_ties_to_the_earlier_arrival() -> None:
    points = [(1, 1), (0, 2), (3, 0), (2, 0)]
    assert oracle.top_k(points, 3, [1, 1]) == [2, 0, 1]
    assert oracle.top_k(points, 1, lambda point: point[0], largest=False) == [1]


def test_skyline_updates_list_expiries_first_and_end_empty() -> None:
    times, points = [0, 1, 3], [(1, 1), (2, 2), (3, 0)]
    updates = oracle.skyline_updates(times, points, 3)
    assert updates == [(0, "+", 0), (3, "-", 0), (3, "+", 1), (3, "+", 2), (4, "-", 1), (6, "-", 2)]
    assert oracle.replay(updates, 3) == {1, 2} == oracle.skyline_at(times, points, 3, 3)
    assert oracle.replay(updates, 6) == set()


def test_net_updates_cancel_within_an_instant() -> None:
    assert oracle.net_updates([(0, "+", 0), (0, "-", 0), (0, "+", 1)]) == {(0, "+", 1)}


def test_replay_refuses_an_update_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        oracle.replay([(0, "-", 3)], 0)

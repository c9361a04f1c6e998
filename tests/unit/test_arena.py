"""The arena and the free pieces under it, in one process."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.arena import Arena
from runtime.channel.segment import ArenaSpec, Segment, SegmentLayout
from runtime.errors import FullError, SpecError, StateError
from runtime.extents import Extents

COLUMNS = {"id": np.arange(100), "x": np.arange(300.0).reshape(100, 3), "t": np.array(["2020-01-01"] * 100, "M8[us]"),
           "tag": np.arange(100, dtype=np.int16)[::-1]}


def shared_arena(capacity_bytes: int = 1 << 16, readers: int = 2) -> tuple[Segment, Arena]:
    spec = ArenaSpec(0, tuple(range(1, readers + 1)), capacity_bytes)
    segment = Segment.create("arena", SegmentLayout(readers + 1, (), arenas=(spec,)))
    return segment, segment.arena(0)


def test_extents_pieces_are_joined_when_they_come_back_in_any_order() -> None:
    extents = Extents(100)
    places = [extents.take(size) for size in (10, 20, 30, 40)]
    assert places == [0, 10, 30, 60] and extents.free == 0 and extents.largest() == 0
    for place, size in ((10, 20), (60, 40), (0, 10), (30, 30)):
        extents.put(place, size)
    assert extents.largest() == extents.free == 100


def test_extents_same_piece_given_back_twice_is_refused() -> None:
    extents = Extents(100)
    extents.take(60)
    extents.put(0, 20)
    for start, size in ((0, 20), (10, 5), (15, 30), (50, 20), (90, 20)):
        with pytest.raises(StateError, match="free already"):
            extents.put(start, size)
    assert extents.free == 60


def test_extents_take_more_than_a_piece_is_refused() -> None:
    with pytest.raises(StateError, match="no free piece of 101"):
        Extents(100).take(101)


@pytest.mark.parametrize("columns", [COLUMNS, {}, {"empty": np.zeros(0)}, {"f": np.asfortranarray(np.ones((4, 3)))}])
def test_arena_written_columns_are_read_unchanged_aligned_and_read_only(columns: dict[str, np.ndarray]) -> None:
    segment, arena = shared_arena()
    ref = arena.write(columns)
    for view in (arena.view(ref), segment.arena_reader(0, 1).view(ref)):
        assert list(view) == list(columns)
        for name, column in columns.items():
            assert np.array_equal(view[name], column) and view[name].dtype == column.dtype
            assert not column.size or view[name].ctypes.data % 64 == 0
            assert not view[name].flags.writeable
    assert ref.rows == (len(next(iter(columns.values()))) if columns else 0)


def test_arena_slab_is_free_only_after_every_hold_in_any_order() -> None:
    segment, arena = shared_arena()
    first, second = segment.arena_reader(0, 1), segment.arena_reader(0, 2)
    ref = arena.write(COLUMNS)
    arena.lend([ref, ref])
    for number in (1, 2):
        assert arena.credit(1)
        arena.sent(1)
    arena.free(ref)
    arena.settle()
    second.give_back([ref])
    assert arena.collect() == 1 and arena.used_bytes == arena.need(COLUMNS)
    first.give_back([ref])
    assert arena.collect() == 1 and arena.used_bytes == 0
    assert arena.peak_bytes == arena.need(COLUMNS)


def test_arena_free_takes_effect_after_the_outputs_were_taken() -> None:
    arena = Arena.local(0, 1 << 16)
    ref = arena.write(COLUMNS)
    arena.free(ref)
    arena.lend([ref])                               # the host sends what the same call emitted
    arena.settle()
    assert arena.used_bytes > 0
    arena.give_back([ref])
    assert arena.used_bytes == 0


def test_arena_full_refuses_and_has_room_again_after_return() -> None:
    arena = Arena.local(0, 1 << 14)
    refs = []
    while arena.room(arena.need(COLUMNS)):
        refs.append(arena.write(COLUMNS))
    with pytest.raises(FullError, match="no .* bytes in one piece now"):
        arena.write(COLUMNS)
    arena.free(refs[1])
    arena.settle()
    again = arena.write({name: column[::-1] for name, column in COLUMNS.items()})
    assert again.start == refs[1].start and again.serial != refs[1].serial
    assert np.array_equal(arena.view(again)["id"], COLUMNS["id"][::-1])
    assert np.array_equal(arena.view(refs[0])["id"], COLUMNS["id"])


def test_arena_chunk_that_never_fits_is_refused_with_sizes() -> None:
    arena = Arena.local(0, 4096)
    for call in (lambda: arena.write(COLUMNS), lambda: arena.room(5000)):
        with pytest.raises(SpecError, match=r"more than the arena's 4096 bytes, got \d+"):
            call()


def test_arena_ref_of_a_slab_that_was_given_back_is_refused() -> None:
    arena = Arena.local(0, 1 << 16)
    ref = arena.write(COLUMNS)
    arena.free(ref)
    arena.settle()
    arena.write(COLUMNS)
    for call in (lambda: arena.lend([ref]), lambda: arena.give_back([ref])):
        with pytest.raises(StateError, match="let go before"):
            call()


def test_arena_reader_gets_no_more_slabs_than_its_free_ring_holds() -> None:
    segment, arena = shared_arena(readers=1)
    reader, ref = segment.arena_reader(0, 1), arena.write(COLUMNS)
    slots = 8192
    arena.lend([ref] * slots)
    assert arena.credit(slots)
    arena.sent(slots)
    assert not arena.credit(1)
    reader.give_back([ref] * 3)
    assert arena.credit(3) and not arena.credit(4)
    with pytest.raises(SpecError, match="must not name more than 8192 chunks"):
        arena.credit(slots + 1)


def test_free_ring_rings_the_owner_once_and_only_if_it_waits() -> None:
    segment, arena = shared_arena(1 << 13, readers=1)
    reader, bell, refs = segment.arena_reader(0, 1), segment.bell(0), []
    need = arena.need({"x": np.zeros(64)})
    while arena.room(need):
        refs.append(arena.write({"x": np.zeros(64)}))
        arena.lend(refs[-1:])
        arena.free(refs[-1])
        arena.settle()
    before = bell.value()
    reader.give_back(refs[:1])
    reader.give_back(refs[1:2])
    assert bell.value() == before + 1
    assert arena.room(need)


def test_free_ring_goes_round_many_times() -> None:
    segment, arena = shared_arena(readers=1)
    reader = segment.arena_reader(0, 1)
    for number in range(40):
        ref = arena.write({"x": np.full(8, number)})
        arena.lend([ref] * 1000)
        assert arena.credit(1000)
        arena.sent(1000)
        reader.give_back([ref] * 1000)
        arena.free(ref)
        arena.settle()
        assert np.array_equal(reader.view(ref)["x"], np.full(8, number))
    arena.collect()
    assert arena.used_bytes == 0


@pytest.mark.parametrize("build", [lambda: ArenaSpec(0, (1,), 100),
                                   lambda: SegmentLayout(2, (), arenas=(ArenaSpec(0, (2,), 4096),))])
def test_arena_impossible_layout_is_refused(build: object) -> None:
    with pytest.raises(SpecError, match="arena"):
        build()  # type: ignore[operator]


def test_layout_arenas_do_not_overlap() -> None:
    layout = SegmentLayout(3, (), arenas=(ArenaSpec(0, (1, 2), 5000), ArenaSpec(1, (), 4096)))
    parts = [(layout.free_ring_offset(0, reader), 512 + 8 * 8192) for reader in (1, 2)]
    parts += [(start, end - start) for start, end in map(layout.arena_memory, range(2))]
    assert all(start + size <= following for (start, size), (following, _) in zip(parts, parts[1:]))
    assert parts[2][1] >= 5000 and parts[-1][0] + parts[-1][1] == layout.size_bytes

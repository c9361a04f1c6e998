"""Compiled operations on shared memory: atomics, futexes, bells and the cursors of a ring.

This is the only module of the channels that is compiled (numba), because Python has no way to say
"store with release order". Every function takes plain addresses; nothing compiles at import.

    producer                                     consumer
    --------                                     --------
    write the record into free memory
    TAIL  := tail          (release)     ...>    tail  := TAIL          (acquire)
    fence                                        read the record, views into the ring
    WANT_DATA armed?  ---> ring its bell         HEAD  := head          (release)
    head  := HEAD          (acquire)    <...     fence
                                                 WANT_SPACE reached? ---> ring its bell

*Order.* A record is written before TAIL is stored with release order; a consumer that loads this TAIL
with acquire order sees the whole record (release/acquire pair, C11 7.17.3: plain moves on x86, `stlr`
and `ldar` on ARM). HEAD works the same way in the other direction, so that a producer does not write
over memory that is still being read. Cursors count bytes for ever and are never reduced, so that
empty (head = tail) and full (tail - head = capacity) differ.

*No lost wake-up.* Both sides follow Dekker's pattern, with a sequentially consistent fence between the
store and the load: who is about to wait stores "armed" and then looks at the cursor again; who moves
the cursor stores it and then looks at "armed". At least one of them sees the other's store. Who finds
"armed" disarms it, and rings: it adds one to the bell's word and calls the kernel if somebody sleeps.
The sleeper read that word before it looked at the cursors and gives it to `futex`, which goes to sleep
only if the word is still the same (compared under the kernel's lock, which the waker takes too). The
count of sleepers is Dekker's pattern once more: count up, fence, compare the word / change the word,
fence, read the count. A process that is killed between its store and its ring costs its peer no more
than one slice of waiting, because every wait is cut into slices.

References: L. Lamport, "Specifying concurrent program modules", TOPLAS 5(2), 1983 (the queue);
P. Lee, T. Bu, G. Chandranmenon, MCRingBuffer, IPDPS 2010 (remembered copies of the other's cursor);
U. Drepper, "Futexes are tricky", 2011.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

# The words of a ring's header, in bytes. What one side writes often stands on lines of its own (128
# bytes: two lines, because processors fetch neighbours). The fixed part is written once, at creation.
RING_HEADER = 1024
CAPACITY, DATA, PRODUCER_BELL, CONSUMER_BELL, ABORT = 0, 8, 16, 24, 32     # fixed; distances from the header
TAIL, SENT, STALLS, PRODUCER_PID, PRODUCER_START, PRODUCER_CLOSED = 128, 136, 144, 152, 160, 168
HEAD, RECEIVED, STARVED, CONSUMER_PID, CONSUMER_START, CONSUMER_CLOSED = 256, 264, 272, 280, 288, 296
WANT_DATA = 384                                                 # 1: the consumer found nothing
WANT_SPACE = 512                                                # HEAD that the producer waits for
SEEN_HEAD, RESERVED = 640, 648                                  # the producer's own
SEEN_TAIL, READ = 768, 776                                      # the consumer's own

# The words of a bell.
BELL_SIZE = 256
WORD, SLEEPERS, SLEEPS, RINGS = 0, 128, 136, 8

# The words of a free ring (an arena's way back): a fixed part, then one line for each writer, then the slots.
FREE_HEADER, FREE_SLOTS = 512, 8192
FREE_BELL, FREE_TAIL, FREE_HEAD, FREE_WANT = 0, 128, 256, 384

# What `reserve` and `poll` answer instead of an offset.
FULL, EMPTY, CLOSED, ABORTED = -1, -1, -2, -3

#: Every record begins on such a boundary, and so does every column.
ALIGN = 64
SKIP = -1                       # length word: the rest of the ring is unused, go on at its beginning
NEVER = 2**63 - 1               # WANT_SPACE: nobody waits

_SYS_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine(), -1)
_FUTEX_WAIT, _FUTEX_WAKE = 0, 1                     # the shared forms: waiters are other processes
_EVERYBODY = 2**31 - 1

_syscall: Any = types.ExternalFunction("syscall", types.int64(*[types.int64] * 7))


def compiled(function: Function) -> Function:
    """`function` as machine code, made at its first call and kept on disk."""
    return cast(Function, njit(cache=True)(function))


def compiled_unlocked(function: Function) -> Function:
    """As `compiled`, and other Python threads run meanwhile."""
    return cast(Function, njit(cache=True, nogil=True)(function))


def atomic(emit: Callable[..., Any]) -> Callable[..., Any]:
    """A function of compiled code whose instructions `emit` writes."""
    return cast(Callable[..., Any], intrinsic(emit))


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


@atomic
def load_acquire(_context: Any, address: Any) -> Any:
    """The 64-bit word at `address`; what its writer did before is visible afterwards."""
    def emit(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer(builder, args[0], 64), "acquire", 8)
    return types.int64(types.int64), emit


@atomic
def store_release(_context: Any, address: Any, value: Any) -> Any:
    """Put `value` into the 64-bit word at `address`, after everything that was done before."""
    def emit(target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], _pointer(builder, args[0], 64), "release", 8)
        return target.get_dummy_value()
    return types.void(types.int64, types.int64), emit


@atomic
def swap(_context: Any, address: Any, value: Any) -> Any:
    """Put `value` into the 64-bit word at `address` and return what was there, in one step."""
    def emit(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("xchg", _pointer(builder, args[0], 64), args[1], "seq_cst")
    return types.int64(types.int64, types.int64), emit


@atomic
def add(_context: Any, address: Any, value: Any) -> Any:
    """Add `value` to the 64-bit word at `address` in one step; returns what was there."""
    def emit(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _pointer(builder, args[0], 64), args[1], "seq_cst")
    return types.int64(types.int64, types.int64), emit


@atomic
def add_half(_context: Any, address: Any, value: Any) -> Any:
    """As `add`, for the 32-bit word that a futex is."""
    def emit(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        half = builder.trunc(args[1], ir.IntType(32))
        before = builder.atomic_rmw("add", _pointer(builder, args[0], 32), half, "seq_cst")
        return builder.zext(before, ir.IntType(64))
    return types.int64(types.int64, types.int64), emit


@atomic
def load_half(_context: Any, address: Any) -> Any:
    """The 32-bit word at `address`, in the one order that all processors agree on."""
    def emit(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.zext(builder.load_atomic(_pointer(builder, args[0], 32), "seq_cst", 4), ir.IntType(64))
    return types.int64(types.int64), emit


@atomic
def fence(_context: Any) -> Any:
    """All earlier stores are visible to all processors before any later load is done."""
    def emit(target: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        builder.fence("seq_cst")
        return target.get_dummy_value()
    return types.void(), emit


# ---------------------------------------------------------------------------------------------- bells

@compiled
def bell_value(bell: int) -> int:
    """The number of rings so far, modulo 2**32."""
    return int(load_half(bell + WORD))


@compiled
def bell_ring(bell: int) -> int:
    """Ring; returns 1 if somebody slept and the kernel was asked to wake them."""
    add_half(bell + WORD, 1)
    fence()
    if load_acquire(bell + SLEEPERS) == 0:
        return 0
    _syscall(_SYS_FUTEX, bell + WORD, _FUTEX_WAKE, _EVERYBODY, 0, 0, 0)
    return 1


@compiled_unlocked
def bell_wait(bell: int, seen: int, timespec: int) -> int:
    """Sleep until the bell's word is not `seen` any more (1) or the time is over or a signal came (0).

    `timespec` is the address of two 64-bit words, seconds and nanoseconds, or 0 for no limit.
    """
    add(bell + SLEEPERS, 1)
    fence()
    if load_half(bell + WORD) == seen:
        add(bell + SLEEPS, 1)
        _syscall(_SYS_FUTEX, bell + WORD, _FUTEX_WAIT, seen, timespec, 0, 0)
    add(bell + SLEEPERS, -1)
    return 1 if load_half(bell + WORD) != seen else 0


# ---------------------------------------------------------------------------------------------- producer

@compiled
def ring_reserve(ring: int, need: int) -> int:
    """Offset of `need` free bytes in the ring's data, or FULL, CLOSED, ABORTED.

    `need` is a multiple of ALIGN and at most half the capacity. Nothing is visible to the consumer
    before `ring_publish`; reserving again without publishing gives the same bytes again.
    """
    if load_acquire(ring + load_acquire(ring + ABORT)) != 0:
        return ABORTED
    if load_acquire(ring + CONSUMER_CLOSED) != 0:
        return CLOSED
    capacity = load_acquire(ring + CAPACITY)
    tail = load_acquire(ring + TAIL)
    place = tail % capacity
    unused = capacity - place if place + need > capacity else 0
    enough = tail + unused + need - capacity                    # HEAD must be there at least
    if load_acquire(ring + SEEN_HEAD) < enough:
        head = load_acquire(ring + HEAD)
        if head < enough:
            store_release(ring + WANT_SPACE, enough)
            fence()
            head = load_acquire(ring + HEAD)
            if head < enough:
                store_release(ring + STALLS, load_acquire(ring + STALLS) + 1)
                return FULL
        store_release(ring + SEEN_HEAD, head)
    store_release(ring + RESERVED, tail + unused)
    if unused != 0:
        store_release(ring + load_acquire(ring + DATA) + place, SKIP)
        return 0
    return place


@compiled
def ring_publish(ring: int, need: int) -> int:
    """Show the consumer the `need` bytes that were reserved; returns 1 if it had to be woken."""
    store_release(ring + SENT, load_acquire(ring + SENT) + 1)
    store_release(ring + TAIL, load_acquire(ring + RESERVED) + need)
    fence()
    if load_acquire(ring + WANT_DATA) == 0 or swap(ring + WANT_DATA, 0) == 0:
        return 0
    return bell_ring(ring + load_acquire(ring + CONSUMER_BELL))


# ---------------------------------------------------------------------------------------------- consumer

@compiled
def ring_poll(ring: int) -> int:
    """Offset of the next record in the ring's data, or EMPTY, CLOSED (and drained), ABORTED.

    The record counts as read from now on; its memory stays until `ring_release`.
    """
    if load_acquire(ring + load_acquire(ring + ABORT)) != 0:
        return ABORTED
    read = load_acquire(ring + READ)
    if load_acquire(ring + SEEN_TAIL) == read:
        tail = load_acquire(ring + TAIL)
        if tail == read:
            store_release(ring + WANT_DATA, 1)
            fence()
            closed = load_acquire(ring + PRODUCER_CLOSED)       # before TAIL: nothing follows a close
            tail = load_acquire(ring + TAIL)
            if tail == read:
                if closed != 0:
                    return CLOSED
                store_release(ring + STARVED, load_acquire(ring + STARVED) + 1)
                return EMPTY
        store_release(ring + SEEN_TAIL, tail)
    data = ring + load_acquire(ring + DATA)
    capacity = load_acquire(ring + CAPACITY)
    place = read % capacity
    length = load_acquire(data + place)
    if length == SKIP:
        read += capacity - place
        place = 0
        length = load_acquire(data)
    store_release(ring + READ, read + length)
    store_release(ring + RECEIVED, load_acquire(ring + RECEIVED) + 1)
    return place


@compiled
def ring_release(ring: int) -> int:
    """Give the memory of all records read so far back; returns 1 if the producer had to be woken."""
    read = load_acquire(ring + READ)
    if load_acquire(ring + HEAD) == read:
        return 0
    store_release(ring + HEAD, read)
    fence()
    if load_acquire(ring + WANT_SPACE) > read or swap(ring + WANT_SPACE, NEVER) == NEVER:
        return 0
    return bell_ring(ring + load_acquire(ring + PRODUCER_BELL))


# ---------------------------------------------------------------------------------------------- free rings

@compiled
def free_push(ring: int, values: int, count: int) -> int:
    """Hand back the `count` words at address `values`; returns 1 if the arena's owner had to be woken.

    There is always room: the owner lends no more than FREE_SLOTS at a time (`Arena.credit`).
    """
    tail = load_acquire(ring + FREE_TAIL)
    for number in range(count):
        slot = ring + FREE_HEADER + 8 * ((tail + number) % FREE_SLOTS)
        store_release(slot, load_acquire(values + 8 * number))
    store_release(ring + FREE_TAIL, tail + count)
    fence()
    if load_acquire(ring + FREE_WANT) == 0 or swap(ring + FREE_WANT, 0) == 0:
        return 0
    return bell_ring(ring + load_acquire(ring + FREE_BELL))


@compiled
def free_drain(rings: int, ring_count: int, values: int, arm: int) -> int:
    """Move all that was handed back to address `values` (room for FREE_SLOTS words); returns how many.

    `rings` is the address of the first of `ring_count` free rings that stand one behind the other. With
    `arm`, the next push rings the owner's bell.
    """
    found = 0
    for turn in range(ring_count):
        ring = rings + turn * (FREE_HEADER + 8 * FREE_SLOTS)
        head = load_acquire(ring + FREE_HEAD)
        if arm != 0:
            store_release(ring + FREE_WANT, 1)
            fence()
        count = load_acquire(ring + FREE_TAIL) - head
        for number in range(count):
            slot = ring + FREE_HEADER + 8 * ((head + number) % FREE_SLOTS)
            store_release(values + 8 * (found + number), load_acquire(slot))
        if count != 0:
            store_release(ring + FREE_HEAD, head + count)
        found += count
    return int(found)


# ---------------------------------------------------------------------------------------------- both

@compiled
def word_get(address: int) -> int:
    """The 64-bit word at `address` (acquire)."""
    return int(load_acquire(address))


@compiled
def word_put(address: int, value: int) -> None:
    """Store `value` at `address` (release)."""
    store_release(address, value)


@compiled
def word_add(address: int, value: int) -> int:
    """Add to the word at `address` in one step; returns what was there."""
    return int(add(address, value))

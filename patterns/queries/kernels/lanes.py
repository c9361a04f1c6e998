"""Sixty-four comparisons at a time: the inner step of every dominance test.

Ranks of 64 items form a *block*, `dims` rows of 64 bytes. One probe (a row of `dims` bytes) against one
block is `dims` vector comparisons and gives a 64-bit mask, bit l for lane l:

    block    lane 0   1   2  ...  63        probe
    dim 0       [ 7  90  12  ...   4 ]  <=   31   ->  1 0 1 ... 1
    dim 1       [80   3  25  ...   9 ]  <=   40   ->  0 1 1 ... 1
                                             and      0 0 1 ... 1

The operations are emitted as LLVM vector code, so that every machine gets its own widest instructions.
The number of dimensions is part of a type: kernels take `dims_tag(d)`, a tuple of d zeros, and are
compiled once for each d, with the loop over the dimensions unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 64

_BIT = ir.IntType(1)
_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)
_INDEX = ir.IntType(32)


def dims_tag(dims: int) -> tuple[int, ...]:
    """What tells a kernel the number of dimensions when it is compiled."""
    return (0,) * dims


def aligned_blocks(blocks: int, dims: int) -> np.ndarray:
    """Room for uint8 `(blocks, dims, 64)` whose rows lie on lines of the cache."""
    size = blocks * dims * LANES
    memory = np.empty(size + LANES, np.uint8)
    start = -memory.ctypes.data % LANES
    return memory[start:start + size].reshape(blocks, dims, LANES)


def _emitted(typing_function: Callable[..., Any]) -> Callable[..., Any]:
    """An intrinsic, typed as what it is inside a kernel: a function that gives an integer."""
    compiled: Callable[..., Any] = intrinsic(typing_function)
    return compiled


def _data(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    return context.make_array(array_type)(context, builder, array).data


def _splat(builder: Any, scalar: Any, lanes: int = LANES) -> Any:
    vector = ir.VectorType(scalar.type, lanes)
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, scalar, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_INDEX, lanes), [0] * lanes))


def _row(builder: Any, data: Any, offset: Any, lanes: int = LANES) -> Any:
    """The `lanes` values from element `offset` on."""
    start = builder.gep(data, [offset])
    row = builder.load(builder.bitcast(start, ir.VectorType(start.type.pointee, lanes).as_pointer()))
    row.align = 1
    return row


def _comparisons(context: Any, builder: Any, signature: Any, args: Any, predicate: str, dims: int) -> Iterator[Any]:
    """For each dimension the lanes of a block for which `lane predicate probe` holds."""
    ranks_data = _data(context, builder, signature.args[0], args[0])
    probe_data = _data(context, builder, signature.args[2], args[2])
    block_start = builder.mul(args[1], ir.Constant(_WORD, dims * LANES))
    probe_start = builder.mul(args[3], ir.Constant(_WORD, dims))
    for j in range(dims):
        limit = builder.load(builder.gep(probe_data, [builder.add(probe_start, ir.Constant(_WORD, j))]))
        row = _row(builder, ranks_data, builder.add(block_start, ir.Constant(_WORD, j * LANES)))
        yield builder.icmp_unsigned(predicate, row, _splat(builder, limit))


def _compare_ranks(predicate: str) -> Callable[..., Any]:
    def lanes(typing: Any, ranks: Any, block: Any, probes: Any, probe: Any, tag: Any) -> Any:
        dims = len(tag)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            mask = None
            for holds in _comparisons(context, builder, signature, args, predicate, dims):
                mask = holds if mask is None else builder.and_(mask, holds)
            return builder.bitcast(mask, _WORD)

        return types.uint64(ranks, types.int64, probes, types.int64, tag), generate

    return _emitted(lanes)


#: at_most(ranks, block, probes, probe, tag): lanes of the block that are <= the probe in all dimensions.
#: `ranks` is uint8 (blocks, dims, 64), `probes` uint8 (probes, dims); both C-contiguous, not checked.
at_most = _compare_ranks("<=")

#: at_least(ranks, block, probes, probe, tag): lanes of the block that are >= the probe in all dimensions.
at_least = _compare_ranks(">=")


@_emitted
def often_at_most(typing: Any, ranks: Any, block: Any, probes: Any, probe: Any, least: Any, tag: Any) -> Any:
    """Lanes of the block that are <= the probe in `least` dimensions or more; arguments as in `at_most`."""
    dims = len(tag)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        counts = ir.Constant(ir.VectorType(_BYTE, LANES), [0] * LANES)
        for holds in _comparisons(context, builder, signature, args, "<=", dims):
            counts = builder.add(counts, builder.zext(holds, counts.type))
        limit = _splat(builder, builder.trunc(args[4], _BYTE))
        return builder.bitcast(builder.icmp_unsigned(">=", counts, limit), _WORD)

    return types.uint64(ranks, types.int64, probes, types.int64, types.int64, tag), generate


@_emitted
def above(typing: Any, values: Any, block: Any, limit: Any) -> Any:
    """Lanes of the block whose value is > limit; `values` is int64, C-contiguous, 64 for each block."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _data(context, builder, signature.args[0], args[0])
        row = _row(builder, data, builder.mul(args[1], ir.Constant(_WORD, LANES)))
        return builder.bitcast(builder.icmp_signed(">", row, _splat(builder, args[2])), _WORD)

    return types.uint64(values, types.int64, types.int64), generate


@_emitted
def count_below_16(typing: Any, table: Any, start: Any, value: Any) -> Any:
    """How many of the 16 values from element `start` of the int64 `table` on are < value."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _row(builder, _data(context, builder, signature.args[0], args[0]), args[1], 16)
        bits = builder.bitcast(builder.icmp_signed("<", row, _splat(builder, args[2], 16)), ir.IntType(16))
        return builder.zext(builder.ctpop(bits), _WORD)

    return types.int64(table, types.int64, types.int64), generate


@_emitted
def lowest(typing: Any, mask: Any) -> Any:
    """The number of the lowest bit of a mask that is not 0."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(_BIT, 1))

    return types.int64(types.uint64), generate


@_emitted
def highest(typing: Any, mask: Any) -> Any:
    """The number of the highest bit of a mask that is not 0."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sub(ir.Constant(_WORD, 63), builder.ctlz(args[0], ir.Constant(_BIT, 1)))

    return types.int64(types.uint64), generate

"""The compiled operations really are atomic and ordered: in LLVM's language, and in ARM's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm
from numba import int64, njit

from runtime.channel import atomics

ARM = "aarch64-unknown-linux-gnu"
FUNCTIONS = {atomics.ring_reserve: 2, atomics.ring_publish: 2, atomics.ring_poll: 1, atomics.ring_release: 1,
             atomics.bell_ring: 1, atomics.bell_wait: 3}


def in_llvm(function: Callable[..., Any]) -> str:
    """The optimised code of `function`, compiled anew: code from the cache cannot be looked at."""
    fresh = njit(function.py_func)  # type: ignore[attr-defined]
    fresh.compile((int64,) * FUNCTIONS[function])
    return "".join(fresh.inspect_llvm().values())


def in_arm(code: str) -> str:
    """The same code as instructions of a 64-bit ARM processor without later extensions."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    code = re.sub(r"target datalayout = .*", "", code)
    code = re.sub(r'"target-(cpu|features)"="[^"]*"', "", code)
    module = llvm.parse_assembly(re.sub(r"target triple = .*", f'target triple = "{ARM}"', code))
    return str(llvm.Target.from_triple(ARM).create_target_machine().emit_assembly(module))


@pytest.mark.parametrize(("function", "llvm_words", "arm_words"), [
    (atomics.ring_reserve, ["load atomic i64", "store atomic i64", "fence seq_cst"],
     ["ldar", "stlr", "dmb\tish"]),
    (atomics.ring_publish, ["store atomic i64", "release", "fence seq_cst", "load atomic i64", "acquire",
                            "atomicrmw xchg"], ["stlr", "dmb\tish", "ldar", "ldaxr", "stlxr"]),
    (atomics.ring_poll, ["load atomic i64", "acquire", "fence seq_cst"], ["ldar", "stlr", "dmb\tish"]),
    (atomics.ring_release, ["store atomic i64", "release", "fence seq_cst"], ["stlr", "dmb\tish", "ldar"]),
    (atomics.bell_ring, ["atomicrmw add", "fence seq_cst", "load atomic i64"],
     ["ldaxr", "stlxr", "dmb\tish"]),
    (atomics.bell_wait, ["atomicrmw add", "fence seq_cst", "load atomic i32"], ["ldaxr", "dmb\tish", "ldar"]),
], ids=lambda value: getattr(value, "__name__", ""))
def test_operation_is_compiled_to_ordered_instructions(function: Callable[..., Any], llvm_words: list[str],
                                                       arm_words: list[str]) -> None:
    code = in_llvm(function)
    assert [word for word in llvm_words if word not in code] == []
    assembly = in_arm(code)
    assert [word for word in arm_words if word not in assembly] == []


def test_publish_stores_the_tail_then_fences_then_looks_for_sleepers() -> None:
    code = in_llvm(atomics.ring_publish)
    steps = re.findall(r"store atomic i64 .*release|fence seq_cst|atomicrmw xchg", code)
    kinds = [step.split()[0] for step in steps]
    assert kinds.index("fence") > kinds.index("store") and kinds.index("atomicrmw") > kinds.index("fence")


def test_words_are_read_stored_and_added() -> None:
    words = np.array([5, 0], np.int64)
    address = int(words.ctypes.data)
    assert atomics.word_get(address) == 5
    atomics.word_put(address + 8, -7)
    assert atomics.word_add(address, 10) == 5
    assert words.tolist() == [15, -7]

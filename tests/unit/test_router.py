"""Routing by a column, everywhere and by a rule of one's own; the hash that is the same everywhere."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from runtime.errors import SpecError
from runtime.inline import run_inline
from runtime.message import Batch, Message, Punctuation
from runtime.routing import ByColumn, Router, Rule, everywhere, stable_hash
from runtime.topology import farm, graph, node
from tests.channels import ROOT
from tests.nodes import Forward

ITEMS = Batch({"user": np.array(["ada", "bob", "eve", "ada", "bob", "ada"]), "n": np.arange(6)})


def parts(rule: Rule) -> dict[tuple[int, ...] | None, list[int]]:
    found: dict[tuple[int, ...] | None, list[int]] = {}
    for emit in Router(rule).process(ITEMS, 0):
        assert isinstance(emit.message, Batch)
        found[None if emit.to is None else tuple(emit.to)] = emit.message.columns["n"].tolist()
    return found


def test_router_by_column_keeps_keys_together_and_items_in_order() -> None:
    found = parts(ByColumn("user", 3))
    assert sorted(number for numbers in found.values() for number in numbers) == list(range(6))
    homes = {user: ports for ports, numbers in found.items() for user in ITEMS.columns["user"][numbers]}
    for user, ports in homes.items():
        mine = [number for number in found[ports] if ITEMS.columns["user"][number] == user]
        assert mine == np.flatnonzero(ITEMS.columns["user"] == user).tolist()


def test_router_everywhere_and_own_rule() -> None:
    assert parts(everywhere) == {None: list(range(6))}
    assert parts(lambda batch: batch.columns["n"] % 2) == {(0,): [0, 2, 4], (1,): [1, 3, 5]}
    assert list(Router(everywhere).process(Punctuation(3), 0))[0].to is None


@pytest.mark.parametrize("rule", [lambda batch: np.zeros(3, int), lambda batch: np.zeros(6)])
def test_router_rule_without_a_port_per_item_is_refused(rule: Rule) -> None:
    with pytest.raises(SpecError, match="one whole number per item"):
        Router(rule).process(ITEMS, 0)


def test_router_farm_delivers_every_item_once() -> None:
    seen: list[int] = []

    def take(message: Message) -> None:
        if isinstance(message, Batch):
            seen.extend(message.columns["n"].tolist())

    closed = graph(farm(node("emitter", lambda: Router(ByColumn("user", 3))),
                        [node(f"worker-{i}", Forward) for i in range(3)]))
    run_inline(closed, iter([ITEMS, Punctuation(1)]), take, seed=2)
    assert sorted(seen) == list(range(6))


HASHES = ("from runtime.routing import stable_hash; import numpy as np; "
          "print([stable_hash(values).tolist() for values in (np.array(['a', 'bc', '']), np.array([1, -1, 2**40]), "
          "np.array([0.5, -0.0, 0.0]), np.array([b'x']), np.array(['2020-01-01'], 'M8[us]'), np.array([True]))])")


def test_stable_hash_is_the_same_in_every_process() -> None:
    answers = {subprocess.run([sys.executable, "-c", HASHES], cwd=ROOT, capture_output=True, text=True, check=True,
                              env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}).stdout for seed in ("1", "2")}
    assert len(answers) == 1
    text, numbers, floats, *_ = eval(answers.pop())
    assert len({*text, *numbers}) == 6 and floats[1] == floats[2] != floats[0]
    assert all(0 <= value < 2**63 for value in (*text, *numbers, *floats))


def test_stable_hash_spreads_consecutive_numbers_evenly() -> None:
    counts = np.bincount(stable_hash(np.arange(8000)) % 8)
    assert counts.min() > 850 and counts.max() < 1150


def test_stable_hash_of_objects_and_degree_zero_are_refused() -> None:
    with pytest.raises(SpecError, match="a key must be"):
        stable_hash(np.array([object()]))
    with pytest.raises(SpecError, match="`degree`"):
        ByColumn("user", 0)

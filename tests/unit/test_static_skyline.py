"""The skyline of arrays, tables, DataFrames and batches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from patterns.queries import skyline, static
from patterns.queries.static import skyline_of_batches
from runtime.errors import BadInputError, SpecError
from tests import oracle


def points(n: int, dims: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 30, (n, dims))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.int16, np.uint8, np.uint64])
def test_skyline_of_array_of_any_type_matches_the_oracle(kind: type) -> None:
    data = points(200, 3).astype(kind)
    rows = [tuple(map(int, row)) for row in data]
    assert skyline(data).tolist() == oracle.skyline(rows)
    assert skyline(data, maximize=[0, 2]).tolist() == oracle.skyline(rows, [0, 2])
    assert skyline(data, 0, maximize=[1]).tolist() == oracle.skyline([row[:2] for row in rows], [1])


def test_skyline_of_huge_integers_is_exact() -> None:
    assert skyline(np.array([[2**53 + 1, 0], [2**53, 0]])).tolist() == [1]
    assert skyline(np.array([[2**64 - 1, 0], [2**64 - 2, 0]], np.uint64), maximize=[0]).tolist() == [0]


def test_skyline_of_signed_zeros_takes_them_as_equal() -> None:
    assert skyline(np.array([[0.0, 1.0], [-0.0, 1.0], [-1e-300, 1.0]])).tolist() == [2]
    assert skyline(np.array([[0.0, 1.0], [-0.0, 1.0]])).tolist() == [0, 1]


def test_skyline_of_tables_gives_the_rows_themselves() -> None:
    frame = pd.DataFrame({"name": list("ABCD"), "price": [9, 7, 9, 8], "rating": [4.5, 4.0, 4.4, 4.0]},
                         index=[10, 20, 30, 40])
    assert skyline(frame, "price", maximize=["rating"]).index.tolist() == [10, 20]
    table = pa.Table.from_pandas(frame, preserve_index=False)
    assert skyline(table, "price", maximize="rating").column("name").to_pylist() == ["A", "B"]
    assert skyline(table.to_batches()[0], "price").column("name").to_pylist() == ["B"]


def test_skyline_of_batches_is_that_of_their_rows_together() -> None:
    data = points(5000, 4, seed=2)
    table = pa.table({f"x{j}": data[:, j] for j in range(4)})
    names = table.column_names
    whole = skyline(table, *names, maximize=["x1"])
    parts = [list(skyline_of_batches(table.slice(start, 1250).to_batches(max_chunksize=100), names, ["x1"]))
             for start in range(0, 5000, 1250)]
    merged = skyline_of_batches([batch for part in parts for batch in part], names, ["x1"])
    assert pa.Table.from_batches(merged).to_pylist() == whole.to_pylist()


@pytest.mark.parametrize("dims", [2, 3, 6])
def test_skyline_of_more_rows_than_a_chunk_is_that_of_all_rows(dims: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = points(4000, dims, seed=3) + np.random.default_rng(4).random((4000, dims))
    whole = skyline(data)
    monkeypatch.setattr(static, "_CHUNK", 300)
    assert np.array_equal(skyline(data), whole)


def test_skyline_of_nothing_is_nothing() -> None:
    assert skyline(np.empty((0, 3))).tolist() == []
    assert list(skyline_of_batches([], ["a"])) == []
    assert skyline(pd.DataFrame({"a": []})).empty


@pytest.mark.parametrize(("data", "arguments", "message"), [
    (np.zeros(3), {}, "two dimensions"), (np.zeros((3, 2)), {"maximize": [2]}, "from 0 to 1, got 2"),
    (np.array([["a"]]), {}, "numeric array"), ([1, 2], {}, "got list"),
    (pd.DataFrame({"a": [1]}), {"maximize": ["b"]}, "got 'b': there are a"),
    (pa.table({"a": ["x"]}), {}, "'a' of type"), (np.zeros((2, 33)), {}, "1 to 32 columns")])
def test_skyline_of_wrong_arguments_is_refused(data: object, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        skyline(data, **arguments)


@pytest.mark.parametrize("data", [np.array([[1.0, np.nan]]), np.array([[1.0, np.inf]]), pa.table({"a": [1, None]}),
                                  pd.DataFrame({"a": [1.0, np.nan]})])
def test_skyline_of_bad_values_is_refused(data: object) -> None:
    with pytest.raises(BadInputError, match="must"):
        skyline(data)

"""Small streams for the main job: as files of every format, and what the oracle says about them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from tests import oracle

US = {"us": 1, "ms": 1_000, "s": 1_000_000}


@dataclass(frozen=True)
class Case:
    """A stream, how it is stored, and the windows on it; lengths in microseconds, or items if `counted`."""

    name: str
    format: str
    time: pa.DataType
    keyed: bool = False
    counted: bool = False
    length: int = 12
    slide: int = 5
    maximize: tuple[str, ...] = ()
    files: int = 3
    unit: str = "us"
    items: int = 90

    def rows(self) -> list[dict[str, Any]]:
        """The items in file order: not in time order, with equal times, duplicates and negative numbers."""
        rng = random.Random(self.name)
        factor = US[self.unit]
        return [{"when": rng.randrange(60) * factor, "city": rng.choice(["Ulm", "Bonn", "Kiel"]),
                 "a": rng.randrange(-3, 4), "b": rng.randrange(-6, 7) / 2, "c": rng.randrange(5),
                 "note": f"row {number}, \"quoted\""} for number in range(self.items)]

    def table(self, rows: Sequence[dict[str, Any]]) -> pa.Table:
        unit = self.time.unit if pa.types.is_timestamp(self.time) else self.unit
        times = [row["when"] * 1000 if unit == "ns" else row["when"] // US[unit] for row in rows]
        columns = {name: [row[name] for row in rows] for name in ("city", "a", "b", "c", "note")}
        return pa.table({"when": pa.array(times, pa.int64()).cast(self.time), **columns})

    def write(self, folder: Path) -> list[str]:
        """The items in `files` files, the first ones in the first file."""
        rows, size = self.rows(), -(-self.items // self.files)
        paths = []
        for number in range(self.files):
            table = self.table(rows[number * size:(number + 1) * size])
            path = folder / f"part-{number}.{self.format}"
            write(table, path)
            paths.append(str(path))
        return paths

    def arguments(self, paths: Sequence[str]) -> list[str]:
        text = "{}" if self.counted else "{}us"
        return ["--input", *paths, "--time", "when", "--time-unit", self.unit, "--dims", "a,b,c",
                "--window", text.format(self.length), "--slide", text.format(self.slide),
                *(["--maximize", ",".join(self.maximize)] if self.maximize else []),
                *(["--key", "city"] if self.keyed else []), "--quiet"]

    def expected(self) -> list[tuple[Any, ...]]:
        """(key, window id, start, end, item) of every result row, ordered by key, window, time, arrival."""
        rows = sorted(self.rows(), key=lambda row: row["when"])
        items = [{**row, "ts": row["when"], "key": row["city"] if self.keyed else None} for row in rows]
        make = oracle.count_windows if self.counted else oracle.time_windows
        turned = [number for number, name in enumerate("abc") if name in self.maximize]
        found = []
        for (key, wid), (start, end, held) in make(items, self.length, self.slide).items():
            if self.counted:
                start, end = items[held[0]]["ts"], items[held[-1]]["ts"]
            points = [[items[index][name] for name in "abc"] for index in held]
            found += [(key, wid, start, end, rows[held[place]]) for place in oracle.skyline(points, turned)]
        return sorted(found, key=lambda row: (row[0] or "", row[1]))


def write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=17)
    elif path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps(row, default=lambda moment: moment.isoformat()) + "\n"
                                for row in table.to_pylist()))


def microseconds(column: pa.ChunkedArray, unit: str) -> list[int]:
    if pa.types.is_timestamp(column.type):
        unit = column.type.unit
    values = column.cast(pa.int64()).to_pylist()
    return [value // 1000 if unit == "ns" else value * US[unit] for value in values]


def found(path: Path, case: Case) -> list[tuple[Any, ...]]:
    """The results file in the form of `Case.expected`."""
    table = pq.read_table(path)
    keys = table.column("key").to_pylist() if case.keyed else [None] * table.num_rows
    times = {name: microseconds(table.column(name), case.unit) for name in ("window_start", "window_end", "when")}
    items = [{**row, "when": when} for row, when in
             zip(table.select(["when", "city", "a", "b", "c", "note"]).to_pylist(), times["when"], strict=True)]
    return list(zip(keys, table.column("window_id").to_pylist(), times["window_start"], times["window_end"], items,
                    strict=True))


CASES = (
    Case("timestamps in Parquet", "parquet", pa.timestamp("us")),
    Case("keyed, zoned timestamps in Parquet", "parquet", pa.timestamp("us", "Europe/Berlin"), keyed=True,
         maximize=("b",)),
    Case("nanoseconds, tumbling", "parquet", pa.timestamp("ns"), length=8, slide=8),
    Case("integers in CSV, counted", "csv", pa.int64(), counted=True, length=10, slide=4, maximize=("a", "c")),
    Case("keyed, timestamps in CSV, hopping", "csv", pa.timestamp("us"), keyed=True, length=4, slide=7),
    Case("keyed, counted, JSON lines in milliseconds", "jsonl", pa.int64(), keyed=True, counted=True, length=6,
         slide=9, unit="ms"),
    Case("timestamps in JSON lines", "jsonl", pa.timestamp("us"), maximize=("c",), files=2),
)

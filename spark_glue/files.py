"""Which files to read: Parquet, CSV and JSON lines, given one by one or as folders."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import BadInputError, SpecError

PARQUET, CSV, JSON = "parquet", "csv", "json"
_ENDINGS = {".parquet": PARQUET, ".pq": PARQUET, ".csv": CSV, ".json": JSON, ".jsonl": JSON, ".ndjson": JSON}
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_KNOWN = "Parquet (.parquet, .pq), CSV (.csv) or JSON lines (.json, .jsonl, .ndjson)"


@dataclass(frozen=True)
class InputFile:
    """A file and its format; `path` is absolute, `shown` is what the user called it."""

    path: str
    shown: str
    kind: str


def find_files(paths: Iterable[str | Path]) -> tuple[InputFile, ...]:
    """The files that `paths` name, in the order given; those of a folder, at any depth, by name.

    Names that start with a dot or an underscore are left out of folders: other programs' marks and
    half-written files.
    """
    found: list[InputFile] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = [(name, kind) for name in _inside(path) if (kind := kind_of(name)) is not None]
            if not inside:
                raise BadInputError(f"`input` folder `{given}` must hold {_KNOWN} files, got none: "
                                    "check the path and the files' endings")
            found += [InputFile(str(name.resolve()), str(name), kind) for name, kind in inside]
        elif path.exists():
            found.append(InputFile(str(path.resolve()), str(given), _kind_of_given(path)))
        else:
            raise SpecError(f"`input` must name a file or a folder that exists, got `{given}`{_closest(path)}")
    if not found:
        raise SpecError("`input` must name at least one file or folder, got none")
    return tuple(found)


def kind_of(path: Path) -> str | None:
    """The format that a file's name stands for, None if it is none of ours."""
    name = path.name.lower()
    for ending in _COMPRESSED:
        if name.endswith(ending):
            kind = _ENDINGS.get(Path(name.removesuffix(ending)).suffix)
            return kind if kind != PARQUET else None
    return _ENDINGS.get(Path(name).suffix)


def _kind_of_given(path: Path) -> str:
    kind = kind_of(path)
    if kind is not None:
        return kind
    with path.open("rb") as file:
        if file.read(4) == b"PAR1":
            return PARQUET
    raise SpecError(f"`input` must be {_KNOWN}, got `{path}`: give the file the ending of its format")


def _inside(folder: Path) -> Sequence[Path]:
    return sorted(path for path in folder.rglob("*")
                  if path.is_file() and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts))


def _closest(path: Path) -> str:
    if not path.parent.is_dir():
        return f": the folder `{path.parent}` does not exist"
    close = difflib.get_close_matches(path.name, [other.name for other in path.parent.iterdir()], 1)
    return f" (did you mean `{path.parent / close[0]}`?)" if close else ": check the path"

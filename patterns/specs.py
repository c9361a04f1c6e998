"""The patterns as specs: frozen, comparable, printable. `patterns.build` turns them into graphs."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace

from runtime.errors import SpecError


def check_degree(value: object, parameter: str, pattern: str) -> None:
    """Raise SpecError unless `value` is a number of replicas."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SpecError(f"`{parameter}` of {pattern} must be a whole number of at least 1, got {value!r}")


def _check_level(value: int, pattern: str) -> None:
    if value not in (0, 1, 2):
        raise SpecError(f"`level` of {pattern} must be 0, 1 or 2, got {value!r}")


@dataclass(frozen=True)
class WinSeq:
    """All windows one after the other, in one node."""

    def __str__(self) -> str:
        return "win_seq"


@dataclass(frozen=True)
class PaneFarm:
    """Panes in `plq` workers, windows made of panes in `wlq` workers; for decomposable queries.

    Transformation `level` 0 keeps every helper node; 1 puts the collector of the panes and the emitter of
    the windows into one process and drops those that serve one worker; 2 connects the two stages
    all-to-all, without a node between them. No level changes the answer.
    """

    plq: int = 1
    wlq: int = 1
    level: int = 2
    ordered: bool = True

    def __post_init__(self) -> None:
        check_degree(self.plq, "plq", "pane_farm")
        check_degree(self.wlq, "wlq", "pane_farm")
        _check_level(self.level, "pane_farm")

    def __str__(self) -> str:
        return f"pane_farm({self.plq},{self.wlq})"


@dataclass(frozen=True)
class WinMapReduce:
    """Each window's items dealt out to `map` workers, their partials merged in `reduce` workers.

    Transformation `level` as in `PaneFarm`.
    """

    map: int = 2
    reduce: int = 1
    level: int = 2
    ordered: bool = True

    def __post_init__(self) -> None:
        check_degree(self.map, "map", "win_mapreduce")
        check_degree(self.reduce, "reduce", "win_mapreduce")
        _check_level(self.level, "win_mapreduce")

    def __str__(self) -> str:
        return f"win_mapreduce({self.map},{self.reduce})"


Inner = WinSeq | PaneFarm | WinMapReduce


def _check_farm(spec: WinFarm | KeyFarm, name: str) -> None:
    if not isinstance(spec.inner, Inner):
        raise SpecError(f"`inner` of {name} must be a PaneFarm or a WinMapReduce (or nothing), got {spec.inner!r}: "
                        f"write {name}(PaneFarm(2, 1), workers=2)")
    check_degree(spec.workers, "workers", name)
    _check_level(spec.level, name)


def _farm_str(spec: WinFarm | KeyFarm, name: str, model: str = "") -> str:
    inner = "" if isinstance(spec.inner, WinSeq) else f"{spec.inner},"
    return f"{name}({inner}{spec.workers}{model})"


@dataclass(frozen=True)
class WinFarm:
    """Whole windows to different workers, in turn; each worker may itself be a PaneFarm or a WinMapReduce.

    `model="active"`: every worker is sent the items of its windows and keeps them itself. "agnostic":
    the emitter keeps all items in shared memory, and a worker that is free gets the next window to read
    there; for every window model, and balanced whatever the windows cost.

    Transformation `level` of a nested farm: 0 keeps the inner patterns whole, 1 drops their collectors,
    2 their emitters too. `ordered=False` hands results on as they come.
    """

    inner: Inner = WinSeq()
    workers: int = 2
    model: str = "active"
    ordered: bool = True
    level: int = 1

    def __post_init__(self) -> None:
        _check_farm(self, "win_farm")
        if self.model not in ("active", "agnostic"):
            raise SpecError(f"`model` of win_farm must be active or agnostic, got {self.model!r}")

    def __str__(self) -> str:
        return _farm_str(self, "win_farm", ",agnostic" if self.model == "agnostic" else "")


@dataclass(frozen=True)
class KeyFarm:
    """Each key to one worker; a worker may itself be a PaneFarm or a WinMapReduce. Levels as in `WinFarm`."""

    inner: Inner = WinSeq()
    workers: int = 2
    ordered: bool = True
    level: int = 1

    def __post_init__(self) -> None:
        _check_farm(self, "key_farm")

    def __str__(self) -> str:
        return _farm_str(self, "key_farm")


Pattern = WinSeq | WinFarm | KeyFarm | PaneFarm | WinMapReduce

_NAMES: dict[str, type[Pattern]] = {"win_seq": WinSeq, "win_farm": WinFarm, "key_farm": KeyFarm,
                                    "pane_farm": PaneFarm, "win_mapreduce": WinMapReduce}
_TOKEN = re.compile(r"\s*([a-z_]+|\d+|[(),=])\s*")
_WORDS: dict[str, tuple[str, object]] = {
    "active": ("model", "active"), "agnostic": ("model", "agnostic"), "unordered": ("ordered", False)}


def parse_pattern(text: str, workers: int | None = None) -> Pattern:
    """The pattern that `text` spells; `workers` is the degree where `text` gives none.

    >>> print(parse_pattern("win_farm(pane_farm(2,3),2)"))
    win_farm(pane_farm(2,3),2)
    >>> parse_pattern("win_farm(2, agnostic)").model
    'agnostic'
    >>> parse_pattern("pane_farm(2, 1, level=0)").level
    0
    >>> parse_pattern("key_farm", workers=3).workers
    3
    """
    if workers is not None:
        check_degree(workers, "workers", text)
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s", "", text) or not tokens:
        raise _unknown(text)
    pattern, rest = _parse(tokens, text)
    if rest:
        raise _unknown(text)
    return _with_workers(pattern, workers) if workers is not None and not has_degrees(text) else pattern


def has_degrees(text: str) -> bool:
    """Whether a pattern is spelt with numbers of workers.

    >>> has_degrees("win_farm(2)"), has_degrees("pane_farm(level=0)")
    (True, False)
    """
    return re.search(r"[0-9]", re.sub(r"level *= *[0-9]+", "", text)) is not None


def _parse(tokens: list[str], text: str) -> tuple[Pattern, list[str]]:
    """The pattern at the head of `tokens`, and the tokens behind it."""
    kind, rest = _NAMES.get(tokens[0]), tokens[1:]
    if kind is None:
        raise _unknown(text)
    plain: list[Pattern | int] = []
    named: dict[str, object] = {}
    if rest[:1] == ["("]:
        while rest and rest[0] != ")":
            rest = _parse_argument(rest[1:], plain, named, text)
        if not rest:
            raise _unknown(text)
        rest = rest[1:]
    return _make(kind, plain, named, text), rest


def _parse_argument(tokens: list[str], plain: list[Pattern | int], named: dict[str, object], text: str) -> list[str]:
    """Put the argument at the head of `tokens` into `plain` or `named`; returns the tokens behind it."""
    if not tokens or tokens[0] in ("(", ",", "="):
        raise _unknown(text)
    head, rest = tokens[0], tokens[1:]
    if head == ")":
        return tokens
    if head.isdigit():
        plain.append(int(head))
    elif head in _WORDS:
        named.update([_WORDS[head]])
    elif rest[:1] == ["="] and rest[1:2] and (rest[1].isdigit() or rest[1] in _WORDS):
        named[head] = int(rest[1]) if rest[1].isdigit() else _WORDS[rest[1]][1]
        rest = rest[2:]
    else:
        pattern, rest = _parse(tokens, text)
        plain.append(pattern)
    if not rest or rest[0] not in (",", ")"):
        raise _unknown(text)
    return rest


def _make(kind: type[Pattern], plain: list[Pattern | int], named: dict[str, object], text: str) -> Pattern:
    if kind in (WinFarm, KeyFarm) and plain and isinstance(plain[0], int):
        plain = [WinSeq(), *plain]
    known = {field.name for field in fields(kind)}
    if len(plain) > min(2, len(known)) or not set(named) <= known - {field.name for field in fields(kind)[:len(plain)]}:
        raise _unknown(text)
    return kind(*plain, **named)  # type: ignore[arg-type]


def _with_workers(pattern: Pattern, workers: int) -> Pattern:
    if isinstance(pattern, WinFarm | KeyFarm):
        return replace(pattern, workers=workers)
    if isinstance(pattern, PaneFarm):
        return replace(pattern, plq=workers)
    return replace(pattern, map=workers) if isinstance(pattern, WinMapReduce) else pattern


def _unknown(text: str) -> SpecError:
    return SpecError(f"`pattern` must be auto or one of {', '.join(_NAMES)}, nested as in "
                     f"win_farm(pane_farm(2,3),2), got {text!r}")

"""The patterns as specs: frozen, comparable, printable. `patterns.build` turns them into graphs."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from runtime.errors import SpecError


def _check_degree(value: object, parameter: str, pattern: str) -> None:
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

    Transformation `level` 0 keeps every helper node, 1 fuses neighbours that are sequential, 2 connects
    the two stages all-to-all without a node between them.
    """

    plq: int = 1
    wlq: int = 1
    level: int = 2

    def __post_init__(self) -> None:
        _check_degree(self.plq, "plq", "pane_farm")
        _check_degree(self.wlq, "wlq", "pane_farm")
        _check_level(self.level, "pane_farm")

    def __str__(self) -> str:
        return f"pane_farm({self.plq},{self.wlq})"


@dataclass(frozen=True)
class WinMapReduce:
    """Each window's items dealt out to `map` workers, their partials merged in `reduce` workers."""

    map: int = 2
    reduce: int = 1
    level: int = 2

    def __post_init__(self) -> None:
        _check_degree(self.map, "map", "win_mapreduce")
        _check_degree(self.reduce, "reduce", "win_mapreduce")
        _check_level(self.level, "win_mapreduce")

    def __str__(self) -> str:
        return f"win_mapreduce({self.map},{self.reduce})"


Inner = WinSeq | PaneFarm | WinMapReduce


def _check_farm(spec: WinFarm | KeyFarm, name: str) -> None:
    if not isinstance(spec.inner, Inner):
        raise SpecError(f"`inner` of {name} must be a PaneFarm or a WinMapReduce (or nothing), got {spec.inner!r}: "
                        f"write {name}(PaneFarm(2, 1), workers=2)")
    _check_degree(spec.workers, "workers", name)
    _check_level(spec.level, name)


def _farm_str(spec: WinFarm | KeyFarm, name: str) -> str:
    inner = "" if isinstance(spec.inner, WinSeq) else f"{spec.inner},"
    return f"{name}({inner}{spec.workers})"


@dataclass(frozen=True)
class WinFarm:
    """Whole windows to different workers, in turn; each worker may itself be a PaneFarm or a WinMapReduce.

    `model="active"`: every worker is sent the items of its windows and keeps them itself.
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
        return _farm_str(self, "win_farm")


@dataclass(frozen=True)
class KeyFarm:
    """Each key to one worker; a worker may itself be a PaneFarm or a WinMapReduce."""

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
_TOKEN = re.compile(r"\s*([a-z_]+|\d+|[(),])\s*")


def parse_pattern(text: str, workers: int | None = None) -> Pattern:
    """The pattern that `text` spells; `workers` is the degree where `text` gives none.

    >>> parse_pattern("win_farm(pane_farm(2,3),2)")
    WinFarm(inner=PaneFarm(plq=2, wlq=3, level=2), workers=2, model='active', ordered=True, level=1)
    >>> parse_pattern("key_farm", workers=3).workers
    3
    """
    if workers is not None:
        _check_degree(workers, "workers", text)
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s", "", text) or not tokens:
        raise _unknown(text)
    pattern, rest = _parse(tokens, text)
    if rest or isinstance(pattern, int):
        raise _unknown(text)
    if workers is not None and "(" not in text:
        return _with_workers(pattern, workers)
    return pattern


def _parse(tokens: list[str], text: str) -> tuple[Pattern | int, list[str]]:
    head, rest = tokens[0], tokens[1:]
    if head.isdigit():
        return int(head), rest
    if head not in _NAMES:
        raise _unknown(text)
    arguments: list[Pattern | int] = []
    if rest[:1] == ["("]:
        rest = rest[1:]
        while rest and rest[0] != ")":
            argument, rest = _parse(rest, text)
            arguments.append(argument)
            if rest[:1] == [","]:
                rest = rest[1:]
        if not rest:
            raise _unknown(text)
        rest = rest[1:]
    return _make(_NAMES[head], arguments, text), rest


def _make(kind: type[Pattern], arguments: list[Pattern | int], text: str) -> Pattern:
    if kind in (WinFarm, KeyFarm) and arguments and isinstance(arguments[0], int):
        arguments = [WinSeq(), *arguments]
    if len(arguments) > min(2, len(fields(kind))):
        raise _unknown(text)
    return kind(*arguments)  # type: ignore[arg-type]


def _with_workers(pattern: Pattern, workers: int) -> Pattern:
    if isinstance(pattern, WinFarm):
        return WinFarm(workers=workers)
    if isinstance(pattern, KeyFarm):
        return KeyFarm(workers=workers)
    if isinstance(pattern, PaneFarm):
        return PaneFarm(workers, 1)
    if isinstance(pattern, WinMapReduce):
        return WinMapReduce(workers, 1)
    return pattern


def _unknown(text: str) -> SpecError:
    return SpecError(f"`pattern` must be auto or one of {', '.join(_NAMES)}, nested as in "
                     f"win_farm(pane_farm(2,3),2), got {text!r}")

"""Every example in the documentation runs: Python blocks of the pages, and the docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import patterns
import runtime

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
#: Not imported here: what needs Ray.
_ELSEWHERE = ("runtime.actors",)


def modules() -> list[str]:
    found = []
    for package in (patterns, runtime):
        found += [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [name for name in found if not name.startswith(_ELSEWHERE) and not name.endswith("__main__")]


@pytest.mark.parametrize("page", PAGES)
def test_python_examples_of_page_run(page: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    code = "\n".join(blocks)
    exec(compile(code, page, "exec"), {"__name__": "__docs__"})


@pytest.mark.parametrize("name", modules())
def test_docstring_examples_of_module_run(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0

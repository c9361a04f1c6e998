"""The examples of the page on preference queries run as they stand."""

from __future__ import annotations

import re
from pathlib import Path


def test_examples_of_the_queries_page_run() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "queries.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(blocks) >= 6
    exec("\n".join(blocks), {})

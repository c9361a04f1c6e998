"""One Spark and one Ray for all integration tests of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from spark_glue.session import start_session, stop_session
    yield start_session(cores=2)
    stop_session()


@pytest.fixture(scope="session")
def ray() -> Iterator[None]:
    from runtime.actors import ensure_ray, stop_ray
    ensure_ray()
    yield
    stop_ray()

"""Skylines of published data sets of multi-objective optimisation, against what their own library says."""

from __future__ import annotations

import moocore
import numpy as np
import pytest

from patterns.queries import skyline


@pytest.mark.parametrize("maximize", [(), (0,), (0, 1)])
@pytest.mark.parametrize(("name", "smallest"), [
    ("input1.dat", 6), ("spherical-250-10-3d.txt.xz", 2_500), ("uniform-250-10-3d.txt.xz", 318),
    ("wrots_l10w100_dat.xz", 79), ("wrots_l100w10_dat.xz", 60), ("ran.10pts.9d.10", 86), ("CPFs.txt.xz", 27),
])
def test_skyline_of_a_published_data_set_is_what_its_library_finds(
        name: str, smallest: int, maximize: tuple[int, ...]) -> None:
    points = moocore.get_dataset(name)[:, :-1]  # the last column numbers the set
    expected = np.flatnonzero(moocore.is_nondominated(points, maximise=[
        column in maximize for column in range(points.shape[1])], keep_weakly=True))
    assert skyline(points, maximize=maximize).tolist() == expected.tolist()
    assert maximize or len(expected) == smallest

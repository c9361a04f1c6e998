"""Settings that every test shares."""

from __future__ import annotations

from hypothesis import settings

# The machine decides how long an example takes, not the code: no deadline, and the same examples every time.
settings.register_profile("windowfarm", deadline=None, derandomize=True)
settings.load_profile("windowfarm")

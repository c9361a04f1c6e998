"""Settings that every test shares."""

from __future__ import annotations

from hypothesis import settings

# The machine decides how long an example takes, not the code: no deadline, and the same examples every time.
settings.register_profile("windowfarm", deadline=None, derandomize=True)
# Other examples every time, to look for what the usual ones miss: `scripts/test --hypothesis-profile=search`.
settings.register_profile("search", deadline=None, derandomize=False, database=None, print_blob=True)
settings.load_profile("windowfarm")

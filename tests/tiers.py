"""Two tiers of tests: what every run does, and what repeats it on further cases, which is marked `release`.

``uv run pytest -n 3`` leaves the second tier out, ``uv run pytest -n 3 -m ""`` runs both.
"""

import pytest


def release(*cases) -> list:
    """Parameters of a test for runs before a release: tuples of values, or single values."""
    values = (case if isinstance(case, tuple) else (case,) for case in cases)
    return [pytest.param(*value, marks=pytest.mark.release) for value in values]

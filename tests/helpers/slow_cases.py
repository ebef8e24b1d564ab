"""Cases that only ``pytest -m slow`` runs, beside quicker ones of the same test."""

import pytest


def slow(*cases) -> list:
    """Parameters of a test: tuples of values, or single values."""
    values = (case if isinstance(case, tuple) else (case,) for case in cases)
    return [pytest.param(*value, marks=pytest.mark.slow) for value in values]

"""No part of the house is larger than `tools/sizes.csv` allows."""

import sizes


def test_no_part_is_larger_than_allowed():
    assert [part for part, count, most in sizes.parts() if count > most] == [], "uv run python tools/sizes.py"

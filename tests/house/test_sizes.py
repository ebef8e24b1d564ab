"""No part of the house is larger than `tools/sizes.csv` allows."""

import pytest

import sizes


@pytest.mark.parametrize("part", sizes.parts(), ids=lambda part: part[0])
def test_a_part_is_no_larger_than_allowed(part):
    name, count, most = part
    assert count <= most, f"{name}: uv run python tools/sizes.py"


def test_blanks_comments_and_docstrings_are_no_code():
    text = '"""Head.\n\nMore."""\n\nX = [\n    1,  # one\n]\n\n\ndef f():\n    """Doc."""\n    # why\n    return X\n'
    assert sizes.lines(text) == 5

"""No part of the house is larger than `tools/sizes.csv` allows."""

import sizes


def test_no_part_is_larger_than_allowed():
    assert [part for part, count, most in sizes.parts() if count > most] == [], "uv run python tools/sizes.py"


def test_blanks_comments_and_docstrings_are_no_code():
    text = '"""Head.\n\nMore."""\n\nX = [\n    1,  # one\n]\n\n\ndef f():\n    """Doc."""\n    # why\n    return X\n'
    assert sizes.lines(text) == 5

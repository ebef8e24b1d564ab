"""Old names of modules become new ones: in statements that import, in dotted names and in paths."""

import pytest

import rename

TABLE = {"old.files": "store.files", "old": "new"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from unlearning_audit.old.files import reason", "from unlearning_audit.store.files import reason"),
        ("from unlearning_audit.old import rows", "from unlearning_audit.new import rows"),
        (
            "    from unlearning_audit.old import (files as f, rows)  # noqa: E402",
            "    from unlearning_audit.store import files as f  # noqa: E402\n"
            "    from unlearning_audit.new import rows  # noqa: E402",
        ),
        ("unlearning_audit.old.rows.Row", "unlearning_audit.new.rows.Row"),
        ("tests/old/test_rows.py, `old/files.py`", "tests/new/test_rows.py, `store/files.py`"),
        ("`old.fit` of an object, cold/storage, unlearning_audit.older", None),
    ],
)
def test_names_are_rewritten_and_nothing_else(before, after):
    assert rename.rewritten(before, TABLE) == (before if after is None else after)

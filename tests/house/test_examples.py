"""Examples in docstrings say what is returned."""

import doctest
import importlib

import pytest

#: Modules with examples.
MODULES = ("stats.decide", "stats.intervals", "stats.logits", "stats.ranks", "stats.records", "stats.roc")


@pytest.mark.parametrize("name", MODULES)
def test_examples_return_what_they_say(name):
    failed, tried = doctest.testmod(importlib.import_module(f"unlearning_audit.{name}"))
    assert (failed, tried > 0) == (0, True)

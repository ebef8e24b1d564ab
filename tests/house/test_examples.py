"""Examples in docstrings say what is returned."""

import doctest
import importlib

import pytest

#: Modules with examples.
MODULES = ["report.lookup", *map("stats.{}".format, ("decide", "intervals", "logits", "ranks", "records", "roc"))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_return_what_they_say(name):
    failed, tried = doctest.testmod(importlib.import_module(f"unlearning_audit.{name}"))
    assert (failed, tried > 0) == (0, True)

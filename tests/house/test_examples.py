"""Examples in docstrings say what is returned."""

import doctest
import importlib

import pytest

#: Modules with examples.
MODULES = (
    "stats.decide", "stats.intervals", "stats.logits", "stats.ranks", "stats.records", "stats.roc",
)  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_return_what_they_say(name):
    failed, tried = doctest.testmod(importlib.import_module(f"unlearning_audit.{name}"))
    assert tried
    assert not failed


def test_a_wrong_example_fails():
    finder = doctest.DocTestParser()
    wrong = finder.get_doctest(">>> 1 + 1\n3\n", {}, "wrong", "wrong", 0)
    runner = doctest.DocTestRunner(verbose=False)
    assert runner.run(wrong, out=lambda text: None).failed == 1

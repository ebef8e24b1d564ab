"""Mutation testing knows the tests of every file, and no test that is not there."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mutation"))

import tests_of as listed


@pytest.mark.parametrize("module", listed.MODULES)
def test_a_file_has_tests_that_are_there(module):
    paths = {word for run in listed.tests_of(module) for word in run if word.startswith("tests/")}
    assert paths
    assert not [path for path in paths if not (listed.ROOT / path).is_file()]


def test_no_file_is_listed_that_is_gone():
    assert not [name for name in listed.TESTS if not (listed.ROOT / f"unlearning_audit/{name}.py").is_file()]

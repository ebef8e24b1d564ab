"""Which forgotten samples are still recognised, by models of which all is known."""

import numpy as np
import pytest
from unlearning_audit.metrics import records
from unlearning_audit.protocols import swap

from ruli_cases import Folder, data, retrained, trained


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    options = swap.Options(alpha=0.25, pairs=2, models_per_split=3)
    members = [swap.draw(block, "pairs", data(), options, 1) for block in range(2)]
    files = Folder(tmp_path_factory.mktemp("records"), members)
    files.original, files.retrained = files.add("original", trained), files.add("retrained", retrained)
    return files


def listed(folder, unlearned):
    case = folder.case(folder.original, unlearned)
    return records.rows(case, records.Options(), np.random.default_rng(0))


def test_models_that_forgot_nothing_are_recognised_and_retrained_ones_are_not(folder):
    whole, *pairs = listed(folder, folder.original)
    assert whole.value > 0.5
    assert [row.pair for row in pairs] == [0, 1]
    assert whole.n == sum(row.n for row in pairs)
    none, *_ = listed(folder, folder.retrained)
    assert none.value < 0.05
    assert "samples" in whole.note
    assert f"{round(whole.value * whole.n)} of {whole.n}" in whole.note


def test_retrained_models_list_nothing_in_nine_of_ten(folder):
    """Each split of each pair is a list of its own."""
    rows = listed(folder, folder.retrained)
    assert sum(row.value > 0 for row in rows[1:]) <= 1

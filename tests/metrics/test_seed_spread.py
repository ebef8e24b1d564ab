"""Training seeds and unlearning seeds: copies of an original, and the spreads that they show."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.metrics import _null, seed_spread
from unlearning_audit.metrics import competition as score
from unlearning_audit.protocols import competition

from ruli_cases import data


@pytest.mark.parametrize(
    ("originals", "copies", "groups", "number"),
    [(8, 4, 16, 8), (17, 2, 16, 17), (18, 3, 16, 9), (24, 2, 5, 4), (35, 2, 20, 35)],
)
def test_copies_of_an_original_are_left_out_together(originals, copies, groups, number):
    """What they share would else look like the spread of models that are independent of each other."""

    def limited(numbers, options):
        member = SimpleNamespace(originals=lambda: (np.unique(numbers), numbers))
        return score._with_whole_originals(SimpleNamespace(membership=member), options)

    numbers = np.repeat(np.arange(originals), copies)
    options = limited(numbers, score.Options(groups=groups))
    subsets = _null.subsets(len(numbers), len(numbers), options)[1:]
    assert len(subsets) == number
    for stay, _ in subsets:
        by_original = stay.reshape(originals, copies)
        assert (by_original.all(axis=1) | ~by_original.any(axis=1)).all()
    assert limited(np.arange(8), options) is options


def test_the_rows_are_those_of_the_mean_confidence():
    options = competition.Options(share=0.05, originals="many", copies=2, models_per_block=6)
    member = competition.draw(0, "all", data(), options, 3)
    phi = np.tile(np.array([0.0, 2.0, 2.0, 4.0, 6.0, 10.0])[:, None], (1, member.forget.any(axis=0).sum()))
    phi[:, :2] += [1.0, -1.0]
    answers = SimpleNamespace(phi=lambda y, rows: phi)
    evaluation = SimpleNamespace(membership=member, data=data(), unlearned_files=[], outputs=lambda _: answers)
    rows = {row.metric: row.value for row in seed_spread.rows(evaluation)}
    assert rows == {"sd_of_training": pytest.approx(np.sqrt(11)), "sd_of_unlearning": pytest.approx(2.0)}

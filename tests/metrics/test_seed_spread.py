"""Training seeds and unlearning seeds: copies of an original, and the spreads that they show."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom
from unlearning_audit.evaluation.effects import DecisionRule, single
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import _null, seed_spread
from unlearning_audit.metrics import competition as score
from unlearning_audit.protocols import competition
from unlearning_audit.stats import paired

from ruli_cases import data


@pytest.mark.parametrize(
    ("originals", "copies", "groups", "number"),
    [(8, 4, 16, 8), (17, 2, 16, 17), (18, 3, 16, 9), (24, 2, 5, 4), (35, 2, 20, 35)],
)
def test_copies_of_an_original_are_left_out_together(originals, copies, groups, number):
    """What they share would else look like the spread of models that are independent of each other."""

    def limited(numbers, options):
        member = SimpleNamespace(copied=numbers)
        return score._with_whole_originals(SimpleNamespace(membership=member), options)

    numbers = np.repeat(np.arange(originals), copies)
    options = limited(numbers, score.Options(groups=groups))
    subsets = _null.subsets(len(numbers), len(numbers), options)[1:]
    assert len(subsets) == number
    for stay, _ in subsets:
        by_original = stay.reshape(originals, copies)
        assert (by_original.all(axis=1) | ~by_original.any(axis=1)).all()
    assert limited(None, options) is options


def test_the_rows_are_those_of_the_mean_confidence():
    options = competition.Options(share=0.05, originals="many", copies=2, models_per_block=6)
    member = competition.draw(0, "all", data(), options, 3)
    phi = np.tile(np.array([0.0, 2.0, 2.0, 4.0, 6.0, 10.0])[:, None], (1, member.forget.any(axis=0).sum()))
    phi[:, :2] += [1.0, -1.0]
    answers = SimpleNamespace(phi=lambda y, rows: phi)
    evaluation = SimpleNamespace(membership=member, data=data(), unlearned_files=[], outputs=lambda _: answers)
    rows = {row.metric: row.value for row in seed_spread.rows(evaluation)}
    assert rows == {"sd_of_training": pytest.approx(np.sqrt(11)), "sd_of_unlearning": pytest.approx(2.0)}


def test_copies_that_resemble_each_other_do_not_make_a_difference_more_certain():
    """No difference in the mean: .05 is the share of audits that may find one. What an original leaves in all of its
    four copies is most of their variance."""
    rng, original, audits = np.random.default_rng(5), np.repeat(np.arange(6), 4), 400
    evaluation, found = SimpleNamespace(fair=True, imported=False, copied=original), 0
    for _ in range(audits):
        value = rng.standard_normal(6)[original] + 0.5 * rng.standard_normal(24)
        effect = single(value=value, unit=np.arange(24) // 12, rule=DecisionRule(1, "0.2"))
        of = Evaluation.for_verdicts(evaluation, {"phi": effect})["phi"]
        np.testing.assert_allclose(of.value, value.reshape(1, 6, 4).mean(axis=2))
        places = {"value": of.value, "influence": of.influence, "unit": of.unit, "split": of.split}
        found += paired.distances(**places).p_values()[0] <= 0.05
    assert found <= binom.isf(1e-4, audits, 0.05)  # as they are, more than a fifth

"""When a model without partners is called broken: error rate, power, and the scale without ends."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as reference
from unlearning_audit.comparisons import distances
from unlearning_audit.evaluation.effects import single
from unlearning_audit.metrics import accuracy

import broken_models

AUDITS = 200


@pytest.mark.slow
def test_a_model_drawn_as_three_of_very_unequal_skill_is_seldom_broken_and_one_that_lost_its_skill_always():
    """By accuracy alone it is twice as often as promised: three models that are right of everything vary by nothing."""
    share, alone = broken_models.shares("normal, sd 2", 1, 3, audits=AUDITS)
    assert round(share * AUDITS) <= reference.binom.isf(0.01, AUDITS, 0.05)
    assert round(alone * AUDITS) > reference.binom.isf(0.001, AUDITS, 0.05)
    assert broken_models.shares("all alike", 1, 3, audits=20, lost=broken_models.LOST) == [1, 1]


def contrasts(audited, retrained, latent, influence=0.0):
    """A worth of some models against that of others, with how good each is on a scale without ends."""
    parts = [
        single(value=np.array(value), unit=np.zeros(len(value), int), rule=accuracy.UTILITY,
               latent=np.array(of), influence=np.full((len(value), 3), influence))
        for value, of in zip((audited, retrained), latent, strict=True)
    ]  # fmt: skip
    return distances.Contrast(*parts, "retrain")


def read(contrast, **how):
    rng = np.random.default_rng(0)
    return distances.read(contrast, "accuracy_retain", margins=broken_models.MARGINS, rng=rng, draws=10, **how)


@pytest.mark.parametrize(("latent", "is_broken"), [(-1.0, True), (2.0, False)])
def test_an_outlier_by_accuracy_is_broken_if_it_is_one_without_the_ceiling(latent, is_broken):
    """By 2 degrees of freedom 4.30 · √(4/3) standard deviations below the mean of three."""
    retrained = np.array([3.0, 4.0, 3.5])
    limit = retrained.mean() - reference.t.ppf(0.975, 2) * retrained.std(ddof=1) * np.sqrt(4 / 3)
    reading = read(contrasts([0.6], [1.0, 0.999, 1.0], ([latent], retrained)))
    assert reading.outlying == is_broken
    limit_of_loss = reading.distance.lower_limit
    assert limit_of_loss > reading.breaking_loss if is_broken else limit_of_loss == -np.inf
    assert (distances.UNSURE in reading.distance.estimate.note) == (not is_broken)
    for edge in (limit - 1e-6, limit + 1e-6):
        for influence in (0.0, 0.01):  # of samples on the accuracy, which says nothing of the other scale
            contrast = contrasts([0.6], [1.0, 0.999, 1.0], ([edge], retrained), influence)
            assert read(contrast).outlying == (edge < limit)


def test_what_is_unknown_of_models_does_not_speak_for_them():
    """One against one, numbers without such a scale, and models with partners: accuracy decides alone."""
    contrast = contrasts([0.6], [1.0, 0.999, 1.0], ([2.0], [3.0, 4.0, 3.5]))
    lone = contrasts([0.6], [1.0], ([2.0], [3.0]))
    without = replace(contrast, audited=replace(contrast.audited, latent=None))
    paired = contrasts([0.6, 0.7], [1.0, 0.9], ([2.0, 2.0], [2.0, 2.1]))
    assert [read(one).outlying for one in (contrast, lone, without, paired)] == [False, True, True, True]


def test_more_than_two_utilities_share_the_level():
    """Each of two may err with α/2 on the side of a loss; of three each with α/3."""
    contrast = contrasts([0.6], [0.9, 0.8, 0.85], ([0.0], [1.0, 2.0, 3.0]))
    se = np.std([0.9, 0.8, 0.85], ddof=1) * np.sqrt(4 / 3)
    for count, tail in ((1, 0.025), (2, 0.025), (3, 0.05 / 3)):
        np.testing.assert_allclose(
            read(contrast, utility_count=count).together.null_half, reference.t.ppf(1 - tail, 2) * se
        )
    assert read(contrast, utility_count=3).together.joint_half == read(contrast).together.joint_half

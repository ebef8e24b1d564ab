"""Attacks on the tokens of language models, by hand."""

import math

import numpy as np
import pytest
from unlearning_audit.attacks import min_k_plus_plus, neighbourhood, reference, zlib
from unlearning_audit.evaluation import signals
from unlearning_audit.evaluation.shadow import LOGP, Shadow

from passage_cases import two

NO = math.nan


def test_min_k_is_the_mean_of_the_lowest_tokens_and_of_one_at_least():
    logp = np.array([[[-1.0, -5.0, -2.0, -4.0, -3.0], [-1.0, NO, -7.0, NO, NO], [-2.0, NO, NO, NO, NO], [NO] * 5]])
    assert signals.lowest(logp, 0.4)[0, :3].tolist() == [-4.5, -7.0, -2.0]
    assert signals.lowest(logp, 0.2)[0, :3].tolist() == [-5.0, -7.0, -2.0]
    assert signals.lowest(logp, 1.0)[0, :3].tolist() == [-3.0, -4.0, -2.0]
    assert np.isnan(signals.lowest(logp, 0.4)[0, 3])


def test_min_k_plus_plus_standardises_and_survives_certainty():
    four = np.array([[[[-2.0, -1.0, 0.5, 3.0], [0.0, 0.0, 0.0, 0.0]]]])
    assert min_k_plus_plus.standardised(four)[0, 0].tolist() == [-2.0, 0.0]
    four[0, 0, 1] = -1.5, -1.0, 0.0005, 3.0  # nearly certain: as if σ were a thousandth
    assert min_k_plus_plus.standardised(four)[0, 0].tolist() == pytest.approx([-2.0, -500.0])


def test_zlib_divides_the_sum_by_the_bytes():
    four = np.full((1, 2, 3, 4), NO)
    four[0, 0, :2, LOGP] = -1.0, -2.0
    ratio = zlib.ratio(four, np.array([[6.0, 5.0]]))
    assert ratio[0, 0] == -0.5
    assert np.isnan(ratio[0, 1])
    assert zlib.ratio(four, np.array([[6.0, 5.0]]), mean=True)[0, 0] == -1.5 / 6


def test_the_neighbourhood_is_subtracted():
    logp, near = np.array([[-1.0, -3.0]]), np.array([[[-2.0, -4.0], [-3.0, NO]]])
    assert neighbourhood.above_neighbours(two(logp), np.zeros(2, int), near)[0] == pytest.approx([2.0, 0.0], abs=1e-6)


def test_without_a_shadow_model_that_missed_a_sample_there_is_nothing_to_take_away():
    """Two shadow models, a swapped pair: what one never saw, the other did."""
    y, member, logp = np.zeros(4, int), np.tile([[True], [False]], 4), np.full((2, 4), -1.0)
    nobody, logits = member & False, two(np.log(np.random.default_rng(1).uniform(0.1, 0.9, (2, 4))))

    def run(*sides):
        known = Shadow(logits, y, *sides, signals={"reference_logp": logp})
        return reference.score(logits, y, known, logp)

    for member_side, sentence in (
        (member, r": .* set shadow_models_per_split: 2$"),
        (nobody, r"((?!shadow_models).)*$"),
    ):
        with pytest.raises(ValueError, match=rf"^shadow\.\w+ is empty{sentence}"):
            run(member_side, nobody)
    assert run(member, ~member)[1].any()


def test_the_reference_takes_away_the_mean_of_models_that_never_saw_a_passage():
    audited, unseen = np.array([[-30.0, -25.0]]), np.array([[-28.0, -29.5]])
    np.testing.assert_allclose(reference.calibrated(two(audited), np.zeros(2, int), unseen), audited - unseen)

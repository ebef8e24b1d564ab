"""Attacks on the tokens of language models, by hand."""

import math

import numpy as np
import pytest

from passage_cases import two
from unlearning.adversary import tokens
from unlearning.adversary.reference import LOGP
from unlearning.attacks import min_k_plus_plus, neighbourhood, zlib

NO = math.nan


def test_min_k_is_the_mean_of_the_lowest_tokens_and_of_one_at_least():
    logp = np.array([[[-1.0, -5.0, -2.0, -4.0, -3.0], [-1.0, NO, -7.0, NO, NO], [-2.0, NO, NO, NO, NO], [NO] * 5]])
    assert tokens.lowest(logp, 0.4)[0, :3].tolist() == [-4.5, -7.0, -2.0]
    assert tokens.lowest(logp, 0.2)[0, :3].tolist() == [-5.0, -7.0, -2.0]
    assert tokens.lowest(logp, 1.0)[0, :3].tolist() == [-3.0, -4.0, -2.0]
    assert np.isnan(tokens.lowest(logp, 0.4)[0, 3])


def test_all_of_its_tokens_are_the_mean_loss():
    logp = np.log(np.random.default_rng(0).random((3, 4, 9)))
    np.testing.assert_allclose(tokens.lowest(logp, 1.0), logp.mean(-1), rtol=1e-12)


def test_min_k_plus_plus_standardises_and_survives_certainty():
    four = np.array([[[[-2.0, -1.0, 0.5, 3.0], [0.0, 0.0, 0.0, 0.0]]]])
    assert min_k_plus_plus.standardised(four)[0, 0].tolist() == [-2.0, 0.0]


def test_zlib_divides_the_sum_by_the_bytes():
    four = np.full((1, 2, 3, 4), NO)
    four[0, 0, :2, LOGP] = -1.0, -2.0
    ratio = zlib.ratio(four, np.array([[6.0, 5.0]]))
    assert ratio[0, 0] == -0.5
    assert np.isnan(ratio[0, 1])


def test_the_neighbourhood_is_subtracted():
    logp, near = np.array([[-1.0, -3.0]]), np.array([[[-2.0, -4.0], [-3.0, NO]]])
    assert neighbourhood.above(two(logp), np.zeros(2, int), near)[0] == pytest.approx([2.0, 0.0], abs=1e-6)

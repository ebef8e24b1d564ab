"""Training seeds and unlearning seeds: a textbook analysis of variance, coverage, and what a design cannot tell."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.artifacts.arrays import Membership
from unlearning_audit.metrics import seed_spread
from unlearning_audit.protocols import competition
from unlearning_audit.stats import nested

from ruli_cases import data


def test_mean_squares_are_the_textbooks():
    """Three originals with two models each: means 1, 3, 8; S_w² = (2·1 + 2·1 + 2·4)/3 = 4, S_b² = 2·13 = 26."""
    value = np.array([0.0, 2.0, 2.0, 4.0, 6.0, 10.0])
    training, unlearning = nested.deviations(value=value, original=np.array([5, 5, 1, 1, 9, 9]))
    assert unlearning.value == pytest.approx(2.0)
    assert training.value == pytest.approx(np.sqrt((26 - 4) / 2))
    assert (training.n, unlearning.n) == (3, 6)
    assert unlearning.low == pytest.approx(np.sqrt(3 * 4 / 9.348404))
    assert training.low < training.value < training.high


@pytest.mark.parametrize(("training", "unlearning"), [(1.0, 0.3), (0.3, 1.0), (0.0, 1.0)])
@pytest.mark.parametrize("shape", [(4, 2), (8, 4)])
def test_intervals_cover(training, unlearning, shape):
    rng, hits, audits = np.random.default_rng(0), np.zeros(2), 600
    original = np.repeat(np.arange(shape[0]), shape[1])
    for _ in range(audits):
        value = training * rng.standard_normal(shape[0])[original] + unlearning * rng.standard_normal(len(original))
        found = nested.deviations(value=value, original=original)
        hits += [one.low <= truth <= one.high for one, truth in zip(found, (training, unlearning), strict=True)]
    assert (hits / audits >= 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / audits)).all(), hits / audits


def test_what_a_design_does_not_show_is_said():
    training, unlearning = nested.deviations(value=np.arange(4.0), original=np.arange(4))
    assert training.note == unlearning.note == nested.SINGLE
    training, unlearning = nested.deviations(value=np.arange(4.0), original=np.zeros(4))
    assert training.note == nested.ALONE
    assert unlearning.value == pytest.approx(np.std(np.arange(4), ddof=1))
    with pytest.raises(ValueError, match="finite"):
        nested.deviations(value=np.array([np.nan, 1.0]), original=np.zeros(2))


def test_copies_share_their_original_and_differ_in_how_they_are_unlearned():
    options = competition.Options(share=0.05, originals="many", copies=2, blocks=2, models_per_block=4)
    member = Membership.concatenate([competition.draw(block, "all", data(), options, 3) for block in range(2)])
    first, copies = member.originals()
    assert len(first) == 4
    assert sorted(np.bincount(copies).tolist()) == [2, 2, 2, 2]
    assert len(set(member.unlearning_seeds())) == 8
    alone = competition.draw(0, "all", data(), competition.Options(share=0.05, originals="many"), 3)
    assert alone.replicate is None


def test_the_rows_are_those_of_the_mean_confidence():
    member = competition.draw(
        0, "all", data(), competition.Options(share=0.05, originals="many", copies=2, models_per_block=6), 3
    )
    forget = np.flatnonzero(member.forget.any(axis=0))
    phi = np.tile(np.array([0.0, 2.0, 2.0, 4.0, 6.0, 10.0])[:, None], (1, len(forget)))
    phi[:, 0] += 1.0
    phi[:, 1] -= 1.0
    case = SimpleNamespace(
        membership=member, data=data(), unlearned_files=[], answers=lambda _: SimpleNamespace(phi=lambda y, rows: phi)
    )
    rows = {row.metric: row.value for row in seed_spread.rows(case, seed_spread.Options(), None)}
    assert rows == {"sd_of_training": pytest.approx(np.sqrt(11)), "sd_of_unlearning": pytest.approx(2.0)}

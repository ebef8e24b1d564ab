"""Tail advantage: by hand, error rates where sides are a fair draw, and three per cent of samples remembered."""

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import swap
from unlearning_audit.stats import paired, tail

from stat_cases import at_most
from swap_games import layout, rules_of


def advantage(score, forgotten, **options):
    """Of one model whose first ``forgotten`` samples are forgotten, the rest held out."""
    forget = (np.arange(len(score)) < forgotten)[None] * 1.0
    return tail.advantage(score=np.asarray(score)[None], forget=forget, heldout=1 - forget, **options)


@pytest.mark.parametrize(
    ("score", "forgotten", "share", "above"),
    [
        ([8.5, 7.5, *range(9)], 2, 0.1, 1 / 2),  # of nine the i-th largest is exceeded with probability i/10
        ([8.5, 7.5, *range(9)], 2, 0.05, 1 / 4),  # halfway to the largest
        ([1.0] * 4, 2, 0.01, 0.01),  # equal scores say nothing
        ([2.0, 2.0, 2.0, 1.0], 1, 0.5, 2 / 3),  # place 2 of 4: one of three equals stands above two of them
    ],
)
def test_the_threshold_lies_between_two_held_out_scores(score, forgotten, share, above):
    np.testing.assert_allclose(advantage(score, forgotten, share=share).value, above - share, atol=1e-15)


def test_what_a_sample_adds_by_hand():
    """Nine held-out scores; two forgotten ones above all of them, six below six. From the share 1/3 to 2/3, which is
    the 3⅓rd to the 6⅔th largest, a share of 2/8 grows by ⅔ · 6/8: a slope of 3/2."""
    score = [9.5] * 2 + [2.5] * 6 + [*range(9)]
    part = advantage(score, 8, share=0.5)
    np.testing.assert_allclose(part.value, 2 / 8 - 0.5)
    np.testing.assert_allclose(part.influence[0, :8], np.array([1 - 2 / 8] * 2 + [-2 / 8] * 6) / 8)
    beside = np.array([0, 0, 0, 0, 0.5, 1, 1, 1, 1])  # whether each is one of the 4½ largest held-out ones
    np.testing.assert_allclose(part.influence[0, 8:], -1.5 * (beside - 0.5) / 9, atol=1e-15)
    sides = {"forget": np.r_[np.ones(8), np.zeros(10)][None], "heldout": np.r_[np.zeros(8), np.ones(9), 0][None]}
    wider = tail.advantage(score=np.array([[*score, np.nan]]), **sides, share=0.5)  # a sample on no side
    np.testing.assert_array_equal(wider.influence, np.pad(part.influence, ((0, 0), (0, 1))))


@pytest.mark.parametrize(("heldout", "share"), [(3, 0.5), (3, 0.375), (10, 0.05), (40, 0.03), (99, 0.02), (30, 0.1)])
def test_what_a_fair_draw_varies_by(heldout, share):
    """Above two new scores lie i and j of n held-out ones with probability 1/((n + 1)(n + 2)), for i = j with twice
    that; among the share·(n + 1) largest is the first with probability share·(n + 1) − i, cut at 0 and 1."""
    above = np.clip(share * (heldout + 1) - np.arange(heldout + 1), 0, 1)
    together = above.sum() ** 2 + (above**2).sum()
    expected = (above**2).mean() - share**2, together / ((heldout + 1) * (heldout + 2)) - share**2
    assert tail.variance_by_chance(heldout=heldout, share=share) == pytest.approx(expected)


def test_imaginary_samples_add_what_a_fair_draw_varies_by_more():
    """No forgotten score lies above the threshold, so that what is seen of one of 20 does not vary."""
    part = advantage([*[-1.0] * 20, *range(30)], 20, share=0.1)
    variance, shared = tail.variance_by_chance(heldout=30, share=0.1)
    seen = (part.influence[0, 20:] ** 2).sum()
    np.testing.assert_allclose(part.imagined[0] ** 2, [(variance - shared) / 20, max(shared - seen, 0)], atol=1e-15)


#: Forgotten, held out, values that scores may take (None: all differ).
FEW = [(3, 4, None), (3, 4, 2), (3, 4, 5), (40, 10, 2), (40, 10, 5), (10, 200, None), (10, 200, 5)]


@pytest.mark.slow
@pytest.mark.parametrize(("forgotten", "heldout", "values"), FEW)
def test_the_mean_is_0_where_sides_are_a_fair_draw_however_few(forgotten, heldout, values):
    rng, audits = np.random.default_rng(forgotten), 20_000
    score = rng.standard_exponential((audits, forgotten + heldout))
    score = score if values is None else np.minimum(np.floor(3 * score), values - 1.0)
    forget = np.broadcast_to(np.arange(forgotten + heldout) < forgotten, score.shape) * 1.0
    value = tail.advantage(score=score, forget=forget, heldout=1 - forget, share=0.05).value
    assert abs(value.mean()) < 4 * value.std() / np.sqrt(audits)


def read(rng, *, pairs, models, k, shared=1.0, remembered=0.0):
    """The tail advantage of one attack on swapped pairs, with the errors of the draw."""
    masks = layout(rng, samples=max(200, 5 * k), pairs=pairs, k=k, models=models)
    shape = masks["forget"].shape
    score = shared * rng.standard_normal(shape[1]) + rng.standard_normal(shape)
    score += 8 * (masks["forget"] & (rng.random(shape[1]) < remembered))
    rules = rules_of(**masks)
    part = tail.advantage(score=score[:, rules.columns], forget=rules.forget, heldout=rules.heldout)
    fields = {name: value[None] for name, value in vars(part).items()}
    return paired.distances(**fields, unit=masks["block"], split=masks["split"]).of_samples()


@pytest.mark.slow
@pytest.mark.parametrize(("pairs", "models", "k"), [(1, 1, 40), (4, 1, 10), (4, 3, 80), (1, 1, 300)])
def test_a_fair_draw_is_called_a_tail_as_rarely_as_promised(pairs, models, k):
    rng, audits = np.random.default_rng([pairs, models, k]), 300
    wrong = np.mean([read(rng, pairs=pairs, models=models, k=k).p_values()[0] <= 0.05 for _ in range(audits)])
    assert wrong <= at_most(0.05, audits)


def test_a_sensitive_class_that_looks_familiar_makes_no_tail():
    """Where one class weighs five times as much and is easier for every model, a fair draw shows no tail either."""
    rng, audits, read = np.random.default_rng(7), 80, []
    for _ in range(audits):
        masks = layout(rng, samples=400, pairs=2, k=60, models=2)
        y, shape = rng.integers(10, size=400), masks["forget"].shape
        phi = 2.0 * (y == 0) + rng.standard_normal(400) + 0.5 * rng.standard_normal(shape)
        places = {"seed": np.arange(len(phi)), "shadow": np.zeros(len(phi), bool), "weight": np.where(y == 0, 5.0, 1.0)}
        member = Membership(train=masks["forget"], **masks, **places)
        part = swap.advantages({("confidence", "trained"): (phi, phi > 0)}, phi, member)["tail_advantage"]
        fields = {name: getattr(part, name) for name in ("value", "influence", "imagined", "unit", "split")}
        of_draw = paired.distances(**fields).of_samples()
        read.append((of_draw.value[0], of_draw.p_values()[0]))
    value, p = np.array(read).T
    assert abs(value.mean()) < 4 * value.std() / np.sqrt(audits)
    assert np.mean(p <= 0.05) <= at_most(0.05, audits)


def test_three_per_cent_of_samples_that_are_remembered_are_found():
    rng = np.random.default_rng(3)
    audits = [read(rng, pairs=6, models=3, k=300, remembered=0.03) for _ in range(5)]
    assert np.mean([audit.p_values()[0] <= 0.01 for audit in audits]) >= 0.8
    assert np.mean([audit.value[0] for audit in audits]) == pytest.approx(0.03, abs=0.006)

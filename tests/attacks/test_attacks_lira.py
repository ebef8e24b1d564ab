"""The likelihood-ratio attack with Gaussians per sample."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from unlearning_audit.attacks import lira
from unlearning_audit.evaluation.reference import Reference

from attack_cases import logits_of

SPREADS = ["per_sample", "within", "global"]


@pytest.fixture
def rng():
    return np.random.default_rng(31)


def halves(rng, models, samples):
    """Membership in which every sample is a member of exactly half of the models."""
    return rng.permuted(np.tile(np.arange(models) % 2 == 0, (samples, 1)), axis=1).T


def oracle(phi, pool, member, nonmember, *, mode, centre, spread):
    """The score by loops and scipy."""
    middle = np.median if centre == "median" else np.mean
    score = np.zeros(phi.shape)
    for mask, sign in ((member, 1), (nonmember, -1)):
        columns = [pool[mask[:, j], j] for j in range(pool.shape[1])]
        widths = {
            "per_sample": [c.std() for c in columns],
            "within": [np.concatenate([c - c.mean() for c in columns]).std()] * len(columns),
            "global": [pool[mask].std()] * len(columns),
        }[spread]
        for j, column in enumerate(columns):
            if mode == "online":
                score[:, j] += sign * scipy_stats.norm.logpdf(phi[:, j], middle(column), widths[j])
            elif sign < 0 and mode == "offline":
                score[:, j] = (phi[:, j] - middle(column)) / widths[j]
            elif sign < 0:
                score[:, j] = -scipy_stats.norm.logpdf(phi[:, j], middle(column), widths[j])
    return score


@pytest.mark.parametrize("mode", ["online", "offline", "offline_density"])
@pytest.mark.parametrize("centre", ["median", "mean"])
@pytest.mark.parametrize("spread", SPREADS)
def test_score_equals_loops(rng, mode, centre, spread):
    y = rng.integers(3, size=9)
    member = rng.random((12, 9)) < 0.4
    member[:2], member[2:4] = True, False
    nonmember = ~member & (rng.random((12, 9)) < 0.8)
    nonmember[2:4] = True
    pool = rng.normal(size=(12, 9)) * np.arange(1, 10) + member
    phi = rng.normal(size=(4, 9)) * 2
    options = lira.Options(mode=mode, centre=centre, spread=spread, false_positive_rate=0.1)
    score, decision = lira.score(
        logits_of(phi, y), y, Reference(logits_of(pool, y), y, member, nonmember), options, rng
    )
    want = oracle(phi, pool, member, nonmember, mode=mode, centre=centre, spread=spread)
    np.testing.assert_allclose(score, want, rtol=1e-4, atol=1e-4)  # logits are float32
    if mode == "offline_density":
        z = oracle(phi, pool, member, nonmember, mode="offline", centre=centre, spread=spread)
        np.testing.assert_array_equal(decision, 2 * scipy_stats.norm.sf(np.abs(z)) < 0.1)
    else:
        np.testing.assert_array_equal(decision, score > (0.0 if mode == "online" else scipy_stats.norm.ppf(0.9)))


def test_offline_is_one_sided_and_holds_its_level(rng):
    samples = 400
    member = halves(rng, 200, samples)
    pool = rng.normal(size=member.shape) + 2 * member
    phi = np.vstack([rng.normal(size=(50, samples)), np.full((1, samples), -30.0), np.full((1, samples), 30.0)])
    y = np.zeros(samples, dtype=int)
    reference = Reference(logits_of(pool, y), y, np.zeros_like(member), ~member)  # needs no members at all
    options = lira.Options(mode="offline", false_positive_rate=0.05)
    score, decision = lira.score(logits_of(phi, y), y, reference, options, rng)
    # 100 out models place the threshold with an error of .1 · sqrt(1 + 1.64²/2) spreads in each sample
    assert decision[:50].mean() == pytest.approx(0.05, abs=0.01)
    assert not decision[50].any()
    assert decision[51].all()
    assert len(set(score[51])) > 1  # not rounded to Φ = 1


def test_a_spread_of_zero_gives_finite_scores():
    member = np.array([[True], [True], [True], [False], [False], [False]])
    phi = np.where(member, 5.0, 1.0)
    score = lira.online(phi, phi, member, ~member, lira.Options())
    assert np.isfinite(score).all()
    np.testing.assert_array_equal(score > 0, member)


def test_what_the_attack_refuses(rng):
    y = np.zeros(4, dtype=int)
    member = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=bool)
    pool = logits_of(rng.normal(size=(4, 4)), y)
    audited = logits_of(rng.normal(size=(2, 4)), y)
    reference = Reference(pool, y, member, ~member)
    lira.score(audited, y, reference, lira.Options(minimum=1), rng)
    for logits, options, message in (
        (audited, {}, "sample 3 has 1 reference models as member"),
        (audited[:, :3], {}, "same samples in both"),
        (np.stack([audited[0], pool[2]]), {"minimum": 1}, "audited model 1 is also a reference model"),
        (audited, {"mode": "offline", "minimum": 3}, "sample 0 has 2 reference models as non-member"),
    ):
        with pytest.raises(ValueError, match=message):
            lira.score(logits, y[: logits.shape[1]], reference, lira.Options(**options), rng)

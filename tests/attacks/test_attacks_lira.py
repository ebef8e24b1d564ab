"""The likelihood-ratio attack with Gaussians per sample."""

import numpy as np
import pytest
from scipy.stats import norm
from unlearning_audit.attacks import lira
from unlearning_audit.evaluation.shadow import Shadow

from attack_cases import logits_of, run


def gaussian(pool, mask, spread):
    """Centre and spread of each sample, by loops."""
    columns = [of_sample[at] for of_sample, at in zip(pool.T, mask.T, strict=True)]
    residual = np.concatenate([column - column.mean() for column in columns])
    width = {"per_sample": [column.std() for column in columns], "within": residual.std(), "global": pool[mask].std()}
    return [np.median(column) for column in columns], width[spread]


@pytest.mark.parametrize("mode", ["online", "offline", "offline_density"])
@pytest.mark.parametrize("spread", ["per_sample", "within", "global"])
def test_score_equals_loops(rng, mode, spread):
    y = rng.integers(3, size=9)
    member = rng.random((12, 9)) < 0.4
    member[:2], member[2:4] = True, False
    nonmember = ~member & (rng.random((12, 9)) < 0.8)
    nonmember[2:4] = True
    pool = rng.normal(size=(12, 9)) * np.arange(1, 10) + member
    phi = rng.normal(size=(4, 9)) * 2
    options = {"mode": mode, "spread": spread, "false_positive_rate": 0.1}
    shadow = Shadow(logits_of(pool, y), y, member, nonmember)
    score, decision = run(lira, logits_of(phi, y), y, shadow, **options)
    inside, outside = (norm(*gaussian(pool, mask, spread)) for mask in (member, nonmember))
    z = (phi - outside.mean()) / outside.std()
    expected = {
        "online": (inside.logpdf(phi) - outside.logpdf(phi), inside.logpdf(phi) > outside.logpdf(phi)),
        "offline": (z, norm.sf(z) < 0.1),
        "offline_density": (-outside.logpdf(phi), 2 * norm.sf(np.abs(z)) < 0.1),
    }[mode]
    np.testing.assert_allclose(score, expected[0], rtol=1e-4, atol=1e-4)  # logits are float32
    np.testing.assert_array_equal(decision, expected[1])


def test_offline_is_one_sided_and_holds_its_level(rng):
    samples = 400
    # every sample is a member of exactly half of the 200 models
    member = rng.permuted(np.tile(np.arange(200) % 2 == 0, (samples, 1)), axis=1).T
    pool = rng.normal(size=member.shape) + 2 * member
    phi = np.vstack([rng.normal(size=(50, samples)), np.full((1, samples), -30.0), np.full((1, samples), 30.0)])
    y = np.zeros(samples, dtype=int)
    shadow = Shadow(logits_of(pool, y), y, np.zeros_like(member), ~member)  # needs no members at all
    score, decision = run(lira, logits_of(phi, y), y, shadow, mode="offline", false_positive_rate=0.05)
    # 100 out models place the threshold with an error of .1 · sqrt(1 + 1.64²/2) spreads in each sample
    assert decision[:50].mean() == pytest.approx(0.05, abs=0.01)
    assert not decision[50].any()
    assert decision[51].all()
    assert len(set(score[51])) > 1  # not rounded to Φ = 1


def test_a_spread_of_zero_gives_finite_scores():
    member = np.array([[True], [True], [True], [False], [False], [False]])
    logits = logits_of(np.where(member, 5.0, 1.0), [0])
    score, decision = run(
        lira, logits + np.float32(0.01), np.zeros(1, int), Shadow(logits, np.zeros(1, int), member, ~member)
    )
    assert np.isfinite(score).all()
    np.testing.assert_array_equal(decision, member)


def test_what_the_attack_refuses(rng):
    y = np.zeros(4, dtype=int)
    member = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=bool)
    pool = logits_of(rng.normal(size=(4, 4)), y)
    audited = logits_of(rng.normal(size=(2, 4)), y)
    shadow = Shadow(pool, y, member, ~member)
    run(lira, audited, y, shadow, minimum=1)
    for logits, options, message in (
        (audited, {}, "sample 3 has 1 shadow models as member"),
        (audited[:, :3], {}, "same samples in both"),
        (np.stack([audited[0], pool[2]]), {"minimum": 1}, "audited model 1 is also a shadow model"),
        (audited, {"mode": "offline", "minimum": 3}, "sample 0 has 2 shadow models as non-member"),
    ):
        with pytest.raises(ValueError, match=message):
            run(lira, logits, y[: logits.shape[1]], shadow, **options)

"""Verdicts: Holm's correction, equivalence, the order of classes, shares closed; and their error rates."""

from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit.stats import Estimate, decide, ratio
from unlearning_audit.stats.decide import Distance, classify, holm, within

from audit_worlds import World
from slow_cases import slow

MARGIN = (-0.05, 0.05)


def distance(value, half=0.01, *, p=1.0, metric="auc", far=True, margin=MARGIN):
    """A distance with an interval of ``half`` width and an inner one of .84 of it."""
    inner = value - 0.84 * half, value + 0.84 * half
    estimate = Estimate(value, value - half, value + half, 100)
    return Distance(metric, estimate, inner, margin, p, far, broken=0.1, least=value - half)


FINE = [distance(0.0, metric="test"), distance(0.01, metric="retain")]


def verdict(*deciding, utility=FINE, **more):
    return classify(deciding=deciding, p_holm=[d.p for d in deciding], utility=utility, **more)


def test_holm_by_hand():
    np.testing.assert_allclose(holm(p=np.array([0.01, 0.04, 0.03])), [0.03, 0.06, 0.06])
    np.testing.assert_allclose(holm(p=np.array([[0.5, 0.9], [0.001, 0.3]])), [[1.0, 1.0], [0.004, 0.9]])


def test_weighted_holm_by_hand():
    """p/w: .04/3 < .02 < .03; of the weight 5 all is left, then 2, then 1."""
    p_adjusted = holm(p=np.array([0.02, 0.04, 0.03]), weight=np.array([1.0, 3.0, 1.0]))
    np.testing.assert_allclose(p_adjusted, [5 * 0.04 / 3, 5 * 0.04 / 3, 5 * 0.04 / 3])
    p_adjusted = holm(p=np.array([0.02, 0.001, 0.03]), weight=np.array([1.0, 3.0, 1.0]))
    np.testing.assert_allclose(p_adjusted, [0.04, 0.005 / 3, 0.04])
    p = np.random.default_rng(3).random(20) ** 3
    np.testing.assert_allclose(holm(p=p, weight=np.full(20, 7.0)), holm(p=p))


def test_holm_ignores_what_is_unknown():
    p_adjusted = holm(p=np.array([np.nan, 0.02, np.nan, 0.02]))
    np.testing.assert_allclose(p_adjusted, [np.nan, 0.04, np.nan, 0.04])


def test_holm_controls_the_family_of_correlated_tests():
    from scipy.special import ndtr

    rng = np.random.default_rng(1)
    z = 0.7 * rng.standard_normal((4000, 1)) + np.sqrt(0.51) * rng.standard_normal((4000, 12))
    z[:, :4] += 4  # these are false, the rest true
    for weight in (None, np.array([11.0, *[1.0] * 11]), np.array([*[1.0] * 11, 11.0])):  # on a false one, on a true
        rejected = np.array([holm(p=2 * ndtr(-np.abs(row)), weight=weight) <= 0.05 for row in z])
        assert rejected[:, 4:].any(axis=1).mean() <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / 4000)
        assert rejected[:, :4].mean() > 0.8


def test_a_family_shares_alpha_between_controls_nothing_and_methods():
    p = np.array([0.001, 0.002, 0.01, np.nan, 0.04, 0.03])
    nothing, retrained = np.arange(6) < 2, np.arange(6) == 2
    p_adjusted = decide.family(p=p, nothing=nothing, retrained=retrained)
    # weights 1 to each of two tests of doing nothing, 1 to each of two methods; a tenth of α for one retrained
    np.testing.assert_allclose(p_adjusted, np.array([0.004, 0.006, 0.09, np.nan, 0.06, 0.06]) / 0.9)
    alone = decide.family(p=p[:1], nothing=nothing[:1], retrained=retrained[:1])
    np.testing.assert_allclose(alone, p[:1])
    assert decide.family(p=np.array([]), nothing=np.zeros(0, bool), retrained=np.zeros(0, bool)).shape == (0,)


@pytest.mark.parametrize("false", [slice(0, 0), slice(0, 1), slice(0, 5)])
def test_a_family_is_called_falsely_as_rarely_as_promised(false):
    from scipy.special import ndtr

    rng, tests = np.random.default_rng(2), np.arange(12)
    z = 0.7 * rng.standard_normal((4000, 1)) + np.sqrt(0.51) * rng.standard_normal((4000, 12))
    z[:, false] += 5
    true = np.ones(12, dtype=bool)
    true[false] = False
    p = 2 * ndtr(-np.abs(z))
    rejections = np.array([decide.family(p=row, nothing=tests == 0, retrained=tests > 9) <= 0.05 for row in p])
    assert rejections[:, true].any(axis=1).mean() <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / 4000)
    assert rejections[:, 10:].any(axis=1).mean() <= 0.005 + 3.1 * np.sqrt(0.005 * 0.995 / 4000)


def test_holm_refuses_what_is_no_probability():
    with pytest.raises(ValueError, match="in \\[0, 1\\]"):
        holm(p=np.array([0.1, 1.5]))


def test_two_one_sided_tests_are_the_inner_interval():
    assert within(inner=(-0.049, 0.049), margin=MARGIN)
    assert not within(inner=(-0.05, 0.02), margin=MARGIN)
    assert not within(inner=(np.nan, np.nan), margin=MARGIN)
    assert within(inner=(-0.15, 0.2), margin=(-0.2, 0.25))
    with pytest.raises(ValueError, match="both sides"):
        within(inner=(0, 0), margin=(0.0, 0.1))


def test_every_class():
    assert verdict(distance(0.01)).verdict == "equivalent"
    assert verdict(distance(0.2, p=0.001)).verdict == "distinguishable"
    assert verdict(distance(-0.2, p=0.001)).verdict == "over_unlearned"
    assert verdict(distance(-0.2, p=0.001, far=False)).verdict == "distinguishable"
    assert verdict(distance(0.04, 0.05, p=0.4)).verdict == "inconclusive"
    assert verdict(distance(0.0), utility=[distance(0.2, metric="test")]).verdict == "broken"
    assert verdict(distance(np.nan, p=np.nan), failed="NaN logits").verdict == "failed"


def test_broken_needs_the_whole_interval_above():
    assert verdict(distance(0.0), utility=[distance(0.12, 0.03)]).verdict == "inconclusive"
    assert verdict(distance(0.0), utility=[distance(-0.3)]).verdict == "inconclusive"


def test_one_deciding_metric_that_fails_is_enough():
    result = verdict(distance(0.0, metric="privacy"), distance(0.3, p=1e-4, metric="efficacy"))
    assert (result.verdict, result.number, result.p_holm) == ("distinguishable", 1, 1e-4)
    result = verdict(distance(0.0, metric="privacy"), distance(0.04, 0.05, metric="efficacy"))
    assert result.verdict == "inconclusive"
    assert result.note.endswith("efficacy")
    assert verdict(distance(0.0), distance(np.nan, p=np.nan, metric="unknown")).verdict == "inconclusive"


def test_the_distance_that_goes_furthest_speaks_on_either_side():
    near, far = distance(0.04, 0.03, p=0.4, metric="near"), distance(-0.1, 0.08, p=0.4, metric="far")
    assert verdict(near, far).number == 1
    assert verdict(far, near).number == 0
    assert verdict(replace(far, inner=(0.0, 0.01)), near).number == 1


def test_the_most_significant_side_speaks_and_the_other_is_named():
    result = verdict(distance(0.2, p=0.02, metric="privacy"), distance(-0.2, p=0.001, metric="efficacy"))
    assert result.verdict == "over_unlearned"
    assert "privacy" in result.note


def test_a_coarse_metric_neither_blocks_equivalence_nor_speaks_for_it():
    wide = distance(0.0, 0.5, metric="coarse")
    assert verdict(distance(0.0), wide).verdict == "inconclusive"
    result = verdict(distance(0.0), wide, coarse={"coarse"})
    assert (result.verdict, result.number) == ("equivalent", 0)
    assert (
        verdict(distance(0.0), distance(0.6, 0.5, p=1e-3, metric="coarse"), coarse={"coarse"}).verdict
        == "distinguishable"
    )


def test_error_rates_of_a_small_scenario():
    """Two methods equal to retraining beside one that is not, and one exactly at the margin."""
    world, rng, audits = World(truth=(0.0, 0.0, 0.3, 0.1), samples=400, asked=100), np.random.default_rng(2), 400
    false, wrong, detections = 0, 0, 0
    for _ in range(audits):
        read = world.read(rng)
        p = holm(p=read.p_values())
        half, inner = read.half_widths(), read.half_widths(level=0.9)
        verdicts = [
            classify(
                deciding=[Distance("a", Estimate(v, v - h, v + h, 9), (v - i, v + i), (-0.1, 0.1), q)],
                p_holm=[q],
                utility=[],
            ).verdict
            for v, h, i, q in zip(read.value, half, inner, p, strict=True)
        ]
        false += (p[:2] <= 0.05).any()
        wrong += verdicts[3] == "equivalent"
        detections += verdicts[2] == "distinguishable"
    bound = 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / audits)
    assert false / audits <= bound
    assert wrong / audits <= bound
    assert detections / audits > 0.95


def test_share_is_exact_without_error():
    read = World(truth=(0.1, 0.4), common=1.0, noise=0, sample=0, crossed=0).read(np.random.default_rng(3))
    share = ratio.share_closed(distances=read)
    np.testing.assert_allclose([share.value, share.low, share.high], 0.75, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("closer", [0.15, 0.3, -0.2, *slow(0.0, 0.5)])
def test_share_covers_the_truth(closer):
    truth = (closer, 0.3)
    world, rng, audits, inside, readable = World(truth=truth, model=0.05), np.random.default_rng(4), 250, 0, 0
    for _ in range(audits):
        share = ratio.share_closed(distances=world.read(rng))
        readable += not np.isnan(share.value)
        inside += share.low <= 1 - truth[0] / truth[1] <= share.high
    assert readable > 0.8 * audits
    assert inside / readable >= 0.93 - 3.1 * np.sqrt(0.93 * 0.07 / readable)


@pytest.mark.parametrize("method", [0.2, -1.6, 1.6])
def test_share_is_fieller_s_where_one_variance_speaks(method):
    """With numbers per unit alone, the closed form of Fieller (1954) with n − 1 degrees of freedom."""
    from unlearning_audit.stats import paired, t_quantile

    rng = np.random.default_rng(5)
    values = rng.normal(size=(2, 12)) * 0.1 + np.array([[method], [0.5]])
    read = paired.distances(value=values, influence=np.zeros((2, 12, 0)), unit=np.arange(12))
    (a, b), cov, t = values.mean(axis=1), np.cov(values) / 12, float(t_quantile(p=0.975, dof=11))
    square = [b**2 - t**2 * cov[1, 1], -2 * (a * b - t**2 * cov[0, 1]), a**2 - t**2 * cov[0, 0]]
    low, high = sorted(np.roots(square))
    share = ratio.share_closed(distances=read)
    np.testing.assert_allclose([share.low, share.value, share.high], [1 - high, 1 - a / b, 1 - low], rtol=1e-6)


def test_share_is_undefined_where_none_is_not_distinguishable():
    read = World(truth=(0.1, 0.0)).read(np.random.default_rng(6))
    share = ratio.share_closed(distances=read)
    assert np.isnan(share.value)
    assert share.note == ratio.UNDEFINED
    assert np.isnan(ratio.share_closed(distances=World(truth=(0.1, -0.5)).read(np.random.default_rng(7))).value)
    with pytest.raises(ValueError, match="not 3 numbers"):
        ratio.share_closed(distances=World(truth=(0.1, 0.2, 0.3)).read(np.random.default_rng(8)))

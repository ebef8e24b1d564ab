"""Models against others that are no partners of theirs: closed forms, and error rates for any numbers of both."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as reference
from unlearning_audit.stats import unpaired

from stat_cases import at_most


def models(value, *, influence=None, imagined=None, unit=None) -> unpaired.Models:
    """Numbers [models] or [K, models] of models of one split, and of one pair unless said otherwise."""
    value = np.atleast_2d(np.asarray(value, np.float64))
    nothing = np.zeros(value.shape[1], np.int64)
    parts = [np.zeros((*value.shape, 0)) if part is None else np.reshape(part, (*value.shape, -1))
             for part in (influence, imagined)]  # fmt: skip
    return unpaired.Models(value, *parts, nothing if unit is None else np.asarray(unit), nothing)


def differences(audited, retrained):
    return unpaired.differences(audited=audited, reference=retrained)


def half(dof, variance):
    return reference.t.ppf(0.975, dof) * np.sqrt(variance)


@pytest.mark.parametrize(("audited", "retrained"), [(1, 2), (1, 10), (3, 1), (8, 20)])
def test_intervals_hold_both_spreads_and_tests_that_of_all_models(audited, retrained):
    """One model is an outlier by Student's t with n − 1 degrees of freedom; one retrained model borrows the spread of
    those that are audited; of several each, the test is Student's of two groups."""
    rng = np.random.default_rng(audited)
    a, r = 3 * rng.standard_normal(audited), rng.standard_normal(retrained)
    shown, alike = differences(models(a), models(r))
    of_a, of_r = (x.var(ddof=1) if len(x) > 1 else None for x in (a, r))
    of_a, of_r = of_r if of_a is None else of_a, of_a if of_r is None else of_r
    dof = audited + retrained - 2
    pooled = ((audited - 1) * of_a + (retrained - 1) * of_r) / dof
    np.testing.assert_allclose(alike.half_widths()[0], half(dof, pooled * (1 / audited + 1 / retrained)))
    t = (a.mean() - r.mean()) / np.sqrt(pooled * (1 / audited + 1 / retrained))
    np.testing.assert_allclose(alike.p_values()[0], 2 * reference.t.sf(abs(t), dof), rtol=1e-6)
    least = min(n - 1 for n in (audited, retrained) if n > 1)
    np.testing.assert_allclose(shown.half_widths()[0], half(least, of_a / audited + of_r / retrained))


def test_one_against_one_rests_on_samples_alone():
    audited, retrained = np.array([0.1, 0, 0, 0.2, 0]), np.array([0, 0.3, 0, 0.4, 0])
    shown, alike = differences(models(0.5, influence=audited), models(0.1, influence=retrained))
    assert shown.models.dof == alike.models.dof == 0
    np.testing.assert_allclose(alike.sampled, [((audited - retrained) ** 2).sum()])
    assert "one model" in shown.note
    assert shown.design.samples == 3, "on which either side rests"


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(("unit", "variance"), [([0, 0], 0.04), ([0, 1], 0.02)])
def test_of_imaginary_samples_as_much_averages_out_as_of_real_ones(side, unit, variance):
    """What two models of one kind say of real samples agrees, or cancels."""
    real = np.array([[0.3, 0.4]] * 2)
    both = [models([0.1, 0.1], influence=0 * real, imagined=[[0.0], [0.0]], unit=unit)] * 2
    alone = 0.25 / len({*unit})
    for sign, mean in ((1, 0.25), (-1, 0.0)):
        both[side] = models([0.5, 0.5], influence=real * [[1], [sign]], imagined=[[0.2], [0.2]], unit=unit)
        expected = mean + variance * (mean + variance) / (alone + variance)
        np.testing.assert_allclose(differences(*both)[0].sampled, [expected])
    alike = models([0.5, 0.5], influence=real, imagined=[[0.2], [0.2]], unit=unit)
    of_two_groups = 2 * variance * (0.25 + variance) / (alone + variance)
    np.testing.assert_allclose(differences(alike, alike)[0].sampled, [of_two_groups])


def test_layers_weigh_each_side_by_its_share_of_the_variance():
    """V = C₁/n₁ + C₂/n₂ between models; samples in common explain the rest, S − N₁/n₁ − N₂/n₂."""
    rng = np.random.default_rng(0)
    a, r = ((rng.standard_normal(n), rng.standard_normal((n, 6))) for n in (4, 3))
    shown, alike = differences(*(models(value, influence=moved) for value, moved in (a, r)))
    between = [value.var(ddof=1) for value, _ in (a, r)]
    noise = [((moved - moved.mean(axis=0)) ** 2).sum() / (len(moved) - 1) for _, moved in (a, r)]
    sampled = ((a[1].mean(axis=0) - r[1].mean(axis=0)) ** 2).sum()
    layer = shown.models.between.item(), shown.models.shared.item(), shown.models.dof
    assert layer == pytest.approx((between[0] / 4 + between[1] / 3, sampled - noise[0] / 4 - noise[1] / 3, 2))
    layer = alike.models.between.item(), alike.models.shared.item(), alike.models.dof
    assert layer == pytest.approx(((3 * between[0] + 2 * between[1]) / 5 * (1 / 4 + 1 / 3), 0, 5))


def test_few_retrained_models_that_are_all_equal_accuse_nobody():
    """Ten audited models and two retrained ones, right on each of 20 samples with probability .97, differ seldom. By
    the retrained models alone, which often are equal, four in ten would be accused."""
    rng, audits = np.random.default_rng(1), 400
    worlds = rng.binomial(20, 0.97, (audits, 12)) / 20
    accused = [differences(models(of[:10]), models(of[10:]))[1].p_values()[0] <= 0.05 for of in worlds]
    assert np.mean(accused) <= at_most(0.05, audits)


def test_blocks_that_both_have_are_paired():
    """What a block does to all of its models cancels, though one side has a model in each and the other three."""
    rng = np.random.default_rng(2)
    block = 5 * rng.standard_normal(6)
    retrained = models(np.repeat(block, 3) + 0.01 * rng.standard_normal(18), unit=np.repeat(np.arange(6), 3))
    shown, alike = differences(models(block + 0.1, unit=np.arange(6)), retrained)
    assert abs(shown.value[0] - 0.1) < 0.02
    assert alike.p_values()[0] < 1e-6
    assert shown.half_widths()[0] < 0.02
    assert (shown.design.units, shown.design.models, shown.units.dof, alike.units.dof) == (6, 1, 5, 0)
    _, alike = differences(models(block + 0.1, unit=10 + np.arange(6)), retrained)
    assert alike.p_values()[0] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("audited", "retrained", "heavy"),
    [(1, 3, True), (3, 1, False), (8, 20, True), (2, 2, True), (1, 3, False), (3, 1, True), (1, 10, True)],
)
def test_models_of_one_kind_are_called_different_as_rarely_as_promised(audited, retrained, heavy):
    """Exactly so for normal numbers; the module says how often for numbers with three degrees of freedom."""
    rng, audits, wrong = np.random.default_rng([audited, retrained, heavy]), 2000, 0
    draw = (lambda n: rng.standard_t(3, n)) if heavy else rng.standard_normal
    for _ in range(audits):
        both = (models(draw(n), influence=1e-3 * rng.standard_normal((n, 40))) for n in (audited, retrained))
        wrong += differences(*both)[1].p_values()[0] <= 0.05
    assert 0.025 <= wrong / audits <= at_most(0.08 if heavy else 0.05, audits)


def known(side, spread):
    return replace(side, covariance=spread**2 * np.eye(len(side.value)))


@pytest.mark.parametrize("audited", [1, 4])
def test_one_model_of_known_spread_is_held_against_by_the_normal_distribution(audited):
    """z = (ū − r)/(σ·√(1/m + 1)); in the interval each side has its own quantile."""
    value = np.random.default_rng(audited).standard_normal(audited)
    shown, alike = differences(known(models(value), 0.3), known(models(1.0), 0.3))
    z = (value.mean() - 1.0) / (0.3 * np.sqrt(1 / audited + 1))
    np.testing.assert_allclose(alike.p_values()[0], max(2 * reference.norm.sf(abs(z)), 1e-15), rtol=1e-6)
    of_audited = 1.96**2 * 0.3**2 if audited == 1 else half(3, value.var(ddof=1) / 4) ** 2
    expected = np.sqrt(of_audited + reference.norm.ppf(0.975) ** 2 * 0.3**2)
    np.testing.assert_allclose(shown.half_widths()[0], expected, rtol=1e-4)


@pytest.mark.parametrize("audited", [1, 3])
@pytest.mark.parametrize("told", [1.0, 2.0])
def test_intervals_on_one_model_of_known_spread_hold_the_truth(audited, told):
    """600 numbers at once, which samples move; audited models vary by twice as much as the retrained one."""
    rng, audits = np.random.default_rng([audited, int(told)]), 600
    moved = np.full((audits, audited, 30), 0.01)
    value = (2.0 if audited > 1 else 1.0) * 0.1 * rng.standard_normal((audits, audited))
    value += 0.01 * rng.standard_normal((audits, 30)).sum(axis=1, keepdims=True)
    retrained = models(0.1 * rng.standard_normal((audits, 1)), influence=np.zeros((audits, 1, 30)))
    shown, _ = differences(known(models(value, influence=moved), told * 0.1), known(retrained, told * 0.1))
    assert (np.abs(shown.value) > shown.half_widths()).mean() <= at_most(0.05, audits)

"""Models against others that are no partners of theirs: closed forms, and error rates for any numbers of both."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as reference
from unlearning_audit.stats import unpaired

from slow_cases import slow


def models(value, *, influence=None, imagined=None, unit=None, split=None) -> unpaired.Models:
    """One number of some models, of one pair and one split unless said otherwise."""
    value = np.atleast_1d(np.asarray(value, np.float64))
    nothing = np.zeros(len(value), np.int64)
    influence, imagined = (np.zeros((len(value), 0)) if part is None else part for part in (influence, imagined))
    return unpaired.Models(
        value[None], influence[None], imagined[None],
        nothing if unit is None else np.asarray(unit), nothing if split is None else np.asarray(split),
    )  # fmt: skip


@pytest.mark.parametrize("count", [2, 3, 10])
def test_one_model_is_an_outlier_by_students_t_with_n_minus_1(count):
    rng = np.random.default_rng(count)
    retrained, audited = rng.standard_normal(count), 2.5
    _, chance = unpaired.differences(audited=models(audited), reference=models(retrained))
    t = (audited - retrained.mean()) / (retrained.std(ddof=1) * np.sqrt(1 + 1 / count))
    np.testing.assert_allclose(chance.p_values()[0], 2 * reference.t.sf(abs(t), count - 1), rtol=1e-6)


def test_three_models_against_one_are_judged_by_their_own_spread():
    audited, retrained = np.array([0.1, 0.2, 0.4]), 0.9
    distances, chance = unpaired.differences(audited=models(audited), reference=models(retrained))
    half = reference.t.ppf(0.975, 2) * audited.std(ddof=1) * np.sqrt(1 / 3 + 1)
    np.testing.assert_allclose(chance.half_widths()[0], half)
    np.testing.assert_allclose(distances.half_widths()[0], half)


def test_the_interval_of_many_holds_both_spreads():
    rng = np.random.default_rng(1)
    audited, retrained = 3 * rng.standard_normal(8), rng.standard_normal(20)
    distances, chance = unpaired.differences(audited=models(audited), reference=models(retrained))
    error = np.sqrt(audited.var(ddof=1) / 8 + retrained.var(ddof=1) / 20)
    np.testing.assert_allclose(distances.half_widths()[0], reference.t.ppf(0.975, 7) * error)
    error = retrained.std(ddof=1) * np.sqrt(1 / 8 + 1 / 20)
    np.testing.assert_allclose(chance.half_widths()[0], reference.t.ppf(0.975, 19) * error)


def test_one_against_one_rests_on_samples_alone():
    influence = np.full((1, 50), 0.02)
    distances, chance = unpaired.differences(
        audited=models(0.5, influence=influence), reference=models(0.1, influence=-influence)
    )
    assert distances.models.dof == chance.models.dof == 0
    np.testing.assert_allclose(chance.sampled, [50 * 0.04**2])
    assert "one model" in distances.note


def test_samples_count_that_either_side_rests_on():
    audited, retrained = np.array([[0.1, 0, 0, 0.2, 0]]), np.array([[0, 0.3, 0, 0.4, 0]])
    distances, _ = unpaired.differences(
        audited=models(0.5, influence=audited), reference=models(0.1, influence=retrained)
    )
    assert distances.design.samples == 3


@pytest.mark.parametrize("side", ["audited", "reference"])
def test_of_imaginary_samples_as_much_averages_out_as_of_real_ones(side):
    """Of the variances of two models, r each, a mean has r/2 where they share nothing; here they cancel."""
    real, imagined = np.array([[0.3, 0.4]]), np.array([[0.2]])
    lone = models(0.1, influence=0 * real, imagined=0 * imagined)
    both = {name: models([0.5, 0.5], influence=np.concatenate([real, sign * real]), imagined=np.tile(imagined, (2, 1)))
            for name, sign in (("opposite", -1), ("same", 1))}  # fmt: skip
    sampled = {
        name: unpaired.differences(**{"audited": lone, "reference": lone, side: two})[0].sampled
        for name, two in both.items()
    }
    np.testing.assert_allclose(sampled["same"], [0.25 + 0.04])
    np.testing.assert_allclose(sampled["opposite"], [0.04 * 0.04 / (0.25 / 2 + 0.04)])


def test_layers_weigh_each_side_by_its_share_of_the_variance():
    """V = C₁/n₁ + C₂/n₂ between models; samples in common explain the rest, S − N₁/n₁ − N₂/n₂.
    If both are of one kind, the reference's spread serves for either side."""
    audited, reference = (np.array([[4.0]]), np.array([[0.5]]), 3), (np.array([[2.0]]), np.array([[0.3]]), 5)
    wide, alike = unpaired._layers([audited, reference], [0.5, 0.25], np.array([[1.0]]))
    assert (wide.between.item(), wide.shared.item(), wide.dof) == pytest.approx((2.5, 0.675, 3))
    assert (alike.between.item(), alike.shared.item(), alike.dof) == pytest.approx((1.5, 0.0, 5))


def test_blocks_that_both_have_are_paired():
    """What a block does to all of its models cancels, though one side has a model in each and the other three."""
    rng = np.random.default_rng(2)
    block = 5 * rng.standard_normal(6)
    audited = models(block + 0.1, unit=np.arange(6))
    retrained = models(np.repeat(block, 3) + 0.01 * rng.standard_normal(18), unit=np.repeat(np.arange(6), 3))
    distances, chance = unpaired.differences(audited=audited, reference=retrained)
    assert abs(distances.value[0] - 0.1) < 0.02
    assert chance.p_values()[0] < 1e-6
    assert distances.half_widths()[0] < 0.02
    apart = models(block + 0.1, unit=10 + np.arange(6))
    assert unpaired.differences(audited=apart, reference=retrained)[1].p_values()[0] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("audited", "retrained", "heavy"),
    [
        (1, 3, True), (3, 1, False), (8, 20, True), (2, 2, True),
        *slow((1, 3, False), (3, 1, True), (1, 10, False), (1, 10, True), (8, 20, False), (2, 2, False)),
    ],
)  # fmt: skip
def test_models_of_one_kind_are_called_different_as_rarely_as_promised(audited, retrained, heavy):
    """Exactly so for normal numbers; the module says how often for numbers with three degrees of freedom."""
    rng, audits, wrong = np.random.default_rng([audited, retrained, heavy]), 2000, 0
    draw = (lambda n: rng.standard_t(3, n)) if heavy else rng.standard_normal
    for _ in range(audits):
        influence = [1e-3 * rng.standard_normal((n, 40)) for n in (audited, retrained)]
        _, chance = unpaired.differences(
            audited=models(draw(audited), influence=influence[0]),
            reference=models(draw(retrained), influence=influence[1]),
        )
        wrong += chance.p_values()[0] <= 0.05
    assert wrong / audits <= (0.08 if heavy else 0.05) + 3.1 * np.sqrt(0.05 * 0.95 / audits)
    assert wrong / audits >= 0.025


def test_sides_that_hold_other_numbers_are_refused():
    with pytest.raises(ValueError, match="the same numbers"):
        unpaired.differences(audited=models(0.1, influence=np.zeros((1, 3))), reference=models(0.1))


@pytest.mark.parametrize("audited", [1, 4])
def test_one_model_of_known_spread_is_held_against_by_the_normal_distribution(audited):
    """z = (ū − r)/(σ·√(1/m + 1)); in the interval each side has its own quantile."""
    rng, spread = np.random.default_rng(audited), np.array([[0.3**2]])
    value = rng.standard_normal(audited)
    sides = {"audited": models(value), "reference": models(2.0)}
    sides = {name: replace(side, covariance=spread) for name, side in sides.items()}
    distances, chance = unpaired.differences(**sides)
    z = (value.mean() - 2.0) / (0.3 * np.sqrt(1 / audited + 1))
    np.testing.assert_allclose(chance.p_values()[0], max(2 * reference.norm.sf(abs(z)), 1e-15), rtol=1e-6)
    of_audited = 1.96**2 * 0.3**2 if audited == 1 else reference.t.ppf(0.975, 3) ** 2 * value.var(ddof=1) / 4
    half = np.sqrt(of_audited + reference.norm.ppf(0.975) ** 2 * 0.3**2)
    np.testing.assert_allclose(distances.half_widths()[0], half, rtol=1e-4)
    np.testing.assert_allclose(distances.of([[2.0]]).half_widths()[0], 2 * half, rtol=1e-4)


@pytest.mark.parametrize("audited", [1, 3])
@pytest.mark.parametrize("told", [1.0, 2.0])
def test_intervals_on_one_model_of_known_spread_hold_the_truth(audited, told):
    """Samples move both sides differently, and audited models vary by twice as much as the retrained one."""
    rng, audits, missed = np.random.default_rng([audited, int(told)]), 1500, 0
    moved = np.full((audited, 30), 0.01)
    own = 2.0 if audited > 1 else 1.0
    for _ in range(audits):
        value = own * 0.1 * rng.standard_normal(audited) + moved @ rng.standard_normal(30)
        sides = models(value, influence=moved), models(0.1 * rng.standard_normal(), influence=np.zeros((1, 30)))
        covariance = np.array([[(told * 0.1) ** 2]])
        pair = [replace(side, covariance=covariance) for side in sides]
        distances, _ = unpaired.differences(audited=pair[0], reference=pair[1])
        missed += abs(distances.value[0]) > distances.half_widths()[0]
    assert missed / audits < 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / audits)

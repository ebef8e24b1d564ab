"""Resolution by hand: components of given variances, half-widths against draws of them; and against larger studies."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from unlearning_audit.stats import resolution
from unlearning_audit.stats.paired import Design
from unlearning_audit.stats.resolution import Components

from audit_worlds import World
from stat_cases import numbers

PARTS = ("pair", "pair_noise", "model", "model_noise", "sample")


def components(**settings):
    """The components of one number with a variance of .25 over samples; layers as (between, shared, dof)."""
    (of,) = resolution.components(distances=numbers(0, [[0.3, 0.4]], **settings))
    return of


def only(design, dof=1e9, of_samples=False, **values):
    return Components(**dict.fromkeys(PARTS, 0.0) | values, design=design, dof_samples=dof, of_samples=of_samples)


@pytest.mark.parametrize(
    ("models", "units", "design", "expected"),
    [
        # Noise .25 − .2, models .15 − .05; units .25 − .12, of which .08 is no noise; pairs .4 − .13 − .1; samples .12.
        ((0.15, 0.2, 8), (0.4, 0.12, 3), (4, 2.0, 3.0, 50), [0.17 * 4, 0.08 * 200, 0.1 * 12, 0.05 * 600, 0.12 * 50]),
        # never below 0
        ((0.05, 0.3, 8), (0.01, 0.3, 3), (4, 2.0, 3.0, 50), [0, 0, 0.05 * 12, 0, 0.25 * 50]),
        ((0.1, 0.1, 8), (0.02, 0.2, 3), (4, 2.0, 3.0, 50), [0, 0, 0, 0.15 * 600, 0.1 * 50]),
        # what nothing shows: pairs of one pair, models of one model; without samples their count is 1
        ((0.15, 0.2, 8), (0.4, 0.12, 0), (1, 2.0, 3.0, 50), [0, 0, 0.1 * 3, 0.05 * 150, 0.2 * 50]),
        ((0.15, 0.2, 3), (0.4, 0.12, 3), (4, 1.0, 1.0, 50), [0.27 * 4, 0.13 * 200, 0, 0, 0.12 * 50]),
        ((0.15, 0.2, 8), (0.4, 0.12, 3), (4, 2.0, 1.5, 0), [0.17 * 4, 0.08 * 4, 0.1 * 6, 0.05 * 6, 0.12]),
    ],
)
def test_components_by_hand(models, units, design, expected):
    of = components(models=models, units=units, design=design)
    np.testing.assert_allclose([getattr(of, name) for name in PARTS], expected)
    assert (of.design, of.of_samples) == (Design(*design), False)
    np.testing.assert_allclose(of.dof_samples, 2 * 0.25**2 / (0.3**4 + 0.4**4))


def test_the_error_of_a_larger_study_by_hand():
    of = only(Design(2, 1.0, 2.0, 10), pair=2.0, pair_noise=3.0, model=5.0, model_noise=7.0, sample=11.0)
    squares = [resolution.error(components=of, design=Design(4, 1.0, 3.0, samples)) ** 2 for samples in (20, 0)]
    np.testing.assert_allclose(
        squares, [2 / 4 + 3 / 80 + 5 / 12 + 7 / 240 + 11 / 20, 2 / 4 + 3 / 4 + 5 / 12 + 7 / 12 + 11]
    )


def test_a_larger_study_has_whole_pairs_models_and_samples():
    design = Design(4, 2.0, 2.5, 100)
    assert resolution.planned(design, dimension="pairs", times=1.6) == replace(design, units=6)
    assert resolution.planned(design, dimension="models", times=1.5) == replace(design, models=4)
    assert resolution.planned(design, dimension="samples", times=0.996) == design


def test_a_half_width_of_samples_alone_has_their_degrees_of_freedom():
    design = Design(2, 1.0, 2.0, 10)
    of = only(design, dof=5, of_samples=True, pair=9.0, pair_noise=2.0, model=9.0, model_noise=4.0, sample=3.0)
    for samples, dof, level in ((10, 5, 0.8), (30, 15, 0.95), (1, 1, 0.95)):
        error = np.sqrt((3 + 2 / 2 + 4 / 4) / samples)
        width = resolution.half_width(components=of, design=replace(design, samples=samples), level=level)
        np.testing.assert_allclose(width, special.stdtrit(dof, (1 + level) / 2) * error)
    unknown = only(Design(2, 1.0, 2.0, 0), dof=2, of_samples=True, sample=4.0)
    width = resolution.half_width(components=unknown, design=Design(2, 1.0, 2.0, 3))
    np.testing.assert_allclose(width, special.stdtrit(6, 0.975) * np.sqrt(4 / 3))


@pytest.mark.parametrize(
    ("design", "part", "units", "square", "dof"),
    [
        *(((1, splits, models, 9), "model", True, 4 / models, splits * (models - 1))
          for splits, models in ((1.0, 3.0), (2.0, 2.0), (2.0, 3.0))),
        # Two models a split say nothing of pairs; where no split has two, pairs are read from how splits differ.
        ((3, 1.0, 2.0, 9), "pair", True, 4 / 3, 2),
        ((3, 1.0, 2.0, 9), "pair", False, 0, 2),
        ((3, 1.0, 1.0, 9), "pair", False, 4 / 3, 2),
        ((1, 1.0, 1.0, 9), "pair", True, 0, 1),
        ((1, 1.0, 2.0, 9), "pair", True, 0, 1),
        ((2, 1.0, 2.0, 9), "pair", True, 2, 1),
        ((1, 2.0, 1.0, 9), "pair", True, 4, 1),
    ],
)  # fmt: skip
def test_a_half_width_of_one_component_is_the_mean_of_student_s(design, part, units, square, dof):
    """The mean of √(χ²/dof) is √(2/dof)·Γ((dof + 1)/2)/Γ(dof/2)."""
    root = np.sqrt(2 / dof) * special.gamma((dof + 1) / 2) / special.gamma(dof / 2)
    width = resolution.half_width(components=only(Design(*design), **{part: 4.0}), design=Design(*design), units=units)
    np.testing.assert_allclose(width, special.stdtrit(dof, 0.975) * np.sqrt(square) * root, rtol=5e-3)
    wide = resolution.half_width(
        components=only(Design(*design), **{part: 4.0}).widened(3), design=Design(*design), units=units
    )
    np.testing.assert_allclose(wide, 3 * width)


MIXED = {"pair": 0.5, "pair_noise": 6.0, "model": 0.6, "model_noise": 20.0, "sample": 8.0}


@pytest.mark.parametrize(("models", "units"), [(2.0, True), (2.0, False), (1.0, True), (1.0, False)])
@pytest.mark.parametrize("scale", MIXED)
def test_a_half_width_is_the_mean_over_estimated_variances(models, units, scale):
    """As `paired.Distances` computes it from variances that are χ² around the truth; 20,000 draws of them."""
    design = Design(3, 2.0, models, 20)
    of = only(design, dof=30, **MIXED | {scale: 3 * MIXED[scale]})
    sample, crossed = of.sample / 20, of.pair_noise / 60
    noise, model, pair = of.model_noise / (60 * models), of.model / (3 * models), of.pair / 3
    dofs = (6 if models > 1 else 5), 2
    rng, t = np.random.default_rng(0), [special.stdtrit(dof, 0.975) ** 2 for dof in (30, *dofs)]
    over = [rng.chisquare(dof, 20_000) / dof for dof in dofs]
    whole = sample + crossed + noise
    between, shared = (noise + model, sample + crossed) if models > 1 else (crossed + noise + model + pair, sample)
    square = np.maximum(t[0] * whole, t[0] * shared + t[1] * between * over[0])
    if units:
        square = np.maximum(square, t[0] * sample + t[2] * (crossed + noise + model + pair) * over[1])
    width = resolution.half_width(components=of, design=design, units=units)
    np.testing.assert_allclose(width, np.sqrt(square).mean(), rtol=0.015)


def test_the_least_distance_and_the_room_of_samples_by_hand():
    design, z = Design(2, 1.0, 2.0, 100), special.ndtri([0.8, 0.9, 0.95, 0.975])
    of, small, pairs = only(design, sample=4.0), only(design, sample=1.0), only(design, pair=4.0)
    np.testing.assert_allclose(resolution.least_distance(components=of, design=design), (z[3] + z[0]) * 0.2)
    np.testing.assert_allclose(resolution.room_needed(components=of, design=design), (z[2] + z[1]) * 0.2)
    by_chance = resolution.least_distance(components=of, design=design, chance=small)
    np.testing.assert_allclose(by_chance, z[3] * 0.1 + z[0] * 0.2)
    np.testing.assert_allclose(resolution.least_distance(components=pairs, design=design), z[0] * np.sqrt(2))


def test_the_least_distance_is_told_and_the_room_is_shown_with_the_power_promised():
    """Of 200 numbers at once, for a study of 4 pairs, by the components that 40 pairs show."""
    world, rng = World(truth=(0.0,), model=0.05), np.random.default_rng(4)
    of = resolution.components(distances=replace(world, pairs=40).read(rng))[0]
    design = replace(of.design, units=4)
    least, room = (how(components=of, design=design) for how in (resolution.least_distance, resolution.room_needed))
    read = replace(world, truth=(0.0,) * 200, common=0.0).read(rng)
    assert 0.7 < (read.minus(-least).p_values() <= 0.05).mean() < 0.92
    assert 0.7 < (np.abs(read.value) + read.half_widths(level=0.9) < room).mean() < 0.92

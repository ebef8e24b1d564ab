"""Resolution by hand: components of given variances, half-widths against draws of them, numbers that just decide."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from unlearning_audit.stats import resolution
from unlearning_audit.stats.paired import Design, Distances, Layer
from unlearning_audit.stats.resolution import Components

PARTS = ("pair", "pair_noise", "model", "model_noise", "sample")
Z = float(special.ndtri(0.975))


def read(*, models, units, design):
    """One number with a variance of .25 over samples; layers as (between, shared, dof)."""
    layers = (Layer(np.array([[b]]), np.array([[s]]), dof) for b, s, dof in (models, units))
    return Distances(np.zeros(1), np.array([[0.3, 0.4]]), *layers, design)


def parts(**settings):
    (components,) = resolution.components(distances=read(**settings))
    return [getattr(components, name) for name in PARTS], components


def only(design, events=1e9, of_samples=False, **values):
    return Components(**dict.fromkeys(PARTS, 0.0) | values, design=design, events=events, of_samples=of_samples)


def test_components_by_hand():
    """Noise .25 − .2, models .15 − .05; units .25 − .12, of which .08 is no noise; pairs .4 − .13 − .1; samples .12."""
    design = Design(4, 2.0, 3.0, 50)
    actual, whole = parts(models=(0.15, 0.2, 8), units=(0.4, 0.12, 3), design=design)
    np.testing.assert_allclose(actual, [0.17 * 4, 0.08 * 200, 0.1 * 12, 0.05 * 600, 0.12 * 50])
    assert whole.design == design
    assert not whole.of_samples
    np.testing.assert_allclose(whole.events, 2 * 0.25**2 / (0.3**4 + 0.4**4))
    np.testing.assert_allclose(resolution.error(of=whole, design=design) ** 2, 0.4 + 0.12)


def test_components_are_never_below_0():
    design = Design(4, 2.0, 3.0, 50)
    actual, _ = parts(models=(0.05, 0.3, 8), units=(0.01, 0.3, 3), design=design)
    np.testing.assert_allclose(actual, [0, 0, 0.05 * 12, 0, 0.25 * 50])
    actual, _ = parts(models=(0.1, 0.1, 8), units=(0.02, 0.2, 3), design=design)
    np.testing.assert_allclose(actual, [0, 0, 0, 0.15 * 600, 0.1 * 50])


def test_what_nothing_shows_is_0():
    actual, _ = parts(models=(0.15, 0.2, 8), units=(0.4, 0.12, 0), design=Design(1, 2.0, 3.0, 50))
    np.testing.assert_allclose(actual, [0, 0, 0.1 * 3, 0.05 * 150, 0.2 * 50])
    actual, _ = parts(models=(0.15, 0.2, 3), units=(0.4, 0.12, 3), design=Design(4, 1.0, 1.0, 50))
    np.testing.assert_allclose(actual, [0.27 * 4, 0.13 * 200, 0, 0, 0.12 * 50])
    actual, _ = parts(models=(0.15, 0.2, 8), units=(0.4, 0.12, 3), design=Design(4, 2.0, 1.5, 0))
    np.testing.assert_allclose(actual, [0.17 * 4, 0.08 * 4, 0.1 * 6, 0.05 * 6, 0.12])


def test_the_error_of_a_larger_study_by_hand():
    of = only(Design(2, 1.0, 2.0, 10), pair=2.0, pair_noise=3.0, model=5.0, model_noise=7.0, sample=11.0)
    error = resolution.error(of=of, design=Design(4, 1.0, 3.0, 20))
    np.testing.assert_allclose(error**2, 2 / 4 + 3 / 80 + 5 / 12 + 7 / 240 + 11 / 20)
    np.testing.assert_allclose(
        resolution.error(of=of, design=Design(4, 1.0, 3.0, 0)) ** 2, 0.5 + 0.75 + 5 / 12 + 7 / 12 + 11
    )


def test_a_larger_study_has_whole_pairs_models_and_samples():
    design = Design(4, 2.0, 2.5, 100)
    assert resolution.planned(design, dimension="pairs", times=1.6) == replace(design, units=6)
    assert resolution.planned(design, dimension="models", times=1.5) == replace(design, models=4)
    assert resolution.planned(design, dimension="samples", times=0.996) == design


def test_a_half_width_of_samples_alone_has_their_degrees_of_freedom():
    design = Design(2, 1.0, 2.0, 10)
    of = only(design, events=5, of_samples=True, pair=9.0, pair_noise=2.0, model=9.0, model_noise=4.0, sample=3.0)
    for samples, dof, level in ((10, 5, 0.8), (30, 15, 0.95), (1, 1, 0.95)):
        error = np.sqrt((3 + 2 / 2 + 4 / 4) / samples)
        width = resolution.half_width(of=of, design=replace(design, samples=samples), level=level)
        np.testing.assert_allclose(width, special.stdtrit(dof, (1 + level) / 2) * error)
    unknown = only(Design(2, 1.0, 2.0, 0), events=2, of_samples=True, sample=4.0)
    width = resolution.half_width(of=unknown, design=Design(2, 1.0, 2.0, 3))
    np.testing.assert_allclose(width, special.stdtrit(6, 0.975) * np.sqrt(4 / 3))


def mean_root(dof):
    """The mean of √(χ²/dof)."""
    return np.sqrt(2 / dof) * special.gamma((dof + 1) / 2) / special.gamma(dof / 2)


@pytest.mark.parametrize("design", [Design(1, 1.0, 3.0, 9), Design(1, 2.0, 2.0, 9), Design(1, 2.0, 3.0, 9)])
def test_a_half_width_of_models_alone_is_the_mean_of_student_s(design):
    of, dof = only(design, model=4.0), design.splits * (design.models - 1)
    expected = special.stdtrit(dof, 0.975) * np.sqrt(4 / design.models) * mean_root(dof)
    np.testing.assert_allclose(resolution.half_width(of=of, design=design), expected, rtol=2e-3)


def test_a_half_width_of_pairs_alone_is_the_mean_of_student_s():
    """Two models a split say nothing of pairs; where no split has two, pairs are read from how splits differ."""
    design = Design(3, 1.0, 2.0, 9)
    of = only(design, pair=4.0)
    expected = special.stdtrit(2, 0.975) * np.sqrt(4 / 3) * mean_root(2)
    np.testing.assert_allclose(resolution.half_width(of=of, design=design), expected, rtol=2e-3)
    assert resolution.half_width(of=of, design=design, units=False) == 0
    single = replace(design, models=1.0)
    np.testing.assert_allclose(resolution.half_width(of=of, design=single, units=False), expected, rtol=2e-3)
    assert resolution.half_width(of=of, design=Design(1, 1.0, 1.0, 9)) == 0
    assert resolution.half_width(of=of, design=Design(1, 1.0, 2.0, 9)) == 0
    width = resolution.half_width(of=of, design=Design(2, 1.0, 2.0, 9))
    np.testing.assert_allclose(width, special.stdtrit(1, 0.975) * np.sqrt(2) * mean_root(1), rtol=5e-3)
    width = resolution.half_width(of=of, design=Design(1, 2.0, 1.0, 9))
    np.testing.assert_allclose(width, special.stdtrit(1, 0.975) * 2 * mean_root(1), rtol=5e-3)


MIXED = {"pair": 0.5, "pair_noise": 6.0, "model": 0.6, "model_noise": 20.0, "sample": 8.0}


@pytest.mark.parametrize(("models", "units"), [(2.0, True), (2.0, False), (1.0, True), (1.0, False)])
@pytest.mark.parametrize("scale", ["sample", "model_noise", "pair_noise", "model", "pair"])
def test_a_half_width_is_the_mean_over_estimated_variances(models, units, scale):
    """As `paired.Distances` computes it from variances that are χ² around the truth; 20,000 draws of them."""
    design = Design(3, 2.0, models, 20)
    of = only(design, events=30, **MIXED | {scale: 3 * MIXED[scale]})
    sample, crossed = of.sample / 20, of.pair_noise / 60
    noise, model, pair = of.model_noise / (60 * models), of.model / (3 * models), of.pair / 3
    rng, t = np.random.default_rng(0), [special.stdtrit(dof, 0.975) ** 2 for dof in (30, 6 if models > 1 else 5, 2)]
    over = [rng.chisquare(dof, 20_000) / dof for dof in (6 if models > 1 else 5, 2)]
    whole = sample + crossed + noise
    between, shared = (noise + model, sample + crossed) if models > 1 else (crossed + noise + model + pair, sample)
    square = np.maximum(t[0] * whole, t[0] * shared + t[1] * between * over[0])
    if units:
        square = np.maximum(square, t[0] * sample + t[2] * (crossed + noise + model + pair) * over[1])
    width = resolution.half_width(of=of, design=design, units=units)
    np.testing.assert_allclose(width, np.sqrt(square).mean(), rtol=0.015)


def test_the_least_distance_and_the_room_of_samples_by_hand():
    design = Design(2, 1.0, 2.0, 100)
    of, error = only(design, sample=4.0), 0.2
    np.testing.assert_allclose(
        resolution.least_distance(of=of, design=design, level=0.9, power=0.7),
        (special.ndtri(0.95) + special.ndtri(0.7)) * error,
    )
    np.testing.assert_allclose(
        resolution.room_needed(of=of, design=design, level=0.9, power=0.7),
        (special.ndtri(0.9) + special.ndtri(0.85)) * error,
    )
    small = only(design, sample=1.0)
    np.testing.assert_allclose(
        resolution.least_distance(of=of, design=design, chance=small), Z * 0.1 + special.ndtri(0.8) * 0.2
    )
    np.testing.assert_allclose(
        resolution.room_needed(of=of, design=design), (special.ndtri(0.95) + special.ndtri(0.9)) * 0.2
    )
    pairs = only(design, pair=4.0)
    np.testing.assert_allclose(resolution.least_distance(of=pairs, design=design), special.ndtri(0.8) * np.sqrt(2))


def test_a_case_is_decided_from_the_least_distance_and_the_least_room_on():
    design = Design(2, 1.0, 2.0, 100)
    of = only(design, sample=4.0)
    least, room = (how(of=of, design=design) for how in (resolution.least_distance, resolution.room_needed))

    def decides(distance, margin, **more):
        return resolution.decides(of=of, design=design, distance=distance, margin=margin, **more)

    assert decides(least, (-9, 9)) == decides(-least, (-9, 9)) == "distinguishable"
    assert decides(0.999 * least, (-9, 9)) == "equivalent"
    assert decides(0.1, (0.1 - room, 9.0)) == decides(-0.1, (-9, room - 0.1)) == "equivalent"
    assert decides(0.1, (0.101 - room, 9.0)) == decides(-0.1, (-9, room - 0.101)) == ""
    assert decides(0.999 * least, (-0.1, 0.1), level=0.9) == "distinguishable"
    assert decides(0.999 * least, (-0.1, 0.1), power=0.7) == "distinguishable"
    assert decides(0.999 * least, (-0.1, 0.1), chance=only(design, sample=3.0)) == "distinguishable"

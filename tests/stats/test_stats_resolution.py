"""Resolution: components of known worlds, predictions against larger studies, and what would decide a case."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit.stats import paired, resolution
from unlearning_audit.stats.resolution import Components

from audit_worlds import World

AUDITS = 200


def mean_components(world, audits=AUDITS, seed=0):
    rng = np.random.default_rng(seed)
    components = [resolution.components(distances=world.read(rng))[0] for _ in range(audits)]
    names = ("pair", "pair_noise", "model", "model_noise", "sample")
    return {name: np.mean([getattr(component, name) for component in components]) for name in names}


def test_components_are_those_of_the_world():
    """Units of a world have two splits, so half of what a model adds to a split is left in a pair."""
    world = World(truth=(0.1,), pairs=20, models=4, sample=0.6, crossed=0.4, noise=0.5, model=0.1, pair=0.1)
    components = mean_components(world)
    samples = 2 * world.asked
    np.testing.assert_allclose(components["pair"], 0.1**2, rtol=0.1)
    np.testing.assert_allclose(components["model"], 0.1**2 / 2, rtol=0.1)
    np.testing.assert_allclose(components["model_noise"], 0.5**2 / 2 / samples * 160, rtol=0.05)
    np.testing.assert_allclose(components["sample"], 0.6**2, rtol=0.1)
    anew = 0.6**2 * (1 / samples - 1 / 160)
    np.testing.assert_allclose(components["pair_noise"], (0.4**2 / samples + anew) * 160, rtol=0.1)


def test_two_models_of_a_split_tell_the_noise_of_one():
    world = World(truth=(0.1,), pairs=20, models=2, sample=0.6, crossed=0.4, noise=0.5, model=0.1, pair=0.1)
    np.testing.assert_allclose(
        mean_components(world, audits=20)["model_noise"], 0.5**2 / 4 * 160 / world.asked, rtol=0.25
    )


def test_errors_of_components_add_up_to_the_measured_one():
    read = World(truth=(0.1,), pairs=12, model=0.1, pair=0.2).read(np.random.default_rng(1))
    of = resolution.components(distances=read)[0]
    assert min(vars(replace(of, design=0)).values()) >= 0
    np.testing.assert_allclose(resolution.error(of=of, design=of.design), read.errors[0], rtol=1e-9)
    p, m, n = of.design.units, of.design.models, of.design.samples
    pair, model = of.pair + of.pair_noise / n, of.model + of.model_noise / n
    np.testing.assert_allclose(read.errors[0] ** 2, pair / p + model / (p * m) + of.sample / n)


PILOTS = {
    "noise": World(truth=(0.1,)),
    "pairs and models": World(truth=(0.1,), pair=0.15, model=0.1),
    "few samples": World(truth=(0.1,), samples=40, asked=15, sample=0.6, model=0.1),
    "one model a split": World(truth=(0.1,), models=1, model=0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PILOTS)
def test_a_pilot_predicts_the_half_width_of_four_times_the_pairs(name):
    pilot = PILOTS[name]
    large, rng = replace(pilot, pairs=16), np.random.default_rng(2)
    forecasts = []
    for _ in range(AUDITS):
        of = resolution.components(distances=pilot.read(rng))[0]
        design = resolution.planned(of.design, dimension="pairs", times=4)
        forecasts.append(resolution.half_width(of=of, design=design))
    widths = [large.read(rng).half_widths()[0] for _ in range(AUDITS)]
    assert abs(np.median(forecasts) / np.median(widths) - 1) < 0.2


def test_a_pilot_predicts_other_models_and_samples():
    pilot, rng = World(truth=(0.1,), pairs=8, model=0.2, sample=0.5), np.random.default_rng(3)
    of = [resolution.components(distances=pilot.read(rng))[0] for _ in range(AUDITS)]
    for dimension, larger in (("models", replace(pilot, models=6)), ("samples", replace(pilot, samples=320, asked=80))):
        design = resolution.planned(of[0].design, dimension=dimension, times=2)
        forecast = np.median([resolution.half_width(of=component, design=design) for component in of])
        width = np.median([larger.read(rng).half_widths()[0] for _ in range(AUDITS)])
        assert abs(forecast / width - 1) < 0.1, dimension


def test_the_least_distance_is_told_with_the_power_promised():
    world, rng = World(truth=(0.0,), model=0.05), np.random.default_rng(4)
    of = resolution.components(distances=replace(world, pairs=40).read(rng))[0]
    least = resolution.least_distance(of=of, design=replace(of.design, units=4))
    detections = [replace(world, truth=(least,)).read(rng).p_values()[0] <= 0.05 for _ in range(2 * AUDITS)]
    assert 0.7 < np.mean(detections) < 0.95


def test_a_room_as_large_as_needed_is_shown_with_the_power_promised():
    world, rng = World(truth=(0.0,), model=0.05), np.random.default_rng(5)
    of = resolution.components(distances=replace(world, pairs=40).read(rng))[0]
    room = resolution.room_needed(of=of, design=replace(of.design, units=4))
    inside = []
    for _ in range(2 * AUDITS):
        read = world.read(rng)
        inside.append(abs(read.value[0]) + read.half_widths(level=0.9)[0] < room)
    assert 0.7 < np.mean(inside) < 0.95


def only(design=None, **parts):
    """Components with just some parts."""
    design = design or paired.Design(4, 2, 3, 600)
    return Components(**{**dict.fromkeys(("pair", "pair_noise", "model", "model_noise", "sample"), 0.0), **parts},
                      design=design, events=1e9)  # fmt: skip


def test_samples_alone_decide_from_the_number_of_the_closed_form_on():
    """Samples alone: told from n = σ²(z + z')²/d² on."""
    of, distance = only(sample=0.36), 0.05
    count = int(np.ceil(0.36 * (1.959964 + 0.841621) ** 2 / distance**2))
    how = [resolution.decides(of=of, design=replace(of.design, samples=n), distance=distance, margin=(-0.01, 0.01))
           for n in (count - 1, count)]  # fmt: skip
    assert how == ["", "distinguishable"]


def test_what_is_retrained_is_equivalent_with_the_power_that_was_asked_for():
    of = only(sample=0.36)

    def decides(samples: int) -> str:
        design = replace(of.design, samples=samples)
        return resolution.decides(of=of, design=design, distance=0.0, margin=(-0.03, 0.03))

    count = next(n for n in range(600, 100_000) if decides(n))
    error = 0.6 / np.sqrt(count)
    power = 2 * ndtr((0.03 - 1.644854 * error) / error) - 1
    assert 0.799 < power < 0.81

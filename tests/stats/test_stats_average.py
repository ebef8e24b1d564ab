"""Means over independent audits: errors by hand, what one audit does not know, and coverage."""

import numpy as np
from unlearning_audit.stats import average, paired

from audit_worlds import World
from stat_cases import at_least


def test_the_mean_of_independent_audits_has_the_error_of_a_mean():
    worlds = [World(truth=(0.1, 0.3), pairs=4, samples=400), World(truth=(0.3, 0.2), pairs=8, models=2, samples=900)]
    parts = [world.read(np.random.default_rng(i)) for i, world in enumerate(worlds)]
    read = average.mean(parts)
    np.testing.assert_allclose(read.value, (parts[0].value + parts[1].value) / 2)
    np.testing.assert_allclose(read.sampled, (parts[0].sampled + parts[1].sampled) / 4)
    for layer in ("models", "units"):
        mean, (first, second) = getattr(read, layer), (getattr(part, layer) for part in parts)
        assert mean.dof == min(first.dof, second.dof)
        np.testing.assert_allclose(mean.between, (first.between + second.between) / 4)
        np.testing.assert_allclose(mean.shared, (first.shared + second.shared) / 4)
    first, second = (part.design for part in parts)
    assert read.design == paired.Design(12, 2.0, (first.models + 2) / 2, first.samples + second.samples)
    np.testing.assert_allclose(average.mean(parts[:1]).half_widths(), parts[0].half_widths())


def test_what_one_audit_alone_knows_of_a_layer_holds_for_the_mean():
    """A lone model says nothing of how models and units vary; samples vary in any audit."""
    rng = np.random.default_rng(6)
    known = World((0.1,)).read(rng)
    lone = paired.distances(value=[[0.1]], influence=rng.standard_normal((1, 1, 80)) / 80, unit=[0])
    read = average.mean([lone, lone])
    np.testing.assert_allclose(read.errors, np.sqrt(lone.sampled / 2))
    assert read.models.dof == read.units.dof == 0
    both = average.mean([lone, known])
    assert (both.models.dof, both.units.dof) == (known.models.dof, known.units.dof)


def test_the_mean_is_covered_as_often_as_it_says():
    """Of 150 numbers at once, in two audits of which each has pairs that differ."""
    rng, audits = np.random.default_rng(5), 150
    truth = {"truth": (0.1,) * audits, "common": 0.0}
    worlds = World(**truth, pairs=3, pair=0.05), World(**truth, pairs=5, pair=0.02, models=2)
    read = average.mean([world.read(rng) for world in worlds])
    assert (np.abs(read.value - 0.1) <= read.half_widths()).mean() >= at_least(0.95, audits)

"""Means over independent audits: errors by hand, what one audit does not know, and coverage."""

import numpy as np
import pytest
from unlearning_audit.stats import average, paired

from audit_worlds import World


def test_the_mean_of_independent_audits_has_the_error_of_a_mean():
    worlds = [World(truth=(0.1, 0.3), pairs=4, samples=400), World(truth=(0.3, 0.2), pairs=8, models=2, samples=900)]
    parts = [world.read(np.random.default_rng(i)) for i, world in enumerate(worlds)]
    read = average.mean(parts)
    np.testing.assert_allclose(read.value, (parts[0].value + parts[1].value) / 2)
    np.testing.assert_allclose(read.sampled, (parts[0].sampled + parts[1].sampled) / 4)
    for layer in ("models", "units"):
        layers = [getattr(part, layer) for part in parts]
        assert getattr(read, layer).dof == min(part.dof for part in layers)
        for name in ("between", "shared"):
            expected = (getattr(layers[0], name) + getattr(layers[1], name)) / 4
            np.testing.assert_allclose(getattr(getattr(read, layer), name), expected)
    first, second = (part.design for part in parts)
    assert read.design == paired.Design(12, 2.0, (first.models + 2) / 2, first.samples + second.samples)
    alone = average.mean(parts[:1])
    np.testing.assert_allclose(alone.half_widths(), parts[0].half_widths())
    np.testing.assert_allclose(average.mean([parts[0]] * 4).errors, parts[0].errors / 2)
    for unequal in ([], [parts[0], parts[0].of(np.eye(1, 2))]):
        with pytest.raises(ValueError, match="equally many numbers"):
            average.mean(unequal)


def test_what_one_audit_alone_knows_of_a_layer_holds_for_the_mean():
    """A lone model says nothing of how models and units vary; samples vary in any audit."""
    rng = np.random.default_rng(6)
    known, alone = World((0.1,)).read(rng), np.zeros(1, np.int64)
    lone = paired.distances(value=[[0.1]], influence=rng.standard_normal((1, 1, 80)) / 80, unit=alone, split=alone)
    assert lone.models.dof == lone.units.dof == 0
    np.testing.assert_allclose(average.mean([lone]).half_widths(), lone.half_widths())
    assert np.isfinite(average.mean([lone, lone]).half_widths()).all()
    both = average.mean([lone, known])
    assert (both.models.dof, both.units.dof) == (known.models.dof, known.units.dof)


def test_the_mean_is_covered_as_often_as_it_says():
    rng, audits, inside = np.random.default_rng(5), 150, 0
    worlds = [World(truth=(0.1, 0.3), pairs=3, pair=0.05), World(truth=(0.3, 0.2), pairs=5, pair=0.02, models=2)]
    for _ in range(audits):
        read = average.mean([world.read(rng) for world in worlds])
        inside += np.abs(read.value - [0.2, 0.25]) <= read.half_widths()
    assert (inside / audits >= 0.95 - 3.1 * np.sqrt(0.05 * 0.95 / audits)).all()

"""Paired differences: closed forms, what cancels, and coverage with known truth."""

import numpy as np
import pytest
from scipy import special
from unlearning_audit import stats
from unlearning_audit.stats import crossed, paired, separation

from audit_worlds import World

AUDITS = 250
#: With a true rate of .95, fewer than this are covered in one of 1,000 tests of 250 audits.
LEAST = 0.908

WORLDS = {
    "samples and noise only": World(truth=(0.1,)),
    "models vary": World(truth=(0.1,), model=0.1),
    "pairs vary a little": World(truth=(0.1,), pair=0.03, model=0.03),
    "pairs vary much": World(truth=(0.1,), pair=0.3),
    "two pairs": World(truth=(0.1,), pairs=2, pair=0.05, model=0.03),
    "two pairs, many samples": World(truth=(0.1,), pairs=2, models=1, samples=800, asked=300, pair=0.02),
    "many models, few samples": World(truth=(0.1,), models=10, samples=30, asked=12, model=0.2),
    "one pair": World(truth=(0.1,), pairs=1, models=5, model=0.1),
    "skewed samples": World(truth=(0.1,), sample=0.8, skewed=True),
    "one model a split": World(truth=(0.1,), models=1, model=0.1),
}


@pytest.mark.parametrize("name", WORLDS)
def test_intervals_cover_the_truth(name):
    world, rng = WORLDS[name], np.random.default_rng(1)
    inside = 0
    for _ in range(AUDITS):
        (estimate,) = world.read(rng).estimates()
        inside += estimate.low <= 0.1 <= estimate.high
    assert inside / AUDITS >= LEAST


@pytest.mark.parametrize("model", [0.0, 0.1])
def test_without_an_effect_of_pairs_p_values_are_uniform_or_cautious(model):
    rng = np.random.default_rng(2)
    p = np.array([World(truth=(0.0,), model=model).read(rng).p_values()[0] for _ in range(AUDITS)])
    for level in (0.01, 0.05, 0.2):
        assert (p <= level).mean() <= level + 3.1 * np.sqrt(level * (1 - level) / AUDITS)
    assert (p <= 0.05).mean() >= 0.01  # not without power either


def test_standard_errors_are_those_of_the_world():
    for world in (WORLDS["models vary"], WORLDS["pairs vary much"], World(truth=(0.1,), pairs=16, pair=0.05)):
        rng = np.random.default_rng(3)
        reads = [world.read(rng) for _ in range(AUDITS)]
        square = [read.errors[0] ** 2 for read in reads]
        # a variance of three degrees of freedom has relative error √(2/3); the largest of three estimates lies above
        assert 0.9 < np.mean(square) / world.error**2 < 1.35
        values = [read.value[0] for read in reads]
        assert abs(np.var(values) / world.error**2 - 1) < 4 * np.sqrt(2 / AUDITS)


def test_one_number_per_unit_gives_students_t():
    values = np.array([0.3, 0.1, 0.4, 0.2, 0.7])
    distances = paired.distances(value=values[None], influence=np.zeros((1, 5, 0)), unit=np.arange(5))
    expected = stats.mean_interval(values=values)
    (estimate,) = distances.estimates()
    np.testing.assert_allclose(
        [estimate.value, estimate.low, estimate.high], [expected.value, expected.low, expected.high]
    )
    t = values.mean() / (values.std(ddof=1) / np.sqrt(5))
    np.testing.assert_allclose(distances.p_values(), 2 * special.stdtr(4, -t), rtol=1e-9)
    np.testing.assert_allclose(distances.p_values(units=True), distances.p_values())


def test_crossed_variances_are_those_of_a_two_way_table():
    rng = np.random.default_rng(4)
    table = rng.normal(size=(6, 1, 50)) + rng.normal(size=(1, 1, 50)) + rng.normal(size=(6, 1, 1))
    cells = table[:, 0]
    value, influence = cells.mean(axis=1), (cells - cells.mean(axis=1, keepdims=True)) / 50
    distances = paired.distances(value=value[None], influence=influence[None], unit=np.arange(6))
    rows, columns = cells.mean(axis=1), cells.mean(axis=0)
    rest = cells - rows[:, None] - columns + cells.mean()
    of_units = rows.var(ddof=1) / 6
    of_samples = (columns - cells.mean()) @ (columns - cells.mean()) / 50**2
    noise = (rest**2).sum() / (5 * 50**2) / 6
    assert distances.units.dof == 5
    np.testing.assert_allclose(distances.units.between, of_units)
    np.testing.assert_allclose(distances.sampled, of_samples)
    np.testing.assert_allclose(distances.units.shared, of_samples - noise)


def test_samples_of_one_unit_each_share_nothing():
    cells = np.zeros((3, 3, 20))
    cells[np.arange(3), np.arange(3)] = np.random.default_rng(5).normal(size=(3, 20))
    value = cells.sum(axis=(1, 2)) / 20
    influence = np.where(cells != 0, (cells - value[:, None, None]) / 20, 0.0).reshape(3, 60)
    distances = paired.distances(value=value[None], influence=influence[None], unit=np.arange(3))
    np.testing.assert_allclose(distances.units.shared, 0, atol=1e-15)
    assert distances.design == paired.Design(3, 1, 1, 60)


def test_what_two_methods_share_cancels():
    world = World(truth=(0.30, 0.28), common=0.999, model=0.1, pair=0.1)
    both = world.read(np.random.default_rng(6))
    gap = both.of([[1, -1]])
    assert gap.half_widths()[0] < 0.1 * both.half_widths().min()
    assert gap.p_values()[0] < 0.01
    alone = both.of([[1, 0]])
    np.testing.assert_allclose(alone.half_widths(), both.half_widths()[:1])
    np.testing.assert_allclose(gap.value, both.value[0] - both.value[1])


def test_identical_methods_are_not_told_apart():
    world = World(truth=(0.3, 0.3), common=1.0, model=0.1)
    gap = world.read(np.random.default_rng(7)).of([[1, -1]])
    np.testing.assert_allclose(gap.half_widths(), 0, atol=1e-12)
    assert gap.of([[0.0]]).p_values()[0] == 1


def test_p_value_is_where_the_interval_leaves_zero():
    distances = World(truth=(0.05, 0.1, -0.1), model=0.05).read(np.random.default_rng(8))
    for units in (False, True):
        p = distances.p_values(units=units)
        np.testing.assert_allclose(distances.half_widths(level=1 - p, units=units), np.abs(distances.value), rtol=1e-6)


def test_imagined_samples_keep_a_width_where_all_agree():
    weight = np.ones((2, 30))
    mean, influence, imagined = stats.mean_influence(value=np.ones((2, 30)), weight=weight)
    distances = paired.distances(
        value=mean[None], influence=influence[None], unit=np.arange(2), imagined=imagined[None]
    )
    assert distances.half_widths(units=False)[0] > 0.02


def test_parts_of_the_swap_test_are_read_alike():
    """Values are those of the metrics, and variances over samples and models those of `crossed`."""
    from swap_games import World as Game
    from swap_games import layout

    rng = np.random.default_rng(11)
    game = layout(rng, samples=120, pairs=4, k=25, models=3)
    sides = {"positive": game["forget"].astype(float), "negative": game["heldout"].astype(float)}
    scores = Game(leak=(0.8, 0.5), cut=(0, 0)).scores(rng, game["forget"])
    parts = [separation.auc(score=score, **sides) for score in scores]
    _, split = np.unique(np.stack([game["block"], game["split"]]), axis=1, return_inverse=True)
    whole = crossed.read(crossed.combine(parts, split=split), share=np.full(8, 1 / 8))
    fields = {name: np.stack([getattr(part, name) for part in parts]) for name in vars(parts[0])}
    distances = paired.distances(**fields, unit=game["block"], split=game["split"])
    np.testing.assert_allclose(distances.value, whole.value)
    np.testing.assert_allclose(distances.sampled, (whole.influence**2).sum(axis=1))
    np.testing.assert_allclose(distances.models.between, whole.raw)
    assert distances.models.dof == whole.dof_models
    gap = distances.of([[1, -1]])
    half = [x.half_widths(units=False) for x in (gap, distances)]
    assert half[0][0] < np.hypot(*half[1])

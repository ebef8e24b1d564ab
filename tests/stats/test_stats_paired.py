"""Distances by hand: what each layer adds to errors, intervals, p-values and correlations; and coverage."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from unlearning_audit import stats
from unlearning_audit.stats import crossed, paired
from unlearning_audit.stats.paired import Design

from audit_worlds import World
from stat_cases import at_least, at_most, numbers, three

#: A = .25, and the degrees of freedom of that.
INFLUENCE = np.array([[0.3, 0.4, 0.0]])
DOF = 2 * 0.25**2 / (0.3**4 + 0.4**4)


def single(value=0.0, influence=INFLUENCE, **layers):
    return numbers(value, influence, **layers)


def t2(dof, p=0.975):
    return float(special.stdtrit(dof, p)) ** 2


@pytest.mark.parametrize(
    ("layers", "variance", "square"),
    [
        ({}, 0.25, 0.25 * t2(DOF)),
        ({"units": (0.0, 0.25, 0)}, 0.25, 0.25 * t2(DOF)),  # of which nothing is known
        ({"models": (0.01, 0.02, 30)}, 0.25, 0.25 * t2(DOF)),
        ({"models": (0.3, 0.2, 9), "units": (0.01, 0.02, 30)}, 0.5, 0.2 * t2(DOF) + 0.3 * t2(9)),
        ({"models": (0.2, 0.15, 5), "units": (0.3, 0.1, 2)}, 0.4, 0.1 * t2(DOF) + 0.3 * t2(2)),
        ({"models": (0.6, -0.2, 9)}, 0.6, 0.6 * t2(9)),  # a variance below 0 is none
    ],
)
def test_a_layer_widens_where_it_shows_more_than_the_others(layers, variance, square):
    distances = single(**layers)
    np.testing.assert_allclose([distances.sampled, distances.errors**2], [[0.25], [variance]])
    np.testing.assert_allclose(distances.half_widths() ** 2, [square])


def test_units_do_not_widen_where_their_differences_are_no_part_of_the_question():
    distances = single(models=(0.2, 0.15, 5), units=(0.3, 0.1, 2))
    expected = 0.15 * t2(DOF, 0.9) + 0.2 * t2(5, 0.9)
    np.testing.assert_allclose(distances.half_widths(level=0.8, units=False) ** 2, [expected])


def test_many_influences_are_as_good_as_normal_and_none_is_no_error():
    np.testing.assert_allclose(single(influence=np.full((1, 40_000), 1 / 200)).half_widths(), [1.959964], rtol=1e-4)
    none = single(influence=np.zeros((1, 3)), models=(0.04, 0.0, 7))
    np.testing.assert_allclose(none.half_widths() ** 2, [0.04 * t2(7)])


def test_what_is_known_of_a_layer_has_the_quantile_of_a_normal_distribution():
    known = replace(single().models, between=np.array([[0.5]]), dof=3, known=np.array([[0.3]]))
    distances = replace(single(), models=known)
    expected = 0.2 * t2(3) + 0.3 * 1.959964**2
    np.testing.assert_allclose(distances.half_widths() ** 2, [expected], rtol=1e-6)
    np.testing.assert_allclose(distances.combined([[2.0]]).half_widths() ** 2, [4 * expected], rtol=1e-6)


@pytest.mark.parametrize("value", [0.4, -1.3])
def test_a_p_value_of_samples_is_student_s_and_leaves_units_out(value):
    distances = single(value, units=(0.5, 0.1, 2))
    np.testing.assert_allclose(distances.p_values(), [2 * special.stdtr(DOF, -abs(value) / 0.5)], rtol=1e-9)


def test_p_values_have_a_least_and_a_largest():
    models = (np.diag([1e-20, 0.0, 0.0, 0.0]), 0.0, 40)
    influence = np.diag([0.0, 0.0, 0.0, 1.0])
    p = numbers([9.0, 0.0, -1e-12, -1e-12], influence, models=models).p_values()
    np.testing.assert_allclose(p, [1e-15, 1, 1e-15, 1], rtol=1e-9)


def test_estimates_count_samples_and_note_one_unit_and_one_model():
    (estimate,) = single(0.7).estimates(level=0.5)
    half = 0.5 * np.sqrt(t2(DOF, 0.75))
    np.testing.assert_allclose(three(estimate), [0.7, 0.7 - half, 0.7 + half])
    assert (estimate.n, estimate.note) == (3, crossed.ONE_MODEL)
    models = single(models=(0.1, 0.1, 3))
    assert models.note == ""
    assert replace(models, design=Design(1, 2.0, 3.0, 3)).note == paired.ONE_UNIT


def test_linear_combinations_of_values_influences_and_layers():
    models = np.array([[2.0, 1.0], [1.0, 4.0]])
    both = numbers([1, 3], [[0.1, 0.2], [0.3, -0.1]], models=(models, models / 2, 6), units=(np.diag([5, 3]), 0, 2))
    combination = both.combined([1, -2])
    np.testing.assert_allclose(combination.value, [-5])
    np.testing.assert_allclose(combination.influence, [[-0.5, 0.4]])
    layers = [
        (layer.between.item(), layer.shared.item(), layer.dof) for layer in (combination.models, combination.units)
    ]
    assert layers == [(14.0, 7.0, 6), (17.0, 0.0, 2)]
    assert combination.design == both.design
    np.testing.assert_allclose(both.minus(np.array([0.5, 1.0])).value, [0.5, 2.0])
    alone = both.of_samples()
    np.testing.assert_allclose(alone.errors**2, both.sampled)
    assert (alone.models.dof, alone.units.dof) == (0, 0)


def test_errors_correlate_by_samples_and_by_what_models_add_beyond_noise():
    """Of the first number's variance between models, .5, the noise .1 − .04 is left out; of the second nothing is."""
    models = np.array([[0.5, 0.3], [0.3, 0.2]]), np.array([[0.04, 0.0], [0.0, 0.5]]), 3
    read = numbers([0, 0], [[0.3, 0.1, 0.0], [0.4, 0.0, 0.3]], models=models, units=(9.0, 0.0, 1))
    covariance, variances = 0.12 + 0.3 * np.sqrt(1 - 0.06 / 0.5), (0.1 + 0.5 - 0.06) * (0.25 + 0.2)
    expected = covariance / np.sqrt(variances)
    np.testing.assert_allclose(read.correlation, [[1, expected], [expected, 1]])
    np.testing.assert_allclose(read.of_samples().correlation[0, 1], 0.12 / np.sqrt(0.1 * 0.25))
    still = numbers([0, 0], [[0.0, 0.0], [0.3, 0.4]], models=(np.diag([0.0, 0.1]), np.diag([0.0, 0.3]), 3))
    np.testing.assert_array_equal(still.correlation, np.eye(2))


#: Two units: the first of two splits with 2 and 1 models, the second of one split with 3; samples in rows of .1.
UNIT, SPLIT = np.array([5, 5, 5, 8, 8, 8]), np.array([0, 0, 1, 0, 0, 0])
VALUE = np.array([1.0, 3.0, 6.0, 2.0, 4.0, 9.0])
MOVED = np.array([[1, -1, 0], [3, 0, 0], [0, 2, 0], [1, 1, 0], [2, 0, 0], [0, -1, 0]]) / 10


def test_a_design_of_unequal_units_by_hand():
    distances = paired.distances(value=VALUE[None], influence=MOVED[None], unit=UNIT, split=SPLIT)
    # splits 2, 6 and 5; units 4 and 5
    np.testing.assert_allclose(distances.value, [4.5])
    splits = np.array([[2, -0.5, 0], [0, 2, 0], [1, 0, 0]]) / 10
    units = np.array([(splits[0] + splits[1]) / 2, splits[2]])
    np.testing.assert_allclose(distances.influence, [units.mean(axis=0)])
    assert distances.design == Design(2, 1.5, 2.0, 2)
    # shares of splits ¼, ¼, ½ of 2, 1, 3 models; three degrees of freedom; deviations ∓1, 0 and −3, −1, 4
    scale = (0.25**2 / 2 + 0.25**2 / 1 + 0.5**2 / 3) / 3
    rest = MOVED - splits[[0, 0, 1, 2, 2, 2]]
    np.testing.assert_allclose(distances.models.between, [[28 * scale]])
    np.testing.assert_allclose(distances.models.shared, distances.sampled[None] - (rest**2).sum() * scale)
    np.testing.assert_allclose(distances.units.between, [[0.5 / 2]])
    np.testing.assert_allclose(distances.units.shared, [[2 * units[0] @ units[1] / 2]])
    assert (distances.models.dof, distances.units.dof) == (3, 1)


def test_models_that_repeat_no_split_are_compared_as_splits():
    index = np.array([1, 2, 3])
    moved, places = MOVED[index], {"unit": UNIT[index], "split": [0, 1, 0]}
    distances = paired.distances(value=VALUE[None, index], influence=moved[None], **places)
    np.testing.assert_allclose(distances.models.between, [[np.var([3.0, 6.0, 2.0], ddof=1) / 3]])
    together = sum(moved[i] @ moved[j] for i in range(3) for j in range(3) if i != j)
    np.testing.assert_allclose(distances.models.shared, [[together / 6]])
    assert (distances.models.dof, distances.design) == (2, Design(2, 1.5, 1.0, 2))


def test_of_one_unit_nothing_is_known_of_others():
    distances = paired.distances(value=VALUE[None, :2], influence=MOVED[None, :2], unit=[3, 3])
    np.testing.assert_array_equal([distances.units.between, distances.units.shared], [[[0.0]], distances.sampled[None]])
    assert (distances.units.dof, distances.models.dof, distances.design) == (0, 1, Design(1, 1.0, 2.0, 2))


def test_imagined_samples_shrink_as_averaging_shrinks_real_ones():
    imagined = np.array([[1.0, 0], [3, 0], [0, 2], [1, 1], [0, 0], [2, 2]]) / 10
    places = {"unit": UNIT, "split": SPLIT}
    distances = paired.distances(value=VALUE[None], influence=MOVED[None], **places, imagined=imagined[None])
    share = np.array([0.25, 0.25, 0.5])
    of_splits = np.array([[2.0, 0], [0, 2], [1, 1]]) / 10 * share[:, None]
    alone = np.array([(2 + 9) / 2, 4, (2 + 4 + 1) / 3]) / 100 @ share**2
    real, variance = (distances.influence[0, :3] ** 2).sum(), (of_splits**2).sum()
    shrinkage = (real + variance) / (alone + variance)
    assert shrinkage < 1
    np.testing.assert_allclose(distances.influence[0, 3:], (of_splits * np.sqrt(shrinkage)).reshape(-1))


def test_what_is_not_finite_is_refused():
    good = {"value": np.ones((1, 2)), "influence": np.zeros((1, 2, 2)), "unit": np.arange(2)}
    for change in ({"influence": np.full((1, 2, 2), np.inf)}, {"value": np.array([[1.0, np.nan]])}):
        with pytest.raises(ValueError, match="not finite: leave such methods out"):
            paired.distances(**good | change)


def test_one_number_per_unit_gives_students_t():
    values = np.array([0.3, 0.1, 0.4, 0.2, 0.7])
    distances = paired.distances(value=values[None], influence=np.zeros((1, 5, 0)), unit=np.arange(5))
    np.testing.assert_allclose(three(distances.estimates()[0]), three(stats.mean_interval(values=values)))
    t = values.mean() / (values.std(ddof=1) / np.sqrt(5))
    np.testing.assert_allclose(distances.p_values(), 2 * special.stdtr(4, -t), rtol=1e-9)


#: So many numbers are drawn at once, with errors of their own, in three audits.
NUMBERS, READS = 80, 3
WORLDS = {
    "samples and noise only": {},
    "models vary": {"model": 0.1},
    "pairs vary a little": {"pair": 0.03, "model": 0.03},
    "pairs vary much": {"pair": 0.3},
    "two pairs": {"pairs": 2, "pair": 0.05, "model": 0.03},
    "two pairs, many samples": {"pairs": 2, "models": 1, "samples": 800, "asked": 300, "pair": 0.02},
    "many models, few samples": {"models": 10, "samples": 30, "asked": 12, "model": 0.2},
    "one pair": {"pairs": 1, "models": 5, "model": 0.1},
    "skewed samples": {"sample": 0.8, "skewed": True},
    "one model a split": {"models": 1, "model": 0.1},
}


def reads(truth=0.1, **size):
    world, rng = World(truth=(truth,) * NUMBERS, common=0.0, **size), np.random.default_rng(1)
    return world, [world.read(rng) for _ in range(READS)]


@pytest.mark.parametrize("name", WORLDS)
def test_intervals_cover_the_truth(name):
    world, audits = reads(**WORLDS[name])
    inside = np.mean([np.abs(read.value - 0.1) <= read.half_widths() for read in audits])
    assert inside >= at_least(0.95, NUMBERS * READS)
    if name in ("models vary", "pairs vary much"):
        # a variance of three degrees of freedom has relative error √(2/3); the largest of three estimates lies above
        assert 0.9 < np.mean([read.errors**2 for read in audits]) / world.error**2 < 1.35
        spread = np.mean([read.value.var() for read in audits])
        assert abs(spread / world.error**2 - 1) < 4 * np.sqrt(2 / (NUMBERS * READS))


@pytest.mark.parametrize("model", [0.0, 0.1])
def test_without_an_effect_of_pairs_p_values_are_uniform_or_cautious(model):
    p = np.concatenate([read.p_values() for read in reads(0.0, model=model)[1]])
    for level in (0.01, 0.05, 0.2):
        assert (p <= level).mean() <= at_most(level, len(p))
    assert (p <= 0.05).mean() >= 0.01  # not without power either

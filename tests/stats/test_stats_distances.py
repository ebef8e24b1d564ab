"""Distances by hand: what each layer adds to errors, intervals, p-values and correlations."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from unlearning_audit.stats import crossed, paired
from unlearning_audit.stats.paired import Design, Distances, Layer

NOTHING = Layer(np.zeros((1, 1)), np.zeros((1, 1)), 0)
#: A = .25, and the degrees of freedom of that.
INFLUENCE = np.array([[0.3, 0.4, 0.0]])
DOF = 2 * 0.25**2 / (0.3**4 + 0.4**4)


def layer(between, shared, dof):
    return Layer(np.array([[between]]), np.array([[shared]]), dof)


def single(value=0.0, influence=INFLUENCE, models=NOTHING, units=NOTHING):
    return Distances(np.array([value]), np.array(influence), models, units, Design(2, 2.0, 3.0, 3))


def t(dof, p):
    return float(special.stdtrit(dof, p))


def test_samples_alone():
    distances = single()
    np.testing.assert_allclose(distances.sampled, [0.25])
    np.testing.assert_allclose(distances.errors, [0.5])
    np.testing.assert_allclose(distances.half_widths(), [0.5 * t(DOF, 0.975)])
    np.testing.assert_allclose(distances.half_widths(level=0.3), [0.5 * t(DOF, 0.65)])


def test_models_widen_and_units_do_unless_their_differences_are_no_part_of_the_question():
    distances = single(models=layer(0.2, 0.15, 5), units=layer(0.3, 0.1, 2))
    np.testing.assert_allclose(distances.errors, [np.sqrt(0.4)])
    tail = 0.9
    models = t(DOF, tail) ** 2 * 0.15 + t(5, tail) ** 2 * 0.2
    units = t(DOF, tail) ** 2 * 0.1 + t(2, tail) ** 2 * 0.3
    assert units > models > t(DOF, tail) ** 2 * 0.25
    np.testing.assert_allclose(distances.half_widths(level=0.8), [np.sqrt(units)])
    np.testing.assert_allclose(distances.half_widths(level=0.8, units=False), [np.sqrt(models)])


def test_the_interval_is_never_narrower_than_samples_or_models_make_it():
    distances = single(models=layer(0.3, 0.2, 9), units=layer(0.01, 0.02, 30))
    models = np.sqrt(t(DOF, 0.975) ** 2 * 0.2 + t(9, 0.975) ** 2 * 0.3)
    np.testing.assert_allclose(distances.half_widths(), [models])
    np.testing.assert_allclose(distances.errors, [np.sqrt(0.5)])
    small = single(models=layer(0.01, 0.02, 30))
    np.testing.assert_allclose(small.half_widths(), [0.5 * t(DOF, 0.975)])
    np.testing.assert_allclose(small.errors, [0.5])


def test_a_layer_of_which_nothing_is_known_adds_nothing():
    np.testing.assert_allclose(single(units=layer(0.0, 0.25, 0)).half_widths(), single().half_widths())


def test_variances_below_zero_are_none():
    components = layer(-0.1, -0.2, 3)
    assert [x.tolist() for x in components.variances] == [[0.0], [0.0]]
    np.testing.assert_allclose(single(models=layer(0.4, -0.2, 9)).errors, [np.sqrt(0.4)])


def test_many_influences_are_as_good_as_normal():
    distances = single(influence=np.full((1, 40_000), 1 / 200))
    np.testing.assert_allclose(distances.half_widths(), [1.959964], rtol=1e-4)
    none = single(influence=np.zeros((1, 3)), models=layer(0.04, 0.0, 7))
    np.testing.assert_allclose(none.half_widths(), [0.2 * t(7, 0.975)])


@pytest.mark.parametrize("value", [0.4, -1.3])
def test_a_p_value_of_samples_is_student_s(value):
    distances = single(value, units=layer(0.5, 0.1, 2))
    np.testing.assert_allclose(distances.p_values(), [2 * special.stdtr(DOF, -abs(value) / 0.5)], rtol=1e-9)
    assert distances.p_values(units=True)[0] > distances.p_values()[0]


def test_p_values_have_a_least_and_a_largest():
    distances = Distances(
        np.array([9.0, 0.0, -1e-12]), np.eye(3) * np.array([1e-9, 0.0, 1.0])[:, None],
        *(Layer(np.zeros((3, 3)), np.zeros((3, 3)), 0),) * 2, Design(2, 1.0, 1.0, 3),
    )  # fmt: skip
    models = Layer(np.diag([1e-20, 0.0, 0.0]), np.zeros((3, 3)), 40)
    least, none, nearly = replace(distances, influence=np.zeros((3, 3)), models=models).p_values()
    np.testing.assert_allclose(least, 1e-15, rtol=1e-9)
    assert none == 1
    np.testing.assert_allclose(nearly, 1e-15, rtol=1e-9)
    np.testing.assert_allclose(distances.p_values()[2], 1, rtol=1e-9)


def test_estimates_count_samples_and_tell_the_level_and_the_note():
    distances = single(0.7)
    (estimate,) = distances.estimates(level=0.5, units=False, note="phi")
    half = 0.5 * t(DOF, 0.75)
    np.testing.assert_allclose([estimate.value, estimate.low, estimate.high], [0.7, 0.7 - half, 0.7 + half])
    assert (estimate.n, estimate.note) == (3, f"phi; {crossed.ONE_MODEL}")
    (wide,) = single(0.7, units=layer(0.5, 0.1, 2)).estimates()
    assert wide.high > 0.7 + 0.5 * t(DOF, 0.975)


def test_a_note_for_one_unit_and_for_one_model():
    models = layer(0.1, 0.1, 3)
    assert single(models=models).note == ""
    assert replace(single(models=models), design=Design(1, 2.0, 3.0, 3)).note == paired.ONE_UNIT
    assert replace(single(), design=Design(1, 2.0, 1.0, 3)).note == crossed.ONE_MODEL


def test_linear_combinations_of_values_influences_and_layers():
    both = Distances(
        np.array([1.0, 3.0]), np.array([[0.1, 0.2], [0.3, -0.1]]),
        Layer(np.array([[2.0, 1.0], [1.0, 4.0]]), np.array([[1.0, 0.5], [0.5, 2.0]]), 6),
        Layer(np.array([[5.0, 1.0], [1.0, 3.0]]), np.zeros((2, 2)), 2), Design(3, 1.0, 4.0, 2),
    )  # fmt: skip
    combination = both.of([1, -2])
    np.testing.assert_allclose(combination.value, [-5])
    np.testing.assert_allclose(combination.influence, [[-0.5, 0.4]])
    np.testing.assert_allclose([combination.models.between, combination.models.shared], [[[14.0]], [[7.0]]])
    np.testing.assert_allclose(combination.units.between, [[13.0]])
    assert (combination.models.dof, combination.units.dof, combination.design) == (6, 2, both.design)
    np.testing.assert_allclose(both.minus(np.array([0.5, 1.0])).value, [0.5, 2.0])
    np.testing.assert_allclose(both.minus(0.5).errors, both.errors)
    alone = both.of_samples()
    np.testing.assert_allclose(alone.errors, np.sqrt(both.sampled))
    assert (alone.models.dof, alone.units.dof) == (0, 0)
    np.testing.assert_array_equal([alone.models.between, alone.units.shared], np.zeros((2, 2, 2)))


def test_errors_correlate_by_samples_and_by_what_models_add_beyond_noise():
    """Of the first number's variance between models, .5, the noise .1 − .04 is left out; of the second nothing is."""
    between, shared = np.array([[0.5, 0.3], [0.3, 0.2]]), np.array([[0.04, 0.0], [0.0, 0.5]])
    read = Distances(
        np.zeros(2), np.array([[0.3, 0.1, 0.0], [0.4, 0.0, 0.3]]), Layer(between, shared, 3),
        Layer(np.full((2, 2), 9.0), np.zeros((2, 2)), 1), Design(2, 1.0, 1.0, 3),
    )  # fmt: skip
    total = np.array([[0.1 + 0.5 - 0.06, 0.12 + 0.3 * np.sqrt(1 - 0.06 / 0.5)], [0.0, 0.25 + 0.2]])
    expected = total[0, 1] / np.sqrt(total[0, 0] * total[1, 1])
    np.testing.assert_allclose(read.correlation, [[1, expected], [expected, 1]])
    alone = replace(read, models=replace(read.models, dof=0))
    np.testing.assert_allclose(alone.correlation[0, 1], 0.12 / np.sqrt(0.1 * 0.25))


def test_numbers_without_error_correlate_with_themselves_only():
    read = Distances(
        np.zeros(2), np.array([[0.0, 0.0], [0.3, 0.4]]), Layer(np.diag([0.0, 0.1]), np.diag([0.0, 0.3]), 3),
        NOTHING, Design(2, 1.0, 1.0, 2),
    )  # fmt: skip
    np.testing.assert_array_equal(read.correlation, np.eye(2))


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
    assert distances.models.dof == 3
    np.testing.assert_allclose(distances.units.between, [[0.5 / 2]])
    np.testing.assert_allclose(distances.units.shared, [[2 * units[0] @ units[1] / 2]])
    assert distances.units.dof == 1


def test_models_that_repeat_no_split_are_compared_as_splits():
    index = np.array([1, 2, 3])
    distances = paired.distances(
        value=VALUE[None, index], influence=MOVED[None, index], unit=UNIT[index], split=[0, 1, 0]
    )
    values, moved = np.array([3.0, 6.0, 2.0]), MOVED[index]
    np.testing.assert_allclose(distances.models.between, [[values.var(ddof=1) / 3]])
    together = sum(moved[i] @ moved[j] for i in range(3) for j in range(3) if i != j)
    np.testing.assert_allclose(distances.models.shared, [[together / 6]])
    assert distances.models.dof == 2
    assert distances.design == Design(2, 1.5, 1.0, 2)
    apart = paired.distances(value=VALUE[None, :2], influence=MOVED[None, :2], unit=[0, 1])
    assert apart.design == Design(2, 1.0, 1.0, 2)


def test_of_one_unit_nothing_is_known_of_others():
    distances = paired.distances(value=VALUE[None, :2], influence=MOVED[None, :2], unit=[3, 3])
    np.testing.assert_array_equal(distances.units.between, [[0.0]])
    np.testing.assert_array_equal(distances.units.shared, distances.sampled[None])
    assert (distances.units.dof, distances.models.dof) == (0, 1)
    assert distances.design == Design(1, 1.0, 2.0, 2)


def test_imagined_samples_shrink_as_averaging_shrinks_real_ones():
    imagined = np.array([[1.0, 0], [3, 0], [0, 2], [1, 1], [0, 0], [2, 2]]) / 10
    distances = paired.distances(
        value=VALUE[None], influence=MOVED[None], unit=UNIT, split=SPLIT, imagined=imagined[None]
    )
    share = np.array([0.25, 0.25, 0.5])
    of_splits = np.array([[2.0, 0], [0, 2], [1, 1]]) / 10 * share[:, None]
    alone = np.array([(2 + 9) / 2, 4, (2 + 4 + 1) / 3]) / 100 @ share**2
    real, variance = (distances.influence[0, :3] ** 2).sum(), (of_splits**2).sum()
    shrinkage = min((real + variance) / (alone + variance), 1)
    np.testing.assert_allclose(distances.influence[0, 3:], (of_splits * np.sqrt(shrinkage)).reshape(-1))
    np.testing.assert_allclose(distances.sampled, [real + variance * shrinkage])
    assert shrinkage < 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"value": np.ones(2)}, "\\[K, models\\]"),
        ({"influence": np.zeros((1, 2))}, "got \\(1, 2\\), \\(1, 2\\)"),
        ({"influence": np.full((1, 2, 2), np.inf)}, "leave such methods out"),
        ({"value": np.array([[1.0, np.nan]])}, "not finite"),
        ({"unit": np.arange(3)}, "each of 2 models"),
        ({"split": np.arange(5)}, "where it belongs"),
    ],
)
def test_what_cannot_be_read_is_refused(change, words):
    good = {"value": np.ones((1, 2)), "influence": np.zeros((1, 2, 2)), "unit": np.arange(2)}
    with pytest.raises(ValueError, match=words):
        paired.distances(**good | change)

"""The check without models: sides that can be told apart by their data alone are seen, random sides are not."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import blind
from unlearning_audit.stats import Estimate

import metric_calls as call
from stat_cases import at_least


def found(y, forget, heldout, features=None, shuffles=400) -> dict[str, Estimate]:
    options, sides = blind.Options(shuffles=shuffles), (np.array(forget, bool), np.array(heldout, bool))
    numbers = blind.evaluate(np.array(y), *sides, features, options, np.random.default_rng(0))
    assert {number.n for number in numbers.values()} == {(sides[0] | sides[1]).sum()}
    return numbers


def test_random_sides_pass_the_blind_check():
    rng, repeats = np.random.default_rng(18), 10
    inside = {"blind_auc": 0, "blind_accuracy": 0, "label_overlap": 0}
    for _ in range(repeats):
        y, x, order = rng.integers(0, 10, 600), rng.normal(size=(600, 32)), rng.permutation(600)
        rows = found(y, order < 250, order >= 350, x)
        for name in ("blind_auc", "blind_accuracy"):
            inside[name] += rows[name].low <= 0.5 <= rows[name].high
        inside["label_overlap"] += rows["label_overlap"].value >= rows["label_overlap_random"].low
    # 95 % each; 97.5 % for the one-sided flag of the labels
    assert min(inside.values()) / repeats >= at_least(0.95, repeats)


def test_leaky_sides_are_seen():
    rng = np.random.default_rng(19)
    # Few features, so that the learned rule is nearly as good as the best one, of which the truth is known.
    y, x = rng.integers(0, 10, 600), rng.normal(size=(600, 2))
    forget = rng.random(600) < 0.5
    x[forget, 0] += 1.5  # two unit Gaussians at distance 1.5
    rows = found(y, forget, ~forget, x)
    for name, truth in (("blind_auc", ndtr(1.5 / math.sqrt(2))), ("blind_accuracy", ndtr(0.75))):
        assert rows[name].low <= truth <= rows[name].high < rows[name].low + 0.15


def test_the_range_of_random_divisions_holds_95_of_100():
    """100 of 200 samples have label 1, 100 are forgotten: k of both is hypergeometric, the overlap 1 − |k − 50|/50."""
    forget = np.arange(200) < 100
    overlap = found(np.arange(200) % 2, forget, ~forget, shuffles=4000)["label_overlap_random"]
    # standard deviation of k: √(100·½·½·100/199) = 3.54, so k is beyond 50 ± 7 in 3.4 % and beyond 50 ± 8 in 1.6 %
    assert overlap.low in (0.84, 0.86)
    assert overlap.high == 1
    assert overlap.value == pytest.approx(1 - math.sqrt(2 / math.pi) * 3.54 / 50, abs=0.004)


def test_sides_may_differ_in_size_and_need_as_many_samples_as_folds():
    y, forget = np.array([0, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1]), np.arange(11) < 5
    assert found(y, forget, ~forget)["label_overlap"].value == pytest.approx(1 / 3 + 3 / 5)
    for swapped in ((forget, forget & (y > 0)), (forget & (y > 0), forget)):
        with pytest.raises(ValueError, match=r"at least 5 samples on each side, not \((5, 3|3, 5)\)"):
            found(y, *swapped)


def test_a_feature_that_names_the_side_tells_all_and_one_that_names_the_sample_nothing():
    y, number = np.arange(41) % 3, np.arange(41)
    sides = number < 20, (number >= 20) & (number < 40)
    rows = found(y, *sides, np.where(sides[0], 1.0, -1.0)[:, None])
    for name in ("blind_accuracy", "blind_auc"):
        assert rows[name].value == 1
        assert 0.4 < rows[name].low < 0.99
    # learned by heart, a sample says nothing of the fold that it is asked in: all its scores are the same
    rows = found(y, *sides, np.eye(41))
    assert rows["blind_accuracy"].value == rows["blind_auc"].value == 0.5


def test_texts_are_bags_of_tokens():
    x = np.int32([[5, ~np.int32(7), 5, -1], [7, 9, 5, 0], [9, ~np.int32(0), 3, -1]])
    assert blind.bags(x).tolist() == [[0, 2, 1, 0], [1, 1, 1, 1], [1, 0, 0, 1]], "of 0, 5, 7 and 9; padding is no token"


def test_principal_components_keep_distances_and_see_no_scale():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 5)) * [1, 10, 100, 0.1, 1] + 7
    rule, components = (x - x.mean(0)) / x.std(0), blind.principal(x, 2)
    assert components.shape == (30, 2)
    distance = [np.linalg.norm(points[:, None] - points, axis=-1) for points in (components, rule)]
    np.testing.assert_allclose(*distance, atol=1e-9)
    assert components[:, 0].std() > components[:, 1].std()
    np.testing.assert_allclose(blind.principal(x, 5), rule, atol=1e-12)
    assert (blind.principal(np.full((4, 1), 3.0), 1) == 0).all()


def case_rows(models: int, apart: int, text: bool = False, half: int = 20) -> dict[str, Row]:
    """Rows of target models of which the first ``apart`` forget label 0 and hold out label 1, the others half of each;
    one more model is a shadow model of no matter. A pixel, or a token, names the side, and another the label."""
    y, odd = np.repeat([0, 1], half), np.arange(2 * half) % 2
    forget = np.array([y == 0] * apart + [odd == 0] * (models - apart) + [np.arange(2 * half) < 1])
    count = np.arange(models + 1)
    member = Membership(forget, forget, ~forget, count, split=0 * count, block=count, shadow=count == models)
    x = np.stack([y, 2 + odd], axis=1)
    x = x.astype(np.int32) if text else (x[:, :, None] * 85).astype(np.uint8)
    evaluation = SimpleNamespace(membership=member, target=~member.shadow, data=SimpleNamespace(x=x, y=y))
    rows = call.rows(blind, evaluation, {"metrics": {"blind": {"shuffles": 100}}, "seed": 0})
    return {row.metric: row for row in rows}


def test_a_case_is_read_by_its_targets_and_its_pixels_or_tokens():
    rows = case_rows(2, 2)
    told = rows["label_overlap"]
    assert (told.value, told.ci_low, told.ci_high, told.note) == (0, 0, 0, f"mean of 2 models; {blind.LEAKY}")
    for text in (True, False):  # the second pixel or token names the side, but the label does not
        rows = case_rows(2, 0, text)
        assert (rows["label_overlap"].value, rows["label_overlap"].note) == (1, "mean of 2 models")
        assert rows["blind_auc"].value == rows["blind_accuracy"].value == 1
    assert case_rows(1, 1)["label_overlap"].note == blind.LEAKY
    # one strange model among ten: the mean is .9, and random divisions reach lower
    row = case_rows(10, 1)["label_overlap"]
    assert (row.value, row.ci_low, row.ci_high, row.n) == (*[pytest.approx(0.9)] * 3, 40)
    assert row.note == "mean of 10 models"

"""The blind check where every number can be counted: four labels, and features that name a side or a sample."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import blind

import metric_calls as call

#: Two samples on each side and one that no model was asked about.
FORGET, HELDOUT = np.array([1, 1, 0, 0, 0], bool), np.array([0, 0, 1, 1, 0], bool)


def rows_by_metric(y, forget=FORGET, heldout=HELDOUT, features=None, **options) -> dict[str, dict]:
    rows = blind.evaluate(
        y=np.array(y), forget=forget, heldout=heldout, features=features,
        options=blind.Options(**{"folds": 2, "shuffles": 400, **options}), rng=np.random.default_rng(0),
    )  # fmt: skip
    return {row.metric: row for row in rows}


def limits(row: dict) -> tuple[float, ...]:
    return row.value, row.ci_low, row.ci_high


def test_random_divisions_of_four_labels():
    """Of the six ways to divide 0, 0, 1, 1 in two, two tell the labels apart; the sample outside is never drawn."""
    rows = rows_by_metric([0, 0, 1, 1, 7])
    assert limits(rows["label_overlap"]) == (0, 0, 0)
    assert rows["label_overlap"].note == "", "a third of all random divisions is as bad"
    chance = rows["label_overlap_random"]
    assert chance.value == pytest.approx(2 / 3, abs=4 * math.sqrt(2 / 9 / 400))
    assert (chance.ci_low, chance.ci_high) == (0, 1)
    assert chance.note == "range of 400 random divisions"
    assert rows["label_overlap"].n == chance.n == 4
    same = rows_by_metric([0, 1, 0, 1, 7])
    assert limits(same["label_overlap"]) == (1, 1, 1)


def test_the_range_of_random_divisions_holds_95_of_100():
    """100 of 200 samples have label 1, 100 are forgotten: k of both is hypergeometric, the overlap 1 − |k − 50|/50."""
    y = np.arange(200) % 2
    forget = np.arange(200) < 100
    overlap = rows_by_metric(y, forget, ~forget, shuffles=4000)["label_overlap_random"]
    # standard deviation of k: √(100·½·½·100/199) = 3.54, so k is beyond 50 ± 7 in 3.4 % and beyond 50 ± 8 in 1.6 %
    assert overlap.ci_low in (0.84, 0.86)
    assert overlap.ci_high == 1
    assert overlap.value == pytest.approx(1 - math.sqrt(2 / math.pi) * 3.54 / 50, abs=0.004)


def test_sides_may_differ_in_size_and_need_as_many_samples_as_folds():
    forget, heldout = np.array([1, 1, 0, 0, 0], bool), np.array([0, 0, 1, 1, 1], bool)
    rows = rows_by_metric([0, 1, 0, 1, 1], forget, heldout)
    assert rows["label_overlap"].value == pytest.approx(1 / 3 + 1 / 2)
    assert [rows[name].n for name in rows] == [5] * 4
    assert rows["blind_auc"].note == rows["blind_accuracy"].note == "no features were given"
    for sides in ((forget, heldout), (heldout, forget)):
        with pytest.raises(ValueError, match=r"at least 3 samples on each side, not \((2, 3|3, 2)\)"):
            rows_by_metric([0, 1, 0, 1, 1], *sides, folds=3)


def test_a_feature_that_names_the_side_tells_all_and_one_that_names_the_sample_nothing():
    y, forget = np.arange(41) % 3, np.arange(41) < 20
    heldout = (np.arange(41) >= 20) & (np.arange(41) < 40)
    side = np.where(forget, 1.0, -1.0)[:, None, None]
    rows = rows_by_metric(y, forget, heldout, side, folds=5)
    for name in ("blind_accuracy", "blind_auc"):
        assert rows[name].value == 1
        assert rows[name].n == 40
        assert 0.4 < rows[name].ci_low < 0.99
        assert rows[name].attack == "blind"
    # learned by heart, a sample says nothing of the fold that it is asked in: all its scores are the same
    rows = rows_by_metric(y, forget, heldout, np.eye(41), folds=5, ridge=1e-3)
    assert rows["blind_accuracy"].value == rows["blind_auc"].value == 0.5


def test_the_penalty_is_that_of_the_option():
    forget, x = np.arange(60) < 30, np.random.default_rng(1).normal(size=(60, 40))
    x[:, 0] += 2 * forget
    aucs = {rows_by_metric(forget * 1, forget, ~forget, x, ridge=ridge)["blind_auc"].value for ridge in (1e-4, 50)}
    assert len(aucs) == 2


def test_principal_components_keep_distances_and_see_no_scale():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 5)) * [1, 10, 100, 0.1, 1] + 7
    standard = (x - x.mean(0)) / x.std(0)
    components = blind.principal(x, 2)
    assert components.shape == (30, 2)
    distance = [np.linalg.norm(points[:, None] - points, axis=-1) for points in (components, standard)]
    np.testing.assert_allclose(*distance, atol=1e-9)
    assert components[:, 0].std() > components[:, 1].std()
    np.testing.assert_allclose(blind.principal(x, 5), standard, atol=1e-12)
    assert (blind.principal(np.full((4, 1), 3.0), 1) == 0).all()


def test_rows_are_means_over_target_models_and_the_flag_is_that_of_the_mean():
    def row(metric, value, low, note, n=9):
        return Row(metric, value, low, 2 * value, n, note)

    same = row("a", 0.25, 0.0, "x"), row("a", 0.75, 0.5, "x", 8), row("a", 0.5, 0.25, "", 7)
    assert blind._mean(same) == row("a", 0.5, 0.25, "mean of 3 models; x")
    assert blind._mean(same[:1]) == same[0]


def case(models: int, apart: int, weight=None):
    """Target models of which the first ``apart`` forget label 0 and hold out label 1, the others half of each; one
    more model is a shadow model of no matter."""
    y = np.repeat([0, 1], 20)
    forget = np.array([y == 0] * apart + [np.arange(40) % 2 == 0] * (models - apart) + [np.arange(40) < 1])
    count = models + 1
    member = Membership(
        train=forget, forget=forget, heldout=~forget, seed=np.arange(count), split=np.zeros(count, int),
        block=np.arange(count), shadow=np.arange(count) == models, weight=weight,
    )  # fmt: skip
    x = np.stack([y, np.arange(40) % 2], axis=1)[:, :, None] * 255
    data = SimpleNamespace(x=x.astype(np.uint8), y=y)
    return SimpleNamespace(membership=member, target=~member.shadow, data=data)


def rows_of(case, **options) -> dict[str, dict]:
    rows = call.rows(blind, case, {"metrics": {"blind": {"folds": 2, "shuffles": 100, **options}}, "seed": 0})
    return {row.metric: row for row in rows}


def test_a_case_is_read_by_its_targets_and_its_pixels():
    rows = rows_of(case(2, 2))
    assert limits(rows["label_overlap"]) == (0, 0, 0)
    assert rows["label_overlap"].note == f"mean of 2 models; {blind.LEAKY}"
    assert rows["blind_auc"].value == rows["blind_accuracy"].value == 1
    # the second pixel names the side, but the label does not
    rows = rows_of(case(2, 0))
    assert (rows["label_overlap"].value, rows["label_overlap"].note) == (1, "mean of 2 models")
    assert rows["blind_auc"].value == 1
    assert math.isnan(rows_of(case(2, 0), features="none")["blind_auc"].value)
    alone = rows_of(case(1, 1))
    assert alone["label_overlap"].note == blind.LEAKY
    # one strange model among ten: the mean is .9, and random divisions reach lower
    rows = rows_of(case(10, 1))
    assert rows["label_overlap"].value == pytest.approx(0.9)
    assert rows["label_overlap"].note == "mean of 10 models"

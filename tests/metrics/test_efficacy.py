"""Efficacy against the closed form of softmax regression, its upper bound, and its summaries."""

import math

import numpy as np
import pytest
from scipy import special
from unlearning_audit import stats
from unlearning_audit.metrics.efficacy import efficacy, evaluate, information, median_interval, probability

from row_places import about


def softmax_regression(rng, *, samples: int, features: int, classes: int):
    """Gradients of log p_y at random weights and bias, float64 [samples, parameters], with x, p and y."""
    x, y = rng.normal(size=(samples, features)), rng.integers(0, classes, samples)
    weight, bias = rng.normal(size=(classes, features)), rng.normal(size=classes)

    def log_p(weight, bias):
        return special.log_softmax(x @ weight.T + bias, axis=1)[np.arange(samples), y]

    gradients, step = [], 1e-6
    for array in (weight, bias):
        for at in np.ndindex(array.shape):
            value = array[at]
            array[at] = value + step
            up = log_p(weight, bias)
            array[at] = value - step
            gradients.append((up - log_p(weight, bias)) / (2 * step))
            array[at] = value
    return np.array(gradients).T, x, special.softmax(x @ weight.T + bias, axis=1), y


def over_models(rows):
    """metric → row, without those of single models."""
    return {r.metric: r for r in rows if "model=" not in about(r)}


def test_closed_form_of_softmax_regression():
    # ∇ of log p_y by W is (e_y − p)xᵀ and by b is e_y − p: squared norm ‖p − e_y‖²(‖x‖² + 1)
    rng = np.random.default_rng(0)
    models = [softmax_regression(rng, samples=7, features=3, classes=4) for _ in range(5)]
    squared = np.stack([(g**2).sum(axis=1) for g, *_ in models])
    of_mean = np.array([(g.mean(axis=0) ** 2).sum() for g, *_ in models])
    truth = np.stack([((p - np.eye(4)[y]) ** 2).sum(axis=1) * ((x**2).sum(axis=1) + 1) for _, x, p, y in models]).mean(
        axis=1
    )
    np.testing.assert_allclose(information(squared), truth, rtol=1e-6)
    metrics = evaluate(squared_norms=squared, mean_squared_norm=of_mean)
    rows = over_models(metrics)
    assert rows["information"].value == pytest.approx(truth.mean(), rel=1e-6)
    assert rows["efficacy"].value == pytest.approx((1 / truth).mean(), rel=1e-6)
    assert rows["efficacy_upper_bound"].value == pytest.approx((1 / of_mean).mean(), rel=1e-6)
    assert rows["efficacy_sd"].value == pytest.approx((1 / truth).std(ddof=1), rel=1e-6)
    assert rows["efficacy_median"].value == pytest.approx(np.median(1 / truth), rel=1e-6)
    half = special.stdtrit(4, 0.975) * truth.std(ddof=1) / math.sqrt(5)
    assert rows["information"].ci_high - rows["information"].value == pytest.approx(half, rel=1e-6)
    assert {r.n for r in rows.values()} == {5}
    of_models = [r.value for r in metrics if r.metric == "efficacy" and r.model is not None]
    np.testing.assert_allclose(of_models, 1 / truth, rtol=1e-6)


def test_upper_bound_is_never_below_efficacy():
    rng = np.random.default_rng(1)
    for _ in range(300):
        gradients = rng.normal(size=(rng.integers(1, 20), rng.integers(1, 30))) + rng.normal() * rng.choice([0, 1, 10])
        iota = information((gradients**2).sum(axis=1)[None])
        bound = (gradients.mean(axis=0) ** 2).sum()
        assert efficacy(bound) >= efficacy(iota)[0] * (1 - 1e-12)
        if len(gradients) == 1:
            assert efficacy(bound) == pytest.approx(efficacy(iota)[0], rel=1e-12)
    same = np.tile(rng.normal(size=6), (9, 1))
    iota = information((same**2).sum(axis=1)[None])[0]
    assert efficacy((same.mean(axis=0) ** 2).sum()) == pytest.approx(efficacy(iota), rel=1e-12)


def test_no_information_is_infinite_efficacy():
    squared, of_mean = np.array([[0.0, 0.0], [1.0, 3.0], [2.0, 2.0]]), np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(efficacy(information(squared)), [np.inf, 0.5, 0.5])
    rows = over_models(evaluate(squared_norms=squared, mean_squared_norm=of_mean))
    assert rows["information"].value == pytest.approx(4 / 3)
    assert math.isnan(rows["efficacy"].value)
    assert "infinite in 1 of 3 models" in rows["efficacy"].note
    assert rows["efficacy_median"].value == 0.5
    middle = median_interval(values=np.array([1.0, 1.0, np.inf, np.inf]))
    assert middle.value == np.inf


def test_gradients_that_cannot_be_are_refused():
    ones = np.ones((2, 3))
    for changes, reason in (
        ({"mean_squared_norm": np.array([1.0, 2.0])}, "model 1: the mean gradient"),
        ({"mean_squared_norm": np.ones(3)}, "2 numbers of at least 0"),
        ({"squared_norms": -ones}, "negative or NaN"),
        ({"squared_norms": ones * np.nan}, "negative or NaN"),
        ({"target": np.zeros((2, 3), bool)}, "model 0 has no target samples"),
        ({"target": np.ones((3, 3), bool)}, r"must be \[models, samples\]"),
    ):
        with pytest.raises(ValueError, match=reason):
            evaluate(**{"squared_norms": ones, "mean_squared_norm": np.ones(2), **changes})


def test_median_interval_is_exact():
    # n = 20: the 6th and the 15th value, which miss with probability 2·P(Bin(20, ½) ≤ 5) = 4.14 %
    interval = median_interval(values=np.random.default_rng(2).permutation(20) + 1.0)
    assert (interval.value, interval.low, interval.high) == (10.5, 6.0, 15.0)
    # and it covers by simulation, also for the skewed values that efficacies are
    rng = np.random.default_rng(3)
    repeats = [median_interval(values=np.exp(3 * rng.normal(size=20))) for _ in range(1000)]
    covered = np.mean([e.low <= 1 <= e.high for e in repeats])
    assert abs(covered - 0.9586) < 3 * math.sqrt(0.9586 * 0.0414 / 1000)


def test_one_seed_has_no_interval():
    rows = list(over_models(evaluate(squared_norms=np.ones((1, 4)), mean_squared_norm=np.ones(1))).values())
    assert [r.value for r in rows if not r.metric.endswith("_sd")] == [1.0] * 6
    assert all(math.isnan(r.ci_low) and r.note for r in rows)
    assert stats.mean_interval(values=np.ones(1)).note in {r.note for r in rows}


def test_probability_is_the_mean_over_each_models_forget_set():
    score = np.array([[0.2, 0.4, np.nan, 1.0], [np.nan, np.nan, 0.5, 0.0]])
    forget = np.array([[True, True, False, False], [False, False, True, True]])
    np.testing.assert_allclose(probability(score, forget), [0.3, 0.25])
    for wrong in (-0.1, 1.1, np.nan):
        score[1, 3] = wrong
        with pytest.raises(ValueError, match="outside"):
            probability(score, forget)

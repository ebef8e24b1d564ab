"""The shadow-model attack: a classifier that learns from shadow outputs."""

import warnings

import numpy as np
import pytest
from scipy import stats as scipy_stats
from unlearning_audit.attacks import shadow
from unlearning_audit.evaluation import logistic, signals

from attack_cases import advantage, logits_of, reference_of, run, two_gaussians


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def test_separate_classifiers_see_what_differs_between_classes(rng):
    def draw(models):
        y = rng.integers(2, size=200)
        member = rng.random((models, 200)) < 0.5
        sign = np.where(y == 0, 1.0, -1.0)  # members stand out upwards in one class and downwards in the other
        return logits_of(rng.normal(size=(models, 200)) + 4 * sign * member - 2 * sign, y, 2), y, member

    pool, y, member = draw(6)
    audited, y2, inside = draw(6)
    reference = reference_of(pool, y, member)
    gains = {
        labels: advantage(run(shadow, audited, y2, reference, labels=labels)[1], inside)
        for labels in ("separate", "one_hot")
    }
    assert gains["separate"] == pytest.approx(2 * scipy_stats.norm.cdf(2) - 1, abs=0.05)
    assert abs(gains["one_hot"]) < 0.1


@pytest.mark.parametrize("members", [9, 10])
def test_ten_rows_on_either_side_make_a_class_its_own_classifier(rng, members):
    pool, y, member = two_gaussians(rng, 1, 400, d=3.0, classes=2)
    rare = np.flatnonzero(y == 0)
    for side in (member[0, rare], ~member[0, rare]):
        y[rare[side][members:]] = 1
    pool = logits_of(rng.normal(size=(1, 400)) + 3 * np.where(y == 0, -1, 1) * member, y, 2)
    audited, labels = logits_of([np.linspace(-4, 4, 9)], 0, 2), np.zeros(9, int)
    separate, _ = run(shadow, audited, labels, reference_of(pool, y, member), labels="separate")
    pooled = signals.statistics(
        lambda z, label: shadow.features(z, label, "separate"), reference_of(pool, y, member), classes=2
    )
    general = logistic.fit(pooled.value, pooled.member).log_odds(shadow.features(audited[0], labels, "separate"))
    if members == 9:
        np.testing.assert_allclose(separate[0], general, rtol=1e-9)
    else:
        assert general[-1] > general[0]  # members of the large class lie high
        assert separate[0, -1] < separate[0, 0]  # of the small one low


class Seed:
    """A generator whose next integer is known, so that scikit-learn can be called by hand with the same seed."""

    def integers(self, top):
        assert top == 2**31
        return 17


@pytest.mark.parametrize("classifier", ["forest", "mlp"])
def test_scores_are_the_log_odds_of_scikit_learn_called_by_hand(rng, classifier):
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    rows, d = {"forest": (600, 20.0), "mlp": (100, 9.0)}[classifier]
    pool, y, member = two_gaussians(rng, 1, rows, d=d, share=0.3)
    audited = logits_of(np.linspace(-20, 25, rows)[None], y)
    options = shadow.Options(classifier=classifier)
    score, decision = shadow.score(audited, y, reference_of(pool, y, member), options, Seed())
    pooled, queries = shadow.features(pool[0], y, "one_hot"), shadow.features(audited[0], y, "one_hot")
    weight = np.where(member[0], 1 / member.sum(), 1 / (~member).sum()) * rows / 2
    if classifier == "forest":
        estimator = RandomForestClassifier(50, max_depth=8, min_samples_leaf=5, max_samples=0.25, random_state=17)
        p = estimator.fit(pooled, member[0], weight).predict_proba(queries)[:, 1]
    else:
        scaler = StandardScaler().fit(pooled)
        estimator = MLPClassifier((64,), batch_size=100, max_iter=200, n_iter_no_change=200, random_state=17)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(scaler.transform(pooled), member[0], weight)
        p = estimator.predict_proba(scaler.transform(queries))[:, 1]
    p = np.clip(p, 1e-12, 1 - 1e-12)
    np.testing.assert_allclose(score[0], np.log(p / (1 - p)), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(decision, score > 0)
    if classifier == "forest":  # far from the boundary all trees agree, and log-odds stay finite
        assert score.max() == pytest.approx(np.log(1e12), rel=1e-3) == -score.min()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [(1, (1, 200)), (100, (100, 200)), (257, (256, 200)), (2559, (256, 200)), (2561, (256, 199)), (3200, (256, 160)),
     (3201, (256, 159)), (3221, (256, 158)), (24380, (256, 21)), (24381, (256, 20)), (10**6, (256, 20))],
)  # fmt: skip
def test_a_network_takes_two_thousand_steps(rows, expected):
    assert shadow.steps(rows) == expected


def test_a_leaf_of_the_forest_holds_five_rows_or_one_in_400():
    assert [shadow.leaf(rows) for rows in (1, 2399, 2400, 2799, 2800, 40000)] == [5, 5, 6, 6, 7, 100]


def test_features_are_sorted_clipped_and_labelled():
    logits = np.log(np.array([[0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]))
    x = shadow.features(np.vstack([logits, [[900.0, 0, 0]]]), np.array([0, 2, 0]), "one_hot")
    phi = np.log([0.2 / 0.8, 0.7 / 0.3])
    np.testing.assert_allclose(x[0], [*np.log([0.7, 0.2, 0.1]), phi[0], 1, 0, 0], rtol=1e-12)
    np.testing.assert_allclose(x[1], [*np.log([0.7, 0.2, 0.1]), phi[1], 0, 0, 1], rtol=1e-12)
    np.testing.assert_array_equal(x[2], [0, -20, -20, 20, 1, 0, 0])
    assert shadow.features(logits, np.array([0, 2]), "separate").shape == (2, 4)

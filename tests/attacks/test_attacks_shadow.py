"""The shadow-model attack: a classifier that learns from shadow outputs."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from unlearning_audit.attacks import shadow

from attack_cases import logits_of, run, shadow_of, two_gaussians


def test_scores_are_the_log_odds_of_a_logistic_regression():
    """Members and non-members weigh the same, whatever their share."""
    pool, y, member = two_gaussians(np.random.default_rng(5), 1, 400, d=2.0, share=0.3)
    audited = logits_of(np.linspace(-4, 5, 400)[None], y)
    score, decision = run(shadow, audited, y, shadow_of(pool, y, member))
    scaler = StandardScaler().fit(shadow.features(pool[0], y))
    model = LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=10_000)
    model.fit(scaler.transform(shadow.features(pool[0], y)), member[0])
    expected = model.decision_function(scaler.transform(shadow.features(audited[0], y)))
    np.testing.assert_allclose(score[0], expected, atol=1e-4)
    np.testing.assert_array_equal(decision, score > 0)


def test_features_are_sorted_clipped_and_labelled():
    logits = np.log(np.array([[0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]))
    x = shadow.features(np.vstack([logits, [[900.0, 0, 0]]]), np.array([0, 2, 0]))
    phi = np.log([0.2 / 0.8, 0.7 / 0.3])
    np.testing.assert_allclose(x[0], [*np.log([0.7, 0.2, 0.1]), phi[0], 1, 0, 0], rtol=1e-12)
    np.testing.assert_allclose(x[1], [*np.log([0.7, 0.2, 0.1]), phi[1], 0, 0, 1], rtol=1e-12)
    np.testing.assert_array_equal(x[2], [0, -20, -20, 20, 1, 0, 0])

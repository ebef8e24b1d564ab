"""The attack on neighbouring classes: what it reads beside the label, by hand."""

import numpy as np
from unlearning_audit.attacks import neighbour_classes
from unlearning_audit.evaluation import logistic, signals

from attack_cases import run, shadow_of


def test_features_are_what_is_left_beside_the_label():
    logits, y = np.log([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]]), np.array([0, 1])
    np.testing.assert_allclose(
        neighbour_classes.features(logits, y),
        [[0.0, 0.0, np.log(0.6), np.log(0.4)], [np.log(1.5), np.log(0.25), 0.0, np.log(0.75)]],
        atol=1e-12,
    )


def test_of_two_classes_it_reads_the_confidence_alone():
    """The other class has the whole rest, which tells nothing; neither does the last bit of it."""
    rng = np.random.default_rng(0)
    y, member = rng.integers(2, size=200), rng.random((3, 200)) < 0.5
    logits = (4 * rng.normal(size=(3, 200, 2)) + 3 * member[..., None] * np.eye(2)[y]).astype(np.float32)
    assert (neighbour_classes.features(logits[0], y)[:, 1:] == 0).all()
    shadow = shadow_of(logits[1:], y, member[1:])
    score, _ = run(neighbour_classes, logits[:1], y, shadow)
    for label in (0, 1):
        at = y == label
        of_label = shadow_of(logits[1:, at], y[at], member[1:, at])
        rows = signals.statistics(lambda z, c: signals.phi(z, c)[:, None], of_label, classes=2)
        alone = logistic.fit(rows.value, rows.member).log_odds(signals.phi(logits[0, at], y[at])[:, None])
        np.testing.assert_allclose(score[0, at], alone, atol=1e-8)

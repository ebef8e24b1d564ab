"""The attack on neighbouring classes: what the label's confidence does not tell, in closed form."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from unlearning_audit import stats
from unlearning_audit.attacks import confidence, neighbour_classes
from unlearning_audit.evaluation import logistic, signals

from attack_cases import reference_of, run

MODELS, SAMPLES, CLASSES = 8, 400, 4


def game(rng, shift):
    """Logits whose φ is the same for members and others, while the nearest class of each is likelier by ``shift``
    spreads for what a model saw; which class is nearest depends on the label."""
    y = rng.integers(CLASSES, size=SAMPLES)
    member = rng.random((MODELS, SAMPLES)) < 0.5
    logits = np.zeros((MODELS, SAMPLES, CLASSES))
    nearest = (y + 1 + y % 2) % CLASSES
    lead = rng.standard_normal((MODELS, SAMPLES)) + shift * member
    np.put_along_axis(logits, np.broadcast_to(nearest[:, None], (MODELS, SAMPLES, 1)), lead[..., None], axis=-1)
    at = np.broadcast_to(y[:, None], (MODELS, SAMPLES, 1))
    np.put_along_axis(logits, at, -np.inf, axis=-1)
    rest = np.logaddexp.reduce(logits, axis=-1)
    phi = rng.standard_normal((MODELS, SAMPLES))
    np.put_along_axis(logits, at, (phi + rest)[..., None], axis=-1)
    return logits.astype(np.float32), y, member


def area(attack, logits, y, member):
    """Of four models, the others being the adversary's."""
    half = MODELS // 2
    reference = reference_of(logits[half:], y, member[half:])
    score, _ = run(attack, logits[:half], y, reference)
    return stats.auc(score=score.ravel(), positive=member[:half].ravel()).value


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.0])
def test_it_finds_what_two_gaussians_allow_and_the_confidence_nothing(shift):
    """The logit of the nearest class is N(shift, 1) of members and N(0, 1) of others: the area is Φ(shift/√2)."""
    logits, y, member = game(np.random.default_rng(3), shift)
    assert area(neighbour_classes, logits, y, member) == pytest.approx(
        scipy_stats.norm.cdf(shift / np.sqrt(2)), abs=0.04
    )
    assert area(confidence, logits, y, member) == pytest.approx(0.5, abs=0.04)


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
    reference = reference_of(logits[1:], y, member[1:])
    score, _ = run(neighbour_classes, logits[:1], y, reference)
    for label in (0, 1):
        at = y == label
        of_label = reference_of(logits[1:, at], y[at], member[1:, at])
        rows = signals.statistics(lambda z, c: signals.phi(z, c)[:, None], of_label, classes=2)
        alone = logistic.fit(rows.value, rows.member).log_odds(signals.phi(logits[0, at], y[at])[:, None])
        np.testing.assert_allclose(score[0, at], alone, atol=1e-8)

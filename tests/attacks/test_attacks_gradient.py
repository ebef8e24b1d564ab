"""Gradient norms: known distributions of them, and how they are read."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit import stats
from unlearning_audit.attacks import gradient_norm
from unlearning_audit.evaluation.shadow import Shadow
from unlearning_audit.signals import ArtifactError, squared_norms

from attack_cases import advantage

CLASSES = 3


def population(rng, shift, models=4, samples=600):
    """−log of the norm is N(0, 1) for non-members and higher by ``shift`` for members; the logits say nothing."""
    y, member = rng.integers(CLASSES, size=samples), rng.random((models, samples)) < 0.5
    small = rng.normal(size=(models, samples)) + shift * member
    return np.zeros((models, samples, CLASSES), np.float32), y, member, np.exp(-2 * small)


def attacked(shift):
    rng = np.random.default_rng(0)
    logits, y, member, norms = population(rng, shift)
    shadow = Shadow(logits, y, member, ~member, signals={"squared_norms": norms})
    logits, y, member, norms = population(rng, shift)
    return *gradient_norm.score(logits, y, shadow, norms), member, norms


@pytest.mark.parametrize("shift", [1.5, -1.5])
def test_members_are_found_on_whichever_side_the_reference_shows_them(shift):
    score, decision, member, norms = attacked(shift)
    # 1,200 on either side: standard errors of .01
    assert stats.auc(score=score.ravel(), positive=member.ravel()).value == pytest.approx(
        ndtr(1.5 / np.sqrt(2)), abs=0.04
    )
    assert advantage(decision, member) == pytest.approx(2 * ndtr(0.75) - 1, abs=0.08)
    np.testing.assert_allclose(score, -np.sign(shift) * 0.5 * np.log(norms))
    assert np.inf > gradient_norm.smallness(np.zeros(1))[0] > score.max(), "no gradient: the strongest sign of members"


def test_norms_are_those_of_the_asked_models_and_samples_and_must_be_of_all_samples():
    norms, models, rows = np.arange(12.0).reshape(3, 4), np.array([True, False, True]), np.array([1, 3])
    gradients = SimpleNamespace(gradients=SimpleNamespace(squared_norms=norms))
    for samples in (4, 5):
        evaluation = SimpleNamespace(data=SimpleNamespace(y=np.zeros(samples)), outputs=lambda files: gradients)
        if samples == 4:
            assert squared_norms.values(evaluation, ["own"], models, rows).tolist() == [[1, 3], [9, 11]]
        else:
            with pytest.raises(ArtifactError, match="own: no squared_norms of all samples were read"):
                squared_norms.values(evaluation, ["own"], models, rows)

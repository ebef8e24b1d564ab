"""Forgotten samples alone, unlearned against retrained models: closed forms, and when it decides."""

from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit import audit
from unlearning_audit.metrics import forgotten_phi
from unlearning_audit.stats import phi

from folder_cases import Y, population, same_forget

SAMPLES, HELDOUT, CLASSES = 50, 60, 3


def audited(same_labels=False, heldout=True):
    """Arrays, metrics and the verdict on five models that unlearned a class: none of them names it, which leaves φ near
    −4, and near −5 after retraining."""
    rng = np.random.default_rng(1)
    y = np.r_[np.zeros(SAMPLES, int), rng.integers(0 if same_labels else 1, CLASSES, HELDOUT)]
    forget = np.arange(len(y)) < SAMPLES

    def logits(level, count):
        z = rng.normal(0, 0.3, size=(count, len(y), CLASSES))
        of_model = level + 0.15 * rng.normal(size=(count, 1))
        z[:, np.arange(len(y)), y] += np.where(forget, of_model, 3)
        return z

    arrays = {"target": logits(-4, 5), "retrain": logits(-5, 5), "original": logits(5, 2), "labels": y}
    arrays |= {"forget": forget, "heldout": ~forget} if heldout else {"forget": forget | True}
    found = audit(**arrays, attacks=["confidence"], bootstrap=100, progress=False)
    return arrays, found.metrics, found.verdicts.set_index("method").loc["mine"]


def test_it_is_the_mean_over_two_forgotten_samples_at_least():
    evaluation = population(same_forget(3, (0, 1)))
    (row,) = forgotten_phi.rows(evaluation)
    assert (row.value, row.n) == (pytest.approx(phi(logits=evaluation.unlearned, y=Y)[:, :2].mean()), 2)
    with pytest.raises(ValueError, match="fewer than two forgotten samples"):
        forgotten_phi.rows(population(same_forget(3, (0,))))


def test_it_decides_where_no_held_out_sample_has_a_forgotten_label():
    member = same_forget(3, (0, 1))
    assert forgotten_phi.effects(population(member)) == {}
    apart = np.where(np.arange(15) < 2, 2, Y % 2)
    for evaluation, y in (
        (population(member, y=apart), apart), (population(replace(member, heldout=member.heldout & False)), Y)
    ):  # fmt: skip
        part = forgotten_phi.effects(evaluation)["forgotten_phi"]
        np.testing.assert_allclose(part.value[0], phi(logits=evaluation.unlearned, y=y)[:, :2].mean(axis=1))
        assert (part.rule.direction, part.rule.deciding) == (1, True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_class_that_leaves_traces_is_found_where_the_auc_lies_at_its_floor():
    arrays, metrics, mine = audited()
    assert (metrics.query("metric == 'auc' and method in ('mine', 'retrain')")["value"] < 0.05).all()
    assert (mine["verdict"], mine["found_by"]) == ("distinguishable", "forgotten_phi")
    value, reference = (
        phi(logits=arrays[side][:, :SAMPLES], y=np.zeros((5, SAMPLES), int)).mean() for side in ("target", "retrain")
    )
    assert mine["distance"] == pytest.approx(value - reference, abs=1e-5)
    row = metrics.query("metric == 'forgotten_phi' and method == 'mine'")["value"]
    assert row.item() == pytest.approx(value, abs=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_it_decides_where_nothing_is_held_out_and_elsewhere_it_is_shown():
    _, _, alone = audited(heldout=False)
    assert (alone["verdict"], alone["found_by"]) == ("distinguishable", "forgotten_phi")
    _, metrics, beside = audited(same_labels=True)
    assert "forgotten_phi" not in str(beside["found_by"])
    assert len(metrics.query("metric == 'forgotten_phi'")) == 3

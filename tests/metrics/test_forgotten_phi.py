"""Forgotten samples alone, unlearned against retrained models: closed forms, when it decides, and its error rates."""

import numpy as np
import pytest
from unlearning_audit import audit
from unlearning_audit.comparisons import verdicts
from unlearning_audit.evaluation.effects import single
from unlearning_audit.metrics import forgotten_phi
from unlearning_audit.stats import decide, levels, phi

from comparison_cases import MARGINS
from folder_cases import Y, population, same_forget
from slow_cases import slow

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
    (row,) = forgotten_phi.rows(evaluation, forgotten_phi.Options(), None)
    assert row.value == pytest.approx(phi(logits=evaluation.unlearned, y=Y)[:, :2].mean())
    with pytest.raises(ValueError, match="fewer than two forgotten samples"):
        forgotten_phi.rows(population(same_forget(3, (0,))), forgotten_phi.Options(), None)


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


@pytest.mark.filterwarnings("ignore")
def test_it_decides_where_nothing_is_held_out_and_elsewhere_it_is_shown():
    _, _, alone = audited(heldout=False)
    assert (alone["verdict"], alone["found_by"]) == ("distinguishable", "forgotten_phi")
    _, metrics, beside = audited(same_labels=True)
    assert "forgotten_phi" not in str(beside["found_by"])
    assert len(metrics.query("metric == 'forgotten_phi'")) == 3


def mine(**parts):
    """The verdict on the method "mine" from the effects of all methods."""
    rows = verdicts.compare(parts, {}, margins=MARGINS, draws=50, seed=0).verdicts
    return next(row for row in rows if row["method"] == "mine")


def judged(rng, models, retrained, distance):
    """Effects of models whose φ has a spread of .1 over models and difficulties that all share; the verdict."""
    hard = np.random.default_rng(0).normal(size=40)
    parts = {}
    for name, count, level in (("mine", models, distance), ("none", models, 9.0), ("retrain", retrained, 0.0)):
        values = hard + level + 0.1 * rng.normal(size=(count, 1)) + 0.2 * rng.normal(size=(count, 40))
        part = levels.per_model(value=values, weight=np.ones_like(values))
        rule = forgotten_phi.DECIDES["forgotten_phi"]
        parts[name] = {"forgotten_phi": single(**vars(part), unit=np.zeros(count, np.int64), rule=rule)}
    return parts, mine(**parts)


@pytest.mark.parametrize(("distance", "wrong"), [(0.0, "traces"), (0.2, "equivalence")])
@pytest.mark.parametrize(
    ("models", "retrained", "audits"), [(5, 5, 60), *slow((5, 5, 1000), (1, 5, 1000), (20, 5, 1000))]
)
def test_traces_of_retraining_and_equivalence_at_the_margin_are_seldom_found(
    models, retrained, audits, distance, wrong
):
    """At most α, and what 1 of 1,000 simulations exceeds."""
    rng, found = np.random.default_rng(models + int(50 * distance)), 0
    for _ in range(audits):
        _, row = judged(rng, models, retrained, distance)
        found += row["p_holm"] <= decide.ALPHA if wrong == "traces" else row["verdict"] == decide.EQUIVALENT
    assert found / audits < 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / audits)

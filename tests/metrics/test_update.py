"""Attacks that have both models, before unlearning and after: closed forms, error rates, and what only they find."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats as scipy_stats
from unlearning_audit.attacks import update
from unlearning_audit.comparisons import verdicts
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import swap

import external_cases as cases
from attack_cases import logits_of
from comparison_cases import MARGINS

#: How much harder some samples are than others, and what training on a sample adds; models vary by 1.
DIFFICULTY, MEMORY = 8.0, 1.0
FORGET, HELDOUT = 150, 150


def phi(rng, easy, *, trace, models=1):
    """φ float64 [models, samples]: what models know of the forgotten samples, the first of all, is ``trace``."""
    return easy + trace * (np.arange(len(easy)) < FORGET) + rng.standard_normal((models, len(easy)))


def evaluation_of(score, member) -> SimpleNamespace:
    """A case with the scores of an attack on both models, and no other attack."""
    audited, models = SimpleNamespace(phi=lambda: np.zeros(score.shape)), np.ones(len(member.seed), bool)
    return SimpleNamespace(updates={"update": score}, membership=member, target=models, scores={}, audited=audited)


def population(rng, easy, before, *, models, trace) -> SimpleNamespace:
    """A case whose models came from the same original, with the scores of the attack on both models."""
    forget = np.tile(np.arange(len(easy)) < FORGET, (models, 1))
    nothing = np.zeros(models, np.int64)
    member = Membership(forget, forget, ~forget, np.arange(models), nothing, nothing, nothing > 0)
    y, after = np.zeros(len(easy), np.int64), logits_of(phi(rng, easy, trace=trace, models=models), y=0)
    shadow, before = SimpleNamespace(signals={}), np.tile(before, (models, 1))
    score, _ = update.score(after, y, shadow, before)
    return evaluation_of(score, member)


def audit(seed, *, trace, models=3):
    """p-value and distance of models with a ``trace`` against retrained ones, and the areas under the ROC curve."""
    rng = np.random.default_rng(seed)
    easy = DIFFICULTY * rng.standard_normal(FORGET + HELDOUT)
    before = phi(rng, easy, trace=MEMORY)
    populations = {
        name: population(rng, easy, before, models=models, trace=left)
        for name, left in (("mine", trace), ("retrain", 0.0), ("retrain_control", 0.0))
    }
    parts = {name: swap.effects(evaluation) for name, evaluation in populations.items()}
    rows = verdicts.compare(parts, {}, margins=MARGINS, draws=20, seed=seed).distances
    (row,) = [row for row in rows if row["method"] == "mine"]
    return row, {name: parts[name]["update_auc"].value.mean() for name in parts}


def test_areas_are_those_of_gaussians_and_difficulties_cancel():
    """φ before − φ after is N(MEMORY − trace, 2) of forgotten samples and N(0, 2) of others, however hard they are;
    models after unlearning alone tell a fifth as much of forgetting that went too far."""
    rows, areas = zip(*(audit(seed, trace=-1.5) for seed in range(10)), strict=True)
    means = np.mean([list(area.values()) for area in areas], axis=0)
    exact = scipy_stats.norm.cdf(np.array([MEMORY + 1.5, MEMORY, MEMORY]) / 2)
    np.testing.assert_allclose(means, exact, atol=0.03)
    after_alone = scipy_stats.norm.cdf(-1.5 / np.sqrt(2 * (DIFFICULTY**2 + 1)))
    assert exact[0] - exact[1] > 3 * (0.5 - after_alone)
    assert np.mean([row["p"] <= 0.05 for row in rows]) > 0.8
    assert all(row["distance"] < 0 for row in rows)  # the far side: more went than retraining takes away


def test_scores_that_separate_all_samples_read_the_ends_of_what_can_be_read():
    member = population(np.random.default_rng(0), np.zeros(FORGET + HELDOUT), 0, models=2, trace=0).membership
    for sign, end in ((1, "highest"), (-1, "lowest")):
        evaluation = evaluation_of(np.where(member.forget, sign, 0.0), member)
        part = swap.effects(evaluation)["update_auc"]
        np.testing.assert_array_equal(part.value, getattr(part.rule, end))
        (row,) = swap.update_rows(evaluation, member)
        assert (row.metric, row.attack, row.value) == ("update_auc", "update/both", getattr(part.rule, end))
        assert row.n == FORGET + HELDOUT
        assert row.note.endswith("retrained models are not at chance: compare with them")


@pytest.mark.slow
def test_retrained_models_are_not_accused_though_the_models_before_knew_the_samples():
    rows, areas = zip(*(audit(seed, trace=0.0) for seed in range(50)), strict=True)
    wrong = sum(row["p"] <= 0.05 for row in rows)
    assert wrong <= scipy_stats.binom.ppf(0.999, 50, 0.05)
    assert np.mean([area["mine"] for area in areas]) > 0.65  # theory's .5 would accuse every one of them


def test_without_models_before_unlearning_there_is_a_sentence(workdir):
    cases.world("logits")
    shutil.rmtree("logits/original")
    (rows,) = (cases.run(cases.planned(attacks=("update",)), "mine")).values()
    assert cases.reason(rows, "advantage", "update/both") == (
        "it compares with the models before unlearning, and there is no original/ with the same samples"
    )

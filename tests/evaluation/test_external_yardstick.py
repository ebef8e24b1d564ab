"""Imported logits: what a verdict is held against depends on how it was decided which samples are forgotten."""

import numpy as np
import pytest
from unlearning_audit.comparisons import verdicts
from unlearning_audit.evaluation import effects as added
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

import external_cases as cases
from comparison_cases import MARGINS

SAMPLES = 160
FORGET, HELDOUT = np.arange(SAMPLES) < 40, np.arange(SAMPLES) // 40 == 1


def audited(populations, logits, y, design="given"):
    """(the plan, rows by method) of models in the working directory; ``populations``: name → number of models;
    ``logits``: name, shape → what they say."""
    cases.save("logits", labels=y, forget=FORGET, heldout=HELDOUT, train=~HELDOUT)
    for name, models in populations.items():
        cases.save(f"logits/{name}", logits=logits(name, (models, SAMPLES)).astype(np.float32))
    study = cases.config(attacks=(), bootstrap=100)
    study["scenarios"]["audit"]["protocol"]["design"] = design
    whole = plan.make(reading.read(study, "own.yaml"))
    return whole, cases.run(whole)


def judged(populations, design="given", harder=0.0, remembered=4.0, random=()):
    """Method → its line, of models that find forgotten samples ``harder``; the ``random`` ones answer at random."""
    rng = np.random.default_rng(0)
    y = rng.integers(cases.CLASSES, size=SAMPLES)

    def logits(name, shape):
        values = rng.standard_normal((*shape, cases.CLASSES))
        if name not in random:
            values[:, np.arange(SAMPLES), y] += (
                1.0 - harder * FORGET + (remembered if name == "original" else 0) * FORGET
            )
        return values

    whole, _ = audited(populations, logits, y, design)
    parts = {case.method: added.read(case.effects) for case in whole.cases}
    lines = verdicts.compare(parts, {}, margins=MARGINS, draws=300, seed=0).verdicts
    return {line["method"]: line for line in lines}


def test_a_given_forget_set_that_is_harder_is_no_trace(workdir):
    rows = judged({"target": 1, "original": 1, "retrain": 3, "retrain_control": 3}, harder=1.5)
    assert rows["mine"]["p_holm"] > 0.05
    assert abs(rows["mine"]["distance"]) < 0.15
    assert (
        "only one model of each split was audited: its variance is taken from retrained models" in rows["mine"]["note"]
    )
    assert rows["none"]["distance"] > 0.4


@pytest.mark.parametrize("design", ["given", "random"])
def test_a_fair_draw_needs_no_retrained_models_and_a_given_forget_set_has_no_other_yardstick(workdir, design):
    rows = judged({"target": 2, "original": 2}, design)
    if design == "given":
        assert {row["verdict"] for row in rows.values()} == {"no_yardstick"}
    else:
        assert rows["none"]["verdict"] == "distinguishable"
        assert rows["mine"]["p_holm"] > 0.05


@pytest.mark.parametrize("models", [1, 2, 4])
def test_more_models_never_mean_less_power_where_the_draw_is_fair(workdir, models):
    rows = judged({"target": models, "original": models}, "random", remembered=1.2)
    assert rows["none"]["p_holm"] <= 0.05


@pytest.mark.parametrize("random", [(), ("target",)])
def test_a_destroyed_model_is_broken_without_a_test_part(workdir, random):
    rows = judged({"target": 3, "original": 3, "retrain": 3}, random=random)
    assert (rows["mine"]["verdict"] == "broken") == bool(random)


def test_where_all_labels_are_one_nothing_is_said_of_classes(workdir):
    """As of passages: φ of a text against 0, below 0 nearly always, which is no wrong answer."""
    rng = np.random.default_rng(0)

    def logits(name, shape):
        phi = rng.standard_normal(shape) - 3 + 3 * (name == "original") * FORGET
        return np.stack([np.zeros_like(phi), phi], axis=-1)

    _, rows = audited({"target": 1, "original": 1, "retrain": 3}, logits, np.ones(SAMPLES, np.int64))
    every = [row for part in rows.values() for row in part]
    assert {"auc", "records_recognised"} <= {row.metric for row in every}
    assert not any(row.metric.startswith(("accuracy", "label_overlap", "majority")) for row in every)
    notes = " ".join(row.note for row in every)
    for word in ("rightly", "chance (100%)", "order than labels", "classes"):
        assert word not in notes, word

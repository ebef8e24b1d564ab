"""Imported logits: what a verdict is held against depends on how it was decided which samples are forgotten."""

import numpy as np
import pytest
from unlearning_audit.comparisons import verdicts
from unlearning_audit.evaluation import contributions as added

import external_cases as cases
from comparison_cases import MARGINS

SAMPLES = 160


def judged(folder, monkeypatch, *, populations, design="given", harder=0.0, remembered=4.0, seed=0):
    """Method → its line, of models that find forgotten samples ``harder``; ``populations``: name → number of models."""
    rng = np.random.default_rng(seed)
    monkeypatch.chdir(folder)
    y = rng.integers(cases.CLASSES, size=SAMPLES)
    forget = np.arange(SAMPLES) < 40
    heldout = (np.arange(SAMPLES) >= 40) & (np.arange(SAMPLES) < 80)
    cases.save("logits", labels=y, forget=forget, heldout=heldout, train=~heldout)
    for name, models in populations.items():
        logits = rng.standard_normal((models, SAMPLES, cases.CLASSES))
        lead = 1.0 - harder * forget + (remembered * forget if name == "original" else 0.0)
        at = np.arange(SAMPLES)
        logits[:, at, y] += lead
        cases.save(f"logits/{name}", logits=logits.astype(np.float32))
    study = cases.config(attacks=())
    study["scenarios"]["audit"]["protocol"]["design"] = design
    from unlearning_audit.study import reading
    from unlearning_audit.workflow import plan

    whole = plan.make(reading.read(study, "own.yaml"))
    cases.run(whole)
    parts = {case.method: added.read(case.contributions) for case in whole.cases}
    lines = verdicts.compare(parts, {}, margins=MARGINS, draws=300, seed=0).verdicts
    return {line["method"]: line for line in lines}


ALL = {"target": 1, "original": 1, "retrain": 3, "retrain_control": 3}


def test_a_given_forget_set_that_is_harder_is_no_trace(tmp_path, monkeypatch):
    rows = judged(tmp_path, monkeypatch, populations=ALL, harder=1.5)
    assert rows["mine"]["p_holm"] > 0.05
    assert abs(rows["mine"]["distance"]) < 0.15
    assert "only one model was audited: its variance is taken from retrained models" in rows["mine"]["note"]
    assert rows["none"]["distance"] > 0.4


def test_without_retrained_models_a_given_forget_set_has_no_yardstick(tmp_path, monkeypatch):
    rows = judged(tmp_path, monkeypatch, populations={"target": 2, "original": 2}, harder=1.5)
    assert {row["verdict"] for row in rows.values()} == {"no_yardstick"}


def test_a_fair_draw_needs_no_retrained_models(tmp_path, monkeypatch):
    rows = judged(tmp_path, monkeypatch, populations={"target": 2, "original": 2}, design="random")
    assert rows["none"]["verdict"] == "distinguishable"
    assert rows["mine"]["p_holm"] > 0.05


@pytest.mark.parametrize("models", [1, 2, 4])
def test_more_models_never_mean_less_power_where_the_draw_is_fair(tmp_path, monkeypatch, models):
    populations = {"target": models, "original": models}
    rows = judged(tmp_path, monkeypatch, populations=populations, design="random", remembered=1.2)
    assert rows["none"]["p_holm"] <= 0.05


def test_a_destroyed_model_is_broken_without_a_test_part(tmp_path, monkeypatch):
    populations = {"target": 3, "original": 3, "retrain": 3}
    rows = judged(tmp_path, monkeypatch, populations=populations)
    assert rows["mine"]["verdict"] != "broken"
    broken = tmp_path / "broken"
    broken.mkdir()
    standard_normal = np.random.default_rng(9).standard_normal
    monkeypatch.setattr(cases, "save", _noisy(cases.save, standard_normal))
    rows = judged(broken, monkeypatch, populations=populations)
    assert rows["mine"]["verdict"] == "broken"


def test_where_all_labels_are_one_nothing_is_said_of_classes(tmp_path, monkeypatch):
    """As of passages: φ of a text against 0, below 0 nearly always, which is no wrong answer."""
    rng = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    forget, heldout = np.arange(SAMPLES) < 40, (np.arange(SAMPLES) >= 40) & (np.arange(SAMPLES) < 80)
    cases.save("logits", labels=np.ones(SAMPLES, np.int64), forget=forget, heldout=heldout, train=~heldout)
    for name, (models, lead) in {"target": (1, 0), "original": (1, 3), "retrain": (3, 0)}.items():
        phi = rng.standard_normal((models, SAMPLES)) - 3 + lead * forget
        cases.save(f"logits/{name}", logits=np.stack([np.zeros_like(phi), phi], axis=-1).astype(np.float32))
    from unlearning_audit.study import reading
    from unlearning_audit.workflow import plan

    rows = cases.run(plan.make(reading.read(cases.config(attacks=()), "own.yaml")))
    all_rows = [row for part in rows.values() for row in part]
    assert {"auc", "records_recognised"} <= {row.metric for row in all_rows}
    assert not any(row.metric.startswith(("accuracy", "label_overlap", "majority")) for row in all_rows)
    notes = " ".join(row.note for row in all_rows)
    for word in ("rightly", "chance (100%)", "order than labels", "classes"):
        assert word not in notes, word


def _noisy(save, standard_normal):
    """Saves as ``save`` does, but for the audited models, which answer at random."""

    def save_noisy(folder, **arrays):
        if str(folder).endswith("target"):
            arrays = {"logits": standard_normal(arrays["logits"].shape).astype(np.float32)}
        save(folder, **arrays)

    return save_noisy

"""The aggregates of OpenUnlearning: closed forms, a log of theirs, and their intervals."""

import json

import numpy as np
import pytest
from unlearning_audit import readers
from unlearning_audit.evaluation.published import Published
from unlearning_audit.readers import _aggregates

from reader_cases import SAMPLES, attack, entry, rows_of, write_log


def log(memory, auc, ratio=1.0, utility=0.5, fluency=None):
    """A log whose parts are constants, and whose attacks all have the same ``auc`` (of a share of pairs)."""
    same = np.full(SAMPLES, memory)
    above = np.where(np.arange(SAMPLES) < round(auc * SAMPLES), 0.0, 2.0)  # loss-like: less is more like a member
    entries = {
        "extraction_strength": entry(same), "exact_memorization": entry(same),
        "forget_Q_A_PARA_Prob": entry(same, "prob"),
        "forget_truth_ratio": entry(np.full(SAMPLES, ratio), aggregate=min(ratio, 1 / ratio)),
        "forget_Q_A_ROUGE": entry(same, "rougeL_recall", ground_truth=[f"answer {i}" for i in range(SAMPLES)]),
    }  # fmt: skip
    entries |= {f"mia_{name}": attack(above, np.ones(SAMPLES)) for name in _aggregates.ATTACKS}
    value = np.full(SAMPLES, utility)
    for name in [name for names in _aggregates.UTILITY.values() for name in names]:
        key = "prob" if "Prob" in name else "rougeL_recall"
        entries[name] = entry(1 - value, aggregate=utility) if "Truth" in name else entry(value, key)
    return entries | ({} if fluency is None else {"forget_Q_A_gibberish": entry(np.full(SAMPLES, fluency))})


FULL, RETRAINED = log(0.9, 0.9, ratio=0.25), log(0.1, 0.4, ratio=3)


def written(folder, **logs):
    """The logs, read."""
    for name, content in logs.items():
        write_log(folder / f"tofu_Tiny-1B_{name}/TOFU_EVAL.json", content, summary=False)
    return readers.imported([folder])


def read(folder, **logs):
    """Aggregates by population, name → row."""
    (group,) = written(folder, **logs).groups
    values = _aggregates.of_models(group)
    parts = {"none": group.none, "retrain": [*group.retrain, *group.control], **group.methods}
    return {
        name: {row["name"]: row for row in _aggregates.rows(models, group, values)} for name, models in parts.items()
    }


def test_closed_forms(tmp_path):
    npo = log(0.2, 0.5, ratio=1, utility=0.25, fluency=0.75)
    found = read(tmp_path, full=FULL, retain90=RETRAINED, forget10_NPO=npo)
    expected = {"memorization": 4 / (3 / 0.8 + 1 / 0.5), "utility": 2 / (1 / 0.25 + 1 / 0.75)}
    inverse = sum(1 / value for value in expected.values())
    for name, privacy in {"by_full": 1 - 0.1 / 0.5, "by_retrained": 1 - 0.1 / 0.4, "by_difference": 1 - 0.1}.items():
        expected |= {f"privacy_{name}": privacy, f"overall_{name}": 3 / (inverse + 1 / privacy)}
    assert {name: row["value"] for name, row in found["npo"].items()} == pytest.approx(expected, abs=1e-6)
    assert found["none"]["privacy_by_full"]["value"] == found["none"]["privacy_by_retrained"]["value"] == 0
    assert {row["value"] for name, row in found["retrain"].items() if "privacy" in name} == {1}
    assert all(row["ci_low"] <= row["value"] <= row["ci_high"] for rows in found.values() for row in rows.values())


def test_intervals_are_wider_where_models_vary(tmp_path):
    """Constants leave nothing to the draw of samples, so that the interval is that of models alone."""
    one = read(tmp_path / "a", full=FULL, retain90=RETRAINED, forget10_NPO=log(0.2, 0.5))["npo"]["memorization"]
    runs = {f"forget10_NPO_seed{seed}": log(memory, 0.5) for seed, memory in enumerate((0.1, 0.3))}
    two = read(tmp_path / "b", full=FULL, retain90=RETRAINED, **runs)["npo"]["memorization"]
    assert one["ci_low"] == pytest.approx(one["ci_high"], abs=1e-6)
    lowest, highest = (4 / (3 / (1 - memory) + 1 / 0.5) for memory in (0.3, 0.1))
    assert (two["ci_low"], two["ci_high"]) == pytest.approx((lowest, highest), abs=1e-6)
    assert one["formula"].endswith("samples, one model")
    assert two["formula"].endswith("samples and models")


def test_the_interval_of_a_mean_is_that_of_theory():
    rng = np.random.default_rng(0)
    value = rng.uniform(size=400)
    drawn = _aggregates._mean(value, _aggregates._draws(rng, 400))
    assert drawn[0] == pytest.approx(value.mean(), abs=1e-6)
    assert drawn[1:].std() == pytest.approx(value.std() / 20, rel=0.1)


def test_a_log_that_lacks_a_part_has_no_such_aggregate(tmp_path):
    lacking = log(0.2, 0.5)
    del lacking["wf_Q_A_ROUGE"]
    found = read(tmp_path, retain90=RETRAINED, forget10_NPO=lacking)
    assert set(found["npo"]) == {"memorization", "privacy_by_retrained", "privacy_by_difference"}


def test_aggregates_are_rows_of_the_report(tmp_path):
    imported = written(tmp_path, retain90=RETRAINED, forget10_NPO=log(0.2, 0.5))
    study = readers.write(imported, tmp_path / "models", "mine")
    assert "aggregate_privacy_by_difference" in study["tables"]["aggregates"]["metric"]
    population = Published.read(tmp_path / "models/forget10/npo/target/published.npz")
    rows = {row.metric: row for row in rows_of(population)}
    for one in json.loads(population.aggregates):
        row = rows[f"aggregate_{one['name']}"]
        assert (row.value, "harmonic mean" in row.note) == (one["value"], True)

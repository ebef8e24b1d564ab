"""Result files of repositories that nobody here has seen: each is read, or refused by one sentence that names file and
key. Folders and files have names that no other test has."""

import copy
import json
import re

import numpy as np
import pandas
import pytest
from unlearning_audit import readers
from unlearning_audit.readers import _recompute

import reader_cases


def attacks(log: dict) -> list[dict]:
    """The attacks of an OpenUnlearning log."""
    return [entry for name, entry in log.items() if name.startswith("mia_")]


def as_texts(log: dict) -> dict:
    """Every number as a text."""
    return json.loads(json.dumps(log, default=str), parse_float=str, parse_int=str)


def listed(log: dict) -> dict:
    """Values of samples as lists, in their order."""
    log = copy.deepcopy(log)
    fields = [field for entry in log.values() for field in (entry, *entry.values())]
    for field in fields:
        if isinstance(field, dict) and "value_by_index" in field:
            field["value_by_index"] = list(field["value_by_index"].values())
    return log


def renamed(log: dict) -> dict:
    """Metrics and attacks of other names; what is forgotten still says so."""
    names = {"mia_loss": "attack-perplexity", "mia_min_k": "lowest tokens", "forget_Q_A_Prob": "Forget_likelihood",
             "exact_memorization": "forget_em", "retain_Q_A_Prob": "Retain_likelihood"}  # fmt: skip
    return {names.get(name, name): entry for name, entry in log.items() if name != "model_utility"}


def without_holdout_name(log: dict) -> dict:
    """The other side of attacks has another name."""
    log = copy.deepcopy(log)
    for entry in attacks(log):
        entry["nonmembers"] = entry.pop("holdout")
    return log


def aggregates_left_out(log: dict) -> dict:
    """Nothing but values of samples."""
    log = copy.deepcopy(log)
    for entry in log.values():
        entry.pop("agg_value", None)
        entry.pop("auc", None)
    return {name: entry for name, entry in log.items() if entry}


def some_samples_missing(log: dict) -> dict:
    """A few samples have no value."""
    log = copy.deepcopy(log)
    rows = log["forget_Q_A_Prob"]["value_by_index"]
    rows["3"], rows["4"]["prob"] = None, None
    del log["forget_Q_A_Prob"]["agg_value"]
    return log


@pytest.mark.parametrize(
    "changed",
    [
        as_texts, listed, renamed, without_holdout_name, aggregates_left_out, some_samples_missing,
        lambda log: {"results": log, "config": {"seed": 1}},
        lambda log: {"report": {"metrics": log}},
        lambda log: dict(reversed(list(log.items()))),
        lambda log: log | {"notes": "by hand", "version": 3, "nothing": None, "empty": {}},
    ],
)  # fmt: skip
def test_logs_of_one_structure_are_read_whatever_they_look_like(tmp_path, changed):
    """Three models in folders that say only which was retrained; the AUC of the attack is that of the plain log."""
    plain = {"was-retrained": (2, 0.0), "before": (1, 2.5), "ours_v7": (5, 1.0)}
    for folder, (seed, memory) in plain.items():
        log = changed(reader_cases.openunlearning(seed, memory))
        reader_cases.write_log(tmp_path / "w" / folder / "numbers.json", log, summary=False)
    imported = readers.imported([tmp_path], retrain=[tmp_path / "w/was-retrained"], none=[tmp_path / "w/before"])
    (group,) = imported.groups
    assert (len(group.none), len(group.retrain), len(group.methods)) == (1, 1, 1)
    expected = reader_cases.openunlearning(1, 2.5)["mia_loss"]["auc"]
    (model,) = group.none
    values = [
        _recompute.auc(member=score[model.forget], nonmember=score[model.heldout]) for score in model.scores.values()
    ]
    assert min(abs(value - expected) for value in values) < 1e-9
    assert all(check.agrees is not False for checks in imported.agreements.values() for check in checks)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda log: [row.update(score=float("nan")) for row in log["mia_loss"]["forget"]["value_by_index"].values()],
         "mia_loss.forget.score is NaN or infinite for 60 of 60 samples"),
        (lambda log: log["mia_loss"]["holdout"].update(value_by_index={}),
         "mia_loss: one of its two sides has no sample with a 'score'"),
        (lambda log: log["exact_memorization"].update(value_by_index=0.3),
         "exact_memorization.value_by_index: must map the index of each sample to its values, found float"),
        (lambda log: [log.pop(name) for name in list(log) if not name.startswith(("ra_", "wf_"))],
         "no metric holds a number for each sample of the forget set; the names of such metrics begin with"),
    ],
)  # fmt: skip
def test_logs_that_cannot_be_judged_are_refused_by_file_and_key(tmp_path, change, sentence):
    log = reader_cases.openunlearning(1, 1.0)
    change(log)
    path = reader_cases.write_log(tmp_path / "lab/x_retrained/numbers.json", log, summary=False)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {sentence}')}[^\n]*$"):
        readers.imported([tmp_path])


@pytest.mark.parametrize("share", [0.2, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_named_with_its_line(tmp_path, share):
    path = reader_cases.write_log(
        tmp_path / "x_retrained/numbers.json", reader_cases.openunlearning(1, 1.0), summary=False
    )
    text = path.read_text()
    path.write_text(text[: int(share * len(text))])
    with pytest.raises(ValueError, match=r"numbers.json: line \d+ is not valid JSON .*; is the file complete\?"):
        readers.imported([tmp_path])


def aggregated(change=lambda log: log) -> dict:
    """A log of TOFU's own code, changed."""
    log = reader_cases.tofu(1, 1.0)
    return change(log) or log


def as_lists(log: dict) -> dict:
    return {name: {key: list(rows.values()) for key, rows in split.items()} for name, split in log.items()}


@pytest.mark.parametrize("change", [lambda log: None, as_lists, as_texts, lambda log: {"eval": log}])
def test_aggregated_logs_of_other_layouts(tmp_path, change):
    for name in ("x_retrained", "x_full"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "all.json").write_text(json.dumps(aggregated(change)))
    (group,) = readers.imported([tmp_path]).groups
    assert len(group.samples) == reader_cases.SAMPLES
    assert "forget_Prob" in group.models[0].readings


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda log: log["eval_log_forget.json"]["avg_gt_loss"].update({"3": float("nan")}),
         "all.json: eval_log_forget.json: 'avg_gt_loss' has values that are not numbers"),
        (lambda log: log["eval_log.json"]["average_perturb_loss"].pop("5"),
         "all.json: eval_log.json: 'average_perturb_loss' is missing, or has no number"),
        (lambda log: log.pop("eval_log_forget.json") and None,
         "all.json: this log has no split of the forget set, whose name contains forget; found eval_log.json"),
    ],
)  # fmt: skip
def test_aggregated_logs_that_lack_something_are_named(tmp_path, change, sentence):
    log = reader_cases.tofu(1, 1.0)
    change(log)
    (tmp_path / "x_retrained").mkdir()
    (tmp_path / "x_retrained/all.json").write_text(json.dumps(log))
    with pytest.raises(ValueError, match=re.escape(sentence)):
        readers.imported([tmp_path])


def losses(**columns) -> pandas.DataFrame:
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {"Sample_ID": range(40), "Split": ["forget", "test"] * 20, "CE": rng.normal(2, 1, 40)} | columns
    )


def test_a_table_that_names_neither_side_is_refused(tmp_path):
    losses(Split=["kept"] * 40).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match=r"t\.csv: column 'Split' marks neither forgotten nor held-out samples"):
        readers.imported([tmp_path], alone=True)


@pytest.mark.parametrize(
    ("name", "files", "sentence"),
    [
        ("", {"keep.npy": np.zeros((2, 3, 4), bool)}, "keep.npy is here, but neither logits nor scores of the model"),
        ("logits.npy", {"keep.npy": np.arange(8) < 4, "logits.npy": np.zeros((8, 3)), "labels.npy": np.full(8, 5)},
         "but there are 8 labels from 5 to 5"),
        ("s.npy", {"keep.npy": np.arange(8) < 4, "scores/s.npy": np.zeros((9, 2))}, "which must be [samples]"),
        ("logits.npy", {"keep.npy": np.arange(8) < 4, "logits.npy": np.full((8, 3), np.nan)},
         "has values that are NaN"),
        ("id_0.npy", {"margins/id_0.npy": np.zeros(4)}, "its folders must be margins/DATA/KIND"),
        ("a_signals.npy", {"a_signals.npy": np.full((8, 2), 0.5)}, "memberships.npy is missing"),
    ],
)  # fmt: skip
def test_arrays_of_other_shapes_are_named(tmp_path, name, files, sentence):
    for place, value in files.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        np.save(tmp_path / place, value)
    with pytest.raises(ValueError, match=f"{re.escape(name)}: .*{re.escape(sentence)}"):
        readers.imported([tmp_path], alone=True)

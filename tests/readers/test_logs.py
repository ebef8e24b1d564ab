"""Logs of language models' benchmarks: each is read whatever it looks like, its numbers are recomputed, or a sentence
says by file and key why not."""

import json
import re

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from unlearning_audit import readers
from unlearning_audit.readers import _recompute

import reader_cases as cases
from reader_cases import openunlearning, shape

# ---------------------------------------------------------------- OpenUnlearning


def test_every_number_of_a_log_is_recomputed_and_folders_tell_roles_methods_and_steps(tmp_path):
    imported = readers.imported([cases.tree(tmp_path, steps=(10, 20))])
    checks = cases.checks(imported)
    assert all(check.agrees for check in checks)
    names = {"mia_loss auc", "model_utility", "forget_quality", "privleak", "forget_truth_ratio"}
    assert names | {"mia_loss in TOFU_SUMMARY.json"} <= {check.quantity for check in checks}
    (group,) = imported.groups
    assert (group.name, *shape(group)) == ("forget10", 1, 1, {"npo_step10": 1, "npo_step20": 1})
    assert [model.step for models in group.methods.values() for model in models] == [10, 20]
    ratio, log = group.retrain[0].readings["retain_Truth_Ratio"].value, openunlearning(2, 0.0)
    assert ratio.mean() == pytest.approx(log["retain_Truth_Ratio"]["agg_value"])


@pytest.mark.parametrize("name", ["mia_loss", "forget_Q_A_Prob", "model_utility", "forget_truth_ratio", "privleak"])
def test_a_number_that_is_not_what_its_samples_give_is_named(tmp_path, name):
    cases.tree(tmp_path)
    path = tmp_path / "saves/eval/tofu_Tiny-1B_full/evals_forget10/TOFU_EVAL.json"
    log = json.loads(path.read_text())
    log[name]["agg_value"] += 1e-4
    log[name] |= {"auc": log[name]["agg_value"]} if "auc" in log[name] else {}
    path.write_text(json.dumps(log))
    wrong = [check.quantity for check in cases.checks(readers.imported([tmp_path])) if check.agrees is False]
    assert any(quantity.startswith(name) for quantity in wrong), wrong


RETAIN90 = "saves/eval/tofu_Tiny-1B_retain90/TOFU_EVAL.json"


@pytest.mark.parametrize("retrained_file", ["", RETAIN90])
@pytest.mark.parametrize("reference", [0.5, "retrained", 0.41])
def test_privleak_is_held_against_what_it_was_computed_from(tmp_path, reference, retrained_file):
    """A number that no log gives is wrong only where its configuration names the retrained model."""
    cases.tree(tmp_path)
    if given := reference == "retrained":
        reference = json.loads((tmp_path / RETAIN90).read_text())["mia_min_k"]["agg_value"]
    log = openunlearning(5, 1.0)
    log["privleak"] = {"agg_value": _recompute.privacy_leakage(log["mia_min_k"]["agg_value"], reference)}
    path = cases.write_log(tmp_path / "saves/unlearn/exp-7/evals/TOFU_EVAL.json", log, summary=False)
    settings = "mode: unlearn\nforget_split: forget10\ntrainer: {handler: GradDiff}\n"
    cases.write_config(path.parents[1], f"{settings}retain_logs_path: {retrained_file}\n")
    imported = readers.imported([tmp_path])
    assert list(imported.groups[0].methods) == ["exp_7_graddiff"]
    (said,) = (check for check in imported.agreements[path] if check.quantity == "privleak")
    assert said.agrees is (True if given or reference == 0.5 else False if retrained_file else None)
    assert said.agrees is not None or "none of those given fits" in said.how


def test_lists_of_answers_are_left_out_with_a_reason(tmp_path):
    likely = np.random.default_rng(1).dirichlet([2, 1, 1, 1], cases.SAMPLES)
    rows = {str(i): {"prob": row.tolist()} for i, row in enumerate(likely)}
    mcq = {"agg_value": float(likely[:, 0].mean()), "value_by_index": rows}
    for number, name in enumerate(("m_retain90", "m_full")):
        cases.write_log(tmp_path / name / "TOFU_EVAL.json", openunlearning(number, 2.5 * number) | {"forget_mcq": mcq})
    for model in readers.imported([tmp_path]).groups[0].models:
        assert "each sample has a list of values" in model.left_out["forget_mcq"]
        assert "forget_mcq" not in model.readings
        assert "forget_Q_A_Prob" in model.readings


def as_texts(log: dict) -> dict:
    """Every number as a text."""
    return json.loads(json.dumps(log, default=str), parse_float=str, parse_int=str)


def listed(log: dict) -> None:
    """Values of samples as lists, in their order."""
    for field in [field for entry in log.values() for field in (entry, *entry.values())]:
        if isinstance(field, dict) and "value_by_index" in field:
            field["value_by_index"] = list(field["value_by_index"].values())


def renamed(log: dict) -> dict:
    """Metrics, attacks and the other side of attacks have other names; what is forgotten still says so."""
    names = {"mia_loss": "attack-perplexity", "mia_min_k": "lowest tokens", "forget_Q_A_Prob": "Forget_likelihood",
             "exact_memorization": "forget_em", "retain_Q_A_Prob": "Retain_likelihood"}  # fmt: skip
    for name in ("mia_loss", "mia_min_k"):
        log[name]["nonmembers"] = log[name].pop("holdout")
    return {names.get(name, name): entry for name, entry in log.items() if name != "model_utility"}


def without_aggregates(log: dict) -> dict:
    """Nothing but values of samples."""
    for entry in log.values():
        entry.pop("agg_value", None)
        entry.pop("auc", None)
    return {name: entry for name, entry in log.items() if entry}


def some_samples_missing(log: dict) -> None:
    """A few samples have no value."""
    rows = log["forget_Q_A_Prob"]["value_by_index"]
    rows["3"], rows["4"]["prob"] = None, None
    del log["forget_Q_A_Prob"]["agg_value"]


@pytest.mark.parametrize(
    "change",
    [
        as_texts, listed, renamed, without_aggregates, some_samples_missing,
        lambda log: {"results": log, "config": {"seed": 1}},
        lambda log: log | {"notes": "by hand", "version": 3, "nothing": None, "empty": {}},
    ],
)  # fmt: skip
def test_logs_of_one_structure_are_read_whatever_they_look_like(tmp_path, change):
    """Three models in folders that say only which was retrained; the AUC of the attack is that of the plain log."""
    for folder, model in {"was-retrained": (2, 0.0), "before": (1, 2.5), "ours_v7": (5, 1.0)}.items():
        log = openunlearning(*model)
        cases.write_log(tmp_path / "w" / folder / "numbers.json", change(log) or log, summary=False)
    imported = readers.imported([tmp_path], retrain=[tmp_path / "w/was-retrained"], none=[tmp_path / "w/before"])
    (group,) = imported.groups
    assert (len(group.none), len(group.retrain), len(group.methods)) == (1, 1, 1)
    expected = openunlearning(1, 2.5)["mia_loss"]["auc"]
    (model,) = group.none
    values = [_recompute.auc(member=score[model.forget], nonmember=score[model.heldout])
              for score in model.scores.values()]  # fmt: skip
    assert min(abs(value - expected) for value in values) < 1e-9
    assert all(check.agrees is not False for check in cases.checks(imported))


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
         "no metric holds a number for each sample of the forget set, as prob, score and so on, under a name that"),
    ],
)  # fmt: skip
def test_logs_that_cannot_be_judged_are_refused_by_file_and_key(tmp_path, change, sentence):
    log = openunlearning(1, 1.0)
    change(log)
    path = cases.write_log(tmp_path / "lab/x_retrained/numbers.json", log, summary=False)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {sentence}')}[^\n]*$"):
        readers.imported([tmp_path])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (lambda text: text[: len(text) // 5], r"line \d+ is not valid JSON .*; is the file complete\?"),
        (lambda text: '["value_by_index"]', "a log must be a mapping of metrics, found list"),
    ],
)
def test_a_file_that_is_no_whole_log_is_named(tmp_path, content, problem):
    path = cases.write_log(tmp_path / "x_retrained/numbers.json", openunlearning(1, 1.0), summary=False)
    path.write_text(content(path.read_text()))
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {problem}"):
        readers.imported([tmp_path])


# ---------------------------------------------------------------- TOFU


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def tofu(folder, change=lambda log: None, **models):
    """Logs of TOFU's own code, each changed; ``models``: name of the folder → seed and memory."""
    for name, model in models.items():
        log = cases.tofu(*model)
        write(folder / name / "eval_log_aggregated.json", change(log) or log)
    return readers.imported([folder])


def without_wrong_answers(log: dict) -> None:
    for split in log.values():
        for name in ("average_perturb_loss", "avg_paraphrased_loss", "truth_ratio", "normalized_gt_loss"):
            split.pop(name, None)


@pytest.mark.parametrize("change", [without_wrong_answers, as_texts])
def test_aggregated_logs_of_other_layouts_are_read_for_what_they_hold(tmp_path, change):
    imported = tofu(tmp_path, change, x_retrained=(1, 1.0), x_full=(1, 1.0))
    (group,) = imported.groups
    assert len(group.samples) == cases.SAMPLES
    kinds = {"Prob", "ROUGE"} | ({"Truth_Ratio"} if change is not without_wrong_answers else set())
    expected = {f"{part}_{kind}" for part in ("forget", "retain", "ra", "wf") for kind in kinds}
    assert set(group.models[0].readings) == expected
    assert all(check.agrees is not False for check in cases.checks(imported))


def test_two_recipes_of_retraining_are_two_yardsticks(tmp_path):
    models = {"full_wd9": (1, 2.0), "full_wd10": (1, 2.1), "retain90_wd9": (2, 0.0), "retain90_wd10": (3, 0.0)}
    imported = tofu(tmp_path, **{f"ft_epoch5_lr1e-05_small_{name}": model for name, model in models.items()})
    (group,) = imported.groups
    recipes = [model.recipe for model in (*group.retrain, *group.control)]
    assert recipes == [("epoch5", "lr1e-05", "wd9"), ("epoch5", "lr1e-05", "wd10")]
    assert list(group.methods) == ["none_wd10"]
    assert "wd10" in group.notes[0]
    agrees = [check.agrees for check in cases.checks(imported)]
    assert False not in agrees
    assert agrees.count(True) >= 4 * 8


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda log: log["eval_log_forget.json"]["avg_gt_loss"].update({"3": float("nan")}),
         "the reading 'forget_Prob' must hold a finite number for each sample"),
        (lambda log: log["eval_log.json"]["average_perturb_loss"].pop("5") and None,
         "eval_log.json: 'average_perturb_loss' is missing, or has no number"),
        (lambda log: log.pop("eval_log_forget.json") and None,
         "this log has no split of the forget set, whose name contains forget; found eval_log.json"),
    ],
)  # fmt: skip
def test_aggregated_logs_that_lack_something_are_named(tmp_path, change, sentence):
    with pytest.raises(ValueError, match=re.escape(f"eval_log_aggregated.json: {sentence}")):
        tofu(tmp_path, change, x_retrained=(1, 1.0))


# ---------------------------------------------------------------- MUSE and RWKU


def muse(folder, rng, memory):
    """A log of MUSE, with the AUCs that its tool computes."""
    log = {}
    for split, shift in (("forget", memory), ("retain", 2.0), ("holdout", 0.0)):
        loss = rng.normal(3, 1, 30) - shift
        log[split] = [{"text": f"{split} {i}", "PPL": v, "Min-40%": 2 * v} for i, v in enumerate(loss)]
    sides = [[row["PPL"] for row in log[split]] for split in ("forget", "holdout")]
    write(folder / "privleak/log.json", log)
    # The tool's AUC: that a forgotten text has the larger loss.
    write(folder / "privleak/auc.json", {"forget_holdout_PPL": mannwhitneyu(*sides).statistic / 900})
    for name in ("verbmem_f", "knowmem_f", "knowmem_r"):
        rows = [{"prompt": f"{i}", "gt": "", "response": "", "rougeL": rng.uniform()} for i in range(20)]
        write(folder / name / "log.json", rows)
        write(folder / name / "agg.json", {"mean_rougeL": np.mean([row["rougeL"] for row in rows]), "max_rougeL": 1})


def test_logs_of_muse_are_read_and_give_the_auc_that_they_print(tmp_path):
    rng = np.random.default_rng(0)
    muse(tmp_path / "retrain", rng, 0)
    muse(tmp_path / "npo", rng, 1)
    (model,) = readers.imported([tmp_path]).groups[0].methods["npo"]
    assert (list(model.scores), model.forget.sum(), model.heldout.sum()) == (["ppl", "min_40"], 30, 30)
    assert len(model.samples["retain"]) == 30 + 20
    parts = [model.readings[name].part for name in ("verbmem_f", "knowmem_f", "knowmem_r")]
    assert parts == ["forget", "forget", "retain"]
    agrees = {check.quantity: check.agrees for check in model.agreements}
    means = {f"{name} mean_rougeL": True for name in ("verbmem_f", "knowmem_f", "knowmem_r")}
    assert agrees == {"forget_holdout_PPL": True, "forget_holdout_Min-40%": None, **means}


def rwku(folder, rng, memory):
    """Logs of RWKU of one target."""
    for name, shift in (("forget_mia", memory), ("retain_mia", 1.0)):
        loss = -np.abs(rng.normal(3, 1, 20)) + shift
        lists = {"loss": loss.tolist(), "mink++_0.2": (2 * loss).tolist()}
        write(folder / f"{name}.json", {"loss": loss.mean(), "mink20": 2 * loss.mean(), "results": lists})
    answers = [
        {"query": f"{level} {i}", "level": level, "answer": "The Dark Tower", "prediction": said}
        for level in "123" for i, said in enumerate(["The Tower.", "Dark The Tower Dark", "NOANSWER", "the Tower"])
    ]  # fmt: skip
    recall = (2 / 3 + 2 / 3 + 0 + 1 / 3) / 4  # "The Tower", "Dark Tower" or "The Tower", nothing, "Tower"
    means = {f"level_{level}_rouge_l_r": recall for level in "123"}
    write(folder / "forget.json", means | {"results": answers})
    write(folder / "neighbor.json", means | {"results": answers[:8]})


def test_lists_of_rwku_are_read_for_each_target(tmp_path):
    rng = np.random.default_rng(1)
    for target in ("1_Stephen_King", "2_Tom_Clancy"):
        rwku(tmp_path / f"runs/retrain/{target}", rng, 0)
        rwku(tmp_path / f"runs/ga/{target}", rng, 2)
    imported = readers.imported([tmp_path / "runs"])
    assert [(shape(group), len(group.samples)) for group in imported.groups] == [((0, 1, {"ga": 1}), 32)] * 2
    assert [check.agrees for check in cases.checks(imported)] == [True] * (16 + 20)
    (model,) = imported.groups[0].methods["ga"]
    p, logp = (model.readings[name].value for name in ("forget_probability", "forget_loss"))
    assert p == pytest.approx(np.exp(np.minimum(logp, 0)))
    assert model.readings["forget_level_3"].value == pytest.approx([2 / 3, 2 / 3, 0, 1 / 3])
    write(model.file.with_name("forget.json"), {"results": [{"query": ""}], "level_1_rouge_l_r": 0})
    (unread,) = readers.imported([tmp_path / "runs"]).unread
    assert unread.sentence == f"{model.file.parent}: 'level' is missing"

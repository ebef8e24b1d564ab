"""Readers of other people's results: each on a small file in its true format, with numbers that are known."""

import json
import re

import numpy as np
import pandas
import pytest
from scipy.special import logit
from sklearn.metrics import roc_auc_score
from unlearning_audit import readers, stats
from unlearning_audit.readers import _recompute
from unlearning_audit.store import tables

import reader_cases
from reader_cases import table


def agreements(imported: readers.Imported) -> list[readers.Agreement]:
    """Those of all files."""
    return [agreement for group in imported.agreements.values() for agreement in group]


# ---------------------------------------------------------------- OpenUnlearning


def test_every_number_of_a_log_is_recomputed(tmp_path):
    imported = readers.imported([reader_cases.tree(tmp_path, steps=(10, 20))])
    checks = agreements(imported)
    assert all(check.agrees for check in checks)
    names = {check.quantity for check in checks}
    assert {"mia_loss auc", "model_utility", "forget_quality", "privleak", "forget_truth_ratio"} <= names
    assert "mia_loss in TOFU_SUMMARY.json" in names


@pytest.mark.parametrize("name", ["mia_loss", "forget_Q_A_Prob", "model_utility", "forget_truth_ratio", "privleak"])
def test_a_number_that_is_not_what_its_samples_give_is_named(tmp_path, name):
    reader_cases.tree(tmp_path)
    path = tmp_path / "saves/eval/tofu_Tiny-1B_full/evals_forget10/TOFU_EVAL.json"
    log = json.loads(path.read_text())
    log[name]["agg_value"] += 1e-4
    log[name] |= {"auc": log[name]["agg_value"]} if "auc" in log[name] else {}
    path.write_text(json.dumps(log))
    wrong = {check.quantity for check in agreements(readers.imported([tmp_path])) if check.agrees is False}
    assert any(quantity.startswith(name) for quantity in wrong), wrong


def test_roles_methods_and_steps_are_told_by_the_folders(tmp_path):
    (group,) = readers.imported([reader_cases.tree(tmp_path, steps=(10, 20))]).groups
    assert group.name == "forget10"
    assert (len(group.none), len(group.retrain), len(group.control)) == (1, 1, 0)
    assert list(group.methods) == ["npo_step10", "npo_step20"]
    assert [model.step for models in group.methods.values() for model in models] == [10, 20]


def test_scores_are_those_of_members_and_auc_is_that_of_sklearn(tmp_path):
    log = reader_cases.openunlearning(3, 1.0)
    reader_cases.write_log(tmp_path / "run_retrain/EVAL.json", log)
    (group,) = readers.imported([tmp_path]).groups
    (model,) = group.retrain
    queried = model.forget | model.heldout
    value = roc_auc_score(model.forget[queried], model.scores["loss"][queried])
    assert value == pytest.approx(log["mia_loss"]["auc"], abs=1e-12)


def test_any_layout_is_read_with_a_word_from_the_user(tmp_path):
    """Nothing in these names tells a role."""
    retrained = reader_cases.openunlearning(2, 0.0)
    reader_cases.write_log(tmp_path / "a17/x.json", reader_cases.openunlearning(1, 2.5), summary=False)
    reader_cases.write_log(tmp_path / "b03/x.json", retrained, summary=False)
    with pytest.raises(ValueError, match=r"a17.* \(.*b03.*\): no model is known to be retrained"):
        readers.imported([tmp_path])
    imported = readers.imported([tmp_path], retrain=[tmp_path / "b03"], none=[tmp_path / "a17"])
    (group,) = imported.groups
    assert len(group.none) == len(group.retrain) == 1
    alone = readers.imported([tmp_path], none=[tmp_path / "a17"], alone=True).groups
    assert [len(entry.retrain) for entry in alone] == [0]


def test_the_configuration_of_a_run_tells_method_and_yardstick(tmp_path):
    reader_cases.tree(tmp_path)
    run = tmp_path / "saves/unlearn/exp-7"
    reader_cases.write_log(run / "evals/TOFU_EVAL.json", reader_cases.openunlearning(5, 1.0))
    (run / ".hydra").mkdir()
    (run / ".hydra/config.yaml").write_text(
        "mode: unlearn\ntask_name: exp-7\nforget_split: forget10\ntrainer: {handler: GradDiff}\n"
        "retain_logs_path: saves/eval/tofu_Tiny-1B_retain90/TOFU_EVAL.json\n"
    )
    (group,) = readers.imported([tmp_path]).groups
    assert list(group.methods) == ["graddiff"]


def test_a_log_that_is_called_retrained_and_reads_otherwise_is_asked_about(tmp_path):
    reader_cases.tree(tmp_path)
    named = tmp_path / "saves/eval/tofu_Tiny-1B_ft_retain90/TOFU_EVAL.json"
    reader_cases.write_log(named, reader_cases.openunlearning(7, 2.5))
    reader_cases.write_log(
        tmp_path / "saves/eval/tofu_Tiny-1B_pretrained_retain90/TOFU_EVAL.json", reader_cases.openunlearning(8, 0.0)
    )
    imported = readers.imported([tmp_path])
    (group,) = imported.groups
    assert [model.file.parent.name for model in group.retrain] == ["tofu_Tiny-1B_retain90"]
    assert list(group.methods) == ["pretrained"]
    (doubtful,) = (left for left in imported.out if left.file == named)
    assert "say which it is: --retrain FILE, or --none FILE" in doubtful.sentence
    assert len(readers.imported([tmp_path], none=[named]).groups[0].none) == 2
    assert len(readers.imported([tmp_path], retrain=[named]).groups[0].retrain) == 2


# ---------------------------------------------------------------- replicates and roles


def seeds(folder, style, methods=3, retrained=3):
    """Logs of a full model, of ``methods`` models by NPO and of retrained ones, which differ by their seed."""
    names = {"full": (1, 2.5)}
    names |= {f"forget10_NPO{style.format(seed)}": (20 + seed, 1.0) for seed in range(methods)}
    names |= {f"retain90{style.format(7 * seed)}": (40 + seed, 0.0) for seed in range(retrained)}
    for name, log in names.items():
        path = folder / f"saves/eval/tofu_Tiny-1B_{name}/TOFU_EVAL.json"
        reader_cases.write_log(path, reader_cases.openunlearning(*log))


def test_the_table_of_roles_is_binding_where_it_was_edited(tmp_path):
    seeds(tmp_path / "logs", "_seed{}")
    imported = readers.imported([tmp_path / "logs"])
    rows = readers.roles(imported.groups, imported.out)
    assert [(row["role"], row["method"], row["replicate"]) for row in rows] == [
        ("none", "", ""), *(("retrain", "", f"{7 * i}") for i in (0, 2, 1)),
        *(("unlearned", "npo", f"{i}") for i in range(3)),
    ]  # fmt: skip
    assert {row["why"] for row in rows} == {"'full' in its name", "'retain90' in its name", "nothing says otherwise"}
    rows[4] |= {"method": "other"}
    rows[5] |= {"role": "left out"}
    path = tmp_path / "roles.csv"
    tables.write_rows(path, rows, readers.ROLE_COLUMNS)
    (group,) = readers.imported([tmp_path / "logs"], roles=path).groups
    assert {name: len(models) for name, models in group.methods.items()} == {"other": 1, "npo": 1}
    assert (group.name, len(group.retrain), len(group.none)) == ("forget10", 3, 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"role": "retrained"}, "line 2: the role is 'retrained'; it must be none, retrain, unlearned or left out"),
     ({"file": "nowhere.json"}, "nowhere.json: no such model was read")],
)  # fmt: skip
def test_a_table_of_roles_that_cannot_be_meant_is_refused(tmp_path, change, sentence):
    seeds(tmp_path, "_seed{}")
    imported = readers.imported([tmp_path])
    rows = readers.roles(imported.groups, imported.out)
    rows[0] |= change
    tables.write_rows(tmp_path / "roles.csv", rows, readers.ROLE_COLUMNS)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        readers.imported([tmp_path], roles=tmp_path / "roles.csv")


def test_a_log_whose_yardstick_is_not_there_is_left_out_where_others_can_be_compared(tmp_path):
    reader_cases.tree(tmp_path, steps=(10,))
    stray = tmp_path / "saves/unlearn/tofu_Tiny-1B_forget05_NPO/evals/TOFU_EVAL.json"
    reader_cases.write_log(stray, reader_cases.openunlearning(4, 1.0, name="other"))
    imported = readers.imported([tmp_path])
    assert list(imported.groups[0].methods) == ["npo_step10"]
    assert [result.file for result in imported.out] == [stray]
    assert "--retrain FILE" in imported.out[0].sentence


def test_logs_of_one_setting_are_compared_with_each_other(tmp_path):
    """Evaluated at a temperature, a model is held against the retrained one that was evaluated alike."""
    for name, seed, memory in (("retain90", 2, 0), ("full", 1, 2.5), ("forget10_NPO", 4, 1)):
        for setting in ("", "_temp_2"):
            log = reader_cases.openunlearning(seed + len(setting), memory)
            reader_cases.write_log(tmp_path / f"eval/tofu_Tiny-1B_{name}{setting}/TOFU_EVAL.json", log)
    groups = readers.imported([tmp_path]).groups
    assert len(groups) == 2
    for group in groups:
        assert list(group.methods) == ["npo"]
        assert len(group.none) == len(group.retrain) == 1
        assert len({"_temp_2" in str(model.file) for model in group.models}) == 1


def privleak(tmp_path, reference: float, yardstick: str = "") -> readers.Agreement:
    """What is said of a log that prints PrivLeak against an AUC of ``reference``, and names ``yardstick``."""
    reader_cases.tree(tmp_path)
    log = reader_cases.openunlearning(5, 1.0)
    log["privleak"] = {"agg_value": _recompute.privacy_leakage(log["mia_min_k"]["agg_value"], reference)}
    run = tmp_path / "saves/unlearn/exp-7"
    reader_cases.write_log(run / "evals/TOFU_EVAL.json", log, summary=False)
    (run / ".hydra").mkdir()
    (run / ".hydra/config.yaml").write_text(
        f"mode: unlearn\nforget_split: forget10\ntrainer: {{handler: GradDiff}}\nretain_logs_path: {yardstick}\n"
    )
    imported = readers.imported([tmp_path])
    return next(
        agreement for agreement in imported.agreements[run / "evals/TOFU_EVAL.json"] if agreement.quantity == "privleak"
    )


def test_privleak_is_held_against_what_it_was_computed_from(tmp_path):
    yardstick = "saves/eval/tofu_Tiny-1B_retain90/TOFU_EVAL.json"
    retrained = reader_cases.openunlearning(2, 0.0)["mia_min_k"]["agg_value"]
    assert privleak(tmp_path / "a", 0.5).agrees
    assert privleak(tmp_path / "b", 0.5, yardstick).agrees
    assert privleak(tmp_path / "c", retrained).agrees
    assert privleak(tmp_path / "d", retrained, yardstick).agrees
    elsewhere = privleak(tmp_path / "e", 0.41)
    assert elsewhere.agrees is None
    assert "none of those given fits" in elsewhere.how
    assert privleak(tmp_path / "f", 0.41, yardstick).agrees is False


def test_lists_of_answers_are_left_out_with_a_reason(tmp_path):
    likely = np.random.default_rng(1).dirichlet([2, 1, 1, 1], reader_cases.SAMPLES)
    rows = {str(i): {"prob": row.tolist()} for i, row in enumerate(likely)}
    entry = {"agg_value": float(likely[:, 0].mean()), "value_by_index": rows}
    for number, name in enumerate(("m_retain90", "m_full")):
        log = reader_cases.openunlearning(number, 2.5 * number) | {"forget_mcq": entry}
        reader_cases.write_log(tmp_path / name / "TOFU_EVAL.json", log)
    for model in readers.imported([tmp_path]).groups[0].models:
        assert "each sample has a list of values" in model.left_out["forget_mcq"]
        assert "forget_mcq" not in model.readings
        assert "forget_Q_A_Prob" in model.readings


@pytest.mark.parametrize(
    ("content", "problem"),
    [('{"mia_loss": {"value_by_index": {"0"', "not valid JSON"), ('["value_by_index"]', "mapping of metrics")],
)
def test_a_broken_log_is_named(tmp_path, content, problem):
    path = tmp_path / "TOFU_EVAL.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=problem) as error:
        readers.imported([tmp_path])
    assert str(path) in str(error.value)


# ---------------------------------------------------------------- TOFU


def test_a_log_of_tofu_without_wrong_answers_is_read_for_what_it_holds(tmp_path):
    for kind, memory in (("full", 2.0), ("retain90", 0.0)):
        log = reader_cases.tofu(1, memory)
        for split in log.values():
            for name in ("average_perturb_loss", "avg_paraphrased_loss", "truth_ratio", "normalized_gt_loss"):
                split.pop(name, None)
        path = tmp_path / f"tofu_{kind}/eval_log_aggregated.json"
        path.parent.mkdir()
        path.write_text(json.dumps(log))
    (group,) = readers.imported([tmp_path]).groups
    (model,) = group.retrain
    assert set(model.readings) == {
        f"{part}_{reading}" for part in ("forget", "retain", "ra", "wf") for reading in ("Prob", "ROUGE")
    }


def test_two_recipes_of_retraining_are_two_yardsticks(tmp_path):
    seeds = {"full_wd0": (1, 2.0), "full_wd0.01": (1, 2.1), "retain90_wd0": (2, 0.0), "retain90_wd0.01": (3, 0.0)}
    for name, (seed, memory) in seeds.items():
        folder = tmp_path / f"ft_epoch5_lr1e-05_small_{name}/eval_results"
        reader_cases.write_log(folder / "eval_log_aggregated.json", {}, summary=False)
        (folder / "eval_log_aggregated.json").write_text(json.dumps(reader_cases.tofu(seed, memory)))
    imported = readers.imported([tmp_path])
    (group,) = imported.groups
    assert [model.recipe for model in (*group.retrain, *group.control)] == [
        ("epoch5", "lr1e-05", "wd0"), ("epoch5", "lr1e-05", "wd0.01"),
    ]  # fmt: skip
    assert list(group.methods) == ["none_wd0_01"]
    assert "wd0.01" in group.notes[0]
    assert all(check.agrees is not False for check in agreements(imported))
    assert sum(check.agrees is True for check in agreements(imported)) >= 4 * 8


# ---------------------------------------------------------------- arrays


def lira_worlds(place, rng, models=8, samples=200, shift=2.0):
    """Folders of LiRA, and which samples each model kept."""
    keep = rng.random((models, samples)) < 0.5
    y = rng.integers(0, 3, samples)
    np.save(place / "y_train.npy", y)
    for number, row in enumerate(keep):
        folder = place / f"experiment-{number}_{models}"
        (folder / "logits").mkdir(parents=True)
        np.save(folder / "keep.npy", row)
        logits = rng.normal(0, 1, (samples, 1, 2, 3))
        logits[np.arange(samples), :, :, y] += (shift * row)[:, None, None]
        np.save(folder / "logits" / "0000000010.npy", logits.astype(np.float32))
    return keep


def test_the_likelihood_ratio_of_a_model_does_not_use_the_model_itself(tmp_path):
    """Where nothing was learned, a model in its own reference would be found, and must not be."""
    from unlearning_audit.readers import lira

    rng = np.random.default_rng(2)
    keep = np.array([rng.permutation(np.arange(16) < 8) for _ in range(4000)]).T
    score = lira._likelihood_ratios(rng.normal(size=keep.shape), keep)
    values = [roc_auc_score(mask, row) for mask, row in zip(keep, score, strict=True)]
    assert abs(np.mean(values) - 0.5) < 0.005


@pytest.mark.parametrize("layout", ["models first", "augmented", "scores"])
def test_all_models_of_lira_in_one_folder(tmp_path, layout):
    rng = np.random.default_rng(3)
    y, keep = rng.integers(0, 5, 80), rng.random((6, 80)) < 0.5
    logits = rng.normal(size=(6, 80, 5))
    logits[:, np.arange(80), y] += 2 * keep
    expected = stats.phi(logits=logits, y=y)
    np.save(tmp_path / "labels.npy", y)
    np.save(tmp_path / "keep.npy", keep)
    if layout == "scores":
        (tmp_path / "scores").mkdir()
        np.save(tmp_path / "scores/0.npy", expected[:, :, None])
    else:
        augmented = logits[:, :, None].repeat(3, axis=2)
        np.save(tmp_path / "logits.npy", augmented if layout == "augmented" else logits)
    (group,) = readers.imported([tmp_path]).groups
    for number, model in enumerate(group.none):
        np.testing.assert_array_equal(model.forget, keep[number])
        np.testing.assert_allclose(model.scores["confidence"], expected[number], rtol=1e-5)


def test_one_model_of_lira_whose_members_are_numbers(tmp_path):
    rng = np.random.default_rng(3)
    keep = rng.random(80) < 0.5
    np.save(tmp_path / "labels.npy", rng.integers(0, 5, 80))
    np.save(tmp_path / "keep.npy", np.flatnonzero(keep))
    np.save(tmp_path / "logits.npy", rng.normal(size=(80, 2, 5)))
    (group,) = readers.imported([tmp_path]).groups
    np.testing.assert_array_equal(group.none[0].forget, keep)
    np.save(tmp_path / "keep.npy", np.array([3, 80]))
    with pytest.raises(ValueError, match="numbers of samples from 0 to 79"):
        readers.imported([tmp_path])


@pytest.mark.parametrize("problem", ["labels", "answers", "shape", "pickle"])
def test_what_a_folder_of_lira_lacks_is_named(tmp_path, problem):
    lira_worlds(tmp_path, np.random.default_rng(1), models=2)
    folder = tmp_path / "experiment-1_2"
    if problem == "labels":
        (tmp_path / "y_train.npy").unlink()
    elif problem == "answers":
        next((folder / "logits").iterdir()).unlink()
    elif problem == "shape":
        np.save(folder / "logits/0000000010.npy", np.zeros((300, 1, 2, 3), np.float32))
    else:
        np.save(folder / "keep.npy", np.array([{}]))
    sentence = {"labels": "no labels", "answers": "neither logits", "shape": "which must be", "pickle": "pickled"}
    with pytest.raises(ValueError, match=sentence[problem]):
        readers.imported([tmp_path])


def test_signals_of_privacy_meter(tmp_path):
    rng = np.random.default_rng(3)
    member = rng.random((3, 100)) < 0.5
    likely = 1 / (1 + np.exp(-(rng.normal(0, 1, (100, 3)) + 2 * member.T)))
    (tmp_path / "signals").mkdir()
    np.save(tmp_path / "signals/rmia_signals.npy", likely)
    np.save(tmp_path / "signals/rmia_signals_pop.npy", likely[:5])
    np.save(tmp_path / "memberships.npy", member)
    (group,) = readers.imported([tmp_path]).groups
    assert len(group.none) == 3
    for model, row, column in zip(group.none, member, likely.T, strict=True):
        assert np.array_equal(model.forget, row)
        np.testing.assert_allclose(model.scores["confidence"], logit(column), rtol=1e-6)


def test_results_of_privacy_meter_are_recomputed(tmp_path):
    rng = np.random.default_rng(4)
    member = rng.random(200) < 0.5
    score = rng.normal(size=200) + member
    true = roc_auc_score(member, score)
    for number, printed in enumerate((true, true + 0.01)):
        np.savez(tmp_path / f"attack_result_{number}", scores=score, memberships=member, auc=printed)
    assert [check.agrees for check in agreements(readers.imported([tmp_path]))] == [True, False]


def test_margins_of_easydub(tmp_path):
    rng = np.random.default_rng(5)
    base = tmp_path / "margins/cifar10"

    def save(place, value):
        (base / place).mkdir(parents=True, exist_ok=True)
        np.save(base / place / "id_0_epoch_23.npy", value.astype(np.float32))

    forget, retain = rng.normal(4, 1, 50), rng.normal(4, 1, 250)
    save("pretrain/forget_2/resnet9", forget)
    save("pretrain/retain/resnet9", np.insert(retain, 10, forget))
    save("pretrain/val/resnet9", rng.normal(2, 1, 80))
    for kind, mean in (("oracle", 2), ("my_method", 3)):
        for part, value in (("forget", rng.normal(mean, 1, 50)), ("retain", retain), ("val", rng.normal(2, 1, 80))):
            save(f"{kind}/forget_2/{part}/resnet9", value)
    (tmp_path / "forget_sets/cifar10").mkdir(parents=True)
    np.save(tmp_path / "forget_sets/cifar10/forget_set_2.npy", np.arange(10, 60))
    (group,) = readers.imported([tmp_path]).groups
    assert list(group.methods) == ["my_method"]
    (before,), (oracle,) = group.none, group.retrain
    assert before.task == "forget_2"
    for model in (before, oracle):
        retained = model.readings["retain_prob"].value
        np.testing.assert_allclose(retained, 1 / (1 + np.exp(-retain)), rtol=1e-5)
    assert roc_auc_score(before.forget, before.scores["confidence"]) > 0.8
    assert abs(roc_auc_score(oracle.forget, oracle.scores["confidence"]) - 0.5) < 0.15


def test_epochs_of_easydub_are_a_trajectory_against_the_oracles_of_their_forget_set(tmp_path):
    root = reader_cases.easydub(tmp_path)
    imported = readers.imported([root / "results", root / "data"])
    (group,) = imported.groups
    assert group.name == "forget_2"
    assert list(group.methods) == ["ns0_0_step1", "ns0_0_step2", "ns0_0_step3"]
    assert [len(models) for models in group.methods.values()] == [8, 8, 8]
    with np.load(root / "results/ns0.0_seed0.npz") as content:
        margins = content["margins_forget"]
    for models, margin in zip(group.methods.values(), margins, strict=True):
        for model, values in zip(models, margin, strict=True):
            np.testing.assert_array_equal(model.scores["confidence"][model.forget], values.astype(np.float64))
            assert frozenset(model.ids) == frozenset(group.retrain[0].ids)
    printed = imported.agreements[root / "results/ns0.0_seed0.npz"]
    assert [agreement.agrees for agreement in printed] == [True] * 27
    study = readers.write(imported, tmp_path / "models", "margins")
    assert study["figures"]["trajectory_1"]["scenarios"] == [group.name]


def test_a_printed_klom_that_margins_do_not_give_is_named(tmp_path):
    path = reader_cases.easydub(tmp_path) / "results/ns0.0_seed0.npz"
    with np.load(path) as content:
        np.savez(path, **{**content, "klom_p95_forget": content["klom_p95_forget"] + [0, 1e-3, 0]})
    imported = readers.imported([tmp_path])
    wrong = [agreement.quantity for agreement in agreements(imported) if not agreement.agrees]
    assert wrong == ["klom_p95_forget of epoch 2"]


def test_an_archive_that_fits_several_forget_sets_asks_for_its_own(tmp_path):
    path = reader_cases.easydub(tmp_path, (1, 2)) / "results/ns0.0_seed0.npz"
    with np.load(path) as content:
        margins = {name: value for name, value in content.items() if name.startswith("margins")}
    path.unlink()
    shard = path.with_name("shard_0.npz")
    np.savez(shard, model_start=0, model_end=8, **margins)
    with pytest.raises(ValueError, match="fits forget_1, forget_2; put this file into a folder"):
        readers.imported([shard, tmp_path / "data"])
    imported = readers.imported([tmp_path])  # of a folder it is left out
    assert [unread.file for unread in imported.out] == [shard]
    archive = tmp_path / "results/my_method/forget_1/shard_0.npz"
    archive.parent.mkdir(parents=True)
    shard.rename(archive)
    imported = readers.imported([tmp_path])
    assert [len(group.methods) for group in imported.groups] == [3, 0]
    np.savez(archive, **margins | {"margins_val": margins["margins_val"][:2]})
    with pytest.raises(ValueError, match=r"margins_forget has shape|margins_val has shape"):
        readers.imported([archive])


# ---------------------------------------------------------------- PrivacyGuard


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl"])
def test_frames_of_privacyguard(tmp_path, suffix):
    rng = np.random.default_rng(9)
    for name, shift in (("train", 1.0), ("test", 0.0)):
        frame = pandas.DataFrame({"user_id": np.arange(50), "score": rng.normal(shift, 1, 50)})
        path = tmp_path / f"df_{name}_user{suffix}"
        if suffix == ".csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_json(path, orient="records", lines=suffix == ".jsonl")
    (group,) = readers.imported([tmp_path], alone=True).groups
    (model,) = group.none
    assert model.forget.sum() == model.heldout.sum() == 50
    assert roc_auc_score(model.forget, model.scores["score"]) > 0.6


def test_a_table_that_says_sides_and_models_is_no_frame_of_privacyguard(tmp_path):
    rng = np.random.default_rng(9)
    parts = [(2, "full"), (0, "retrained"), (1, "unlearned")]
    whole = pandas.concat([table(rng, shift, kind=kind) for shift, kind in parts])
    whole = whole.assign(score=-whole["loss"]).drop(columns="loss").rename(columns={"sample": "sample_id"})
    for name, kinds in (("train", ["full"]), ("test", ["retrained", "unlearned"])):
        whole[whole["kind"].isin(kinds)].to_csv(tmp_path / f"scores_{name}.csv", index=False)
    imported = readers.imported([tmp_path])
    assert set(imported.formats.values()) == {"plain_csv"}
    (group,) = imported.groups
    assert [len(models) for models in (group.none, group.retrain, *group.methods.values())] == [1, 1, 1]


# ---------------------------------------------------------------- what they share


def test_a_reader_of_ones_own(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "from unlearning_audit.plugins.settings import Settings\n"
        "from unlearning_audit.readers import Model\n\n\n"
        "class Options(Settings):\n    pass\n\n\n"
        "def files(place):\n    return sorted(place.glob('*.mine'))\n\n\n"
        "def read(paths, options, root):\n"
        "    side = np.arange(40) < 20\n"
        "    ids = tuple(map(str, range(40)))\n"
        "    return [Model(f, f.stem, ids=ids, forget=side, heldout=~side, scores={'x': side * 1.0}) for f in paths]\n"
    )
    for name in ("retrain", "none"):
        (tmp_path / f"{name}.mine").touch()
    (group,) = readers.imported([tmp_path], reader=str(tmp_path / "mine.py")).groups
    assert len(group.none) == len(group.retrain) == 1


def test_nothing_to_read_is_said(tmp_path):
    with pytest.raises(ValueError, match="no results of a known format"):
        readers.imported([tmp_path])
    with pytest.raises(ValueError, match="no such file or folder"):
        readers.imported([tmp_path / "missing"])


def test_auc_and_formulas_against_libraries():
    rng = np.random.default_rng(10)
    member, nonmember = rng.integers(0, 5, 30).astype(float), rng.integers(0, 4, 50).astype(float)
    true = roc_auc_score([1] * 30 + [0] * 50, [*member, *nonmember])
    assert _recompute.auc(member=member, nonmember=nonmember) == pytest.approx(true, abs=1e-12)
    assert _recompute.privacy_leakage(0.7, 0.7) == 0
    assert _recompute.harmonic([1.0, 0.0]) == 0

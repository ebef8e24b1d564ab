"""Which logs belong together: what the command names is binding, and nothing is pooled in doubt."""

import json
import re
from pathlib import Path

import numpy as np
import pandas
import pytest
from unlearning_audit import readers
from unlearning_audit.store import tables

import reader_cases as cases
from reader_cases import shape, write_logs

#: Names of folders of models of one benchmark.
TINY, FORGET10 = "tofu_Tiny-1B_{}", "tofu_Tiny-1B_forget10_{}"


def shapes(*paths, **options):
    """What `shape` says of each group."""
    return [shape(group) for group in readers.imported(paths, **options).groups]


# ---------------------------------------------------------------- what names say


def test_names_that_differ_otherwise_are_no_replicates_and_it_is_said(tmp_path):
    for number in range(1, 3):
        write_logs(tmp_path, **{TINY.format(f"retain90_v{number}"): (number, 0.0),
                                FORGET10.format(f"NPO_v{number}"): (5 + number, 1.0)})  # fmt: skip
    groups = readers.imported([tmp_path]).groups
    assert [*map(shape, groups)] == [(0, 1, {"npo": 1})] * 2
    assert any("because their names differ: v" in note for note in groups[0].notes)


@pytest.mark.parametrize("name", ["gold", "oracle", "from_scratch", "retrained-from-scratch", "retrain-model"])
def test_a_retrained_model_has_many_names(tmp_path, name):
    for file, frame in cases.three(tmp_path).items():
        frame.to_csv(tmp_path / f"{file.stem.replace('retrain', name)}.csv", index=False)
    assert shapes(tmp_path) == [(1, 1, {"npo": 1})]


@pytest.mark.parametrize(("adapter", "methods"), [("", {"npo": 2}), ("lora_", {"npo_rank0": 1, "npo_rank1": 1})])
def test_a_rank_is_a_replicate_and_beside_an_adapter_a_setting(tmp_path, adapter, methods):
    runs = {FORGET10.format(f"{adapter}NPO_rank{rank}"): (5 + rank, 1.0) for rank in range(2)}
    write_logs(tmp_path / "logs", **{TINY.format("retain90"): (2, 0.0)}, **runs)
    ((_, _, found),) = shapes(tmp_path / "logs")
    assert {name.removeprefix("lora_"): count for name, count in found.items()} == methods


def test_logs_of_one_setting_are_compared_with_each_other(tmp_path):
    """Evaluated at a temperature, a model is held against the retrained one that was evaluated alike."""
    models = {"retain90": (2, 0), "full": (1, 2.5), "forget10_NPO": (4, 1)}
    for setting in ("", "_temp_2"):
        write_logs(tmp_path, **{TINY.format(name + setting): (seed + len(setting), memory)
                                for name, (seed, memory) in models.items()})  # fmt: skip
    groups = readers.imported([tmp_path]).groups
    assert [*map(shape, groups)] == [(1, 1, {"npo": 1})] * 2
    assert all(len({"_temp_2" in str(model.file) for model in group.models}) == 1 for group in groups)


def test_a_forget_set_that_is_a_part_of_another_has_its_own_retrained_model(tmp_path):
    models = {"retain90": (2, 0.0, 60), "forget10_NPO": (5, 1.0, 60), "full/evals_forget10": (1, 2.5, 60)}
    models |= {"retain95": (3, 0.0, 30), "forget05_NPO": (6, 1.0, 30), "full/evals_forget05": (9, 2.5, 30)}
    write_logs(tmp_path, **{TINY.format(name): model for name, model in models.items()})
    groups = readers.imported([tmp_path]).groups
    assert [(len(group.samples), *shape(group)) for group in groups] == [(30, 1, 1, {"npo": 1}), (60, 1, 1, {"npo": 1})]
    assert [group.none[0].forget.sum() for group in groups] == [30, 60]


def test_models_of_one_trainer_in_runs_of_other_names_are_not_pooled(tmp_path):
    write_logs(tmp_path / "eval", a17=(2, 0.0))
    cases.write_config(tmp_path / "eval/a17", f"task_name: {TINY.format('retain90')}\n")
    for number, name in enumerate(("first_seed1", "first_seed2", "second")):
        write_logs(tmp_path / "unlearn" / name, evals=(5 + number, 1.0))
        cases.write_config(tmp_path / "unlearn" / name, "mode: unlearn\ntrainer: {handler: GradDiff}\n")
    assert shapes(tmp_path) == [(0, 1, {"first_graddiff": 2, "second_graddiff": 1})]


def test_a_log_whose_yardstick_is_not_there_is_left_out_where_others_can_be_compared(tmp_path):
    cases.tree(tmp_path, steps=(10,))
    (stray,) = write_logs(tmp_path / "saves/unlearn", tofu_Tiny_1B_forget05_NPO=(4, 1.0, 60, "other"))
    imported = readers.imported([tmp_path])
    assert list(imported.groups[0].methods) == ["npo_step10"]
    assert [(result.file, "--retrain FILE" in result.sentence) for result in imported.unread] == [(stray, True)]


def test_a_model_before_unlearning_of_another_architecture_is_left_out_and_it_is_said(tmp_path):
    *_, stray = write_logs(tmp_path, phi_retain90=(2, 0.0), gpt_retain90=(3, 0.0), llama_full=(1, 2.5))
    assert readers.imported([tmp_path]).unread[0].sentence.startswith(f"{stray}: no retrained model of this name has")


def test_logs_without_texts_are_paired_by_position_and_it_is_said(tmp_path):
    """The retrained log lies elsewhere and has no texts; the counts agree."""
    first, _ = write_logs(tmp_path / "eval", retain90_seed0=(2, 0.0), forget10_NPO=(5, 1.0))
    log = cases.openunlearning(3, 0.0)
    for row in [row for entry in log.values() for row in entry.get("value_by_index", {}).values()]:
        row.pop("ground_truth", None)
    second = cases.write_log(tmp_path / "elsewhere/retain90_seed1/TOFU_EVAL.json", log)
    (group,) = readers.imported([tmp_path / "eval"], retrain=[first, second]).groups
    assert shape(group) == (0, 2, {"npo": 1})
    assert set(group.retrain[0].ids) == set(group.retrain[1].ids)
    assert any("are paired by position" in note for note in group.notes)


def test_names_inside_a_folder_are_believed_before_the_name_of_the_folder(tmp_path):
    write_logs(tmp_path / "full_runs", **{TINY.format("retain90"): (2, 0.0), FORGET10.format("NPO"): (5, 1.0)})
    assert shapes(tmp_path / "full_runs") == [(0, 1, {"npo": 1})]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("c_NPO", "no retrained model of this name has its forget set"), ("a_b_NPO", "several retrained models fit it")],
)
def test_a_name_that_fits_none_or_several_retrained_models_is_asked_about(tmp_path, name, sentence):
    models = {f"retain90_{word}": (2, 0.0) for word in "ab"} | {"retain90_a_seed1": (2, 0.0)}
    write_logs(tmp_path / "logs", **{TINY.format(of): model for of, model in models.items()})
    (group, _) = readers.imported([tmp_path / "logs"]).groups
    assert any("holds the same scores as" in note for note in group.notes)
    write_logs(tmp_path / "logs", **{FORGET10.format(name): (5, 1.0)})
    with pytest.raises(ValueError, match=rf"{name}.*: {sentence}.*--retrain FILE$"):
        readers.imported([tmp_path / "logs"])


# ---------------------------------------------------------------- what the command says


def test_any_layout_is_read_with_a_word_from_the_user(tmp_path):
    """Nothing in these names tells a role."""
    write_logs(tmp_path, a17=(1, 2.5), b03=(2, 0.0))
    with pytest.raises(ValueError, match=r"a17.* \(.*b03.*\): no model is known to be retrained"):
        readers.imported([tmp_path])
    assert shapes(tmp_path, retrain=[tmp_path / "b03"], none=[tmp_path / "a17"]) == [(1, 1, {})]
    ((none, retrain, _),) = shapes(tmp_path, none=[tmp_path / "a17"], alone=True)
    assert (none, retrain) == (1, 0)


def test_where_the_user_names_models_before_unlearning_no_name_makes_others(tmp_path):
    full, _retrain, npo = cases.write_three(tmp_path)
    (tmp_path / "finetuned.csv").write_bytes(npo.read_bytes())
    assert shapes(tmp_path, none=[full]) == [(1, 1, {"npo": 1, "finetuned": 1})]


def test_models_that_are_named_as_retrained_are_replicates_wherever_they_lie(tmp_path):
    named = write_logs(tmp_path, **{"hub/a17": (0, 0.0), "mine/b03": (1, 0.0)})
    write_logs(tmp_path / "mine", forget10_NPO=(5, 1.0))
    assert shapes(tmp_path / "mine", retrain=named) == [(0, 2, {"npo": 1})]


@pytest.mark.parametrize(
    ("named", "others"),
    [(("Tiny-1B", "Huge-8B"), ["Tiny-1B"]), (("Tiny-1B", "a17"), ["Tiny-1B"]), (("phi", "gpt"), ["phi", "gpt"])],
)
def test_retrained_models_of_two_sizes_or_architectures_are_never_one_kind(tmp_path, named, others):
    retrained = write_logs(tmp_path, **{f"tofu_{word}_retain90": (seed, 0.0) for seed, word in enumerate(named)})
    write_logs(tmp_path, **{f"tofu_{word}_forget10_NPO": (5, 1.0) for word in others})
    expected = [(0, 1, {"npo": 1})] * len(others) + [(0, 1, {})] * (2 - len(others))
    assert sorted(shapes(tmp_path, retrain=retrained), key=str) == expected


def test_one_model_of_a_file_is_named_as_retrained(tmp_path):
    path = tmp_path / "all.json"
    logs = {"a": (2, 0.0), "b": (3, 0.0), "npo": (20, 1.0)}
    path.write_text(json.dumps({name: cases.openunlearning(*log) for name, log in logs.items()}))
    assert shapes(path, retrain=[Path(f"{path}:a"), Path(f"{path}:b")]) == [(0, 2, {"npo": 1})]
    with pytest.raises(ValueError, match=re.escape(f"{path}: this file has no model 'c'; it holds a, b, npo")):
        readers.imported([path], retrain=[Path(f"{path}:c")])


# ---------------------------------------------------------------- the table of roles


def roles(folder, path, change=lambda rows: None):
    """The rows of the table of roles, and its file, in which some are changed."""
    imported = readers.imported([folder])
    rows = readers.roles(imported.groups, imported.unread)
    said = [(row["role"], row["method"], row["replicate"], row["why"]) for row in rows]
    change(rows)
    tables.write_rows(path, rows, readers.ROLE_COLUMNS)
    return said


@pytest.fixture
def seeds(tmp_path):
    """Logs of a full model, of three models by NPO and of three retrained ones, which differ by their seed."""
    models = {"full": (1, 2.5)} | {f"forget10_NPO_seed{seed}": (20 + seed, 1.0) for seed in range(3)}
    models |= {f"retain90_seed{7 * seed}": (40 + seed, 0.0) for seed in range(3)}
    write_logs(tmp_path / "logs", **{TINY.format(name): model for name, model in models.items()})
    return tmp_path / "logs"


def test_the_table_of_roles_is_binding_where_it_was_edited(tmp_path, seeds):
    def edit(rows):
        rows[4] |= {"method": "other"}
        rows[5] |= {"role": "left out"}

    assert roles(seeds, tmp_path / "roles.csv", edit) == [
        ("none", "", "", "'full' in its name"),
        *(("retrain", "", f"{7 * i}", "'retain90' in its name") for i in (0, 2, 1)),
        *(("unlearned", "npo", f"{i}", "nothing says otherwise") for i in range(3)),
    ]
    (group,) = readers.imported([seeds], roles=tmp_path / "roles.csv").groups
    assert (group.name, *shape(group)) == ("forget10", 1, 3, {"other": 1, "npo": 1})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"role": "retrained"}, "line 2: the role is 'retrained'; it must be none, retrain, unlearned or left out"),
     ({"file": "nowhere.json"}, "nowhere.json: no such model was read")],
)  # fmt: skip
def test_a_table_of_roles_that_cannot_be_meant_is_refused(tmp_path, seeds, change, sentence):
    roles(seeds, tmp_path / "roles.csv", lambda rows: rows[0].update(change))
    with pytest.raises(ValueError, match=re.escape(sentence)):
        readers.imported([seeds], roles=tmp_path / "roles.csv")


def test_a_row_that_stands_twice_in_a_table_of_roles_is_refused(tmp_path, seeds):
    roles(seeds, tmp_path / "roles.csv", lambda rows: rows.append(rows[4]))
    with pytest.raises(ValueError, match=r"seed0.* has two rows in the scenario forget10; leave out one of them"):
        readers.imported([seeds], roles=tmp_path / "roles.csv")


def test_models_of_a_table_are_named_and_keep_their_roles(tmp_path):
    rng = np.random.default_rng(3)
    path = tmp_path / "losses.csv"
    parts = [cases.table(rng, shift, model=name) for name, shift in (("x", 0), ("y", 0), ("npo", 1))]
    pandas.concat(parts).to_csv(path, index=False)
    imported = readers.imported([path], retrain=[Path(f"{path}:x"), Path(f"{path}:y")])
    rows = readers.roles(imported.groups, imported.unread)
    assert [(row["entry"], row["role"]) for row in rows] == [("x", "retrain"), ("y", "retrain"), ("npo", "unlearned")]
    tables.write_rows(tmp_path / "roles.csv", rows, readers.ROLE_COLUMNS)
    assert [*map(shape, imported.groups)] == shapes(path, roles=tmp_path / "roles.csv") == [(0, 2, {"npo": 1})]

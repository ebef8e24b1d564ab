"""Which logs belong together: what the command names is binding, and nothing is pooled in doubt."""

import json
import re
from pathlib import Path

import numpy as np
import pandas
import pytest
from unlearning_audit import readers
from unlearning_audit.store import tables

import reader_cases


def write(folder: Path, seed: int, memory: float, texts: bool = True) -> Path:
    """A log, with the texts of its samples or without."""
    log = reader_cases.openunlearning(seed, memory)
    for entry in log.values() if not texts else ():
        for row in entry.get("value_by_index", {}).values():
            row.pop("ground_truth", None)
    return reader_cases.write_log(folder / "TOFU_EVAL.json", log)


def shape(group: readers.Group) -> tuple[int, dict[str, int]]:
    """How many retrained models there are, and models of each method."""
    return len(group.retrain) + len(group.control), {name: len(runs) for name, runs in group.methods.items()}


def test_names_that_differ_otherwise_are_no_replicates_and_it_is_said(tmp_path):
    for number in range(1, 3):
        write(tmp_path / f"tofu_Tiny-1B_retain90_v{number}", number, 0.0)
        write(tmp_path / f"tofu_Tiny-1B_forget10_NPO_v{number}", 5 + number, 1.0)
    groups = readers.imported([tmp_path]).groups
    assert [shape(group) for group in groups] == [(1, {"npo": 1})] * 2
    assert any("because their names differ: v" in note for note in groups[0].notes)


@pytest.mark.parametrize("name", ["gold", "oracle", "from_scratch", "retrained-from-scratch", "retrain-model"])
def test_a_retrained_model_has_many_names(tmp_path, name):
    for file, frame in reader_cases.three(tmp_path).items():
        frame.to_csv(tmp_path / f"{file.stem.replace('retrain', name)}.csv", index=False)
    (group,) = readers.imported([tmp_path]).groups
    assert (len(group.none), shape(group)) == (1, (1, {"npo": 1}))


def test_one_model_of_a_file_is_named_as_retrained(tmp_path):
    logs = {"a": (2, 0.0), "b": (3, 0.0), "npo": (20, 1.0)}
    path = tmp_path / "all.json"
    path.write_text(json.dumps({name: reader_cases.openunlearning(*log) for name, log in logs.items()}))
    named = [tmp_path / "all.json:a", tmp_path / "all.json:b"]
    (group,) = readers.imported([path], retrain=named).groups
    assert shape(group) == (2, {"npo": 1})
    with pytest.raises(ValueError, match=re.escape(f"{path}: this file has no model 'c'; it holds a, b, npo")):
        readers.imported([path], retrain=[tmp_path / "all.json:c"])


def test_models_of_a_table_are_named_and_keep_their_roles(tmp_path):
    rng = np.random.default_rng(3)
    path = tmp_path / "losses.csv"
    parts = [reader_cases.table(rng, shift, model=name) for name, shift in (("x", 0), ("y", 0), ("npo", 1))]
    pandas.concat(parts).to_csv(path, index=False)
    imported = readers.imported([path], retrain=[Path(f"{path}:x"), Path(f"{path}:y")])
    assert shape(imported.groups[0]) == (2, {"npo": 1})
    rows = readers.roles(imported.groups, imported.out)
    assert [(row["entry"], row["role"]) for row in rows] == [("x", "retrain"), ("y", "retrain"), ("npo", "unlearned")]
    tables.write_rows(tmp_path / "roles.csv", rows, readers.ROLE_COLUMNS)
    (group,) = readers.imported([path], roles=tmp_path / "roles.csv").groups
    assert shape(group) == (2, {"npo": 1})


@pytest.mark.parametrize(("adapter", "methods"), [("", {"npo": 2}), ("lora_", {"npo_rank0": 1, "npo_rank1": 1})])
def test_a_rank_is_a_replicate_and_beside_an_adapter_a_setting(tmp_path, adapter, methods):
    write(tmp_path / "logs/tofu_Tiny-1B_retain90", 2, 0.0)
    for rank in range(2):
        write(tmp_path / f"logs/tofu_Tiny-1B_forget10_{adapter}NPO_rank{rank}", 5 + rank, 1.0)
    (group,) = readers.imported([tmp_path / "logs"]).groups
    assert {name.removeprefix("lora_"): len(runs) for name, runs in group.methods.items()} == methods


def test_logs_without_texts_are_paired_by_position_and_it_is_said(tmp_path):
    """The retrained log lies elsewhere and has no texts; the counts agree."""
    first = write(tmp_path / "eval/retain90_seed0", 2, 0.0)
    second = write(tmp_path / "elsewhere/retain90_seed1", 3, 0.0, texts=False)
    write(tmp_path / "eval/forget10_NPO", 5, 1.0)
    (group,) = readers.imported([tmp_path / "eval"], retrain=[first, second]).groups
    assert shape(group) == (2, {"npo": 1})
    assert set(group.retrain[0].ids) == set(group.retrain[1].ids)
    assert any("are paired by position" in note for note in group.notes)


def test_models_that_are_named_as_retrained_are_replicates_wherever_they_lie(tmp_path):
    named = [write(tmp_path / place, seed, 0.0) for seed, place in enumerate(("hub/a17", "mine/b03"))]
    write(tmp_path / "mine/forget10_NPO", 5, 1.0)
    (group,) = readers.imported([tmp_path / "mine"], retrain=named).groups
    assert shape(group) == (2, {"npo": 1})


def test_retrained_models_of_two_sizes_are_never_one_kind(tmp_path):
    named = [
        write(tmp_path / f"logs/tofu_{size}_retain90", seed, 0.0) for seed, size in enumerate(("Tiny-1B", "Huge-8B"))
    ]
    write(tmp_path / "logs/tofu_Tiny-1B_forget10_NPO", 5, 1.0)
    sentence = f"{named[1]}: --retrain has no effect: models of its forget set are compared with {named[0]}"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        readers.imported([tmp_path / "logs"], retrain=named)


def test_models_of_one_trainer_in_runs_of_other_names_are_not_pooled(tmp_path):
    write(tmp_path / "eval/tofu_Tiny-1B_retain90", 2, 0.0)
    for number, name in enumerate(("first_seed1", "first_seed2", "second")):
        folder = tmp_path / f"unlearn/{name}"
        write(folder / "evals", 5 + number, 1.0)
        (folder / ".hydra").mkdir()
        (folder / ".hydra/config.yaml").write_text("mode: unlearn\ntrainer: {handler: GradDiff}\n")
    (group,) = readers.imported([tmp_path]).groups
    methods = {name: len(runs) for name, runs in group.methods.items()}
    assert sorted(methods.values()) == [1, 2]
    assert any("are separate methods" in note for note in group.notes)


def test_a_forget_set_that_is_a_part_of_another_has_its_own_retrained_model(tmp_path):
    for name, samples, seed, memory in (
        ("retain90", 60, 2, 0.0), ("retain95", 30, 3, 0.0), ("forget10_NPO", 60, 5, 1.0), ("forget05_NPO", 30, 6, 1.0),
    ):  # fmt: skip
        log = reader_cases.openunlearning(seed, memory, samples)
        reader_cases.write_log(tmp_path / f"tofu_Tiny-1B_{name}/TOFU_EVAL.json", log)
    groups = readers.imported([tmp_path]).groups
    assert [(len(group.samples), shape(group)) for group in groups] == [(30, (1, {"npo": 1})), (60, (1, {"npo": 1}))]

"""Studies side by side: which verdicts differ, through which stage, and whether methods rank alike."""

import math

import pytest
from unlearning_audit.command import main
from unlearning_audit.evaluation import verdicts as files
from unlearning_audit.report import compare
from unlearning_audit.store import tables
from unlearning_audit.store.files import ArtifactError, seal, write_json, write_spec

from decision_cases import rows

METHODS = {"a": ("distinguishable", 0.3), "b": ("distinguishable", 0.2), "c": ("equivalent", 0.01)}
OPEN = METHODS | {"c": ("inconclusive", 0.04)}


def finished(folder, methods, *, lr=0.1, **origins):
    """A finished study: method → (verdict, distance), trained with ``lr``; ``origins``: settings of data and splits."""
    lines = [rows(name, verdict, distance)[0] for name, (verdict, distance) in methods.items()]
    records = [{"study": folder.name, "scenario": "main", "setting": "", **line} for line in lines]
    ranks = [{**record, "metric": "advantage", "best": 1, "worst": 1, "methods": 1, "ahead": 0} for record in records]
    (folder / "tables").mkdir(parents=True)
    for table, made, columns in (("verdicts", records, files.VERDICTS), ("ranks", ranks, files.RANKS)):
        names = ("study", "scenario", "setting", *columns)
        tables.write_rows(folder / f"tables/{table}.csv", [{name: row[name] for name in names} for row in made], names)
        seal(folder / f"tables/{table}.csv")
    key = f"-{lr}" + "".join(map(str, origins.values()))
    jobs = {"train": {"recipe": {"lr": lr}}, "comparisons": {"margin": 0.05}, **origins}
    for stage, settings in jobs.items():
        inputs = [f"results/{origin}/{origin}{key}/file.npz" for origin in origins] if stage == "train" else []
        write_spec(folder.parent / stage / f"{stage}{key}" / "spec.json", {"settings": settings, "inputs": inputs})
    made_by = [[stage, f"{stage}{key}"] for stage in ("train", "comparisons")]
    write_json(folder / "summary.json", {"nodes": {f"main||{name}": made_by for name in methods}})
    seal(folder / "summary.json")
    return compare.read(folder)


def test_what_two_studies_share_stands_side_by_side_with_the_setting_behind_a_difference(tmp_path):
    first = finished(tmp_path / "one", METHODS | {"alone": ("broken", 0.1)})
    second = finished(tmp_path / "two", OPEN, lr=0.2)
    first.verdicts["main", "", "a"] |= {"share_closed": "0.36", "share_low": "0.28", "share_high": "0.43"}
    compared = compare.compare([first, second])
    assert [tuple(row.values()) for row in compared] == [
        ("a in main", "● traces remain, 36 % [28, 43]", "● traces remain", ""),
        ("b in main", "● traces remain", "● traces remain", ""),
        ("c in main", "✓ like retraining", "– cannot tell", "train otherwise: recipe.lr: 0.1 → 0.2"),
    ]
    assert compare.headline(compared) == "Of 3 verdicts that at least two of these studies share, 1 differs."


DATA, SEED, RATE = (
    "data otherwise: use.size: 600 → 400", "splits otherwise: seed: 0 → 1", "train otherwise: recipe.lr: 0.1 → 0.2"
)  # fmt: skip


@pytest.mark.parametrize(
    ("size", "seed", "lr", "sentence"),
    [
        (400, 0, 0.1, DATA),
        (600, 1, 0.1, SEED),
        (400, 1, 0.2, f"{DATA}; {SEED}; {RATE}"),
        (600, 0, 0.1, "train otherwise: its settings are equal, so its inputs or the code that made it differ"),
    ],
)
def test_data_and_splits_that_models_rest_on_are_named(tmp_path, size, seed, lr, sentence):
    """Two seeds, or two sizes, train otherwise with equal settings of training."""
    first = finished(tmp_path / "x", METHODS, data={"use": {"size": 600}}, splits={"seed": 0}, code={})
    second = finished(tmp_path / "y", OPEN, lr=lr, data={"use": {"size": size}}, splits={"seed": seed}, code={"new": 1})
    assert compare.compare([first, second])[-1]["why"] == sentence


def test_a_study_that_has_models_more_is_named_and_what_both_have_is_not_compared(tmp_path):
    first, second = finished(tmp_path / "one", METHODS), finished(tmp_path / "two", OPEN)
    second.jobs["main", "", "c"].append(("train", "train-0.1-more"))
    sentence = "two has 1 more train job, and so more models; the models that both have are the same"
    assert [row["why"] for row in compare.compare([first, second])] == ["", "", sentence]
    assert compare.compare([second, first])[-1]["why"] == sentence
    other = finished(tmp_path / "three", METHODS, lr=0.2)
    for study in (second, other):  # a job that both have, and that comes first
        study.jobs["main", "", "c"].insert(0, ("train", "shared"))
    assert compare.compare([second, other])[-1]["why"] == RATE


def test_equal_keys_say_another_machine_and_lost_settings_are_not_guessed(tmp_path):
    first, same = finished(tmp_path / "here/one", METHODS), finished(tmp_path / "there/one", OPEN)
    assert compare.names([first, same]) == [str(first.folder), str(same.folder)]
    assert compare.compare([first, same])[-1]["why"].startswith("all keys are equal")
    second = finished(tmp_path / "else/two", OPEN, lr=0.3)
    (tmp_path / "else/train/train-0.3/spec.json").unlink()
    assert "files with its settings are missing" in compare.compare([first, second])[-1]["why"]


def test_ranks_agree_as_kendalls_tau_says(tmp_path):
    first = finished(tmp_path / "one", METHODS | {"none": ("distinguishable", 0.4)})  # which is not ranked
    second = finished(tmp_path / "two", METHODS | {"a": ("distinguishable", 0.15)})  # one pair of three is reversed
    alone = finished(tmp_path / "three", {"a": ("distinguishable", 0.3)})
    found = [compare.agreement(first, other) for other in (first, second, alone)]
    assert found == [(1.0, 1), (pytest.approx(1 / 3), 1), (pytest.approx(math.nan, nan_ok=True), 0)]


def test_the_command_prints_what_differs_and_writes_a_table(workdir, capsys):
    nasty = "<img src=x>&\\1"
    finished(workdir / "one", METHODS)
    finished(workdir / "two", OPEN | {nasty: ("broken", 0.2)}, lr=0.2)
    finished(workdir / "three", METHODS | {nasty: ("distinguishable", 0.2)})
    with pytest.raises(SystemExit) as ended:
        main(["compare", "one", "two", "three"])
    assert ended.value.code == 0
    output = capsys.readouterr().out
    assert "Of 4 verdicts that at least two of these studies share, 2 differ." in output
    assert "Kendall's τ 1.00, mean of 1 setting." in output
    head, *lines = (workdir / "compare.csv").read_text().splitlines()
    assert (head, ["train otherwise" in line for line in lines]) == (
        "method,one,two,three,why", [False, False, True, True]
    )  # fmt: skip


def test_a_folder_without_a_study_and_one_alone_end_in_a_sentence(tmp_path):
    with pytest.raises(ArtifactError, match=r"verdicts\.csv: this file is missing; give the folder"):
        compare.read(tmp_path)
    with pytest.raises(SystemExit, match="give at least two folders"):
        main(["compare", str(tmp_path)])
    finished(tmp_path / "one", METHODS)
    write_json(tmp_path / "one/summary.json", {})
    seal(tmp_path / "one/summary.json")
    with pytest.raises(ArtifactError, match=r"one: these results of an older version do not name their jobs"):
        compare.read(tmp_path / "one")
    (tmp_path / "one/tables/verdicts.csv").write_text("x\n")
    with pytest.raises(SystemExit, match=r"verdicts\.csv: this file is not as it was made"):
        main(["compare", str(tmp_path / "one"), str(tmp_path / "one")])

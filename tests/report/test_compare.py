"""Studies side by side: which verdicts differ, through which stage, and whether methods rank alike."""

import math

import pytest
from unlearning_audit.command import main
from unlearning_audit.evaluation import verdicts as files
from unlearning_audit.report import compare
from unlearning_audit.store import tables
from unlearning_audit.store.files import ArtifactError, seal, write_json, write_spec

from decision_cases import rows

NASTY = "<img src=x>&\\1"


def finished(folder, methods, *, lr=0.1, margin=0.05, key="", more=None):
    """A finished study: method → (verdict, distance); trained with ``lr``, judged with ``margin``.

    ``more`` nodes by key."""
    lines = [rows(name, verdict, distance)[0] for name, (verdict, distance) in methods.items()]
    records = [{"study": folder.name, "scenario": "main", "setting": "", **line} for line in lines]
    (folder / "tables").mkdir(parents=True)
    ranks = [{"metric": "advantage", **{name: record[name] for name in ("study", "scenario", "setting", "method")},
              "distance": record["distance"], "best": 1, "worst": 1, "methods": len(records), "ahead": 0}
             for record in records]  # fmt: skip
    for table, made, columns in (("verdicts", records, files.VERDICTS), ("ranks", ranks, files.RANKS)):
        path = folder / f"tables/{table}.csv"
        tables.write_rows(path, made, ("study", "scenario", "setting", *columns))
        seal(path)
    train, judged = f"train-{lr}{key}", f"judged-{lr}-{margin}{key}"
    for node, settings in ((f"train/{train}", {"recipe": {"lr": lr}}), (f"comparisons/{judged}", {"margin": margin})):
        write_spec(folder.parent / node / "spec.json", {"settings": settings})
    nodes = {f"main||{name}": [["train", train], ["comparisons", judged]] for name in methods}
    write_json(folder / "summary.json", {"nodes": nodes | (more or {})})
    seal(folder / "summary.json")
    return compare.read(folder)


METHODS = {"a": ("distinguishable", 0.3), "b": ("distinguishable", 0.2), "c": ("equivalent", 0.01)}


def test_a_verdict_that_differs_is_named_with_the_setting_behind_it(tmp_path):
    first = finished(tmp_path / "one", METHODS)
    second = finished(tmp_path / "two", METHODS | {"c": ("inconclusive", 0.04)}, lr=0.2)
    compared = compare.compare([first, second])
    assert [bool(row["why"]) for row in compared] == [False, False, True]
    assert compared[-1] == {"method": "c in main", "one": "✓ like retraining", "two": "– cannot tell",
                            "why": "train otherwise: recipe.lr: 0.1 → 0.2"}  # fmt: skip
    assert compare.headline(compared) == "Of 3 verdicts that at least two of these studies share, 1 differs."


@pytest.mark.parametrize(
    ("settings", "lr", "sentence"),
    [
        ({"data": {"use": {"size": 400}}}, 0.1, "data otherwise: use.size: 600 → 400"),
        ({"splits": {"seed": 1}}, 0.1, "splits otherwise: seed: 0 → 1"),
        (
            {"data": {"use": {"size": 400}}, "splits": {"seed": 1}}, 0.2,
            "data otherwise: use.size: 600 → 400; splits otherwise: seed: 0 → 1; train otherwise: recipe.lr: 0.1 → 0.2",
        ),
        ({}, 0.1, "train otherwise: its settings are equal, so its inputs or the code that made it differ"),
    ],
)  # fmt: skip
def test_data_and_splits_that_models_rest_on_are_named(tmp_path, settings, lr, sentence):
    """Two seeds, or two sizes, train otherwise with equal settings of training."""
    studies = []
    for name, origins, rate in (("one", {}, 0.1), ("two", settings, lr)):
        verdict = "equivalent" if name == "one" else "broken"
        study = finished(tmp_path / name / "x", {"a": (verdict, 0.3)}, key=name, lr=rate)
        whole = {"data": {"use": {"size": 600}}, "splits": {"seed": 0}} | origins
        for stage, of in whole.items():
            write_spec(tmp_path / name / stage / name / "spec.json", {"settings": of})
        inputs = [f"results/{stage}/{name}/file.npz" for stage in whole]
        spec = tmp_path / name / "train" / f"train-{rate}{name}" / "spec.json"
        write_spec(spec, {"settings": {"recipe": {"lr": rate}}, "inputs": inputs})
        studies.append(study)
    assert compare.compare(studies)[0]["why"] == sentence


def test_what_two_studies_share_stands_side_by_side(tmp_path):
    first = finished(tmp_path / "one", METHODS | {"none": ("distinguishable", 0.4), "alone": ("broken", 0.1)})
    second = finished(tmp_path / "two", METHODS | {"c": ("inconclusive", 0.04), "none": ("distinguishable", 0.4)})
    first.verdicts["main", "", "a"] |= {"share_closed": "0.36", "share_low": "0.28", "share_high": "0.43"}
    compared = compare.compare([first, second])
    assert [(row["method"], row["one"], row["two"], bool(row["why"])) for row in compared] == [
        ("a in main", "● traces remain, 36 % [28, 43]", "● traces remain", False),
        ("b in main", "● traces remain", "● traces remain", False),
        ("c in main", "✓ like retraining", "– cannot tell", True),
        ("none in main", "● traces remain", "● traces remain", False),
    ]


def test_a_study_that_has_models_more_is_named_and_what_both_have_is_not_compared(tmp_path):
    first = finished(tmp_path / "one", METHODS)
    second = finished(tmp_path / "two", METHODS | {"c": ("inconclusive", 0.04)})
    second.nodes["main", "", "c"].append(("train", "train-0.1-more"))
    sentence = "two has 1 more train job, and so more models; the models that both have are the same"
    assert [row["why"] for row in compare.compare([first, second])] == ["", "", sentence]
    assert compare.compare([second, first])[-1]["why"] == sentence
    other = finished(tmp_path / "three", METHODS | {"c": ("inconclusive", 0.04)}, lr=0.2)
    for study in (second, other):  # a job that both have, and that comes first
        study.nodes["main", "", "c"].insert(0, ("train", "shared"))
    second.verdicts["main", "", "c"]["verdict"] = "equivalent"
    assert compare.compare([second, other])[-1]["why"] == "train otherwise: recipe.lr: 0.1 → 0.2"


def test_equal_keys_say_another_machine_and_lost_settings_are_not_guessed(tmp_path):
    first = finished(tmp_path / "here/one", METHODS)
    same = finished(tmp_path / "there/one", METHODS | {"a": ("broken", 0.3)})
    assert compare.names([first, same]) == [str(first.folder), str(same.folder)]
    assert compare.compare([first, same])[0]["why"].startswith("all keys are equal")
    second = finished(tmp_path / "else/two", METHODS | {"a": ("broken", 0.3)}, lr=0.3)
    (tmp_path / "else/train/train-0.3/spec.json").unlink()
    assert "files with its settings are missing" in compare.compare([first, second])[0]["why"]


def test_ranks_agree_as_kendalls_tau_says(tmp_path):
    first = finished(tmp_path / "one", METHODS)
    second = finished(tmp_path / "two", METHODS | {"a": ("distinguishable", 0.15)})  # one pair of three is reversed
    alone = finished(tmp_path / "three", {"a": ("distinguishable", 0.3)})
    assert compare.agree(first, first) == (1.0, 1)
    assert compare.agree(first, second) == (pytest.approx(1 / 3), 1)
    assert math.isnan(compare.agree(first, alone)[0])


def test_the_command_prints_what_differs_and_writes_a_table(tmp_path, capsys, monkeypatch):
    finished(tmp_path / "one", METHODS)
    finished(tmp_path / "two", METHODS | {NASTY: ("broken", 0.2), "c": ("inconclusive", 0.04)}, lr=0.2)
    finished(tmp_path / "three", METHODS | {NASTY: ("distinguishable", 0.2)})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["compare", "one", "two", "three"])
    assert ended.value.code == 0
    output = capsys.readouterr().out
    assert "Of 4 verdicts that at least two of these studies share, 2 differ." in output
    assert "Kendall's τ 1.00, mean of 1 setting." in output
    table = (tmp_path / "compare.csv").read_text()
    assert "train otherwise" in table
    assert table.splitlines()[0] == "method,one,two,three,why"


def test_a_folder_without_a_study_and_one_alone_end_in_a_sentence(tmp_path, capsys):
    with pytest.raises(ArtifactError, match=r"verdicts\.csv: this file is missing; give the folder"):
        compare.read(tmp_path)
    with pytest.raises(SystemExit, match="give at least two folders"):
        main(["compare", str(tmp_path)])
    finished(tmp_path / "one", METHODS)
    (tmp_path / "one/tables/verdicts.csv").write_text("x\n")
    with pytest.raises(SystemExit, match=r"verdicts\.csv: this file is not as it was made"):
        main(["compare", str(tmp_path / "one"), str(tmp_path / "one")])

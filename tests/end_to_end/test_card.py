"""A card: one command takes a method's file to a page of one screen."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from unlearning_audit.command import card as command
from unlearning_audit.command import starts
from unlearning_audit.display.page import card
from unlearning_audit.study import reading

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

BATTERY = {
    "study": "card",
    "batch": 2,
    "bootstrap": 100,
    "defaults": {
        "data": {"name": "digits", "test_size": 100, "size": 240, "label_noise": 0.2},
        "model": {"name": "mlp", "hidden": [16]},
        "recipe": {"epochs": 8, "lr": 0.05, "momentum": 0.9, "batch_size": 32},
        "protocol": {"name": "swap", "alpha": 0.25, "pairs": 2, "models_per_split": 1},
        "methods": {"none": {}, "retrain": {}},
        "attacks": {"confidence": {}, "random": {}},
        "controls": False,
    },
    "scenarios": {
        "random_labels": {
            "methods": {"none": {}, "retrain": {}, "finetune": {"epochs": 1}},
            "metrics": {"relearn": {}},
        },
        "few_samples": {"protocol": {"name": "swap", "alpha": 0.1, "pairs": 2, "models_per_split": 1}},
    },
    "tables": {
        "relearning": {"title": "Again", "metric": ["relearn_area"], "scenarios": ["random_labels"]},
    },
}


@pytest.fixture(scope="module")
def card_run(tmp_path_factory):
    """The folder in which the command was run on a method with a space, and what it printed."""
    folder = tmp_path_factory.mktemp("card")
    text = starts.METHOD.format(title="Mine <b>", name="mine", file="mine.py")
    space = 'TUNE = {"lr": {"low": 0.01, "high": 0.2, "log": True}}\n\n\nclass Options'
    (folder / "mine.py").write_text(text.replace("class Options", space, 1))
    (folder / "battery.yaml").write_text(yaml.safe_dump(BATTERY, sort_keys=False))
    arguments = ["card", "mine.py", "--study", "battery.yaml", "--set", "epochs=2", "--cores", "2"]
    process = subprocess.run(
        [sys.executable, "-m", "unlearning_audit.command", *arguments], cwd=folder, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "UNLEARNING_DEVICE": "cpu"},
    )  # fmt: skip
    assert process.returncode == 0, process.stdout
    return folder, process.stdout


def test_the_battery_holds_the_method_in_every_scenario_and_tunes_it_in_the_first(card_run):
    study = yaml.safe_load((card_run[0] / "card_mine.yaml").read_text())
    assert study["defaults"]["methods"]["mine"] == {"file": "mine.py", "epochs": 2}
    assert study["scenarios"]["random_labels"]["methods"]["mine"]["tune"] == {"trials": command.TRIALS}


def test_the_card_says_what_the_tables_say(card_run):
    folder, printed = card_run
    results = folder / "results/card_mine"
    read = card.read(results, "mine", "mine.py", "audit card mine.py")
    with (results / "tables/verdicts.csv").open(newline="") as file:
        verdicts = [row for row in csv.DictReader(file) if row["method"] == "mine"]
    assert [row[0] for row in read.rows] == ["random labels", "few samples"]
    words = {"distinguishable": "distinguishable", "inconclusive": "inconclusive", "nothing_to_find": "nothing to find"}
    for row, verdict in zip(read.rows, verdicts, strict=True):
        assert row[1].endswith(words.get(verdict["verdict"], verdict["verdict"].replace("_", " ")))
    assert any(remark.startswith("Of 9 settings, ") for remark in read.remarks)
    assert any(remark.startswith("When a half of what was forgotten is learned once more") for remark in read.remarks)
    assert "Made by: audit card mine.py --set epochs=2 --study battery.yaml" in " ".join(printed.split())
    assert len(card.text(read).splitlines()) <= 20
    report = (results / "report.html").read_text()
    assert '<section id="tuning">' in report
    assert "Standings over scenarios" in report
    page = (results / "card.html").read_text()
    assert all(row[1] in page for row in read.rows)


def test_a_name_with_markup_stays_text(card_run):
    read = card.read(card_run[0] / "results/card_mine", "mine", "<script>alert(1)</script>.py", "audit")
    assert "<script>" not in card.render(read)


@pytest.mark.parametrize(
    ("edits", "methods"),
    [
        ({"defaults": {**BATTERY["defaults"], "methods": ["none", "retrain"]}, "scenarios": {"clean": None}}, 2),
        ({"defaults": {"controls": False}, "scenarios": {"clean": BATTERY["defaults"]}}, 2),
        ({"scenarios": {"clean": {"methods": ["retrain"]}, "few": {"methods": ["none"]}}}, 1),
    ],
    ids=["a list", "in a scenario", "names from the defaults"],
)
def test_a_battery_may_be_written_in_any_form(tmp_path, monkeypatch, edits, methods):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(starts.METHOD.format(title="Mine", name="mine", file="mine.py"))
    Path("battery.yaml").write_text(yaml.safe_dump({**BATTERY, "tables": {}, **edits}))
    command.write_battery("mine.py", {}, "battery.yaml")
    whole = reading.read(yaml.safe_load(Path("card_mine.yaml").read_text()))
    assert all("mine" in scenario.methods for scenario in whole.scenarios)
    assert {len({*scenario.methods} - {"mine"}) for scenario in whole.scenarios} == {methods}


def test_options_of_a_function_are_tuned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text('TUNE = {"lr": [0.1, 0.2]}\n\n\ndef unlearn(model, forget_loader, lr=0.1):\n    pass\n')
    Path("battery.yaml").write_text(yaml.safe_dump(BATTERY, sort_keys=False))
    command.write_battery("mine.py", {}, "battery.yaml")
    whole = reading.read(yaml.safe_load(Path("card_mine.yaml").read_text()))
    tuned = {scenario.name: scenario.methods["mine"].tune for scenario in whole.scenarios}
    assert tuned["random_labels"].space == {"options.lr": [0.1, 0.2]}
    assert tuned["few_samples"] is None


@pytest.fixture
def tables(tmp_path):
    """The folder of tables of a study in which one method was judged."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/verdicts.csv").write_text(
        "scenario,setting,method,verdict,share_closed,share_low,share_high,distance,ci_low,ci_high\n"
        "audit,,mine,inconclusive,,,,,,\n"
    )
    return tmp_path / "tables"


def test_a_card_compares_a_chosen_setting_with_the_default_only_where_they_differ(tmp_path, tables):
    head = "method,changed,trials,tuned,published,closer,closer_low,closer_high,flatness\n"
    for changed, sentence in (
        ("{}", "its default was chosen on pairs of its own: 0.50 margins from retraining on the audited ones."),
        (
            '"{""lr"": 0.1}"',
            "lr 0.1 was chosen on pairs of its own: 0.50 margins from retraining on the audited ones, "
            "1.50 with its defaults, closer by 1.00 [0.25, 1.75].",
        ),
    ):
        (tables / "tuning.csv").write_text(f"{head}mine,{changed},4,0.5,1.5,1,0.25,1.75,0.5\n")
        (remark,) = card.read(tmp_path, "mine", "mine.py", "").remarks
        assert remark == f"Of 4 settings, {sentence} 50 % of the settings cannot be distinguished from the best."


def test_a_card_says_why_settings_were_not_tuned(tmp_path, tables):
    (tmp_path / "tables/tuning.csv").write_text("method,tuned,closer,flatness\nmine,,,\n")
    assert card.read(tmp_path, "mine", "mine.py", "").remarks == ["Its settings were not tuned: none gave a number."]
    (tmp_path / "tables/tuning.csv").unlink()
    untold = "Its settings were not tuned: its file declares no TUNE."
    assert card.read(tmp_path, "mine", "mine.py", "").remarks == [untold]


def test_a_battery_that_is_no_study_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(starts.METHOD.format(title="Mine", name="mine", file="mine.py"))
    for edits in ({"defaults": []}, {"scenarios": ["clean"]}, {"scenarios": {}}):
        Path("battery.yaml").write_text(yaml.safe_dump({**BATTERY, **edits}))
        with pytest.raises(ValueError, match=r"^battery\.yaml: "):
            command.write_battery("mine.py", {}, "battery.yaml")


def test_what_is_no_method_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("judge.py").write_text(starts.ATTACK.format(title="Mine", name="judge", file="judge.py"))
    with pytest.raises(ValueError, match=r"^judge\.py: this is no method; audit card takes a file"):
        command.write_battery("judge.py", {}, str(ROOT / "studies/card.yaml"))


def test_a_study_that_says_nothing_of_the_method_is_named(card_run):
    with pytest.raises(ValueError, match="it says nothing of another"):
        card.read(card_run[0] / "results/card_mine", "another", "another.py", "audit card another.py")

"""Published scores in the place of logits: the command that reads them."""

import csv
import subprocess

import pytest
from unlearning_audit import command, readers
from unlearning_audit.evaluation.published import Published
from unlearning_audit.evaluation.rows import Record
from unlearning_audit.report.figures import trajectory
from unlearning_audit.report.lookup import Numbers

import reader_cases as cases


@pytest.fixture
def run(workdir, monkeypatch):
    """Runs the command beside logs of three models; what it ends with."""
    cases.tree(workdir, steps=(10,))
    monkeypatch.setattr(subprocess, "Popen", None)  # nothing is started

    def of(*arguments):
        with pytest.raises(SystemExit) as ended:
            command.main([*arguments])
        return ended.value.code

    return of


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_command_writes_a_sound_study(run, capsys):
    assert run("read", "saves", "--study", "mine.yaml", "--only-write") == 0
    text = capsys.readouterr().out
    for words in (
        "Read 3 files: 3 openunlearning.", "forget10: none, retrain, npo_step10; 60 samples to forget",
        "Retrained models have an AUC of", "printed numbers equal those that their samples give",
    ):  # fmt: skip
        assert words in text
    assert {row["agrees"] for row in rows("mine_models/recomputed.csv")} == {"yes"}
    assert run("check", "mine.yaml") == 0


@pytest.mark.slow
def test_the_command_makes_the_report_in_its_process_and_a_spread_that_it_is_told_decides(run, capsys):
    assert run("read", "saves", "--retrain-spread", "every=0.001") == 0
    text = capsys.readouterr().out
    assert "Report: results/read/report.html" in text
    assert "given that retrained models have a standard deviation of 0.001" in " ".join(text.split())
    assert {row["method"] for row in rows("results/read/metrics.csv")} == {"none", "retrain", "npo_step10"}
    (line,) = (row for row in rows("results/read/tables/verdicts.csv") if row["method"] == "none")
    assert (line["verdict"], line["retrain_spread"]) == ("distinguishable", "0.001")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("a", "--retrain FILE"), ("saves --study x.txt", "audit: x.txt: the study's file must end in .yaml"),
        ("saves --columns x", "WHAT=NAME"), ("saves --retrain-spread 0.001", "NAME=SD"),
    ],
)  # fmt: skip
def test_the_command_asks_in_one_sentence(run, tmp_path, arguments, words):
    cases.write_logs(tmp_path / "a", x=(1, 1.0))
    sentence = run("read", *arguments.split(), "--only-write")
    assert sentence.startswith("audit: ")
    assert words in sentence
    assert "\n" not in sentence
    assert run("read", "saves", "--cores", "2") == 2


def test_checkpoints_become_a_trajectory_in_order(tmp_path):
    imported = readers.imported([cases.tree(tmp_path / "logs", steps=(40, 10))])
    content = readers.write(imported, tmp_path / "out", "x")
    assert [entry["kind"] for entry in content["figures"].values()] == ["trajectory"]
    (scenario,) = content["scenarios"]
    records, shown = [], []
    for path in (tmp_path / "out").rglob("published.npz"):
        name = {"original": "none", "target": path.parents[1].name}.get(path.parent.name, path.parent.name)
        shown.append({"scenario": scenario, "protocol": "external", "method": name, "axes": {}, "setting": ""})
        records += [Record(scenario, "external", name, {}, row) for row in cases.rows_of(Published.read(path))]
    numbers = Numbers(records, shown)
    assert [step for step, _ in trajectory.trajectories(numbers, (scenario, ""))["npo"]] == [10, 40]

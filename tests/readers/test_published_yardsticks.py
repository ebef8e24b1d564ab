"""Published scores in the place of logits: the command that reads them."""

import csv
import subprocess

import numpy as np
import pytest
from unlearning_audit import command, readers
from unlearning_audit.evaluation.published import Published
from unlearning_audit.metrics import published as metric

import reader_cases

# ---------------------------------------------------------------- audit read


def read(tmp_path, monkeypatch, *arguments):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        command.main(["read", *arguments])
    return ended.value.code


def test_the_command_writes_a_sound_study(tmp_path, monkeypatch, capsys):
    reader_cases.tree(tmp_path, steps=(10,))
    assert read(tmp_path, monkeypatch, "saves", "--study", "mine.yaml", "--only-write") == 0
    text = capsys.readouterr().out
    assert "Read 3 files: 3 openunlearning." in text
    assert "forget10: none, retrain, npo_step10; 60 samples to forget" in text
    assert "Retrained models have an AUC of" in text
    assert "printed numbers equal those that their samples give" in text
    with pytest.raises(SystemExit) as ended:
        command.main(["check", "mine.yaml"])
    assert ended.value.code == 0
    rows = list(csv.DictReader((tmp_path / "mine_models/recomputed.csv").open()))
    assert {row["agrees"] for row in rows} == {"yes"}


def test_the_command_makes_the_report_in_its_process(tmp_path, monkeypatch, capsys):
    reader_cases.tree(tmp_path, steps=(10,))
    monkeypatch.setattr(subprocess, "Popen", None)  # nothing is started
    assert read(tmp_path, monkeypatch, "saves", "--study", "mine.yaml") == 0
    said = capsys.readouterr()
    assert "Report: results/mine/report.html" in said.out
    assert "npo" in (tmp_path / "results/mine/report.html").read_text()
    with (tmp_path / "results/mine/metrics.csv").open() as file:
        assert {row["method"] for row in csv.DictReader(file)} == {"none", "retrain", "npo_step10"}
    assert read(tmp_path, monkeypatch, "saves", "--cores", "2") == 2


def test_the_command_asks_in_one_sentence(tmp_path, monkeypatch):
    reader_cases.write_log(tmp_path / "a/x.json", reader_cases.openunlearning(1, 1.0), summary=False)
    sentence = read(tmp_path, monkeypatch, "a", "--only-write")
    assert sentence.startswith("audit: ")
    assert "--retrain FILE" in sentence
    assert "\n" not in sentence
    assert (
        read(tmp_path, monkeypatch, "a", "--study", "x.txt", "--only-write")
        == "audit: x.txt: the study's file must end in .yaml"
    )
    assert "WHAT=NAME" in read(tmp_path, monkeypatch, "a", "--columns", "x", "--only-write")


def test_checkpoints_become_a_trajectory_in_order(tmp_path):
    from unlearning_audit.evaluation.rows import Record
    from unlearning_audit.report.figures import trajectory
    from unlearning_audit.report.lookup import Numbers

    content = readers.write(
        readers.imported([reader_cases.tree(tmp_path / "logs", steps=(40, 10))]), tmp_path / "out", "x"
    )
    assert [entry["kind"] for entry in content["figures"].values()] == ["trajectory"]
    (scenario,) = content["scenarios"]
    files = {path.parent.name if path.parent.name != "target" else path.parents[1].name: path
             for path in (tmp_path / "out").rglob("published.npz")}  # fmt: skip
    files["none"] = files.pop("original")
    records, cases = [], []
    for name, path in files.items():
        cases.append({"scenario": scenario, "protocol": "external", "method": name, "axes": {}, "setting": ""})
        records += [Record(scenario, "external", name, {}, row) for row in metric.of(Published.read(path), ())]
    numbers = Numbers(records, cases)
    assert [step for step, _ in trajectory.trajectories(numbers, (scenario, ""))["npo"]] == [10, 40]
    figure = trajectory.draw(numbers, {"figure": {}, "methods": list(files)})
    panels = [axis for axis in figure.axes if axis.lines]
    assert len(panels) == 6
    np.testing.assert_array_equal(panels[0].lines[0].get_xdata(), [10, 40])


def test_a_spread_that_the_command_is_told_decides_beside_one_retrained_log(tmp_path, monkeypatch, capsys):
    reader_cases.tree(tmp_path, steps=(10,))
    assert read(tmp_path, monkeypatch, "saves", "--retrain-spread", "every=0.001") == 0
    assert "given that retrained models have a standard deviation of 0.001" in " ".join(capsys.readouterr().out.split())
    with (tmp_path / "results/read/tables/verdicts.csv").open() as file:
        lines = {row["method"]: row for row in csv.DictReader(file)}
    assert (lines["none"]["verdict"], lines["none"]["retrain_spread"]) == ("distinguishable", "0.001")
    assert "NAME=SD" in read(tmp_path, monkeypatch, "saves", "--retrain-spread", "0.001")

"""What the command audit makes of its words, and of places at which it cannot write."""

import os

import pytest
import yaml
from unlearning_audit import ROOT, command
from unlearning_audit.command import edits, new


@pytest.mark.parametrize(
    ("words", "file", "further"),
    [
        (["--cores", "8"], command.DEFAULT, ["--cores", "8"]),
        (["--cores", "8", "mine.yaml"], "mine.yaml", ["--cores", "8"]),
        (["mine.yaml", "--cores", "8"], "mine.yaml", ["--cores", "8"]),
        (["-n"], command.DEFAULT, ["-n"]),
        ([], command.DEFAULT, []),
        (["results/a.csv"], "results/a.csv", []),
    ],
)
def test_a_study_is_what_is_called_like_one_and_not_the_value_of_an_option(words, file, further):
    assert command.study_of(words) == (file, further)


@pytest.mark.parametrize("name", ["my,method.py", "a #b.py", "a: b.py", "{c}.py", "plain.py"])
def test_a_new_study_names_files_with_any_characters(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with open(name, "w") as file:
        file.write((ROOT / "unlearning_audit" / "methods" / "finetune.py").read_text())
    (line,) = new.entries([name])["methods"] if ":" not in name else [f"mine: {{file: {new.scalar(name)}}}"]
    assert [method["file"] for method in yaml.safe_load(line).values()] == [name]


def refusal(*words: str) -> str:
    with pytest.raises(SystemExit) as end:
        command.main([*words])
    return end.value.code


def test_places_where_nothing_can_be_written_are_told_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("dir.yaml")
    sentence = "audit: dir.yaml: this is a folder; give another name for the study's file"
    assert refusal("read", "nothing.csv", "--study", "dir.yaml") == sentence


def test_without_git_what_an_edit_made_anew_is_one_sentence(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match=r"--since HEAD: git could not be started \(No such file"):
        edits.listed_at("mine.yaml", "HEAD")

"""What the command audit makes of its words, and of places at which it cannot write."""

import os
import runpy

import pytest
import yaml
from unlearning_audit import ROOT, command


@pytest.mark.parametrize(
    ("words", "file", "further"),
    [
        (["run", "--cores", "8"], command.DEFAULT, ["--cores", "8"]),
        (["run", "--cores", "8", "mine.yaml"], "mine.yaml", ["--cores", "8"]),
        (["run", "mine.yaml", "--cores", "8"], "mine.yaml", ["--cores", "8"]),
        (["forecast", "--cores", "2"], command.DEFAULT, ["--cores", "2"]),
        (["why", "--since", "HEAD~3"], command.DEFAULT, []),
        (["report", "--open", "mine.yml"], "mine.yml", []),
        (["run", "-n"], command.DEFAULT, ["-n"]),
        (["run"], command.DEFAULT, []),
        (["run", "results/a.csv"], "results/a.csv", []),
    ],
)
def test_a_study_is_what_is_called_like_one_and_not_the_value_of_an_option(monkeypatch, words, file, further):
    called = []
    monkeypatch.setattr(command, f"_{words[0]}", lambda args, rest: called.append((args.file, rest)))
    with pytest.raises(SystemExit):
        command.main(words)
    assert called == [(file, further)]


def test_a_field_inside_another_is_given_in_braces(monkeypatch):
    monkeypatch.setattr(command, "_run", lambda args, rest: 0)
    with pytest.raises(SystemExit) as end:
        command.main(["run", "mine.yaml", "--config", "seed=1", "scenarios.audit.recipe.epochs=3", "-n"])
    assert end.value.code == (
        "audit: --config scenarios.audit.recipe.epochs=3: a field inside another is given in braces, "
        "--config 'scenarios={audit: {recipe: {epochs: 3}}}'"
    )
    for words in (["--config", "seed=1", "-n", "a.b=c"], ["--config", "scenarios={audit: {recipe: {lr: 0.1}}}"]):
        with pytest.raises(SystemExit) as end:
            command.main(["run", "mine.yaml", *words])
        assert end.value.code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cors", "2"], "audit: there is no flag --cors; did you mean --cores?"),
        (["--keep-goin=yes", "-n"], None),  # Snakemake takes what a flag begins with
        (["--zzz"], "audit: there is no flag --zzz; snakemake --help lists all that a run takes"),
        (["--cores", "2", "--notemp", "--set-resources=train:mem_mb=9", "--", "target"], None),
    ],
)
def test_a_flag_that_does_not_exist_is_one_sentence(monkeypatch, words, sentence):
    monkeypatch.setattr(command, "_run", lambda args, rest: 0)
    with pytest.raises(SystemExit) as end:
        command.main(["run", "mine.yaml", *words])
    assert end.value.code == (sentence or 0)


@pytest.mark.parametrize("name", ["my,method.py", "a #b.py", "a: b.py", "{c}.py", "plain.py"])
def test_a_new_study_names_files_with_any_characters(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with open(name, "w") as file:
        file.write((ROOT / "unlearning_audit" / "methods" / "finetune.py").read_text())
    study = yaml.safe_load(f"methods:\n{command._lines([name])['methods']}" if ":" not in name else
                           f"methods:\n    mine: {{file: {command._scalar(name)}}}")  # fmt: skip
    assert [method["file"] for method in study["methods"].values()] == [name]


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
    listed_at = runpy.run_path(str(ROOT / "scripts" / "why.py"))["listed_at"]
    with pytest.raises(ValueError, match=r"--since HEAD: git could not be started \(No such file"):
        listed_at("mine.yaml", "HEAD")

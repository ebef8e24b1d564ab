"""Which nodes two studies do not share, and through which field: told once per cause, with what follows."""

import subprocess
from pathlib import Path

import pytest
import yaml
from unlearning_audit import command
from unlearning_audit.command import edits
from unlearning_audit.plugins import registry, source

from plan_cases import BASE, changed


@pytest.fixture(autouse=True)
def study(workdir):
    """The base study, in study.yaml."""
    Path("study.yaml").write_text(yaml.safe_dump(BASE))


def told(change):
    """What is told of a change of the base study: its lines, the causes, and the nodes before and after."""
    Path("new.yaml").write_text(yaml.safe_dump(changed(BASE, change)))
    before, after = (edits.listed(file) for file in ("study.yaml", "new.yaml"))
    return list(edits.lines(before, after)), edits.causes(before, after), before, after


def test_a_recipe_is_the_cause_where_it_is_read_and_all_below_follows():
    _, causes, before, after = told({"defaults/recipe/lr": 0.07})
    assert {cause.split(":")[0] for cause in causes} == {"train", "unlearn"}
    count = {stage: sum(s == stage for s, _ in after) for stage in ("train", "unlearn", "metrics", "comparisons")}
    direct, following = causes[next(cause for cause in causes if cause.startswith("train: recipe.lr: "))]
    assert (direct, direct | following) == ({"train": count["train"]}, count)
    assert {stage for stage, _ in before.keys() & after.keys()} == {"data", "splits"}


@pytest.mark.slow
def test_the_code_of_a_commit_is_compared(tmp_path):
    copy = tmp_path / "project"
    for words in (["git", "init", "-q", copy], ["cp", "-r", source.SCRIPTS, registry.LIBRARY, copy]):
        subprocess.run(words, check=True)
    git = ["git", "-C", copy, "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["add", "."], ["commit", "-qm", "old"]):
        subprocess.run([*git, *words], check=True)
    before = edits.listed_at("study.yaml", "HEAD", copy)
    file = copy / "unlearning_audit" / "stages" / "metrics.py"
    file.write_text(file.read_text() + "\nEXTRA = 1\n")
    causes = edits.causes(before, edits.listed_by("study.yaml", copy / "scripts"))
    assert list(causes) == ["metrics: its code or its parents"]
    with pytest.raises(ValueError, match="--since nowhere: "):
        edits.listed_at("study.yaml", "nowhere", copy)


def test_the_command_tells_and_refuses_in_one_sentence(monkeypatch, capsys):
    command.app(["why", "study.yaml", "study.yaml"], standalone_mode=False)
    shared = capsys.readouterr().out
    assert shared.startswith("0 of ")
    monkeypatch.setattr(edits, "listed_at", lambda study, commit: edits.listed(study))
    command.app(["why", "study.yaml", "--since", "HEAD~3"], standalone_mode=False)
    assert capsys.readouterr().out == (
        "The code of HEAD~3 is compared with the present code, both with the present study.yaml. "
        f"To see what an edit of the study changes: audit why before.yaml study.yaml\n{shared}"
    )
    Path("study.yaml").write_text(yaml.safe_dump(changed(BASE, {"seed": "x"})))
    with pytest.raises(SystemExit, match=r"^audit: .*: seed: "):
        command.main(["why", "study.yaml", "study.yaml"])

"""Which nodes two studies do not share, and through which field: told once per cause, with what follows."""

import subprocess

import pytest
import yaml
from unlearning_audit import command
from unlearning_audit.command import edits
from unlearning_audit.plugins import registry, source

from plan_cases import BASE, changed


@pytest.fixture
def tell_change(tmp_path):
    """What is told of a change of the base study."""

    def tell(change):
        files = []
        for name, study in (("old", BASE), ("new", changed(BASE, change))):
            files.append(tmp_path / f"{name}.yaml")
            files[-1].write_text(yaml.safe_dump(study))
        before, after = (edits.listed(str(file)) for file in files)
        return list(edits.lines(before, after)), edits.causes(before, after), before, after

    return tell


@pytest.mark.slow
def test_equal_studies_share_all(tell_change):
    lines, causes, before, _ = tell_change({"defaults/recipe/epochs": BASE["defaults"]["recipe"]["epochs"]})
    assert causes == {}
    assert lines == [f"0 of {len(before)} artifacts must be made; {len(before)} are shared."]


def test_a_recipe_is_the_cause_where_it_is_read_and_all_below_follows(tell_change):
    _, causes, before, after = tell_change({"defaults/recipe/lr": 0.07})
    assert {cause.split(":")[0] for cause in causes} == {"train", "unlearn"}
    direct, following = causes[next(cause for cause in causes if cause.startswith("train: recipe.lr: "))]
    count = {stage: sum(s == stage for s, _ in after) for stage in ("train", "unlearn", "metrics", "comparisons")}
    assert direct == {"train": count["train"]}
    assert following == {stage: count[stage] for stage in ("unlearn", "metrics", "comparisons")}
    assert {stage for stage, _ in before.keys() & after.keys()} == {"data", "splits"}


def test_an_option_of_a_method_is_a_cause_of_its_own_nodes_only(tell_change):
    method = next(name for name, options in BASE["defaults"]["methods"].items() if name not in ("none", "retrain"))
    lines, causes, _, _ = tell_change({f"defaults/methods/{method}/lr": 0.012345})
    (cause,) = causes
    assert cause.startswith("unlearn: method_options.lr: ")
    assert cause.endswith(" → 0.012345")
    assert len(lines) == 2


@pytest.mark.slow
def test_the_code_of_a_commit_is_compared(tmp_path):
    copy = tmp_path / "project"
    for words in (["git", "init", "-q", copy], ["cp", "-r", source.SCRIPTS, registry.LIBRARY, copy]):
        subprocess.run(words, check=True)
    git = ["git", "-C", copy, "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["add", "."], ["commit", "-qm", "old"]):
        subprocess.run([*git, *words], check=True)
    study = tmp_path / "study.yaml"
    study.write_text(yaml.safe_dump(BASE))
    before = edits.listed_at(str(study), "HEAD", copy)
    file = copy / "scripts" / "metrics.py"
    file.write_text(file.read_text() + "\nEXTRA = 1\n")
    causes = edits.causes(before, edits.listed(str(study), copy / "scripts"))
    assert list(causes) == ["metrics: its code or its parents"]
    with pytest.raises(ValueError, match="--since nowhere: "):
        edits.listed_at(str(study), "nowhere", copy)


def test_the_command_tells_and_refuses_in_one_sentence(tmp_path, capsys):
    study = tmp_path / "study.yaml"
    study.write_text(yaml.safe_dump(BASE))
    command.app(["why", str(study), str(study)], standalone_mode=False)
    assert capsys.readouterr().out.startswith("0 of ")
    study.write_text(yaml.safe_dump(changed(BASE, {"seed": "x"})))
    with pytest.raises(SystemExit, match=r"^audit: .*: seed: "):
        command.main(["why", str(study), str(study)])


@pytest.mark.slow
def test_since_says_that_edits_of_the_study_do_not_count(tmp_path, monkeypatch, capsys):
    study = tmp_path / "study.yaml"
    study.write_text(yaml.safe_dump(BASE))
    monkeypatch.setattr(edits, "listed_at", lambda study, commit: edits.listed(study))
    command.app(["why", str(study), "--since", "HEAD~3"], standalone_mode=False)
    first, second = capsys.readouterr().out.splitlines()
    assert first == (
        f"The code of HEAD~3 is compared with the present code, both with the present {study}. "
        f"To see what an edit of the study changes: audit why before.yaml {study}"
    )
    assert second.startswith("0 of ")

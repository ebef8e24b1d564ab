"""What the command audit makes of its words."""

import pytest
import yaml
from unlearning_audit import ROOT, command
from unlearning_audit.command import new


@pytest.mark.parametrize(
    ("words", "file", "further"),
    [
        (["--cores", "8", "mine.yaml"], "mine.yaml", ["--cores", "8"]),
        (["-n"], command.DEFAULT, ["-n"]),
        (["results/a.csv"], "results/a.csv", []),
    ],
)
def test_a_study_is_what_is_called_like_one_and_not_the_value_of_an_option(words, file, further):
    assert command.study_of(words) == (file, further)


@pytest.mark.parametrize("name", ["my,method.py", "a #b.py"])
def test_a_new_study_names_files_with_any_characters(workdir, name):
    (workdir / name).write_text((ROOT / "unlearning_audit" / "methods" / "finetune.py").read_text())
    new.write("mine.yaml", "", [name])
    *_, (_, method) = yaml.safe_load((workdir / "mine.yaml").read_text())["defaults"]["methods"].items()
    assert method == {"file": name}

"""What somebody sees who runs Snakemake on a wrong study: one sentence, no traceback, and nothing is run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from unlearning_audit.study import configfile

SNAKEFILE = Path(__file__).parents[2] / "Snakefile"

SMALL = """
study: small
scenarios:
  one:
    data: {name: digits, test_size: 197}
    model: {name: linear}
    protocol: {name: swap, pairs: 1}
    methods: [none]
    attacks: [correctness]
"""


def dry_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """``snakemake -n`` with ``folder`` as the working directory; all it says is in ``stdout``."""
    command = [sys.executable, "-m", "snakemake", "-n", "-s", str(SNAKEFILE), *arguments]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)


@pytest.mark.parametrize(
    ("study", "arguments", "expected"),
    [
        (
            SMALL + "study: other\n",
            ["--configfile", "mine.yaml"],
            "mine.yaml: study: is given twice, in line 10 and before in line 2; keep one of the two",
        ),
        (
            "study: mine\nscenarios: {one: {}}\n",
            ["--configfile", "mine.yaml"],
            "mine.yaml: scenarios.one.data: is missing; add it",
        ),
        (
            SMALL,
            ["--config", "bootstap=300"],
            f"{SNAKEFILE.parent}/config.yaml: bootstap: there is no such field, did you mean 'bootstrap'? (known: "
            "batch, bootstrap, defaults, family, figures, keep, limit, looks, margins, memory, only, "
            "retrain_spread, scenarios, seed, study, tables) (given by --config)",
        ),
    ],
    ids=["key given twice", "nothing inherited from the default study", "command line"],
)
def test_a_wrong_study_ends_with_one_sentence(tmp_path, study, arguments, expected):
    (tmp_path / "mine.yaml").write_text(study)
    process = dry_run(tmp_path, *arguments)
    assert process.returncode != 0
    assert expected in process.stdout.splitlines()
    assert "Traceback" not in process.stdout
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"study: mine\nname: \xe9\xff\n", "is not text in UTF-8; give a YAML file, saved as UTF-8"),
        (b"study: mine\na: b: c\n", "is not valid YAML in line 2, column 5: mapping values are not allowed here"),
        (b"", "is empty; a study needs at least the fields study and scenarios"),
        (b"- study\n", "must hold a mapping of fields such as study and scenarios, found a list"),
        (None, "cannot be read (No such file or directory)"),
        ("a folder", "cannot be read (Is a directory)"),
    ],
    ids=["Latin-1", "syntax", "empty", "list", "missing", "folder"],
)  # fmt: skip
def test_a_file_that_is_no_study_is_told_in_a_sentence(tmp_path, monkeypatch, content, sentence):
    monkeypatch.chdir(tmp_path)
    if content == "a folder":
        (tmp_path / "mine.yaml").mkdir()
    elif content is not None:
        (tmp_path / "mine.yaml").write_bytes(content)
    with pytest.raises(ValueError) as error:  # noqa: PT011 (the sentence is compared below)
        configfile.load(["mine.yaml"])
    assert str(error.value) == f"mine.yaml: {sentence}"


def test_a_study_of_ones_own_is_planned_with_what_the_command_line_changes(tmp_path):
    (tmp_path / "mine.yaml").write_text(SMALL)
    arguments = ("--configfile", "mine.yaml", "--config", "scenarios={one: {recipe: {epochs: 2}}}")
    process = dry_run(tmp_path, "results/small/metrics.csv", *arguments)
    assert process.returncode == 0, process.stdout
    assert "Traceback" not in process.stdout


def test_a_folder_that_cannot_be_written_is_told_in_a_sentence(workplace):
    """Root may write everywhere but in what is mounted read-only."""
    command = workplace.command("--dry-run")
    if os.getuid() == 0:
        mounted = 'mount --bind . . && mount -o remount,ro,bind . && cd "$PWD" && exec "$@"'
        command = ["unshare", "-m", "sh", "-c", mounted, "sh", *command]
    workplace.folder.chmod(0o555)
    process = subprocess.run(
        command, env=workplace.environment, cwd=workplace.folder, text=True, check=False, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    workplace.folder.chmod(0o755)
    assert process.returncode != 0
    assert "Traceback" not in process.stdout
    assert f"{workplace.folder}: this folder is read-only, and results/ and .snakemake/ belong here" in process.stdout

"""The command audit: it reads a study before Snakemake does, so that whatever is no study ends in one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest
from unlearning_audit import command


def called(*arguments: str) -> subprocess.CompletedProcess:
    """The command in a process of its own, in the working directory."""
    return subprocess.run([sys.executable, command.__file__, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (bytes(range(256)), "mine.yaml: is not text in UTF-8 (line 2); give a YAML file, saved as UTF-8"),
        ("study: é".encode("latin-1"), "mine.yaml: is not text in UTF-8 (line 1); give a YAML file, saved as UTF-8"),
        (
            b"study: &a [*a]",
            "mine.yaml: has an alias inside of what it stands for (line 1); let no alias contain itself",
        ),
        (b"", "mine.yaml: is empty; a study needs at least the fields study and scenarios"),
        (None, "mine.yaml: cannot be read (No such file or directory)"),
    ],
)
def test_a_run_of_what_is_no_study_ends_with_one_sentence(here, capsys, content, sentence):
    if content is not None:
        Path("mine.yaml").write_bytes(content)
    for name in ("check", "run", "forecast", "report", "why", "unlock"):
        with pytest.raises(SystemExit) as end:
            command.main([name, "mine.yaml"])
        assert end.value.code == f"audit: {sentence}"
    assert not Path("results").exists()


def test_what_new_writes_is_sound(capsys):
    for name in ("mine.yaml", "My-Method.py"):
        with pytest.raises(SystemExit) as end:
            command.main(["new", name])
        assert end.value.code == 0
    with pytest.raises(SystemExit, match=r"audit: mine\.yaml: this file is there already"):
        command.main(["new", "mine.yaml"])
    with pytest.raises(SystemExit) as end:
        command.main(["check", "mine.yaml"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert "mine.yaml is sound: study mine, 2 scenarios." in said
    assert (
        "30 jobs (2 data, 2 splits, 2 train, 6 unlearn, 8 attack, 8 metrics, 2 comparisons), of which 0 are done"
        in said
    )


def test_a_method_is_tried_and_told_where_it_fails(capsys):
    with pytest.raises(SystemExit):
        command.main(["new", "mine.py"])
    with pytest.raises(SystemExit) as end:
        command.main(["try", "mine.py"])
    assert end.value.code == 0
    assert "mine.py keeps the contract." in capsys.readouterr().out
    text = Path("mine.py").read_text()
    Path("mine.py").write_text(text.replace("    bank.fit", "    [][3]\n    bank.fit"))
    with pytest.raises(SystemExit, match=r"^audit: mine\.py line 19, in unlearn: IndexError: list index out of range$"):
        command.main(["try", "mine.py"])


def test_snakemake_gets_the_study_and_what_follows_it():
    Path("mine.yaml").write_text(command.STUDY.format(file="mine.yaml", name="mine"))
    done = called("run", "mine.yaml", "--dry-run", "results/mine/metrics.csv")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "collect" in done.stdout + done.stderr
    assert called("unlock", "mine.yaml").returncode == 0

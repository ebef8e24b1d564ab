"""The command audit: it reads a study before Snakemake does, so that whatever is no study ends in one sentence."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from unlearning_audit import ROOT, command


def called(*arguments: str) -> subprocess.CompletedProcess:
    """The command in a process of its own, in the working directory."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "UNLEARNING_DEVICE": "cpu"}
    return subprocess.run(
        [sys.executable, "-m", "unlearning_audit.command", *arguments], capture_output=True, text=True, check=False,
        env=environment,
    )  # fmt: skip


def ended(*arguments: str) -> object:
    """The status, or sentence, with which the command ends in this process."""
    with pytest.raises(SystemExit) as end:
        command.main([*arguments])
    return end.value.code


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
    assert "What they cost is not known yet: audit forecast mine.yaml measures it on this machine." in said
    assert "What the study will be able to tell." in said
    assert said.count("—     nothing on record: run it with few pairs first") == 2  # nor how long it takes


def test_what_is_done_says_what_the_study_can_tell(finished, monkeypatch, capsys):
    monkeypatch.chdir(finished.folder)
    assert ended("check", "study.yaml") == 0
    said = capsys.readouterr().out
    assert "of a processor" not in said
    (line,) = (line for line in said.splitlines() if line.startswith("main"))
    assert line.split()[-1] == "done"
    assert "2 pairs" in line


def test_a_model_that_cannot_be_trained_is_refused_before_anything_runs(here):
    assert ended("new", "mine.py", "--kind", "model") == 0
    study = yaml.safe_dump(
        {"study": "own", "scenarios": {"noisy": {
            "data": {"name": "digits"}, "model": {"name": "mine", "file": "mine.py"}, "protocol": {"name": "swap"},
            "methods": ["none", "retrain"], "attacks": ["random"],
        }}}
    )  # fmt: skip
    Path("mine.yaml").write_text(study)
    assert ended("check", "mine.yaml") == 0
    Path("mine.py").write_text(Path("mine.py").read_text().replace('model.head = "3"', ""))
    for name in ("check", "run"):
        assert ended(name, "mine.yaml").startswith("audit: scenarios.noisy.model: mine.py: build must give the model")
    assert not Path("results").exists()


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


@pytest.mark.parametrize(
    ("kind", "part", "wrong", "sentence"),
    [
        ("attack", "return value, value >= threshold", "return value", "score must return (score, decision), arrays"),
        ("attack", "(logits, y, reference", "(reference, logits, y", "score must take (logits, y, reference, options"),
        ("model", 'model.head = "3"', "", "build must give the model an attribute model.head, the name of its last"),
        (
            "model",
            "model = nn",
            "import os; os._exit(3); model = nn",
            "it ended the process with os._exit(3); return or",
        ),
        ("data", "return Source(", "return (", "load must return a Source of unlearning.data, it returned tuple"),
        ("data", "y.astype(np.int64)", "y.astype(float)", "in load: ValueError: y is float64 (600,); it must be int64"),
        ("data", "    rng =", "    raise SystemExit(2)\n    rng =", "in load: it called sys.exit(2)"),
        (
            "method",
            "(bank: Bank, forget: Rows, retain",
            "(forget: Bank, bank: Rows, retain",
            "unlearn must take (bank, forget, retain, options) in this order",
        ),
    ],
)
def test_every_kind_of_file_that_new_writes_can_be_tried_and_is_told_what_is_wrong(kind, part, wrong, sentence, capsys):
    assert ended("new", "mine.py", "--kind", kind) == 0
    assert ended("try", "mine.py") == 0
    assert "mine.py keeps the contract" in capsys.readouterr().out
    text = Path("mine.py").read_text()
    assert part in text
    Path("mine.py").write_text(text.replace(part, wrong))
    said = ended("try", "mine.py")
    assert said.startswith("audit: mine.py"), said
    assert sentence in said
    assert "\n" not in said


def test_a_strangers_first_method_gets_its_line_in_the_report(capsys):
    """From nothing to a number with four commands; no file of ours is opened, and none of theirs edited."""
    assert ended("new", "my_method.py") == 0
    assert ended("try", "my_method.py") == 0
    assert ended("new", "mine.yaml", "--with", "my_method.py") == 0
    study = yaml.safe_load(Path("mine.yaml").read_text())
    assert study["defaults"]["methods"]["my_method"] == {"file": "my_method.py"}
    done = called("run", "mine.yaml", "--cores", "2", "--config", "only=[clean]")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "my method" in done.stderr
    results = Path("results/mine-clean")
    with (results / "metrics.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["method"], row["metric"]) == ("my_method", "q")]
    assert rows
    assert all(row["value"] for row in rows if row["attack"] == "paper")
    assert "my method" in (results / "report.html").read_text()


def test_words_that_are_none_are_told(capsys):
    assert ended("new", "mine.txt").startswith("audit: mine.txt: give the name of a study")
    assert ended("try", "mine.py").startswith("audit: mine.py: there is no such file")
    Path("mine.py").write_text("x = 1\n")
    assert ended("try", "mine.py").startswith("audit: mine.py: it defines none of unlearn (a method)")
    assert ended("check", "mine.yaml", "--fast") == "audit: unknown argument --fast; audit check --help shows all"
    assert ended("new", "mine.yaml", "--with", "nowhere.py").startswith("audit: nowhere.py: there is no such file")


def test_help_has_examples_and_completion_knows_every_command(capsys):
    for name in command.COMMANDS:
        assert ended(name, "--help") == 0
        assert "examples:" in capsys.readouterr().out
    assert ended("completion", "bash") == 0
    script = capsys.readouterr().out
    for typed, index, expected in (("audit che", 1, ["check"]), ("audit completion z", 2, ["zsh"])):
        program = f"{script}\nCOMP_WORDS=({typed}); COMP_CWORD={index}; _audit; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.split() == expected


def test_snakemake_gets_the_study_and_what_follows_it():
    assert ended("new", "mine.yaml") == 0
    done = called("run", "mine.yaml", "--dry-run", "results/mine/metrics.csv")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "collect" in done.stdout + done.stderr
    assert called("unlock", "mine.yaml").returncode == 0

"""The command audit: it reads a study before Snakemake does, so that whatever is no study ends in one sentence."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import IO

import numpy as np
import pytest
import yaml
from unlearning_audit import ROOT, command
from unlearning_audit.plugins import source

import warm


def run_command(*arguments: str, **streams: int | IO) -> subprocess.CompletedProcess:
    """The command in a process of its own, in the working directory; its output is kept, but for the ``streams``."""
    environment = {
        "UNLEARNING_WARM": warm.server(source.SCRIPTS), **os.environ,
        "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "UNLEARNING_DEVICE": "cpu",
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "unlearning_audit.command", *arguments], text=True, check=False, env=environment,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams,
    )  # fmt: skip


def ended(*arguments: str) -> object:
    """The status, or sentence, with which the command ends in this process."""
    with pytest.raises(SystemExit) as end:
        command.main([*arguments])
    return end.value.code


@pytest.fixture(autouse=True)
def in_folder_of_its_own(workdir):
    """No test leaves anything to another."""


@pytest.mark.parametrize("name", ["check", "run", "forecast", "report", "why", "unlock"])
def test_what_is_no_study_ends_with_one_sentence(name):
    assert ended(name, "mine.yaml") == "audit: mine.yaml: cannot be read (No such file or directory)"
    assert not Path("results").exists()


def test_what_new_writes_is_sound(capsys):
    for words in (("new", "mine.yaml"), ("new", "My-Method.py"), ("check", "mine.yaml")):
        assert ended(*words) == 0
    assert ended("new", "mine.yaml").startswith("audit: mine.yaml: this file already exists")
    output = capsys.readouterr().out
    assert "mine.yaml is valid: study mine, 2 scenarios." in output
    stages = "2 data, 4 splits, 4 train, 12 unlearn, 8 metrics, 2 comparisons, 11 for tables, figures and the report"
    assert f"43 jobs ({stages}), 0 of them done" in output
    assert re.search(r"The missing jobs take about \d+ s, one after the other, by the rates of small models\.", output)
    assert output.endswith("What the study can distinguish is predicted after a first run with few pairs.\n")


def test_what_is_done_says_what_the_study_can_tell(finished, monkeypatch, capsys):
    monkeypatch.chdir(finished.folder)
    assert ended("check", "study.yaml") == ended("forecast", "study.yaml") == 0
    output = capsys.readouterr().out
    assert "of a processor" not in output
    assert "the report), 19 of them done" in output
    assert output.count("\nNothing is missing: ") == 2
    lines = [line for line in output.splitlines() if line.startswith("main ")]
    assert lines
    assert all(line.split()[-1] == "done" and "2 pairs" in line for line in lines)
    told = {}
    for name in ("check", "forecast"):
        assert ended(name, "study.yaml", "--json") == 0
        told[name] = json.loads(capsys.readouterr().out)
    assert (told["check"]["outlook"], told["check"]["to_make"]) == (told["forecast"], {})
    assert [record["basis"] for record in told["forecast"]["telling"]] * 2 == ["done"] * len(lines)


@pytest.mark.slow
def test_a_run_of_what_is_done_shows_the_verdicts_again(finished, monkeypatch, capfd):
    monkeypatch.chdir(finished.folder)
    assert ended("run", "study.yaml", "--cores", "1") == 0
    text = capfd.readouterr()
    assert "Nothing to be done" in text.err
    assert text.err.count("\nReport: results/") == 1
    assert ended("run", "study.yaml", "--cores", "1", "--dry-run") == 0
    assert "Report: " not in capfd.readouterr().err


def test_check_says_of_an_edited_study_what_is_to_be_made_and_why_through_which_field(finished, capfd):
    text = (finished.folder / "study.yaml").read_text()
    Path("before.yaml").write_text(text)
    study = yaml.safe_load(text)
    study["defaults"]["methods"]["finetune"] = {"lr": 0.0123}
    Path("mine.yaml").write_text(yaml.safe_dump(study))
    Path("results").symlink_to(finished.folder / "results")
    assert ended("check", "before.yaml") == 0
    assert "To be made" not in capfd.readouterr().out
    assert ended("check", "mine.yaml") == 0
    assert "\nTo be made: 1 unlearn, 1 metrics, 1 comparisons, 10 for tables, figures" in capfd.readouterr().out
    assert ended("why", "before.yaml", "mine.yaml") == 0
    output = capfd.readouterr().out
    assert output.startswith("3 of ")
    assert "method_options.lr: " in output


#: Kind → what is wrong with a file of it: (text, text in its place, what is said).
WRONG = {
    "model": ('model.head = "3"', 'model.head = "7"', "model.head is '7', which is not a layer of the model"),
    "data": ("return Source(", "return (", "load must return a Source of unlearning_audit.data, it returned tuple"),
    "method": ("    stack.fit", "    [][3]\n    stack.fit", "mine.py line 19, in unlearn: IndexError: list index out"),
    "method ": ("(stack: ModelStack, forget: Rows, retain", "(stack: ModelStack, forgotten: Rows, retain",
                "unlearn may have the parameters (stack, forget, retain, options), found 'forgotten'"),
    "signal": ("norm(dim=-1)", "norm()", "measure must return an array (500, …), one entry for each sample, it"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_every_kind_of_file_that_new_writes_can_be_tried_and_is_told_what_is_wrong(kind, capsys):
    assert ended("new", "mine.py", "--kind", kind.strip()) == ended("try", "mine.py") == 0
    assert "mine.py runs correctly" in capsys.readouterr().out
    message = after_edit(*WRONG[kind][:2], "try", "mine.py")
    assert message.startswith("audit: mine.py"), message
    assert WRONG[kind][2] in message
    assert "\n" not in message


def after_edit(part: str, wrong: str, *words: str) -> object:
    """How the command ends where mine.py has other text."""
    text = Path("mine.py").read_text()
    assert part in text
    Path("mine.py").write_text(text.replace(part, wrong))
    return ended(*words)


@pytest.mark.parametrize(
    ("kind", "part", "wrong", "sentence"),
    [
        ("attack", "return value, value >= threshold", "return value", "score must return (score, decision), arrays"),
        ("protocol", "    order =", "    [][3]\n    order =", "IndexError: list index out of range"),
        ("metric", "    sides =", "    [][3]\n    sides =", "IndexError: list index out of range"),
    ],
)
@pytest.mark.slow
def test_what_judges_or_draws_is_tried_in_a_study_of_seconds(kind, part, wrong, sentence, capsys):
    assert ended("new", "mine.py", "--kind", kind) == 0
    assert ended("try", "mine.py") == 0
    output = capsys.readouterr().out
    assert "mine.py runs correctly" in output
    row = {"attack": "auc mine/trained", "metric": "mine", "protocol": "accuracy role forget"}[kind]
    assert f"  retrain     {row}" in output
    assert ended("new", "own.yaml", "--with", "mine.py") == 0
    assert ended("check", "own.yaml") == 0
    assert sentence in after_edit(part, wrong, "try", "mine.py")


@pytest.mark.parametrize(
    ("part", "wrong", "sentence"),
    [
        (
            "return lines",
            "return list(lines) or lines",
            "table must return a data frame of pandas, with a line for each sample, it",
        ),
        ('"sample", "side"', '"side", "sample"', "results/mine.txt: column 'side' says 's0', 's1', 's2' and 57"),
    ],
)
def test_a_reader_of_ones_own_is_written_checked_tried_and_used(part, wrong, sentence, capsys):
    assert ended("new", "mine.py", "--kind", "reader") == 0
    assert ended("check", "mine.py") == 0
    rng = np.random.default_rng(0)
    Path("results").mkdir()
    for name, memory in (("none", 2.0), ("retrain", 0.0), ("mine", 0.5)):
        lines = [f"s{i},{'forget' if i < 30 else 'heldout'},{rng.normal(memory * (i < 30))}\n" for i in range(60)]
        Path(f"results/{name}.txt").write_text("sample,side,score\n" + "".join(lines))
    assert ended("try", "mine.py", "--on", "results") == 0
    output = capsys.readouterr().out
    assert "mine.py is valid: a reader of result files" in output
    assert "results/retrain.txt:retrained: retrain; 30 forgotten and 30 held-out samples; score" in output
    assert "results/mine.txt:unlearned: mine; 30 forgotten and 30 held-out samples; score" in output
    assert ended("read", "results", "--reader", "mine.py", "--only-write") == 0
    assert ": none, retrain, mine; 30 samples to forget" in capsys.readouterr().out
    assert ended("read", "results", "--reader", "mine.py", "--only-write", "--json") == 0
    assert [row["role"] for row in json.loads(capsys.readouterr().out)["roles"]] == ["none", "retrain", "unlearned"]
    assert "name one, or a folder: audit try mine.py --on PATH" in ended("try", "mine.py")
    assert "audit read RESULTS --reader mine.py writes a study" in ended("new", "mine.yaml", "--with", "mine.py")
    assert not Path("mine.yaml").exists()
    assert "its option 'columns'" in ended("read", "results", "--reader", "mine.py", "--columns", "a=b", "--only-write")
    assert sentence in after_edit(part, wrong, "try", "mine.py", "--on", "results")


def test_a_file_that_cannot_be_written_is_told():
    assert ended("new", "no/kit.py") == "audit: [Errno 2] No such file or directory: 'no/kit.py'"


def test_words_that_are_none_are_told():
    assert ended("new", "mine.txt").startswith("audit: mine.txt: give the name of a study")
    assert ended("try", "mine.py").startswith("audit: mine.py: there is no such file")
    Path("mine.py").write_text("def accuracy(net, loader): ...\ndef forget_some(net, retain, forget): ...\n")
    assert "it defines none of unlearn (a method)" in ended("try", "mine.py")
    assert ended("new", "mine.yaml", "--with", "nowhere.py").startswith("audit: nowhere.py: there is no such file")


FUNCTION = """import torch
from torch.nn.functional import cross_entropy


def forget(net, retain, forget, rate):
    optimiser = torch.optim.SGD(net.parameters(), lr=rate)
    for x, y in forget:
        optimiser.zero_grad()
        (-cross_entropy(net(x), y)).backward()
        optimiser.step()
"""
PICTURES = {
    "data": {"name": "digits", "images": True, "label_noise": 0.2}, "model": {"name": "net", "file": "net.py"},
    "recipe": {"epochs": 20, "lr": 0.1, "momentum": 0.9}, "protocol": {"name": "swap", "pairs": 1},
    "methods": {
        "none": {}, "retrain": {}, "mine": {"file": "mine.py", "function": "forget", "options": {"rate": 0.01}},
    },
    "attacks": ["random"],
}  # fmt: skip
TEXT = {
    **PICTURES, "data": {"name": "passages", "size": 100, "test_size": 20},
    "model": {"name": "gpt2", "layers": 1, "width": 32},
    "recipe": {"optimiser": "adamw", "lr": 0.005, "batch_size": 16, "epochs": 2},
}  # fmt: skip
NET = """from torch import nn

from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    pass


def build(options, shape, classes):
    layers = nn.Conv2d(shape[0], 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * (shape[1] - 2) ** 2, classes)
    model = nn.Sequential(*layers)
    model.head = "3"
    return model
"""


@pytest.fixture
def user_files(workdir):
    """A function, a network for pictures, and a study of both and of text."""
    Path("mine.py").write_text(FUNCTION)
    Path("net.py").write_text(NET)
    Path("own.yaml").write_text(yaml.safe_dump({"study": "own", "scenarios": {"pictures": PICTURES, "text": TEXT}}))


def column(output: str, side: str) -> list[float]:
    """The losses before, after, and of retrained models on one side."""
    line = next(line for line in output.splitlines() if line.startswith(f"  {side}"))
    return [float(part) for part in line.removeprefix(f"  {side}").split()[1::2]]


@pytest.mark.parametrize("arguments", [(), ("--study", "own.yaml", "--scenario", "text")])
def test_a_function_is_tried_on_ones_own_data_and_model(user_files, capsys, arguments):
    settings = () if arguments else ("--set", "function=forget", "--set", "options.rate=0.5")
    settings += ("--set", "options.rate=1.0") if "text" in arguments else ()
    assert ended("try", "mine.py", *arguments, *settings) == 0
    output = capsys.readouterr().out
    assert "mine.py runs correctly. Two models" in output
    before, after, _ = column(output, "forgotten")
    assert after > before, "ascent"
    assert column(output, "never seen")[2] > 0
    assert ("—" in output) == ("text" in arguments), "passages have one label"


def test_a_network_for_pictures_is_tried_and_gets_pictures(user_files, capsys):
    assert ended("try", "net.py") == 0
    assert "digits with random labels as pictures [1, 8, 8]" in capsys.readouterr().out
    assert ended("new", "mine.yaml", "--with", "net.py") == 0
    study = yaml.safe_load(Path("mine.yaml").read_text())
    assert study["defaults"]["model"] == {"name": "net", "file": "net.py"}
    assert study["defaults"]["data"]["images"] is True
    assert ended("check", "mine.yaml") == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--set", "function=forget"), "mine.py: forget: the parameter 'rate' is not known; set options.rate"),
        (("--set", "function"), "--set function: give it as FIELD=VALUE"),
        (("--study", "own.yaml", "--scenario", "txt"), "the study has no scenario 'txt'; it has pictures, text"),
    ],
)
def test_what_cannot_be_tried_is_told(user_files, arguments, sentence):
    assert ended("try", "mine.py", *arguments).startswith(f"audit: {sentence}")


@pytest.mark.slow
def test_why_shows_the_calls_that_led_to_a_failure_and_report_names_the_page(user_files):
    Path("helper.py").write_text("def deep(model):\n    return model.nowhere\n")
    Path("mine.py").write_text(
        FUNCTION.replace("    for x", "    deep(net)\n    for x") + "\n\nfrom helper import deep\n"
    )
    scenario = {**PICTURES, "model": {"name": "linear"}, "controls": False, "recipe": {"epochs": 1, "lr": 0.1}}
    scenario |= {"data": {"name": "digits", "size": 100, "test_size": 100}}
    Path("own.yaml").write_text(yaml.safe_dump({"study": "own", "bootstrap": 100, "scenarios": {"main": scenario}}))
    process = run_command("run", "own.yaml")
    assert "scenarios.main.methods.mine: mine.py line 7, in forget: AttributeError" in process.stderr
    output = run_command("why", "own.yaml").stdout
    assert output.startswith("unlearn digits-size100-swap-linear-pairs0-mine (results/unlearn/")
    for call in ('mine.py", line 7, in forget', 'helper.py", line 2, in deep'):
        assert call in output
    assert "Report: results/own/report.html" in run_command("report", "own.yaml").stdout
    assert json.loads(run_command("report", "own.yaml", "--json").stdout)["study"] == "own"


def test_help_has_examples_and_a_wrong_command_is_told_the_nearest(capsys):
    for name in ("run", "read", "try", "new", "check", "report", "compare", "why", "forecast", "unlock"):
        assert ended(name, "--help") == 0
        assert capsys.readouterr().out.rstrip().splitlines()[-1].strip().startswith(f"audit {name} ")
    assert ended() == 0
    assert "Audit whether a model really forgot" in capsys.readouterr().out
    assert ended("--version") == 0
    assert capsys.readouterr().out.startswith("unlearning-audit 0.1.0 (Python ")
    assert ended("chek") == 2
    assert "Did you mean 'check'?" in capsys.readouterr().err


def test_what_is_wrong_with_a_study_names_the_line():
    Path("mine.yaml").write_text("study: mine\nscenarios:\n  a:\n    methodes: [none]\n")
    assert ended("check", "mine.yaml").endswith("(line 4)")

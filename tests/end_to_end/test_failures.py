"""A method, attack, metric or model that fails is a result: all else is there, the run says so and has a status."""

import csv

import pytest
import yaml
from unlearning_audit.evaluation.arrays import Logits
from unlearning_audit.store.files import FailedError, NoAnswerError
from unlearning_audit.training.bank import read_models

pytestmark = pytest.mark.slow

METHOD = """from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    how: str = "raise"


def unlearn(bank, forget, retain, options):
    if options.how == "crash":
        import ctypes
        ctypes.string_at(0)
    if options.how == "shape":
        bank.edit(lambda name, value: value[..., :1])
    if options.how == "raise":
        [][3]
"""
ATTACK = """from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    pass


def score(logits, y, reference, options, rng):
    return logits.nothing
"""
METRIC = """def rows(case, options, rng):
    return None
"""
MODEL = """from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    pass


def build(options, shape, classes):
    import torch
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, classes), torch.nn.Linear(classes, classes))
"""
LINES = [
    "scenarios.main.attacks.bad: bad_attack.py line 9, in score: AttributeError: 'numpy.ndarray' object has no "
    "attribute 'nothing'",
    "scenarios.main.metrics.own: bad_metric.py: rows must return a list of Row, it returned None",
    "scenarios.main.methods.raises: bad_method.py line 15, in unlearn: IndexError: list index out of range",
    "scenarios.main.methods.crashes: bad_method.py: the process crashed (SIGSEGV); log.txt has the calls",
    "scenarios.main.methods.shapes: bad_method.py: the weights that it left cannot be read; tensor '0.weight' has "
    "shape (8, 16, 1), expected (8, 16, 64) (models first)",
    "scenarios.other.model: bad_model.py: 1, 2 each have 10 outputs, which does not identify the last layer; set "
    "model.head to its name, such as model.head = '2'",
]


@pytest.fixture(scope="module")
def failed(finished, tmp_path_factory):
    """The finished study with plug-ins that fail, run; and what the run said."""
    place = finished.copy(tmp_path_factory.mktemp("failed") / "work")
    files = {"bad_method": METHOD, "bad_attack": ATTACK, "bad_metric": METRIC, "bad_model": MODEL}
    for name, text in files.items():
        (place.folder / f"{name}.py").write_text(text)
    tiny = yaml.safe_load((place.folder / "study.yaml").read_text())
    bad = {
        name: {"file": "bad_method.py", "how": how}
        for name, how in (("raises", "raise"), ("crashes", "crash"), ("shapes", "shape"))
    }
    tiny["defaults"]["methods"] |= bad
    tiny["defaults"]["attacks"]["bad"] = {"file": "bad_attack.py"}
    tiny["scenarios"] = {
        "main": {"metrics": {"own": {"file": "bad_metric.py"}}},
        "other": {"model": {"name": "headless", "file": "bad_model.py"}, "methods": ["none", "retrain"]},
    }
    place.write(tiny)
    return place, place.run(check=False)


def rows(place):
    with (place.folder / "results/tiny/metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_run_ends_with_a_status_and_a_line_for_each_failure(failed):
    _, process = failed
    assert process.returncode != 0
    closing_lines = process.stdout.split("\nfailures: everything else was computed and is in the report.\n")[-1]
    listed, closing = closing_lines.split("\n\n")[:2]
    assert listed.splitlines() == LINES
    assert closing == "`audit why` with the study's file shows the calls that led there."
    assert "a defect" not in process.stdout
    for words in ("RuleException", "CalledProcessError", "Traceback", "At least one job"):
        assert words not in process.stdout
    assert "Report: results/tiny/report.html" in process.stdout


def test_everything_else_is_computed_and_reported(failed, finished):
    place, _ = failed
    for name in ("report.html", "tables/quality.csv", "figures/quality.svg", "cost.csv"):
        assert (place.folder / "results/tiny" / name).stat().st_size > 0

    def comparable(metrics):
        keep = ("scenario", "method", "attack", "metric", "role", "pair", "rate", "value", "ci_low", "ci_high")
        # Q over all attacks is another number with one attack more, and none if that fails.
        return {
            tuple(row[k] for k in keep) for row in metrics if row["metric"] != "failed" and row["attack"] != "extended"
        }

    assert comparable(rows(finished)) <= comparable(rows(place))
    lost = [row for row in rows(place) if row["attack"] == "extended" and row["method"] == "finetune"]
    assert [(row["metric"], row["value"]) for row in lost] == [("q", "")]
    assert lost[0]["note"].startswith("the attack bad failed: bad_attack.py line 9")


def test_the_page_says_why(failed):
    place, _ = failed
    text = (place.folder / "results/tiny/report.html").read_text()
    for words in (
        "line 15, in unlearn: IndexError",
        "the process crashed (SIGSEGV)",
        "line 9, in score",
        "rows must return a list",
    ):
        assert words in text


def test_what_was_not_made_says_so_to_every_reader(failed):
    place, _ = failed
    (folder, *_) = [path.parent for path in place.find("unlearn/*-raises-*/spec.json")]
    for read, name in ((Logits.read, "logits.npz"), (read_models, "models.safetensors")):
        with pytest.raises(FailedError, match=r"bad_method\.py line 15") as error:
            read(folder / name)
        assert isinstance(error.value, NoAnswerError)
        assert error.value.part == "method"


def test_an_edit_runs_just_that_again_and_a_rerun_says_it_again(failed):
    place, _ = failed
    assert place.planned() == {"failures": 1, "all": 1}
    path = place.folder / "bad_method.py"
    path.write_text(METHOD.replace("[][3]", "pass"))
    jobs = {rule: count for rule, count in place.planned().items() if rule in ("train", "unlearn", "metrics")}
    batches = len(place.find("unlearn/*-raises-*/spec.json"))
    assert jobs == {"unlearn": 3 * batches, "metrics": 3}
    path.write_text(METHOD)

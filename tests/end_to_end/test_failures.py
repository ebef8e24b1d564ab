"""A method, attack, metric or model that fails is a result: all else is there, the run says so and has a status. What
authors do wrong reaches no further than their own rows."""

import csv
import re

import numpy as np
import pytest
import yaml
from unlearning_audit.evaluation.arrays import Logits
from unlearning_audit.evaluation.rows import FAILURE, read_study
from unlearning_audit.report import ending, failures
from unlearning_audit.store.files import read_json
from unlearning_audit.training.stack import read_models

pytestmark = pytest.mark.slow

METHOD = """import os
import numpy as np
import torch
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    pass


def unlearn(stack, forget, retain, options):
    {}
"""
ATTACK = """from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    pass


def score(logits, y, shadow, options, rng):
    return logits.nothing
"""
MODEL = """from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    pass


def build(options, shape, classes):
    import torch
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, classes), torch.nn.Linear(classes, classes))
"""
PLUGINS = {
    "bad_attack": ATTACK,
    "bad_metric": "def rows(evaluation, options, rng):\n    return None\n",
    "bad_model": MODEL,
}

#: What a method does that changes nothing about the models: their logits are those of the originals.
HARMLESS = {
    "moves": "os.chdir('/')",
    "shrinks": "stack.x = stack.x[:10]",
    "means": "stack.x[...] = stack.x.float().mean(0).to(stack.x.dtype)",
}
#: What mixes models with each other.
MIXING = {
    "mixes": "stack.edit(lambda name, w: w[:1].expand_as(w).clone())",
    "mixes_half": "stack.edit(lambda name, w: (w + w.roll(1, 0)) / 2)",
    "rolls": "stack.edit(lambda name, w: w.roll(1, 0))",
}
BODIES = {
    **HARMLESS, **MIXING,
    "mixes_little": "stack.edit(lambda name, w: w * (torch.rand(w.shape[1:]) < 0.9) + 1e-3 * w.std())",
    "forever": "import time; time.sleep(600)",
    "raises": "[][3]",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "shapes": "stack.edit(lambda name, value: value[..., :1])",
}  # fmt: skip
LINES = {
    "scenarios.main.attacks.bad: bad_attack.py line 9, in score: AttributeError: 'numpy.ndarray' object has no "
    "attribute 'nothing'",
    "scenarios.main.metrics.own: bad_metric.py: rows must return a list of Row, it returned None",
    "scenarios.main.methods.raises: raises.py line 12, in unlearn: IndexError: list index out of range",
    "scenarios.main.methods.crashes: crashes.py: the process crashed (SIGSEGV); log.txt has the calls",
    "scenarios.main.methods.shapes: shapes.py: the weights that it left cannot be read; tensor '0.weight' has "
    "shape (8, 16, 1), expected (8, 16, 64) (models first)",
    "scenarios.main.methods.forever: forever.py: it was stopped after its time_limit of 2 s; make it faster or raise "
    "time_limit",
    "scenarios.other.model: bad_model.py: 1, 2 each have 10 outputs, which does not identify the last layer; set "
    "model.head to its name, such as model.head = '2'",
}


@pytest.fixture(scope="module")
def failed(finished, tmp_path_factory):
    """The finished study with plug-ins that fail or do wrong, run; and what the run said."""
    place = finished.copy(tmp_path_factory.mktemp("failed") / "work")
    for name, text in {**PLUGINS, **{name: METHOD.format(body) for name, body in BODIES.items()}}.items():
        (place.folder / f"{name}.py").write_text(text)
    tiny = yaml.safe_load((place.folder / "study.yaml").read_text())
    tiny["defaults"]["methods"] |= {name: {"file": f"{name}.py"} for name in BODIES}
    tiny["defaults"]["methods"]["forever"]["time_limit"] = 2
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


def notes(place, method, metric):
    key = ("main", method, metric)
    return {row["note"] for row in rows(place) if (row["scenario"], row["method"], row["metric"]) == key}


def test_the_run_ends_with_a_status_and_a_line_for_each_failure(failed):
    place, process = failed
    assert process.returncode != 0
    sentences = failures.lines(read_study(place.folder / "results/tiny/metrics.csv", metrics=[FAILURE]))
    mixed = [line for line in sentences if line not in LINES]
    assert {*sentences} == {*LINES, *mixed}
    assert all(any(name in line for line in mixed) for name in MIXING)
    closing_lines = process.stdout.split("\nfailures: everything else was computed and is in the report.\n")[-1]
    listed, closing = closing_lines.split("\n\n")[:2]
    first, more = sentences[: ending.FAILURES], len(sentences) - ending.FAILURES
    assert listed.splitlines() == [*first, f"… and {more} more, under Checks in results/tiny/report.html"]
    assert closing == "`audit why` with the study's file shows the calls that led there."
    assert not re.search("a defect|delete it and run|RuleException|CalledProcessError|Traceback", process.stdout)
    assert "Report: results/tiny/report.html" in process.stdout
    page = (place.folder / "results/tiny/report.html").read_text()
    assert all(words in page for words in ("line 12, in unlearn: IndexError", "crashed (SIGSEGV)", "line 9, in score"))


def test_everything_else_is_computed_and_reported(failed, finished):
    place, _ = failed
    for name in ("report.html", "tables/quality.csv", "figures/quality.svg", "cost.csv"):
        assert (place.folder / "results/tiny" / name).stat().st_size > 0

    def comparable(metrics):
        keep = ("scenario", "method", "attack", "metric", "role", "pair", "rate", "value", "ci_low", "ci_high")
        # Q over all attacks is another number with one attack more, and none if that fails.
        return {tuple(row[k] for k in keep) for row in metrics if row["attack"] != "extended"}

    assert comparable(rows(finished)) <= comparable(rows(place))
    (lost,) = [row for row in rows(place) if row["attack"] == "extended" and row["method"] == "finetune"]
    assert (lost["metric"], lost["value"]) == ("q", "")
    assert lost["note"].startswith("the attack bad failed: bad_attack.py line 9")


def test_logits_are_those_of_the_weights_and_of_the_data_as_they_are(failed):
    place, _ = failed
    for method in HARMLESS:
        specs = place.find(f"unlearn/*-{method}-*/spec.json")
        assert specs
        for spec in specs:
            (before,) = [p for p in read_json(spec)["inputs"] if p.endswith("models.safetensors")]
            origin, folder = (place.folder / before).parent, spec.parent
            logits = [Logits.read(path / "logits.npz").logits for path in (folder, origin)]
            np.testing.assert_array_equal(*logits, err_msg=method)
            for name, value in read_models(origin / "models.safetensors").items():
                assert value.equal(read_models(folder / "models.safetensors")[name]), (method, name)


def test_models_that_were_mixed_are_no_result(failed):
    place, _ = failed
    alone = "its effect on a model depends on the models beside it"
    for method in MIXING:
        (note,) = notes(place, method, "failed")
        assert f"{method}.py: {alone}" in note or ("models 0 and 1 answer alike" in note and method != "rolls")
        assert not [row["metric"] for row in rows(place) if row["method"] == method and row["value"]]
    (doubt,) = notes(place, "mixes_little", "doubt")
    assert f"mixes_little.py: {alone}" in doubt


def test_an_edit_runs_just_that_again_and_a_rerun_says_it_again(failed):
    place, _ = failed
    assert place.planned() == {"failures": 1, "all": 1}
    path = place.folder / "raises.py"
    path.write_text(METHOD.format("pass"))
    jobs = {rule: count for rule, count in place.planned().items() if rule in ("train", "unlearn", "metrics")}
    assert jobs == {"unlearn": len(place.find("unlearn/*-raises-*/spec.json")), "metrics": 1}
    path.write_text(METHOD.format(BODIES["raises"]))

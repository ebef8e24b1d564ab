"""A user's own methods from outside the tree, in both forms, through a real run: what they do is what is measured."""

import csv
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file
from unlearning_audit.evaluation.arrays import Logits
from unlearning_audit.store.files import read_json
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

BANK = '''"""Fade: the last layer's weights and biases are scaled."""

from pydantic import Field
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    """The ``factor``."""

    factor: float = Field(1.0, ge=0)


def unlearn(bank, forget, retain, options):
    """``forget`` and ``retain`` are not looked at."""
    assert len(forget) < len(retain)
    bank.edit(lambda name, weight: weight * options.factor if name in bank.head else weight)
'''
CLASSIC = """import torch


def shift(model, retain_loader, forget_loader):
    seen = [torch.cat([x for x, _ in loader]) for loader in (retain_loader, forget_loader)]
    assert len(seen[0]) > len(seen[1]) > 0
    with torch.no_grad():
        for weight in model.parameters():
            weight += len(seen[1])
    return model
"""
OWN = {"fade": {"file": "../mine/fade.py", "factor": 0.0}, "shift": {"file": "../mine/shift.py", "function": "shift"}}
METHODS = {"none": {}, "retrain": {}, **OWN}


def missing() -> dict[str, int]:
    """How many nodes of each stage the study in the working directory still lacks."""
    nodes = plan.make(reading.read(*reading.load(["study.yaml"]))).nodes
    lacking = {stage: sum(not Path(n.outputs["spec"]).exists() for n in nodes[stage].values()) for stage in nodes}
    return {stage: count for stage, count in lacking.items() if count}


def batches(place) -> int:
    return len(place.find("train/*/spec.json"))


@pytest.fixture(scope="module")
def place(finished, tmp_path_factory):
    """The finished study with two methods of one's own that lie outside it, run."""
    root = tmp_path_factory.mktemp("own")
    (root / "mine").mkdir()
    (root / "mine/fade.py").write_text(BANK)
    (root / "mine/shift.py").write_text(CLASSIC)
    place = finished.copy(root / "work")
    tiny = yaml.safe_load((place.folder / "study.yaml").read_text())
    place.write({**tiny, "defaults": {**tiny["defaults"], "methods": METHODS}})
    with chdir(place.folder):
        assert missing() == {"unlearn": 2 * batches(place), "metrics": 2, "comparisons": 1}
    place.run()
    return place


def pairs(place, method):
    """(weights before, weights after, logits after) of every batch that the method unlearned."""
    for spec in place.find(f"unlearn/*-{method}-*/spec.json"):
        content = read_json(spec)
        (before,) = [path for path in content["inputs"] if path.endswith("models.safetensors")]
        after = load_file(spec.with_name("models.safetensors"))
        yield load_file(place.folder / before), after, Logits.read(spec.with_name("logits.npz")).logits


def test_a_file_outside_the_tree_does_what_it_says_with_the_options_of_the_study(place):
    weights = list(pairs(place, "fade"))
    assert len(weights) == batches(place) > 0
    for before, after, logits in weights:
        changed = {name for name in before if not np.array_equal(before[name], after[name])}
        assert {name.rsplit(".", 1)[0] for name in changed} == {sorted(before)[-1].rsplit(".", 1)[0]}
        assert all((after[name] == 0).all() for name in changed)
        assert (logits == 0).all()


def test_both_stand_in_the_tables(place):
    with (place.folder / "results/tiny/metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    faded = [row for row in rows if row["method"] == "fade" and row["metric"] == "auc"]
    # All classes are equally likely to the faded models, so no confidence tells anything.
    assert {float(row["value"]) for row in faded if row["attack"].startswith("confidence")} == {0.5}
    assert any(row["method"] == "shift" and row["metric"] == "q" for row in rows)
    headline = (place.folder / "results/tiny/tables/headline.md").read_text()
    assert "fade" in headline
    assert "shift" in headline

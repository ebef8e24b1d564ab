"""A user's own methods from outside the tree, in both forms, through a real run: what they do is what is measured."""

import numpy as np
import pandas
import pytest
from safetensors.numpy import load_file
from unlearning_audit.evaluation.arrays import Logits
from unlearning_audit.store.files import read_json

from workplace import TINY

BANK = '''"""Fade: the last layer's weights and biases are scaled."""

from pydantic import Field
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    """The ``factor``."""

    factor: float = Field(1.0, ge=0)


def unlearn(stack, forget, retain, options):
    """``forget`` and ``retain`` are not looked at."""
    assert len(forget) < len(retain)
    stack.edit(lambda name, weight: weight * options.factor if name in stack.head else weight)
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
METHODS = {
    "none": {}, "retrain": {}, "fade": {"file": "../mine/fade.py", "factor": 0.0},
    "shift": {"file": "../mine/shift.py", "function": "shift"},
}  # fmt: skip


@pytest.fixture(scope="module")
def place(finished, tmp_path_factory):
    """The finished study with two methods of one's own that lie outside it, run."""
    root = tmp_path_factory.mktemp("own")
    (root / "mine").mkdir()
    (root / "mine/fade.py").write_text(BANK)
    (root / "mine/shift.py").write_text(CLASSIC)
    place = finished.copy(root / "work")
    place.write({**TINY, "defaults": {**TINY["defaults"], "methods": METHODS}})
    ran = place.job_counts(place.run("--printshellcmds").stdout)
    batches = len(place.find("train/*/spec.json"))
    assert {rule: ran.get(rule, 0) for rule in ("data", "splits", "train", "unlearn", "metrics", "comparisons")} == {
        "data": 0, "splits": 0, "train": 0, "unlearn": 2 * batches, "metrics": 2, "comparisons": 1,
    }  # fmt: skip
    return place


def test_both_stand_in_the_tables(place):
    metrics = pandas.read_csv(place.folder / "results/tiny/metrics.csv").query("metric == 'auc'")
    faded = metrics[(metrics["method"] == "fade") & metrics["attack"].str.startswith("confidence")]
    # All classes are equally likely to the faded models, so no confidence tells anything.
    assert {*faded["value"]} == {0.5}
    headline = (place.folder / "results/tiny/tables/headline.md").read_text()
    assert all(name in headline for name in ("fade", "shift"))


def test_a_file_outside_the_tree_does_what_it_says_with_the_options_of_the_study(place):
    specs = place.find("unlearn/*-fade-*/spec.json")
    assert specs
    for spec in specs:
        (path,) = [path for path in read_json(spec)["inputs"] if path.endswith("models.safetensors")]
        before, after = load_file(place.folder / path), load_file(spec.with_name("models.safetensors"))
        changed = {name for name in before if not np.array_equal(before[name], after[name])}
        assert {name.rsplit(".", 1)[0] for name in changed} == {sorted(before)[-1].rsplit(".", 1)[0]}
        assert not any(after[name].any() for name in changed)
        assert not Logits.read(spec.with_name("logits.npz")).logits.any()

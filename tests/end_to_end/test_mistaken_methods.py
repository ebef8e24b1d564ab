"""Methods with mistakes that authors make: what these do reaches no further than their own rows."""

import csv

import numpy as np
import pytest
import yaml
from unlearning_audit.evaluation.arrays import Logits
from unlearning_audit.store.files import read_json
from unlearning_audit.training.bank import read_models

pytestmark = pytest.mark.slow

HEAD = """import os
import numpy as np
import torch
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    pass


def unlearn(bank, forget, retain, options):
    {}
"""

#: What a method does → the lines of its function.
BODIES = {
    "decent": "pass",
    "moves": "os.chdir('/')",
    "relabels": "bank.labels[...] = 0",
    "shrinks": "bank.x = bank.x[:10]",
    "means": "bank.x[...] = bank.x.float().mean(0).to(bank.x.dtype)",
    "mixes": "bank.edit(lambda name, w: w[:1].expand_as(w).clone())",
    "mixes_some": "bank.edit(lambda name, w: torch.cat([w[:1].expand_as(w[:3]), w[3:]]).clone())",
    "means_of_all": "bank.edit(lambda name, w: w.mean(0, keepdim=True).expand_as(w).clone())",
    "mixes_half": "bank.edit(lambda name, w: (w + w.roll(1, 0)) / 2)",
    "mixes_head": "bank.edit(lambda name, w: w[:1].expand_as(w).clone() if name.startswith(bank.model.head) else w)",
    "mixes_little": "bank.edit(lambda name, w: w * (torch.rand(w.shape[1:]) < 0.9) + 1e-3 * w.std())",
    "rolls": "bank.edit(lambda name, w: w.roll(1, 0))",
    "forever": "import time; time.sleep(600)",
}
#: Those that change nothing about the models: their logits are those of the originals.
HARMLESS = ("decent", "moves", "relabels", "shrinks", "means")


@pytest.fixture(scope="module")
def mistaken(finished, tmp_path_factory):
    """The finished study with all these methods, run; and what the run said."""
    place = finished.copy(tmp_path_factory.mktemp("mistaken") / "work")
    tiny = yaml.safe_load((place.folder / "study.yaml").read_text())
    for name, body in BODIES.items():
        (place.folder / f"{name}.py").write_text(HEAD.format(body))
        tiny["defaults"]["methods"][name] = {"file": f"{name}.py"}
    tiny["defaults"]["methods"]["forever"]["time_limit"] = 2
    place.write(tiny)
    return place, place.run(check=False)


def rows(place, *metrics):
    with (place.folder / "results/tiny/metrics.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if not metrics or row["metric"] in metrics]


def notes(place, method, metric):
    return [row["note"] for row in rows(place, metric) if row["method"] == method]


def batches(place, method):
    return sorted(spec.parent for spec in place.find(f"unlearn/*-{method}-*/spec.json"))


def test_a_run_with_them_ends_with_its_report_and_names_those_that_failed(mistaken):
    place, process = mistaken
    assert (place.folder / "results/tiny/report.html").stat().st_size > 0
    assert "a defect" not in process.stdout
    assert "delete it and run again" not in process.stdout
    failed = {row["method"] for row in rows(place, "failed")}
    assert failed == {"mixes", "mixes_some", "mixes_half", "mixes_head", "means_of_all", "rolls", "forever"}


def test_no_other_number_changes(mistaken, finished):
    place, _ = mistaken
    methods = ("none", "retrain", "finetune")

    def numbers(of):
        return [tuple(row.values()) for row in rows(of) if row["method"] in methods]

    assert numbers(place) == numbers(finished)


def test_logits_are_those_of_the_weights_and_of_the_data_as_they_are(mistaken):
    place, _ = mistaken
    for method in HARMLESS:
        folders = batches(place, method)
        assert folders
        for folder in folders:
            (before,) = [p for p in read_json(folder / "spec.json")["inputs"] if p.endswith("models.safetensors")]
            origin = (place.folder / before).parent
            np.testing.assert_array_equal(
                Logits.read(folder / "logits.npz").logits, Logits.read(origin / "logits.npz").logits, err_msg=method
            )
            for name, value in read_models(origin / "models.safetensors").items():
                assert value.equal(read_models(folder / "models.safetensors")[name]), (method, name)


def test_a_time_limit_is_told_by_name(mistaken):
    place, _ = mistaken
    (note,) = set(notes(place, "forever", "failed"))
    assert note == "forever.py: it was stopped after its time_limit of 2 s; make it faster or raise time_limit"


def test_models_that_were_mixed_are_no_result(mistaken):
    place, _ = mistaken
    for method in ("mixes", "mixes_some", "mixes_half", "mixes_head", "means_of_all"):
        (note,) = set(notes(place, method, "failed"))
        assert "it does to a model depends on the models beside it" in note or "models 0 and 1 answer alike" in note
        assert [row["metric"] for row in rows(place) if row["method"] == method and row["value"]] == []
    (note,) = set(notes(place, "rolls", "failed"))
    assert "rolls.py: its effect on a model depends on the models beside it" in note
    (doubt,) = set(notes(place, "mixes_little", "doubt"))
    assert "mixes_little.py: its effect on a model depends on the models beside it" in doubt

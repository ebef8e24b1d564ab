"""A model of a user's that ends processes, changes the folder and patches libraries: what is asked of it again costs
what needs it, by name, and nothing else."""

import csv

import pytest
import yaml

MODEL = """import os

from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    pass


def build(options, shape, classes):
    import numpy as np
    from torch import nn

    place = os.environ.get("HOSTILE_PLACE", "")
    if os.path.exists(os.path.join(place, "crash")):
        os._exit(3)
    os.chdir("/")
    np.isfinite = np.put_along_axis = lambda *a, **k: 1 / 0
    model = nn.Sequential(nn.Flatten(), nn.Linear(shape[0], 8), nn.ReLU(), nn.Linear(8, classes))
    model.head = "3"
    return model
"""


def rows(place, name="tiny"):
    with (place.folder / "results" / name / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def study(workplace, monkeypatch):
    monkeypatch.setenv("HOSTILE_PLACE", str(workplace.folder))
    (workplace.folder / "mine.py").write_text(MODEL)
    tiny = yaml.safe_load((workplace.folder / "study.yaml").read_text())
    tiny["defaults"]["model"] = {"file": "mine.py"}
    workplace.write(tiny)
    workplace.run()
    tiny["defaults"]["metrics"] = {"relearn": {"steps": 4}}
    tiny["defaults"]["attacks"]["gradient_norm"] = {}
    workplace.write(tiny)
    return workplace


def test_a_model_that_crashes_when_it_is_asked_again_costs_what_needs_that(study):
    assert {"relearn", "readings"} <= set(study.planned())
    (study.folder / "crash").touch()
    said = study.run(check=False).stdout
    assert "mine.py" in said
    assert "a defect" not in said
    assert "Traceback" not in said
    assert (study.folder / "results/tiny/report.html").stat().st_size > 0
    table = rows(study)
    assert {row["attack"].partition("/")[0] for row in table if row["metric"] == "advantage"} >= {"confidence"}
    assert not [row for row in table if row["metric"].startswith("relearn") and row["value"]]
    notes = {row["note"] for row in table if row["failed"] and "mine.py" in row["note"]}
    assert notes
    assert any("os._exit" in note or "ended" in note for note in notes)


def test_a_model_that_patches_what_jobs_use_has_all_numbers(study):
    said = study.run().stdout
    assert "a defect" not in said
    values = {row["metric"] for row in rows(study) if row["value"]}
    assert any(metric.startswith("relearn") for metric in values)

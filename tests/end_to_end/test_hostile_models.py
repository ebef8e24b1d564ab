"""A model of a user's that changes the folder and, once it is trained, ends processes: what is asked of it again costs
what needs it, by name, and nothing else."""

import csv
import shutil

import pytest
import yaml

pytestmark = pytest.mark.slow

MODEL = """import os

from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    pass


def build(options, shape, classes):
    from torch import nn

    place = os.environ.get("HOSTILE_PLACE", "")
    if os.path.exists(os.path.join(place, "crash")):
        os._exit(3)
    os.chdir("/")
    model = nn.Sequential(nn.Flatten(), nn.Linear(shape[0], 8), nn.ReLU(), nn.Linear(8, classes))
    model.head = "3"
    return model
"""


def rows(place, name="tiny"):
    with (place.folder / "results" / name / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_model_that_crashes_when_it_is_asked_again_costs_what_needs_that(workplace, monkeypatch):
    monkeypatch.setenv("HOSTILE_PLACE", str(workplace.folder))
    (workplace.folder / "mine.py").write_text(MODEL)
    tiny = yaml.safe_load((workplace.folder / "study.yaml").read_text())
    tiny["defaults"]["model"] = {"name": "mine", "file": "mine.py"}
    tiny["defaults"]["metrics"] = {"relearn": {"steps": 4}, "representation": {}}
    tiny["defaults"]["attacks"]["gradient_norm"] = {}
    workplace.write(tiny)
    output = workplace.run().stdout
    assert "a defect" not in output
    assert [row for row in rows(workplace) if row["metric"].startswith("relearn") and row["value"]]

    for stage in ("signals", "metrics", "comparisons", "tiny"):
        shutil.rmtree(workplace.folder / "results" / stage)
    (workplace.folder / "crash").touch()
    output = workplace.run(check=False).stdout
    assert "mine.py" in output
    assert "a defect" not in output
    assert "Traceback" not in output
    assert (workplace.folder / "results/tiny/report.html").stat().st_size > 0
    table = rows(workplace)
    assert {row["attack"].partition("/")[0] for row in table if row["metric"] == "advantage"} >= {"confidence"}
    assert not [row for row in table if row["metric"].startswith("relearn") and row["value"]]
    failed = {(row["failed"], row["name"]) for row in table if row["failed"] and "mine.py" in row["note"]}
    assert failed == {("attack", "gradient_norm"), ("missing", "relearn"), ("missing", "representation")}

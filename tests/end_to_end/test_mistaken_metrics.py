"""Attacks and metrics that name their rows as ours, or never end."""

import csv

import pytest
import yaml

pytestmark = pytest.mark.slow

ATTACK = """import numpy as np
from unlearning_audit.plugins.settings import Settings

{}


class Options(Settings):
    pass


def score(logits, y, reference, options, rng):
    {}
    return logits[..., 0].astype(float), logits[..., 0] > 0
"""
METRIC = """from unlearning_audit.evaluation.rows import Row
from unlearning_audit.plugins.declarations import Quantity
from unlearning_audit.plugins.settings import Settings

QUANTITIES = (Quantity("mine"),)


class Options(Settings):
    pass


def rows(case, {}):
    {}
    return [Row("mine", value=0.5), {}]
"""
ATTACKS = {
    "decent": ("", "pass"),
    "sleeps": ("", "import time; time.sleep(600)"),
}  # fmt: skip
METRICS = {
    "honest": ("pass", ""),
    "undeclared": ("pass", "Row('other', value=0.5)"),
    "second_q": ("pass", "Row('q', value=0.99, attack='extended')"),
    "doubtful": ("pass", "Row('doubt', note='do not believe it')"),
    "truth": ("pass", "Row('mine', value=True)"),
    "twice": ("pass", "Row('mine', value=0.7)"),
    "waits": ("import time; time.sleep(600)", ""),
}
ARGUMENTS = "options, rng"


@pytest.fixture(scope="module")
def judged(finished, tmp_path_factory):
    place = finished.copy(tmp_path_factory.mktemp("judged") / "work")
    tiny = yaml.safe_load((place.folder / "study.yaml").read_text())
    tiny["defaults"]["metrics"] = {}
    for name, texts in ATTACKS.items():
        (place.folder / f"{name}.py").write_text(ATTACK.format(*texts))
        tiny["defaults"]["attacks"][name] = {"file": f"{name}.py"}
    for name, texts in METRICS.items():
        (place.folder / f"{name}.py").write_text(METRIC.format(ARGUMENTS, *texts))
        tiny["defaults"]["metrics"][name] = {"file": f"{name}.py"}
    for kind, name in (("attacks", "sleeps"), ("metrics", "waits")):
        tiny["defaults"][kind][name]["time_limit"] = 1.5
    place.write(tiny)
    return place, place.run(check=False).stdout


def rows(place):
    with (place.folder / "results/tiny/metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_no_number_of_another_attack_or_metric_changes(judged, finished):
    def numbers(place, names):
        return {tuple(sorted(row.items())) for row in rows(place) if row["attack"].partition("/")[0] in names}

    names = ("confidence", "modified_entropy", "random")
    assert numbers(judged[0], names) == numbers(finished, names) != set()
    honest = [row for row in rows(judged[0]) if row["metric"] == "mine"]
    assert {row["value"] for row in honest} == {"0.5"}
    assert len(honest) == 3  # one for each method, of the honest metric alone


def test_each_is_named_with_what_it_did(judged):
    place, output = judged
    failures = [f"scenarios.main.{row['failed']}s.{row['name']}: {row['note']}" for row in rows(place) if row["failed"]]
    assert sum(line in output for line in set(failures)) == 6  # the terminal has room for some
    for line in (
        "scenarios.main.attacks.sleeps: sleeps.py: it was ended after 1.5 s, its time_limit",
        "scenarios.main.metrics.waits: waits.py: it was ended after 1.5 s, its time_limit",
        "scenarios.main.metrics.undeclared: undeclared.py: rows may not be called 'other'; QUANTITIES declares mine",
        "scenarios.main.metrics.second_q: second_q.py: rows may not be called 'q', which the library's own are",
        "scenarios.main.metrics.truth: truth.py: field 'value' of the row 'mine' must be a number, not True",
        "scenarios.main.metrics.twice: twice.py: two rows are called 'mine'; set a field that tells them apart",
        "scenarios.main.metrics.doubtful: doubtful.py: rows may not be called 'doubt', which the library's own are",
    ):
        assert [failure for failure in failures if failure.startswith(line)], line
    for name in ("decent", "honest"):
        assert f"{name}.py" not in output

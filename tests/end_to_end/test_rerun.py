"""What is there is not made again: whatever happened to times, records and places, names say all."""

import os
import random
import shutil

import pytest

from workplace import TINY


@pytest.fixture
def place(finished, tmp_path):
    return finished.copy(tmp_path / "work")


def test_a_run_makes_all_that_was_asked_for(finished):
    stages = {path.relative_to(finished.folder / "results").parts[0] for path in finished.find("*/*/spec.json")}
    assert stages == {"data", "splits", "train", "unlearn", "metrics", "comparisons"}
    for path in ("metrics.csv", "report.html", "tables/quality.csv", "figures/quality.svg", "cost.csv"):
        assert (finished.folder / "results" / "tiny" / path).stat().st_size > 0, path
    assert not finished.find("**/*.part")


def test_a_second_run_has_nothing_to_do(finished):
    assert "Nothing to be done" in finished.run().stdout


def test_a_system_of_the_study_is_one_command_and_made_of_the_same_parts(finished, tmp_path):
    place = finished.copy(tmp_path / "work")
    competition = {"protocol": {"name": "competition", "blocks": 1, "models_per_block": 2}, "attacks": []}
    place.write({**TINY, "scenarios": {"main": {}, "many": competition}})
    parts = {"train", "unlearn", "metrics", "comparisons"}
    assert {"train", "metrics"} <= set(place.planned())
    output = place.run("--printshellcmds", "--config", "only=[swap]").stdout
    assert not parts & set(place.job_counts(output))
    assert "Report: results/tiny-swap/report.html" in output
    alone, whole = (place.folder / "results" / name for name in ("tiny-swap", "tiny"))
    numbers = [(folder / "metrics.csv").read_text().replace(f"{folder.name},", "") for folder in (alone, whole)]
    assert numbers[0] == numbers[1]
    assert (alone / "tables" / "quality.csv").read_bytes() == (whole / "tables" / "quality.csv").read_bytes()
    assert "Nothing to be done" in place.run("--config", "only=[swap]").stdout


def test_files_that_were_touched_in_any_order_are_not_made_again(place):
    """Every other one long ago, the others now."""
    paths = place.find("**/*")
    random.Random(0).shuffle(paths)
    for second, path in enumerate(paths):
        os.utime(path, (1e9 + second, 1e9 + second) if second % 2 else None)
    assert place.planned() == {}


def test_lost_records_of_snakemake_make_nothing_anew(place):
    shutil.rmtree(place.folder / ".snakemake")
    assert place.planned() == {}


def test_a_lost_artifact_is_made_again_and_is_the_same(place):
    before = place.contents()
    (lost,) = place.find("metrics/*finetune*/metrics.csv")
    lost.unlink()
    shutil.rmtree(place.folder / "results" / "tiny")
    ran = place.job_counts(place.run("--printshellcmds").stdout)
    assert ran["metrics"] == 1
    assert set(ran) & {"data", "splits", "train", "unlearn"} == set()
    assert place.contents() == before

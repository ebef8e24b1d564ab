"""Rules ask a cluster for what the forecast's rates say, and for more with every attempt."""

import importlib.util
import re
from pathlib import Path

import pytest
import yaml
from unlearning_audit.plugins import source
from unlearning_audit.study.schema import STAGES
from unlearning_audit.workflow import progress
from unlearning_audit.workflow.forecast import rates, reading

ROOT = source.SCRIPTS.parent
PROFILE = yaml.safe_load((ROOT / "profiles/slurm/profile.yaml").read_text())

#: Rules of which many are one submission, whose times add up.
GROUPED = ("metrics",)


#: The files of a study and its scoring jobs, as the benchmark of scoring makes them.
SPEC = importlib.util.spec_from_file_location("scoring_benchmark", ROOT / "tests/benchmarks/scoring.py")
benchmark = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(benchmark)


def reserved() -> dict[str, str]:
    """Rule → the stage whose memory and time it asks for, of all rules that are submitted."""
    requests = {}
    for path in sorted((ROOT / "rules").glob("*.smk")):
        for text in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            if request := re.search(r'^        \*\*reserved\("(\w+)"\),$', text, re.MULTILINE):
                requests[text.split(":")[0]] = request[1]
    return requests


def test_every_stage_asks_for_what_the_rates_of_the_forecast_say():
    gather = ("collect", "verdicts", "tuning", "figure", "meta", "report")
    assert reserved() == {stage: stage for stage in STAGES} | dict.fromkeys(gather, "comparisons")


def test_rates_are_of_every_stage_and_grow_with_every_attempt():
    assert set(rates.MINUTES) == set(STAGES)
    with_models = {"pretrain", "train", "tune", "unlearn", "signals"}
    assert set(STAGES) - set(rates.MEMORY) == with_models
    for stage in STAGES:
        memory, minutes = rates.reserved(stage, 9000, 1)
        assert memory == (9000 if stage in with_models else rates.MEMORY[stage]), stage
        assert rates.reserved(stage, 9000, 3) == (3 * memory, 3 * minutes)
        assert 60 * minutes > 100 * progress.RATES.get(stage, progress.SHORT), stage


def test_a_profile_says_where_jobs_run_and_nothing_of_their_memory():
    """Times of jobs in groups are added up, so that they are said again, as less."""
    for stage, settings in PROFILE["set-resources"].items():
        assert set(settings) == ({"runtime"} if stage in GROUPED else {"slurm_partition", "gpu"}), stage
    for stage in GROUPED:
        assert eval(PROFILE["set-resources"][stage]["runtime"], {"attempt": 1}) < rates.MINUTES[stage]
    assert set(PROFILE["groups"]) == set(GROUPED)


# ---------------------------------------------------------------- what jobs that score read


@pytest.mark.slow
def test_a_job_that_scores_asks_for_what_it_needs_and_not_for_far_more(tmp_path):
    """The peak of a real job in a process, by the system's account, against what is reserved for it from its files."""
    benchmark.build(tmp_path, models=12, samples=4000, classes=100, targets=600)
    files = {"data": str(tmp_path / "data" / "data.npz")}
    files |= benchmark.inputs(tmp_path, "splits", *benchmark.POPULATIONS)
    memory, _ = rates.reserved("metrics", 9000, 1, reading.of_files(files))
    for attacks in ((), benchmark.ATTACKS):
        peak = benchmark.measured(tmp_path, attacks)[2] * 2**20 / 1e6
        assert 1.1 < memory / peak < 5, (attacks, memory, peak)


def test_memory_grows_with_the_logits_by_as_much_as_was_measured():
    """A job of 2 GB of logits: all of them for attacks, those of queried samples for metrics."""
    parts = {"logits": 2 * 10**9, "cells": 5 * 10**7, "queried": 0.1, "other_bytes": 10**8}
    read = reading.Reading(attacked=10**9, **parts)
    assert rates.reserved("metrics", 9000, 1, read)[0] == 250 + 8 * 1000 + 200
    read = reading.Reading(attacked=10**6, **parts)
    assert rates.reserved("metrics", 9000, 2, read)[0] == 2 * (250 + 6 * 200 + 24 * 50 + 200)


def test_what_a_job_reads_is_counted_from_its_files(tmp_path):
    """Logits not there yet: nothing is known; what else is not there yet counts nothing."""
    benchmark.build(tmp_path, models=12, samples=600, classes=5, targets=60)
    files = benchmark.inputs(tmp_path, "splits", "unlearned")
    logits, members = files["unlearned"], files["splits"]
    more = {"retrained": logits, "relearned": [str(tmp_path / "signals.npz")]}
    sizes = reading.of_files({**files, **more, "originals": members})
    assert sizes.cells == 12 * 600
    assert sizes.queried == pytest.approx(0.1)
    assert sizes.logits == sizes.attacked == sum(Path(path).stat().st_size for path in logits) > 12 * 600 * 5 * 4
    assert sizes.other_bytes == sum(Path(path).stat().st_size for path in members)
    assert reading.of_files({"unlearned": logits, "splits": [str(tmp_path / "membership.npz")]}) is None
    Path(members[0]).write_bytes(b"PK damaged")
    assert reading.of_files(files) is None

"""Rules ask a cluster for what the forecast's rates say, and for more with every attempt."""

import importlib.util

import pytest
import yaml
from unlearning_audit.plugins import source
from unlearning_audit.study.schema import STAGES
from unlearning_audit.workflow import progress
from unlearning_audit.workflow.forecast import rates

ROOT = source.SCRIPTS.parent
PROFILE = yaml.safe_load((ROOT / "profiles/slurm/profile.yaml").read_text())

#: Rules of which many are one submission, whose times add up.
GROUPED = ("metrics",)


#: The files of a study and its scoring jobs, as the benchmark of scoring makes them.
SPEC = importlib.util.spec_from_file_location("scoring_benchmark", ROOT / "tests/benchmarks/scoring.py")
benchmark = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(benchmark)


def test_rates_are_of_every_stage():
    assert set(rates.MINUTES) == set(STAGES)
    with_models = {"pretrain", "train", "tune", "unlearn", "signals"}
    assert set(STAGES) - set(rates.MEMORY) == with_models
    for stage in STAGES:
        assert 60 * rates.MINUTES[stage] > 100 * progress.RATES.get(stage, progress.SHORT), stage


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
    memory = rates.scoring(files)
    for attacks in ((), benchmark.ATTACKS):
        peak = benchmark.measured(tmp_path, attacks)[2] * 2**20 / 1e6
        assert 1.1 < memory / peak < 5, (attacks, memory, peak)


def test_a_job_that_scores_asks_for_a_multiple_of_its_files(tmp_path):
    """Of a file that is not there yet, nothing is known."""
    logits = tmp_path / "logits.npz"
    with logits.open("wb") as file:
        file.truncate(2 * 10**9)
    files = {"data": str(logits), "unlearned": [str(logits), str(logits)]}
    assert rates.scoring(files) == 250 + 8 * 6000
    assert rates.scoring({**files, "retrained": [str(tmp_path / "missing.npz")]}) == rates.MEMORY["metrics"]

"""Rules ask a cluster for what the forecast's rates say, and for more with every attempt."""

import re

import yaml
from unlearning_audit.plugins import source
from unlearning_audit.study.schema import STAGES
from unlearning_audit.workflow.forecast import rates

ROOT = source.SCRIPTS.parent
PROFILE = yaml.safe_load((ROOT / "profiles/slurm/profile.yaml").read_text())

#: Rules of which many are one submission, whose times add up.
GROUPED = ("attack", "metrics")


def resources() -> dict[str, dict[str, str]]:
    """Rule → what it says of memory and time, of all rules that are submitted."""
    found = {}
    for path in sorted((ROOT / "rules").glob("*.smk")):
        for text in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            if asked := dict(re.findall(r"^        (mem_mb|runtime)=(.*),$", text, re.MULTILINE)):
                found[text.split(":")[0]] = asked
    return found


def test_every_stage_asks_for_what_the_rates_of_the_forecast_say():
    found = resources()
    assert set(found) == set(STAGES)
    for stage, asked in found.items():
        assert asked == {"mem_mb": f'memory("{stage}")', "runtime": f'minutes("{stage}")'}, stage


def test_rates_are_of_every_stage_and_grow_with_every_attempt():
    assert set(rates.SECONDS) == set(rates.MINUTES) == set(STAGES)
    with_models = {"pretrain", "train", "tune", "unlearn", "readings", "relearn", "generate"}
    assert set(STAGES) - set(rates.MEMORY) == with_models
    for stage in STAGES:
        memory, minutes = rates.reserved(stage, 9000, 1)
        assert memory == (9000 if stage in with_models else rates.MEMORY[stage]), stage
        assert rates.reserved(stage, 9000, 3) == (3 * memory, 3 * minutes)
        assert 60 * minutes > 100 * rates.SECONDS[stage], stage


def test_a_profile_says_where_jobs_run_and_nothing_of_their_memory():
    """Times of jobs in groups are added up, so that they are said again, as less."""
    for stage, chosen in PROFILE["set-resources"].items():
        assert set(chosen) == ({"runtime"} if stage in GROUPED else {"slurm_partition", "gpu"}), stage
    for stage in GROUPED:
        assert eval(PROFILE["set-resources"][stage]["runtime"], {"attempt": 1}) < rates.MINUTES[stage]
    assert set(PROFILE["groups"]) == set(GROUPED)

"""The profile for clusters asks for what the rules ask for, and for more with every attempt."""

import re

import yaml
from unlearning_audit.plugins import source

ROOT = source.SCRIPTS.parent
PROFILE = yaml.safe_load((ROOT / "profiles/slurm/profile.yaml").read_text())

#: Rules of which many are one submission, whose times add up.
GROUPED = ("attack", "metrics")


def resources() -> dict[str, dict[str, int]]:
    """Rule → memory and time, of all rules that are submitted."""
    found = {}
    for path in sorted((ROOT / "rules").glob("*.smk")):
        for text in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            asked = dict(re.findall(r"^        (mem_mb|runtime)=(\d+|memory),$", text, re.MULTILINE))
            if asked:
                found[text.split(":")[0]] = {name: int(value) for name, value in asked.items() if value != "memory"}
    return found


def test_every_submitted_rule_asks_for_what_it_says_and_for_more_when_it_is_tried_again():
    rules, chosen = resources(), PROFILE["set-resources"]
    assert set(rules) == set(chosen) >= {"train", "unlearn", "attack", "metrics", "external"}
    for rule, own in rules.items():
        first, second = ({name: eval(str(chosen[rule][name]), {"attempt": n}) for name in own} for n in (1, 2))
        assert second == {name: 2 * value for name, value in first.items()}, rule
        assert first.get("mem_mb") == own.get("mem_mb"), rule
        assert ("mem_mb" in chosen[rule]) == ("mem_mb" in own), rule  # that of jobs with models is the study's
        assert first["runtime"] == (10 if rule in GROUPED else own["runtime"]) <= own["runtime"], rule
    assert set(PROFILE["groups"]) == set(GROUPED)

"""Damaged studies are planned, or refused in one sentence."""

from pathlib import Path

import numpy as np
import pytest
from unlearning_audit.command import new

import studies

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_a_damaged_study_is_planned_or_refused_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new.write("mine.yaml", "study", [])
    text = Path("mine.yaml").read_text()
    ways = list(studies.WAYS)
    outcomes = [
        studies.attempt(text, np.random.default_rng([0, number]), ways[number % len(ways)]) for number in range(250)
    ]
    assert not [wrong for _, wrong in outcomes if wrong]
    assert {outcome for outcome, _ in outcomes} >= {f"{way}: {end}" for way in ways for end in ("planned", "refused")}

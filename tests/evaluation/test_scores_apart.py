"""Scores that are not finite are blamed on the attack, or on a signal that it reads."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.evaluation import scoring
from unlearning_audit.plugins.guard import PluginError

from folder_cases import pair, population

MEMBER = pair()


@pytest.mark.parametrize(("signal", "blamed"), [(np.nan, "signal 'luck' is NaN for samples that "), (1.0, "")])
def test_scores_that_are_nan_are_blamed_on_a_signal_that_is(signal, blamed):
    evaluation = population(MEMBER)
    evaluation.__dict__["signal"] = lambda name, files, models, rows: np.full((len(MEMBER.seed), len(rows), 2), signal)
    attack = SimpleNamespace(NEEDS="luck", Options=dict, __file__="mine.py",
                             score=lambda *_, luck: (np.full(luck.shape[:2], np.nan), luck[..., 0] > 0))  # fmt: skip
    with pytest.raises(PluginError, match=rf"^{blamed}attack 'mine' \(trained\) "):
        scoring.score_form(evaluation, "mine", "trained", attack, {"options": {}}, None, None, models=evaluation.target)

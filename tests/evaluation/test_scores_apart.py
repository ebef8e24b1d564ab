"""Scores that another process computed are taken only for the samples that were asked about."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.evaluation import scoring
from unlearning_audit.plugins.guard import PluginError

from folder_cases import pair


@pytest.fixture
def case():
    member = pair()
    return SimpleNamespace(membership=member, target=np.ones(len(member.seed), bool))


def score_rows(case, **changes):
    model, index = np.nonzero(case.membership.queries)
    sound = {"model": model, "index": index, "score": np.arange(len(model)) / 7, "decision": index > 3}
    return {**sound, "form": "trained", **changes}


def test_sound_scores_get_their_roles(case):
    columns = scoring.answered(case, "mine", file="mine.py", **score_rows(case))
    at = columns["model"], columns["index"]
    np.testing.assert_array_equal(columns["role"] == "forget", case.membership.forget[at])
    np.testing.assert_array_equal(columns["role"] == "heldout", case.membership.heldout[at])
    assert set(columns["attack"]) == {"mine"}


@pytest.mark.parametrize(
    "change",
    [
        lambda g: {"index": g["index"] + 1},
        lambda g: {"model": np.zeros_like(g["model"])},
        lambda g: {name: g[name][:-1] for name in ("model", "index", "score", "decision")},
        lambda g: {"score": g["score"][:-1]},
        lambda g: {"score": g["score"].astype("U")},
        lambda g: {"decision": g["score"]},
        lambda g: {"form": "theirs"},
    ],
)
def test_others_are_refused(case, change):
    sound = score_rows(case)
    with pytest.raises(PluginError, match=r"^mine\.py: it answered for other samples than it was asked about$"):
        scoring.answered(case, "mine", file="mine.py", **{**sound, **change(sound)})


def test_scores_that_are_not_finite_are_refused(case):
    sound = score_rows(case)
    with pytest.raises(PluginError, match="not finite"):
        scoring.answered(case, "mine", file="mine.py", **{**sound, "score": sound["score"] * np.nan})

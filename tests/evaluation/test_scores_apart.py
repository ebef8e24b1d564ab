"""Scores that another process computed are taken only for the samples that were asked about."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.evaluation import scoring
from unlearning_audit.plugins.guard import PluginError

from folder_cases import pair, population

MEMBER = pair()
CASE = SimpleNamespace(membership=MEMBER, target=np.ones(len(MEMBER.seed), bool))
MODEL, INDEX = np.nonzero(MEMBER.queries)
SOUND = {"model": MODEL, "index": INDEX, "score": np.arange(len(MODEL)) / 7, "decision": INDEX > 3, "form": ["trained"]}


def test_sound_scores_get_their_roles():
    columns = scoring.answered(CASE, "mine", SOUND, "mine.py")
    np.testing.assert_array_equal(columns["role"] == "forget", MEMBER.forget[MODEL, INDEX])
    np.testing.assert_array_equal(columns["role"] == "heldout", MEMBER.heldout[MODEL, INDEX])
    assert set(columns["attack"]) == {"mine"}


@pytest.mark.parametrize(
    "change",
    [
        {"index": INDEX + 1}, {"model": np.zeros_like(MODEL)}, {"score": SOUND["score"][:-1]},
        {name: SOUND[name][:-1] for name in ("model", "index", "score", "decision")},
        {"score": SOUND["score"].astype("U")}, {"decision": SOUND["score"]}, {"form": ["theirs"]},
    ],
)  # fmt: skip
def test_others_are_refused(change):
    with pytest.raises(PluginError, match=r"^mine\.py: it answered for other samples than it was asked about$"):
        scoring.answered(CASE, "mine", SOUND | change, "mine.py")


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(PluginError, match="not finite"):
        scoring.answered(CASE, "mine", SOUND | {"score": SOUND["score"] * np.nan}, "mine.py")


@pytest.mark.parametrize(("signal", "blamed"), [(np.nan, "signal 'luck' is NaN for samples that "), (1.0, "")])
def test_scores_that_are_nan_are_blamed_on_a_signal_that_is(signal, blamed):
    case = population(MEMBER)
    case.__dict__["signal"] = lambda name, files, models, rows: np.full((len(MEMBER.seed), len(rows), 2), signal)
    attack = SimpleNamespace(NEEDS="luck", Options=dict, __file__="mine.py",
                             score=lambda *_, luck: (np.full(luck.shape[:2], np.nan), luck[..., 0] > 0))  # fmt: skip
    with pytest.raises(PluginError, match=rf"^{blamed}attack 'mine' \(trained\) "):
        scoring.columns(case, "mine", "trained", attack, {"options": {}}, None, 0)

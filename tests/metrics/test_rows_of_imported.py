"""What is read of a folder's models: phi, attacks and coins, or the reason why not."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from unlearning_audit import stats
from unlearning_audit.metrics import _one_run, one_run, phi, swap

import metric_calls as call
from folder_cases import SETTINGS, Y, pair, population
from row_places import about


def test_phi_needs_held_out_samples_of_every_model():
    case = population(pair(), trace=-1.0)
    rows = phi.rows(case, phi.Options(fpr=(0.25, 0.4)), None)
    places = [("auc", None), ("mia_score", None), ("tpr_at_fpr", 0.25), ("tpr_at_fpr", 0.4)]
    assert [(row.metric, row.rate) for row in rows] == places
    confidence, member = stats.phi(logits=case.unlearned, y=Y), case.membership
    expected = np.mean([
        roc_auc_score(f[f | h], of[f | h]) for of, f, h in zip(confidence, member.forget, member.heldout, strict=True)
    ])  # fmt: skip
    auc, mia, *_ = rows
    assert (auc.value, auc.n, mia.n) == (pytest.approx(expected), 6, 6)
    assert (mia.value, mia.ci_low, mia.ci_high) == pytest.approx((1 - expected, 1 - auc.ci_high, 1 - auc.ci_low))
    case.membership.heldout[1] = False
    why = "a model has no heldout samples"
    assert [(row.metric, row.note) for row in phi.rows(case, phi.Options(), None)] == [("auc", why), ("mia_score", why)]


def scored(member):
    score = np.random.default_rng(9).normal(size=member.train.shape)
    return population(member, scores={(name, "trained"): (score + i, score > 0) for i, name in enumerate("ab")})


def test_q_needs_swapped_pairs_and_scores():
    nothing = population(pair())
    nothing.missing = {"b/trained": "why not"}
    rows = call.rows(swap, nothing, SETTINGS)
    assert [(row.metric, row.attack, row.note) for row in rows] == [
        ("q", "adaptive", "no attack could be asked"), ("advantage", "b/trained", "why not")
    ]  # fmt: skip
    member = pair()
    settings = SETTINGS | {"metrics": {"swap": {"fpr": [0.25]}}}
    keys = {(row.metric, row.attack, about(row)) for row in call.rows(swap, scored(member), settings)}
    assert {("q", "adaptive", "pair=0"), ("q", "extended", ""), ("tpr_at_fpr", "a/trained", "rate=0.25")} <= keys
    rows = call.rows(swap, scored(replace(member, split=np.arange(4))), settings)
    assert not [row for row in rows if row.pair is not None]
    assert [(row.attack, "4 splits" in row.note) for row in rows if row.metric == "q"] == [("adaptive", True)]
    assert {("advantage", "a/trained"), ("mia_score", "b/trained")} <= {(row.metric, row.attack) for row in rows}
    member.heldout[3] = False
    *_, last = call.rows(swap, scored(member), settings)
    assert ("heldout holds no sample" in last.note, last.metric) == (True, "advantage")


def test_coins_are_those_of_canaries_or_of_swapped_pairs(monkeypatch):
    monkeypatch.setattr(_one_run, "evaluate", lambda **arguments: [arguments["delta"]])
    unlike = replace(pair(), split=np.arange(4))
    canaries = replace(unlike, pair=np.r_[0, 1, 2, 0, 1, 2, np.full(9, -1)])
    for member in (pair(), canaries):
        assert call.rows(one_run, population(member), SETTINGS) == [0]
    (row,) = call.rows(one_run, population(unlike), SETTINGS)
    assert (row.metric, row.attack) == ("one_run_p", "phi")
    assert row.note.startswith("there is no pair.npy")

    def fails(**arguments):
        raise ValueError("no coin")

    monkeypatch.setattr(_one_run, "evaluate", fails)
    (row,) = call.rows(one_run, population(pair()), SETTINGS)
    assert row.note == "no coin"

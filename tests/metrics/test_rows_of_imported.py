"""What is read of a folder's models: phi, attacks, accuracies, labels and coins, or the reason why not."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from unlearning_audit import stats
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import _one_run, one_run, phi, swap

import metric_calls as call
from folder_cases import SETTINGS, Y, pair, population
from row_places import about


def test_phi_needs_held_out_samples_of_every_model():
    case = population(pair(), trace=-1.0)
    by_metric = {row.metric: row for row in phi.rows(case, phi.Options(fpr=(0.25, 0.4)), None)}
    rows = phi.rows(case, phi.Options(fpr=(0.25, 0.4)), None)
    assert [row.metric for row in rows] == ["auc", "mia_score", "tpr_at_fpr", "tpr_at_fpr"]
    assert [about(row) for row in rows] == ["", "", "rate=0.25", "rate=0.4"]
    confidence, member = stats.phi(logits=case.unlearned, y=Y), case.membership
    auc = [
        roc_auc_score(f[f | h], row[f | h]) for row, f, h in zip(confidence, member.forget, member.heldout, strict=True)
    ]
    assert by_metric["auc"].value == pytest.approx(np.mean(auc))
    mia = by_metric["mia_score"]
    assert (mia.value, mia.ci_low, mia.ci_high) == pytest.approx(
        (1 - np.mean(auc), 1 - by_metric["auc"].ci_high, 1 - by_metric["auc"].ci_low)
    )
    assert by_metric["auc"].n == mia.n == 6
    case.membership.heldout[1] = False
    rows = phi.rows(case, phi.Options(), None)
    assert [(row.metric, row.note) for row in rows] == [
        ("auc", "a model has no heldout samples"), ("mia_score", "a model has no heldout samples")
    ]  # fmt: skip


def scored(member: Membership) -> dict:
    score = np.random.default_rng(9).normal(size=member.train.shape)
    return {(name, "trained"): (score + i, score > 0) for i, name in enumerate("ab")}


def test_q_needs_swapped_pairs_and_scores():
    nothing = population(pair())
    nothing.missing = {"b/trained": "why not"}
    rows = call.rows(swap, nothing, SETTINGS)
    assert [(row.metric, row.attack, row.note) for row in rows] == [
        ("q", "adaptive", "no attack could be asked"), ("advantage", "b/trained", "why not")
    ]  # fmt: skip
    member = pair()
    settings = SETTINGS | {"metrics": {"swap": {"fpr": [0.25]}}}
    rows = call.rows(swap, population(member, scores=scored(member)), settings)
    keys = {(row.metric, row.attack, about(row)) for row in rows}
    assert {("q", "adaptive", "pair=0"), ("q", "extended", ""), ("tpr_at_fpr", "a/trained", "rate=0.25")} <= keys
    unlike = replace(member, split=np.arange(4))
    rows = call.rows(swap, population(unlike, scores=scored(unlike)), settings)
    assert not [row for row in rows if about(row).startswith("pair=")]
    assert [(row.attack, "4 splits" in row.note) for row in rows if row.metric == "q"] == [("adaptive", True)]
    assert {("advantage", "a/trained"), ("mia_score", "b/trained")} <= {(row.metric, row.attack) for row in rows}
    member.heldout[3] = False
    rows = call.rows(swap, population(member, scores=scored(member)), settings)
    assert "heldout holds no sample" in rows[-1].note
    assert rows[-1].metric == "advantage"


def test_coins_are_those_of_canaries_or_of_swapped_pairs(monkeypatch):
    monkeypatch.setattr(_one_run, "evaluate", lambda **arguments: [arguments["delta"]])
    assert call.rows(one_run, population(pair()), SETTINGS) == [0]
    unlike = replace(pair(), split=np.arange(4))
    (row,) = call.rows(one_run, population(unlike), SETTINGS)
    assert (row.metric, row.attack) == ("one_run_p", "phi")
    assert row.note.startswith("there is no pair.npy")
    canaries = population(replace(unlike, pair=np.repeat([0, 1, 2, -1, -1], 3)))
    canaries.membership.pair[:6] = [0, 1, 2, 0, 1, 2]
    canaries.membership.pair[6:] = -1
    assert call.rows(one_run, canaries, SETTINGS) == [0]

    def fails(**arguments):
        raise ValueError("no coin")

    monkeypatch.setattr(_one_run, "evaluate", fails)
    (row,) = call.rows(one_run, population(pair()), SETTINGS)
    assert row.note == "no coin"

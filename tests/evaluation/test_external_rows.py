"""What is read of a folder's models: phi, attacks, accuracies, labels and coins, or the reason why not."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from unlearning_audit import stats
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import _one_run, accuracy, blind, one_run, phi, swap

import metric_calls as call
from folder_cases import SETTINGS, Y, pair, parts, population
from row_places import about


def test_phi_needs_held_out_samples_of_every_model():
    case = population(pair(), trace=1.0)
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


def test_contributions_of_attacks_or_of_phi_alone():
    member = pair()
    contributions = parts(population(member, scores=scored(member)), SETTINGS)
    assert contributions["advantage"].names == ("a/trained", "b/trained")
    assert contributions["advantage"].standard.ideal == 0
    assert "auc" not in contributions
    alone = parts(population(member), SETTINGS)["auc"]
    assert alone.standard.ideal == 0.5
    assert alone.index.tolist() == list(range(6))
    assert alone.unit.tolist() == [0] * 4
    # sides that may differ by themselves are held against retrained models of the same samples
    unlike = replace(member, split=np.arange(4))
    assert math.isnan(parts(population(unlike), SETTINGS)["auc"].standard.ideal)
    for design in ("swapped", "random"):
        fair = parts(population(unlike), SETTINGS | {"design": design})["auc"].standard
        assert (fair.ideal, fair.chance) == (0.5, "samples")
    references = {"retrain": population(member, 1)}
    assert parts(population(member, others=references), SETTINGS)["auc"].standard.ideal == 0.5
    for name in ("heldout", "forget"):
        incomplete = pair()
        getattr(incomplete, name)[2] = False
        assert "auc" not in parts(population(incomplete), SETTINGS)


def test_accuracies_that_are_not_there_are_explained():
    rows = call.rows(accuracy, population(pair()), SETTINGS)
    roles = {"role=forget", "role=heldout", "role=retain", "role=test"}
    assert {about(row) for row in rows if row.metric == "accuracy"} == roles
    assert all(row.n for row in rows)
    member = pair()
    least = population(replace(member, train=member.forget, heldout=member.heldout & False))
    least.data.part = np.zeros(15)
    assert {about(row): row.note for row in call.rows(accuracy, least, SETTINGS) if not row.n} == {
        "role=retain": "what models keep is unknown without train.npy",
        "role=heldout": "the models have seen every sample",
        "role=test": "no sample is marked in test.npy",
    }


def test_labels_are_checked_where_there_are_enough_samples():
    (row,) = call.rows(blind, population(pair()), SETTINGS)
    assert (row.metric, row.attack) == ("label_overlap", "blind")
    assert "at least 5 samples on each side" in row.note
    wide = replace(pair(), forget=np.tile(np.arange(15) < 6, (4, 1)), heldout=np.tile(np.arange(15) >= 6, (4, 1)))
    rows = call.rows(blind, population(wide), SETTINGS)
    assert [row.metric for row in rows] == ["label_overlap", "label_overlap_random"]


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


def test_what_a_case_of_a_plan_lacks_is_an_error_and_no_row():
    """Only of folders, which hold what their owners have, is the reason a row."""
    case = population(replace(pair(), heldout=np.zeros((4, 15), bool)), scores=scored(pair()))
    assert [row.metric for row in call.rows(swap, case, SETTINGS) if row.metric != "q"] == ["advantage"]
    case.imported = False
    with pytest.raises(ValueError, match="holds no sample"):
        call.rows(swap, case, SETTINGS)


def test_of_canaries_coins_decide_and_of_published_scores_their_owner(monkeypatch):
    member = replace(pair(), pair=np.array([0, 1, 2, 0, 1, 2, *[-1] * 9]))
    decided = parts(population(member, scores=scored(member)), SETTINGS)
    assert {"right_guesses", "tail_advantage"} <= set(decided)
    assert not {"advantage", "auc"} & set(decided)
    case = population(replace(pair(), split=np.arange(4)))
    for fair in (True, False):
        monkeypatch.setattr(case, "published", SimpleNamespace(fair=fair))
        assert case.fair == fair

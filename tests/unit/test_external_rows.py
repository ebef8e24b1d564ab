"""What is read of a folder's models: phi, attacks, accuracies, labels and coins, or the reason why not."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from unlearning_audit import stats
from unlearning_audit.artifacts.arrays import Membership
from unlearning_audit.metrics import external, one_run

import metric_calls as call
from folder_cases import SETTINGS, Y, pair, population
from row_places import about


def test_phi_needs_held_out_samples_of_every_model():
    case = population(pair(), trace=1.0)
    found = {row.metric: row for row in external._phi(case, external.Options(fpr=(0.25, 0.4)))}
    rows = external._phi(case, external.Options(fpr=(0.25, 0.4)))
    assert [row.metric for row in rows] == ["auc", "mia_score", "tpr_at_fpr", "tpr_at_fpr"]
    assert [about(row) for row in rows] == ["", "", "rate=0.25", "rate=0.4"]
    phi, member = stats.phi(logits=case.unlearned, y=Y), case.membership
    auc = [roc_auc_score(f[f | h], one[f | h]) for one, f, h in zip(phi, member.forget, member.heldout, strict=True)]
    assert found["auc"].value == pytest.approx(np.mean(auc))
    mia = found["mia_score"]
    assert (mia.value, mia.ci_low, mia.ci_high) == pytest.approx(
        (1 - np.mean(auc), 1 - found["auc"].ci_high, 1 - found["auc"].ci_low)
    )
    assert found["auc"].n == mia.n == 6
    case.membership.heldout[1] = False
    rows = external._phi(case, external.Options())
    assert [(row.metric, row.note) for row in rows] == [
        ("auc", "a model has no heldout samples"), ("mia_score", "a model has no heldout samples")
    ]  # fmt: skip


def scored(member: Membership) -> dict:
    score = np.random.default_rng(9).normal(size=member.train.shape)
    return {(name, "trained"): (score + i, score > 0) for i, name in enumerate("ab")}


def test_q_needs_swapped_pairs_and_scores():
    nothing = population(pair())
    nothing.missing = {"b/trained": "why not"}
    rows = external._attacks(call.known(nothing, SETTINGS), external.Options())
    assert [(row.metric, row.attack, row.note) for row in rows] == [
        ("advantage", "b/trained", "why not"), ("q", "adaptive", "no attack could be asked")
    ]  # fmt: skip
    member = pair()
    options = external.Options(fpr=(0.25,))
    rows = external._attacks(call.known(population(member, scores=scored(member)), SETTINGS), options)
    found = {(row.metric, row.attack, about(row)) for row in rows}
    assert {("q", "adaptive", "pair=0"), ("q", "extended", ""), ("tpr_at_fpr", "a/trained", "rate=0.25")} <= found
    unlike = replace(member, split=np.arange(4))
    rows = external._attacks(call.known(population(unlike, scores=scored(unlike)), SETTINGS), options)
    assert not [row for row in rows if about(row).startswith("pair=")]
    assert [(row.attack, "4 splits" in row.note) for row in rows if row.metric == "q"] == [("adaptive", True)]
    assert {("advantage", "a/trained"), ("mia_score", "b/trained")} <= {(row.metric, row.attack) for row in rows}
    member.heldout[3] = False
    rows = external._attacks(call.known(population(member, scores=scored(member)), SETTINGS), options)
    assert "heldout holds no sample" in rows[-1].note
    assert rows[-1].metric == "advantage"


def test_contributions_of_attacks_or_of_phi_alone():
    member = pair()
    found = call.parts(external, population(member, scores=scored(member)), SETTINGS)
    assert found["advantage"].names == ("a/trained", "b/trained")
    assert found["advantage"].standard.ideal == 0
    assert "auc" not in found
    alone = call.parts(external, population(member), SETTINGS)["auc"]
    assert alone.standard.ideal == 0.5
    assert alone.index.tolist() == list(range(6))
    assert alone.unit.tolist() == [0] * 4
    # sides that may differ by themselves are held against retrained models of the same samples
    unlike = replace(member, split=np.arange(4))
    assert math.isnan(call.parts(external, population(unlike), SETTINGS)["auc"].standard.ideal)
    for design in ("swapped", "random"):
        fair = call.parts(external, population(unlike), SETTINGS | {"design": design})["auc"].standard
        assert (fair.ideal, fair.chance) == (0.5, "samples")
    others = {"retrain": population(member, 1)}
    assert call.parts(external, population(member, others=others), SETTINGS)["auc"].standard.ideal == 0.5
    for name in ("heldout", "forget"):
        one = pair()
        getattr(one, name)[2] = False
        assert "auc" not in call.parts(external, population(one), SETTINGS)


def test_accuracies_that_are_not_there_are_explained():
    rows = external._accuracies(population(pair()))
    roles = {"role=forget", "role=heldout", "role=retain", "role=test"}
    assert {about(row) for row in rows if row.metric == "accuracy"} == roles
    assert all(row.n for row in rows)
    member = pair()
    least = population(replace(member, train=member.forget, heldout=member.heldout & False))
    least.data.part = np.zeros(15)
    assert {about(row): row.note for row in external._accuracies(least) if not row.n} == {
        "role=retain": "what models keep is unknown without train.npy",
        "role=heldout": "the models have seen every sample",
        "role=test": "no sample is marked in test.npy",
    }


def test_labels_are_checked_where_there_are_enough_samples():
    (row,) = external._labels(population(pair()), np.random.default_rng(0))
    assert (row.metric, row.attack) == ("label_overlap", "blind")
    assert "at least 5 samples on each side" in row.note
    wide = replace(pair(), forget=np.tile(np.arange(15) < 6, (4, 1)), heldout=np.tile(np.arange(15) >= 6, (4, 1)))
    rows = external._labels(population(wide), np.random.default_rng(0))
    assert [row.metric for row in rows] == ["label_overlap", "label_overlap_random"]


def test_coins_are_those_of_canaries_or_of_swapped_pairs(monkeypatch):
    monkeypatch.setattr(one_run, "evaluate", lambda case, options: [options])
    assert external._audit(call.known(population(pair()), SETTINGS)) == [one_run.Options()]
    unlike = replace(pair(), split=np.arange(4))
    (row,) = external._audit(call.known(population(unlike), SETTINGS))
    assert (row.metric, row.attack) == ("one_run_p", "phi")
    assert row.note.startswith("there is no pair.npy")
    canaries = population(replace(unlike, pair=np.repeat([0, 1, 2, -1, -1], 3)))
    assert external._audit(call.known(canaries, SETTINGS)) == [one_run.Options()]

    def fails(case, options):
        raise ValueError("no coin")

    monkeypatch.setattr(one_run, "evaluate", fails)
    (row,) = external._audit(call.known(population(pair()), SETTINGS))
    assert row.note == "no coin"

"""Added risk of kept samples: closed forms of Gaussians, coverage, and models that change nothing."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit.metrics import retained_risk

import metric_calls as call
from ruli_cases import SEEN, UNSEEN, Folder, swapped_pairs, trained
from stat_cases import at_least

MODELS, SAMPLES = 8, 120

#: Memberships of models that are no copies of each other.
Member = partial(SimpleNamespace, copied=None)


def simulate(rng, after, before, models=MODELS):
    """φ whose mean on kept samples is 0 in retrained models, ``before`` and ``after``; samples differ for all alike."""
    retain = np.tile(np.arange(SAMPLES) % 2 == 0, (models, 1))
    hard = rng.standard_normal(SAMPLES)
    phi = {
        name: hard + rng.standard_normal((models, SAMPLES)) + shift * retain
        for name, shift in (("after", after), ("before", before), ("retrained", 0.0))
    }
    units = np.arange(models)
    return {**phi, "member": Member(retain=retain, heldout=~retain, split=units % 2, block=units // 2)}


def rows_by_metric(**world):
    return {row.metric: row for row in retained_risk.evaluate(**world)}


def test_areas_and_their_differences_are_the_closed_form():
    """φ ~ N(shift, 2) against N(0, 2): the area is Φ(shift/2)."""
    rng = np.random.default_rng(1)
    rows = [rows_by_metric(**simulate(rng, 1.5, 0.5)) for _ in range(40)]
    means = {name: np.mean([row[name].value for row in rows]) for name in rows[0]}
    truth = {
        "retained_auc": ndtr(0.75), "retained_risk": ndtr(0.75) - ndtr(0.25), "retained_risk_gap": ndtr(0.75) - 0.5,
    }  # fmt: skip
    assert means == pytest.approx(truth, abs=0.02)


def test_intervals_cover_the_truth():
    rng, repeats = np.random.default_rng(2), 60
    truth = {"retained_risk": 0.0, "retained_auc": ndtr(0.5)}
    hits = dict.fromkeys(truth, 0)
    for _ in range(repeats):
        rows = rows_by_metric(**simulate(rng, 1.0, 1.0))
        for name, true in truth.items():
            hits[name] += rows[name].ci_low <= true <= rows[name].ci_high
    assert min(hits.values()) / repeats >= at_least(0.95, repeats)


@pytest.mark.slow
def test_the_interval_of_the_area_covers_that_of_other_pairs():
    """φ of kept samples rises or falls from pair to pair, by N(0, 1): over all pairs the area is one half."""
    rng, repeats, hits = np.random.default_rng(6), 150, 0
    for _ in range(repeats):
        shift = np.repeat(rng.standard_normal(MODELS // 2), 2)[:, None]
        row = rows_by_metric(**{**simulate(rng, shift, 0.0), "retrained": None})["retained_auc"]
        hits += row.ci_low <= 0.5 <= row.ci_high
    assert hits >= 0.9 * repeats


@pytest.mark.parametrize("models", [1, 2])
def test_kept_samples_that_stand_out_before_and_after_may_differ_in_others(models):
    """Of a model that tells ten kept from ten unseen samples without an error nobody knows that it always does; nor of
    two, of which one makes an error before and the other after."""
    rng, retain = np.random.default_rng(4), np.tile(np.arange(20) < 10, (models, 1))
    after, before = (np.tile(rng.random(20), (models, 1)) + shift * retain for shift in (3.0, 5.0))
    if models == 2:
        for values, model in ((after, 0), (before, 1)):
            values[model, 0] = values[model, ~retain[0]].max() - 1e-6
    nothing = np.zeros(models, int)
    member = Member(retain=retain, heldout=~retain, split=nothing, block=nothing)
    row = rows_by_metric(member=member, after=after, before=before, retrained=None)["retained_risk"]
    assert row.value == 0
    assert row.ci_low < -0.05 < 0.05 < row.ci_high


@pytest.mark.parametrize("sign", [1, -1])
def test_limits_end_where_areas_and_their_differences_do(sign):
    retain, nothing = np.arange(20)[None] < 10, np.zeros(1, int)
    member, after = Member(retain=retain, heldout=~retain, split=nothing, block=nothing), sign * retain
    rows = rows_by_metric(member=member, after=after, before=-after, retrained=None)
    ends = {name: row.ci_high if sign > 0 else row.ci_low for name, row in rows.items()}
    assert ends == {"retained_auc": max(sign, 0), "retained_risk": sign}
    assert all(row.ci_low < row.ci_high for row in rows.values())


def test_a_case_is_read_on_its_target_models(tmp_path):
    files = Folder(tmp_path, swapped_pairs())
    original = files.add("original", trained)
    sharper = files.add("sharper", lambda member: np.where(member.retain, SEEN + 2.0, UNSEEN))
    rows = {row.metric: row for row in call.rows(retained_risk, files.evaluation(original, sharper), {})}
    assert set(rows) == {"retained_auc", "retained_risk"}, "nothing is retrained here"
    assert rows["retained_risk"].value == pytest.approx(ndtr(5 / np.sqrt(2)) - ndtr(3 / np.sqrt(2)), abs=0.01)
    assert rows["retained_risk"].ci_low > 0


def test_without_kept_or_unseen_samples_there_is_no_number():
    world = simulate(np.random.default_rng(4), 1.0, 1.0)
    world["member"].heldout[:] = False
    (row,) = retained_risk.evaluate(**world)
    assert np.isnan(row.value)
    assert "has seen all of them" in row.note

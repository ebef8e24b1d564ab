"""Relearning: areas and steps of known chances, verdicts that rest on them, and intervals of retrained models."""

import numpy as np
import pytest
from unlearning_audit.comparisons import verdicts
from unlearning_audit.evaluation.relearned import Relearned
from unlearning_audit.metrics import relearn
from unlearning_audit.study.schema import Margins

import metric_calls as call
from relearn_cases import STEPS, case, members, store, value


@pytest.fixture
def member():
    return members()


def test_the_curve_is_averaged_over_the_logarithm_of_steps():
    # log₂(1 + step): 0, 1, 1.585, 2.322, 3.170. A straight line has its middle as its mean.
    at = np.log2(1.0 + STEPS)
    assert relearn.weights(STEPS).sum() == pytest.approx(1.0)
    assert relearn.weights(STEPS) @ at == pytest.approx(at[-1] / 2)
    assert relearn.weights(STEPS) @ np.r_[0, 0, 0, 0, 1] == pytest.approx((at[4] - at[3]) / 2 / at[4])


def test_a_batch_of_shadow_models_alone_adds_nothing(tmp_path, member):
    whole = store(tmp_path / "whole.npz", member, np.full(5, 0.5))
    nobody = Relearned.empty(STEPS, np.array([399]), np.zeros(0, np.int64))
    nobody.write(tmp_path / "nobody.npz")
    expected, both = Relearned.read(whole), relearn.stacked([whole, str(tmp_path / "nobody.npz")])
    columns = np.searchsorted(both.index, expected.index)
    np.testing.assert_array_equal(both.right[..., columns], expected.right)
    np.testing.assert_array_equal(both.taught[:, columns], expected.taught)
    rounded = Relearned.empty(STEPS, expected.index, np.array([8, 4]))
    rounded.write(tmp_path / "rounded.npz")
    assert Relearned.read(tmp_path / "rounded.npz").phi_rounded.shape == (0, 2, len(expected.index))


def test_areas_are_those_between_the_curves(tmp_path, member):
    method, retrain = np.array([0.9, 0.9, 0.95, 0.97, 0.99]), np.array([0.2, 0.2, 0.3, 0.4, 0.5])
    files = [
        store(tmp_path / "own.npz", member, method, 1, shift=2.0), store(tmp_path / "other.npz", member, retrain, 2)
    ]  # fmt: skip
    rows = call.rows(relearn, case(tmp_path, member, *files), {})
    truth = relearn.weights(STEPS) @ (method - retrain)
    area = value(rows, "relearn_area")
    assert area.ci_low < truth < area.ci_high
    assert area.ci_high - area.ci_low < 0.12
    phi = value(rows, "relearn_area_phi")
    assert phi.ci_low < 2.0 < phi.ci_high
    for i, step in enumerate(STEPS):
        row = value(rows, "relearn_accuracy", f"step={step}")
        assert row.ci_low <= method[i] <= row.ci_high


def test_a_verdict_may_rest_on_the_area(tmp_path, member):
    """The distance is the row of the area; what comes back is found, and retraining against its control is not."""
    chances = {"none": [0.6, 0.9, 0.95, 0.97, 0.99], "retrain": [0.2, 0.2, 0.3, 0.4, 0.5]}
    chances["retrain_control"] = chances["retrain"]
    files = {name: store(tmp_path / f"{name}.npz", member, c, i) for i, (name, c) in enumerate(chances.items())}
    cases = {name: case(tmp_path, member, path, files["retrain"]) for name, path in files.items()}
    assert relearn.contributions(cases["none"], relearn.Options()) == {}
    parts = {name: relearn.contributions(entry, relearn.Options(decides=True)) for name, entry in cases.items()}
    comparison = verdicts.compare(parts, {}, margins=Margins().model_dump(), draws=300, seed=0)
    (distance,) = [row for row in comparison.distances if row["method"] == "none"]
    area = value(call.rows(relearn, cases["none"], {}), "relearn_area")
    assert distance["distance"] == pytest.approx(area.value, abs=1e-6)
    assert distance["ci_low"] < area.ci_low < area.ci_high < distance["ci_high"], "it covers how pairs differ as well"
    by_method = {row["method"]: row["verdict"] for row in comparison.verdicts}
    assert by_method["none"] == "distinguishable"
    assert "distinguishable" not in (by_method["retrain"], by_method["retrain_control"])


def test_intervals_of_models_that_are_retrained_themselves_hold_0(member):
    rng, hits, draws = np.random.default_rng(3), np.zeros(2), 300
    groups = {"split": member.split, "block": member.block}
    columns = np.flatnonzero((member.forget | member.heldout).any(axis=0))
    mask = member.forget[:, columns]
    for _ in range(draws):
        hard = rng.random(len(columns))  # samples differ, for all models alike
        shape = len(mask), len(STEPS), len(columns)
        right = [rng.random(shape) < hard for _ in range(2)]
        phi = [hard * 3 + rng.standard_normal((len(mask), 1, 1)) * 0.1 + rng.standard_normal(shape) for _ in range(2)]
        for i, pair in enumerate((right, phi)):
            estimate = relearn.area(*pair, STEPS, mask, **groups)
            hits[i] += estimate.low <= 0 <= estimate.high
    assert (hits / draws >= 0.93).all(), hits / draws


def test_steps_are_counted_until_the_originals_accuracy_is_near(tmp_path, member):
    audited, reference = [0.0, 1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0]
    files = [store(tmp_path / "own.npz", member, audited), store(tmp_path / "other.npz", member, reference)]
    row = value(call.rows(relearn, case(tmp_path, member, *files), {}), "relearn_steps")
    assert (row.value, row.note, row.n) == (0.25, "", 12)
    never = store(tmp_path / "never.npz", member, [0.0] * 5)
    row = value(call.rows(relearn, case(tmp_path, member, files[0], never), {}), "relearn_steps")
    assert row.value == 1 / 16
    assert row.note == "12 of 12 retrained ones were not back after 8 steps"

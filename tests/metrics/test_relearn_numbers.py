"""Relearning counted by hand: few models and samples, rows that are not asked about all wrong."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.relearned import Relearned
from unlearning_audit.metrics import relearn
from unlearning_audit.stats.crossed import ONE_MODEL

import metric_calls as call
from row_places import about

STEPS = np.array([0, 1, 3])  # log₂(1 + step) = 0, 1, 2: weights ¼, ½, ¼
#: The first model forgets samples 1, 2 and 3 and is taught the first of them again, the second one 4, 5 and 6.
FORGET = np.array([[0, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 0]], bool)
INDEX = np.arange(1, 7)
TAUGHT = np.array([[1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]], bool)
RIGHT = {"own": {2: "011", 3: "001", 5: "111", 6: "011"}, "other": {2: "001", 3: "000", 5: "001", 6: "000"}}
PHI = {"own": {2: 1.5, 3: 3.5, 5: 0.5, 6: 2.5}, "other": dict.fromkeys((2, 3, 5, 6), 0.5)}


def relearned(path, side: str) -> str:
    """A file of `RIGHT` and `PHI`; on all other rows retrained models are always right, these never."""
    right = np.full((2, 3, 6), side == "other")
    phi = np.full((2, 3, 6), -9 if side == "own" else 9, np.float32)
    for model, samples in ((0, (2, 3)), (1, (5, 6))):
        for sample in samples:
            right[model, :, sample - 1] = np.array(list(RIGHT[side][sample])) == "1"
            phi[model, :, sample - 1] = PHI[side][sample]
    Relearned(STEPS, phi, right, TAUGHT, INDEX).write(path)
    return str(path)


def case(tmp_path, *, x=None, y=None, compared=True):
    """Two targets and a shadow model; the originals are wrong about sample 6 and right about all others."""
    forget = np.vstack([FORGET[:1], np.ones((1, 8), bool), FORGET[1:]])
    target = np.array([True, False, True])
    member = Membership(
        train=np.ones((3, 8), bool), forget=forget, heldout=~forget, seed=np.arange(3), split=np.array([0, 0, 1]),
        block=np.zeros(3, int), shadow=~target,
    )  # fmt: skip
    y = np.array([0, 1, 0, 1, 0, 1, 0, 0]) if y is None else y
    logits = np.tile(np.eye(2)[y], (3, 1, 1))
    logits[:, 6] = np.eye(2)[1 - y[6]]
    return SimpleNamespace(
        membership=member, target=target, originals=["original"], labels_of=lambda models: y,
        answers=lambda files: SimpleNamespace(of=lambda models, rows: logits[np.ix_(models, rows)]),
        data=SimpleNamespace(x=np.zeros((8, 2)) if x is None else x, y=y),
        relearned_files=[relearned(tmp_path / "own.npz", "own")],
        compared_relearned_files=[relearned(tmp_path / "other.npz", "other")] if compared else None,
    )  # fmt: skip


def by_name(rows):
    return {(row.metric, about(row)): row for row in rows}


def test_rows_by_hand(tmp_path):
    table = by_name(call.rows(relearn, case(tmp_path), {}))
    assert list(table) == [
        ("relearn_area", ""), ("relearn_area_phi", ""), ("relearn_steps", ""),
        *(("relearn_accuracy", f"step={step}") for step in STEPS),
    ]  # fmt: skip
    # areas of samples 2, 3, 5, 6: ¾, ¼, 1, ¾ against ¼, 0, ¼, 0
    area = table["relearn_area", ""]
    assert area.value == pytest.approx((0.5 + 0.875) / 2 - 0.125, abs=1e-12)
    assert (area.n, area.note) == (4, "")
    assert area.ci_low < area.value < area.ci_high <= 1
    phi = table["relearn_area_phi", ""]
    assert phi.value == pytest.approx((1 + 3 + 0 + 2) / 4, abs=1e-6)
    assert [table["relearn_accuracy", f"step={step}"].value for step in STEPS] == [0.25, 0.75, 1]
    # back at .95 and .475: after 3 and 0 steps; the first retrained model never is, which counts 6, the second after 3
    steps = table["relearn_steps", ""]
    assert steps.value == pytest.approx(1.5 / 4.5, abs=1e-12)
    assert steps.note == "1 of 2 retrained ones were not back after 3 steps"
    # without one of the models the ratio is 0/3 and 3/6: the jackknife's standard error is ¼
    assert steps.ci_low == 0
    assert steps.ci_high == pytest.approx(1 / 3 + student(1).ppf(0.975) / 4)
    assert steps.n == 2


def test_passages_are_read_in_nats_too(tmp_path):
    text = by_name(call.rows(relearn, case(tmp_path, x=np.zeros((8, 2), np.int32), y=np.zeros(8, int)), {}))
    nll = {side: [math.log1p(math.exp(-phi)) for phi in PHI[side].values()] for side in PHI}
    assert text["relearn_area_nll", ""].value == pytest.approx(np.mean(nll["own"]) - np.mean(nll["other"]), abs=1e-6)
    labelled = call.rows(relearn, case(tmp_path, x=np.zeros((8, 2), np.int32)), {})
    pixels = call.rows(relearn, case(tmp_path, y=np.zeros(8, int)), {})
    assert ("relearn_area_nll", "") not in {**by_name(labelled), **by_name(pixels)}
    alone = by_name(
        call.rows(relearn, case(tmp_path, x=np.zeros((8, 2), np.int32), y=np.zeros(8, int), compared=False), {})
    )
    for name in ("relearn_area", "relearn_area_phi", "relearn_area_nll", "relearn_steps"):
        assert "add retrain to the methods" in alone[name, ""].note
        assert alone[name, ""].n == 0


def phi_area(gap, *, split, mask=None):
    """The area of models whose phi lies ``gap`` [models, samples] above that of retrained ones, at every step."""
    gap = np.asarray(gap, float)
    reference = np.random.default_rng(0).normal(size=(len(gap), 3, gap.shape[1]))
    mask = np.ones(gap.shape, bool) if mask is None else mask
    return relearn.area(
        reference + gap[:, None], reference, STEPS, mask, split=np.array(split), block=np.zeros(len(gap), int)
    )


def test_where_only_models_differ_the_interval_is_students():
    gap = np.array([1.0, 2.0, 4.0, 5.0])
    estimate = phi_area(np.tile(gap[:, None], 30), split=[0, 0, 0, 0])
    half = student(3).ppf(0.975) * gap.std(ddof=1) / 2
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((3, 3 - half, 3 + half), rel=1e-9)
    assert (estimate.n, estimate.note) == (30, "")


@pytest.mark.parametrize("samples", [5, 10])
def test_areas_of_phi_cover_other_samples_where_they_are_few(samples):
    """One model, whose variance over samples has the divisor n − 1."""
    rng, repeats, held = np.random.default_rng(samples), 600, 0
    for _ in range(repeats):
        estimate = phi_area(rng.normal(size=(1, samples)), split=[0])
        held += estimate.low <= 0 <= estimate.high
    assert abs(held / repeats - 0.95) < 4 * math.sqrt(0.95 * 0.05 / repeats)


def test_where_only_samples_differ_models_do_not_narrow_the_interval():
    gap = np.repeat([5.0, -1.0], 500)
    half = 3 / math.sqrt(1000)
    for models in (1, 4):
        estimate = phi_area(np.tile(gap, (models, 1)), split=[0] * models)
        assert estimate.value == pytest.approx(2)
        assert (estimate.high - 2, 2 - estimate.low) == pytest.approx((1.96 * half, 1.96 * half), rel=0.005)
        assert (estimate.note == ONE_MODEL) == (models == 1)


def test_every_model_counts_alike_and_blocks_keep_splits_apart():
    mask = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 0], [0, 0, 1]], bool)
    gap = [[1, 3, 99], [1, 3, 99], [2, 2, 99], [99, 99, 6]]
    assert phi_area(gap, split=[0, 0, 0, 1], mask=mask).value == pytest.approx((3 * 2 + 6) / 4)
    right = np.zeros((4, 3, 6), bool)
    right[2:] = True
    where = {"steps": STEPS, "weighed": np.ones((4, 6), bool), "split": np.zeros(4, int)}
    together, apart = (relearn.area(right, ~right & False, **where, block=np.array(b)) for b in ([0] * 4, [0, 0, 1, 1]))
    assert together.value == apart.value == 0.5
    # two models of a split that agree vary by nothing but their samples; as one split, models vary by all there is
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_areas_of_predictions_end_at_one():
    always = np.ones((2, 3, 3), bool)
    groups = {"split": np.array([0, 1]), "block": np.zeros(2, int)}
    for answers, value in ((always, 1), (~always, -1)):
        estimate = relearn.area(answers, ~answers, STEPS, np.ones((2, 3), bool), **groups)
        assert estimate.value == value
        assert min(estimate.low, estimate.high, key=lambda end: abs(end - value)) == value
        assert -1 <= estimate.low <= estimate.high <= 1


def reached(right: list[list[int]]) -> Relearned:
    """Models that are right about all rows from one step on: [models, points] of 0 or 1, on a single row."""
    values = np.array(right, bool)[:, :, None]
    return Relearned(STEPS, values * np.float32(1), values, np.zeros((len(right), 1), bool), np.zeros(1, int))


def steps_of(audited: list[list[int]], reference: list[list[int]]):
    one = np.zeros(len(audited), int)
    near = np.full(len(audited), 0.95)
    return relearn.index(
        reached(audited), reached(reference), np.ones((len(audited), 1), bool), near, split=one, block=one
    )


def test_steps_that_say_nothing_are_empty_with_the_reason():
    never, late, soon, once = [0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]
    ratio = steps_of([soon, late], [once, once])
    assert math.isnan(ratio.value)
    assert ratio.note == "retrained models are as right as the originals from the start"
    ratio = steps_of([never], [soon])
    assert (ratio.value, ratio.n) == (6, 1)
    assert math.isnan(ratio.low)
    assert ratio.note == "1 of 1 models were not back after 3 steps; one model has no interval"
    ratio = steps_of([never, late], [never, never])
    assert ratio.note == (
        "1 of 2 models were not back after 3 steps, 2 of 2 retrained ones were not back after 3 steps"
    )
    assert ratio.value == 4.5 / 6
    ratio = steps_of([soon, late], [soon, late])
    assert (ratio.value, ratio.low, ratio.high) == (1, 1, 1)
    # without the only retrained model that needed any step there is no ratio
    ratio = steps_of([soon, late], [late, once])
    assert ratio.value == 2 / 1.5
    assert math.isnan(ratio.low)
    assert math.isnan(ratio.high)
    assert ratio.note == "no interval: but for one model, retrained ones are as right as the originals from the start"


@pytest.mark.parametrize(
    ("chance", "models", "low", "high"),
    [([0.05, 0.2, 0.3, 0.25, 0.15, 0.05, 0], 3, 0.86, 0.96), ([0.05, 0.2, 0.3, 0.25, 0.15, 0.05, 0], 12, 0.86, 0.96),
     ([0.9, 0.1, 0, 0, 0, 0, 0], 12, 0.6, 0.8)],
    ids=["half of it, 3", "half of it, 12", "nothing forgotten, 12"],
)  # fmt: skip
def test_a_ratio_of_steps_holds_about_as_often_as_the_page_says(chance, models, low, high):
    """Audited models come back after so many steps with these chances, each by itself, and retrained ones later."""
    rng, steps, draws = np.random.default_rng(models), np.array([0, 1, 2, 4, 8, 16, 32]), 600
    chances = np.array([chance, [0, 0.05, 0.15, 0.3, 0.3, 0.15, 0.05]])
    truth = (chances @ steps)[0] / (chances @ steps)[1]
    held = []
    for _ in range(draws):
        back = [rng.choice(steps, models, p=row) for row in chances]
        audited, retrained = (SimpleNamespace(steps=steps, right=(steps >= at[:, None])[..., None]) for at in back)
        one = np.zeros(models, int)
        ratio = relearn.index(audited, retrained, np.ones((models, 1), bool), np.ones(models), split=one, block=one)
        held.append(ratio.low <= truth <= ratio.high)
    assert low < np.mean(held) < high


def test_a_ratio_of_steps_covers_splits_that_differ():
    """Eight splits of six models, of which some are learned again more easily than others."""
    rng, steps, draws = np.random.default_rng(8), np.array([0, 1, 2, 4, 8, 16, 32]), 300
    split, block = np.tile(np.repeat([0, 1], 6), 4), np.repeat(np.arange(4), 12)
    rows, values, halves = np.ones((48, 1), bool), [], []
    for _ in range(draws):
        easy, noise = np.repeat(rng.normal(0, 0.9, 8), 6), rng.normal(0, 0.4, (2, 48))
        places = (3 + easy + noise[0], 4 + noise[1])
        back = [steps[np.clip(np.round(place), 1, 6).astype(int)] for place in places]
        audited, retrained = (SimpleNamespace(steps=steps, right=(steps >= at[:, None])[..., None]) for at in back)
        ratio = relearn.index(audited, retrained, rows, np.ones(48), split=split, block=block)
        values.append(ratio.value)
        halves.append((ratio.high - ratio.low) / 2)
    away = np.abs(np.array(values) - np.mean(values))
    assert np.mean(away < halves) > 0.88

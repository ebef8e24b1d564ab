"""Relearning and rounded weights: by hand, of known chances, and what intervals cover."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import t as student
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.signal_files import Relearned
from unlearning_audit.metrics import quantised, relearn, swap
from unlearning_audit.store.files import write_failure

import metric_calls as call
import relearn_cases as cases
from relearn_cases import evaluation, members, store
from row_places import about, only
from ruli_cases import data
from stat_cases import at_least

STEPS = np.array([0, 1, 3])  # log₂(1 + step) = 0, 1, 2: weights ¼, ½, ¼
#: The first model forgets samples 1, 2 and 3 and is taught the first of them again, the second one 4, 5 and 6.
FORGET = np.array([[0, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 0]], bool)
TAUGHT = np.array([[1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]], bool)
RIGHT = {"own": {2: "011", 3: "001", 5: "111", 6: "011"}, "other": {2: "001", 3: "000", 5: "001", 6: "000"}}
PHI = {"own": {2: 1.5, 3: 3.5, 5: 0.5, 6: 2.5}, "other": dict.fromkeys((2, 3, 5, 6), 0.5)}
PASSAGES = {"x": np.zeros((8, 2), np.int32), "y": np.zeros(8, int)}


def relearned(path, side: str) -> str:
    """A file of `RIGHT` and `PHI`; on all other rows retrained models are always right, these never."""
    right = np.full((2, 3, 6), side == "other")
    phi = np.full((2, 3, 6), -9 if side == "own" else 9, np.float32)
    for model, samples in ((0, (2, 3)), (1, (5, 6))):
        for sample in samples:
            right[model, :, sample - 1] = np.array(list(RIGHT[side][sample])) == "1"
            phi[model, :, sample - 1] = PHI[side][sample]
    Relearned(STEPS, phi, right, TAUGHT, np.arange(1, 7)).write(path)
    return str(path)


def rows_of(tmp_path, *, x=None, y=None, compared=True):
    """Of two targets and a shadow model; the originals are wrong about sample 6 and right about all others."""
    target = np.array([True, False, True])
    forget = np.vstack([FORGET[:1], np.ones((1, 8), bool), FORGET[1:]])
    member = Membership(
        np.ones((3, 8), bool), forget, ~forget, np.arange(3), np.array([0, 0, 1]), np.zeros(3, int), ~target
    )
    y = np.array([0, 1, 0, 1, 0, 1, 0, 0]) if y is None else y
    logits = np.tile(np.eye(2)[y], (3, 1, 1))
    logits[:, 6] = np.eye(2)[1 - y[6]]
    evaluation = SimpleNamespace(
        membership=member, target=target, originals=["original"], labels_of=lambda models: y,
        outputs=lambda files: SimpleNamespace(stacked=lambda models, rows: logits[np.ix_(models, rows)]),
        data=SimpleNamespace(x=np.zeros((8, 2)) if x is None else x, y=y),
        relearned_files=[relearned(tmp_path / "own.npz", "own")],
        compared_relearned_files=[relearned(tmp_path / "other.npz", "other")] if compared else None,
    )  # fmt: skip
    return {(row.metric, about(row)): row for row in relearn.rows(evaluation)}


def test_rows_by_hand(tmp_path):
    table = rows_of(tmp_path)
    assert list(table) == [
        ("relearn_area", ""), ("relearn_area_phi", ""), ("relearn_steps", ""),
        *(("relearn_accuracy", f"step={step}") for step in STEPS),
    ]  # fmt: skip
    # areas of samples 2, 3, 5, 6: ¾, ¼, 1, ¾ against ¼, 0, ¼, 0
    area = table["relearn_area", ""]
    assert (area.value, area.n, area.note) == (pytest.approx((0.5 + 0.875) / 2 - 0.125, abs=1e-12), 4, "")
    assert area.ci_low < area.value < area.ci_high <= 1
    assert table["relearn_area_phi", ""].value == pytest.approx((1 + 3 + 0 + 2) / 4, abs=1e-6)
    assert [table["relearn_accuracy", f"step={step}"].value for step in STEPS] == [0.25, 0.75, 1]
    # back at .95 and .475: after 3 and 0 steps; the first retrained model never is, which counts 6, the second after 3
    steps = table["relearn_steps", ""]
    assert (steps.value, steps.n) == (pytest.approx(1.5 / 4.5, abs=1e-12), 2)
    assert steps.note == "1 of 2 retrained ones were not back after 3 steps"
    # without one of the models the ratio is 0/3 and 3/6: the jackknife's standard error is ¼
    assert (steps.ci_low, steps.ci_high) == (0, pytest.approx(1 / 3 + student(1).ppf(0.975) / 4))


def test_passages_are_read_in_nats_too(tmp_path):
    nll = {side: [math.log1p(math.exp(-phi)) for phi in PHI[side].values()] for side in PHI}
    area = rows_of(tmp_path, **PASSAGES)["relearn_area_nll", ""]
    assert area.value == pytest.approx(np.mean(nll["own"]) - np.mean(nll["other"]), abs=1e-6)
    for labels_or_pixels in ("x", "y"):
        assert ("relearn_area_nll", "") not in rows_of(tmp_path, **{labels_or_pixels: PASSAGES[labels_or_pixels]})
    alone = rows_of(tmp_path, **PASSAGES, compared=False)
    for name in ("relearn_area", "relearn_area_phi", "relearn_area_nll", "relearn_steps"):
        assert ("add retrain to the methods" in alone[name, ""].note, alone[name, ""].n) == (True, 0)


def test_a_batch_of_shadow_models_alone_adds_nothing(tmp_path):
    whole = cases.store(tmp_path / "whole.npz", cases.members(), np.full(5, 0.5))
    nobody = Relearned.empty(cases.STEPS, np.array([399]), np.zeros(0, np.int64))
    nobody.write(tmp_path / "nobody.npz")
    expected, both = Relearned.read(whole), relearn.joined_record([whole, str(tmp_path / "nobody.npz")])
    columns = np.searchsorted(both.index, expected.index)
    for name in ("right", "taught"):
        np.testing.assert_array_equal(getattr(both, name)[..., columns], getattr(expected, name))


def test_a_verdict_may_rest_on_the_area(tmp_path):
    """Effects of both populations differ by the row of the area, of known truth."""
    member, chances = cases.members(), {"none": [0.6, 0.9, 0.95, 0.97, 0.99], "retrain": [0.2, 0.2, 0.3, 0.4, 0.5]}
    files = {
        name: cases.store(tmp_path / f"{name}.npz", member, chance, seed, shift=2.0 * (name == "none"))
        for seed, (name, chance) in enumerate(chances.items())
    }
    world = {name: cases.evaluation(tmp_path, member, path, files["retrain"]) for name, path in files.items()}
    assert relearn.effects(world["none"], relearn.Options()) == {}
    none, retrain = (relearn.effects(entry, relearn.Options(decides=True))["relearn_area"] for entry in world.values())
    rows = call.rows(relearn, world["none"], {})
    area, phi = only(rows, "relearn_area"), only(rows, "relearn_area_phi")
    truth = relearn.weights(cases.STEPS) @ np.subtract(chances["none"], chances["retrain"])
    assert area.ci_low < truth < area.ci_high < area.ci_low + 0.12
    assert phi.ci_low < 2.0 < phi.ci_high
    assert (none.value - retrain.value).mean() == pytest.approx(area.value, abs=1e-6)


# ---------------------------------------------------------------- areas


def test_the_curve_is_averaged_over_the_logarithm_of_steps():
    # log₂(1 + step): 0, 1, 1.585, 2.322, 3.170. A straight line has its middle as its mean.
    at = np.log2(1.0 + cases.STEPS)
    weights = relearn.weights(cases.STEPS)
    assert (weights.sum(), weights @ at) == pytest.approx((1.0, at[-1] / 2))
    assert weights[-1] == pytest.approx((at[4] - at[3]) / 2 / at[4])


def test_every_model_counts_alike_and_blocks_keep_splits_apart():
    mask = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 0], [0, 0, 1]], bool)
    # how far the phi of models lies above that of retrained ones, at every step
    gap = np.array([[[1, 3, 99]], [[1, 3, 99]], [[2, 2, 99]], [[99, 99, 6]]], float)
    reference = np.random.default_rng(0).normal(size=(4, 3, 3))
    groups = {"split": np.array([0, 0, 0, 1]), "block": np.zeros(4, int)}
    assert relearn.area(reference + gap, reference, STEPS, mask, **groups).value == pytest.approx((3 * 2 + 6) / 4)
    right = np.zeros((4, 3, 6), bool)
    right[2:] = True
    where = {"steps": STEPS, "queried": np.ones((4, 6), bool), "split": np.zeros(4, int)}
    together, apart = (relearn.area(right, ~right & False, **where, block=np.array(b)) for b in ([0] * 4, [0, 0, 1, 1]))
    assert together.value == apart.value == 0.5
    # two models of a split that agree vary by nothing but their samples; as one split, models vary by all there is
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_intervals_of_models_that_are_retrained_themselves_hold_0():
    member, rng, hits, draws = cases.members(), np.random.default_rng(3), np.zeros(2), 100
    columns = np.flatnonzero((member.forget | member.heldout).any(axis=0))
    mask = member.forget[:, columns]
    for _ in range(draws):
        hard = rng.random(len(columns))  # samples differ, for all models alike
        shape = len(mask), len(STEPS), len(columns)
        right = [rng.random(shape) < hard for _ in range(2)]
        phi = [hard * 3 + rng.standard_normal((len(mask), 1, 1)) * 0.1 + rng.standard_normal(shape) for _ in range(2)]
        for i, pair in enumerate((right, phi)):
            estimate = relearn.area(*pair, STEPS, mask, split=member.split, block=member.block)
            hits[i] += estimate.low <= 0 <= estimate.high
    assert (hits / draws >= at_least(0.95, draws)).all(), hits / draws


# ---------------------------------------------------------------- steps


def steps_of(audited, reference, steps=STEPS, goal=0.95, split=None, block=None):
    """The ratio of steps of models that are right about a single row from the first of ``audited`` and of ``reference``
    [models] on, or never (inf)."""
    one = np.zeros(len(audited), int)
    sides = (
        SimpleNamespace(steps=steps, right=(steps >= np.array(at)[:, None])[..., None]) for at in (audited, reference)
    )
    groups = {"split": one if split is None else split, "block": one if block is None else block}
    return relearn.steps_ratio(*sides, np.ones((len(one), 1), bool), np.full(len(one), goal), **groups)


NEVER = math.inf
NO_INTERVAL = "no interval: without one model there is no ratio, or always the same"


@pytest.mark.parametrize(
    ("audited", "reference", "value", "note"),
    [
        ([1, 3], [0, 0], math.nan, "retrained models are as right as the originals from the start"),
        ([NEVER], [1], 6, f"1 of 1 models were not back after 3 steps; {NO_INTERVAL}"),
        ([NEVER, 3], [NEVER, NEVER], 4.5 / 6,
         "1 of 2 models were not back after 3 steps, 2 of 2 retrained ones were not back after 3 steps"),
        ([1, 3], [1, 3], 1, NO_INTERVAL),
        # without the only retrained model that needed any step there is no ratio
        ([1, 3], [3, 0], 2 / 1.5, NO_INTERVAL),
    ],
)  # fmt: skip
def test_steps_that_say_nothing_have_the_reason(audited, reference, value, note):
    ratio = steps_of(audited, reference)
    assert (ratio.value, ratio.note, ratio.n) == (pytest.approx(value, nan_ok=True), note, len(audited))
    assert math.isnan(ratio.low) == math.isnan(ratio.high) == ("no interval" in note or math.isnan(value))
    # two splits are too few for a jackknife
    assert steps_of(audited, reference, split=np.arange(len(audited))) == ratio


POWERS = np.array([0, 1, 2, 4, 8, 16, 32])


@pytest.mark.parametrize(
    ("chance", "models", "low", "high"),
    [([0.05, 0.2, 0.3, 0.25, 0.15, 0.05, 0], 3, 0.86, 0.96), ([0.05, 0.2, 0.3, 0.25, 0.15, 0.05, 0], 12, 0.86, 0.96),
     ([0.9, 0.1, 0, 0, 0, 0, 0], 12, 0.6, 0.8)],
    ids=["half of it, 3", "half of it, 12", "nothing forgotten, 12"],
)  # fmt: skip
def test_a_ratio_of_steps_holds_about_as_often_as_the_page_says(chance, models, low, high):
    """Audited models come back after so many steps with these chances, each by itself, and retrained ones later."""
    rng, held = np.random.default_rng(models), []
    chances = np.array([chance, [0, 0.05, 0.15, 0.3, 0.3, 0.15, 0.05]])
    truth = np.divide(*(chances @ POWERS))
    for _ in range(300):
        ratio = steps_of(*(rng.choice(POWERS, models, p=row) for row in chances), POWERS, 1.0)
        held.append(ratio.low <= truth <= ratio.high)
    assert low < np.mean(held) < high


BITS = np.array([8, 4])


@pytest.fixture
def member():
    return members()


def test_rates_of_false_alarms_are_each_named_once():
    with pytest.raises(ValidationError, match="give each value once"):
        swap.Options(fpr=(0.01, 0.1, 0.01))
    assert swap.Options(fpr=(0.01, 0.1)).fpr == (0.01, 0.1)


# ---------------------------------------------------------------- numbers


def write_rounded(path, member, chance, rounded, seed=0, shift=0.0):
    """As `relearn_cases.store`, with models that are right about what they forgot with the chances ``rounded`` [bits]
    once their weights are rounded, surer of it than of held-out samples by ``shift``."""
    record = Relearned.read(store(path, member, [chance] * 5, seed))
    rng, shape = np.random.default_rng(seed + 100), (len(record.right), len(BITS), len(record.index))
    right = rng.random(shape) < np.asarray(rounded)[None, :, None]
    phi = rng.standard_normal(shape) + shift * member.forget[:, None, record.index]
    replace(record, bits=BITS, phi_rounded=phi.astype(np.float32), right_rounded=right).write(path)
    return str(path)


def test_rows_are_those_of_known_chances(tmp_path, member):
    audited = write_rounded(tmp_path / "own.npz", member, 0.3, [0.3, 0.8], 1, shift=1.0)
    reference = write_rounded(tmp_path / "other.npz", member, 0.3, [0.3, 0.3], 2)
    rows = {
        (r.metric, r.rule, r.role): r
        for r in call.rows(quantised, evaluation(tmp_path, member, audited, reference), {})
    }
    truth = {"quantised_gap": (0.0, 0.5), "quantised_return": (0.0, 0.5), "quantised_auc": (0.760, 0.760)}
    audited_samples = int((member.forget | member.heldout).any(axis=0).sum())
    for metric, numbers in truth.items():
        for bits, number in zip(BITS, numbers, strict=True):
            row = rows[metric, f"{bits} bits", ""]
            assert row.ci_low <= number <= row.ci_high < row.ci_low + 0.25, (metric, bits)
            assert row.n == audited_samples or metric != "quantised_auc"
    assert rows["quantised_accuracy", "4 bits", "forget"].value == pytest.approx(0.8, abs=0.06)
    world = evaluation(tmp_path, member, audited, reference)
    assert quantised.effects(world, quantised.Options()) == {}
    part = quantised.effects(world, quantised.Options(decides=True))["quantised"]
    assert part.names == ("8 bits", "4 bits")
    assert part.value.mean(axis=1) == pytest.approx(
        [rows["quantised_accuracy", f"{b} bits", "forget"].value for b in BITS]
    )


def test_accuracy_on_the_test_part_is_told_where_its_samples_were_asked(tmp_path, member):
    """All models are right on the test part and wrong elsewhere."""
    index = np.arange(len(data().y))
    shape, steps = (len(member.seed), len(BITS), len(index)), (len(member.seed), len(cases.STEPS), len(index))
    right = np.broadcast_to(data().part == 1, shape)
    Relearned(
        cases.STEPS, np.zeros(steps, np.float32), np.zeros(steps, bool), np.zeros(steps[::2], bool), index, BITS,
        np.zeros(shape, np.float32), right,
    ).write(tmp_path / "own.npz")  # fmt: skip
    rows = call.rows(quantised, evaluation(tmp_path, member, str(tmp_path / "own.npz"), None), {})
    levels = {(row.rule, row.role): row.value for row in rows if row.metric == "quantised_accuracy"}
    assert levels == {(f"{bits} bits", role): role == "test" for bits in BITS for role in ("forget", "test")}
    assert "add retrain to the methods" in rows[0].note
    write_failure(tmp_path / "other.npz", "method", "it diverged")
    own, other = (str(tmp_path / f"{name}.npz") for name in ("own", "other"))
    assert call.rows(quantised, evaluation(tmp_path, member, own, other), {})[0].note == "it diverged"

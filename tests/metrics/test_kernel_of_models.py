"""Kernel tests of models: exact levels, which of two populations is nearer, and which samples of a case are read."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, t
from unlearning_audit.metrics import kernel as metric

import metric_calls as call
from held_answers import Held

OPTIONS = metric.Options(permutations=99)


def normal_rows(rng, shift, models, samples=3):
    return shift + rng.standard_normal((models, samples))


def metric_rows(rng, shift, models=12, samples=3, apart=2.0):
    """Rows of unlearned models at ``shift``, retrained ones at 0 and originals at ``apart``."""
    parts = {"unlearned": shift, "retrained": 0.0, "original": apart}
    arrays = {name: normal_rows(rng, where, models, samples) for name, where in parts.items()}
    return {row.metric: row for row in metric.evaluate(**arrays, options=OPTIONS, rng=rng)}


@pytest.mark.parametrize("models", [4, 12])
def test_models_drawn_as_retrained_ones_differ_in_one_of_twenty(models):
    """Heavy tails, few models: the level is exact."""
    rng, audits = np.random.default_rng(3), 600
    wrong = 0
    for _ in range(audits):
        u, r, o = rng.standard_t(2, (3, models, 3))
        rows = metric.evaluate(unlearned=u, retrained=r, original=o, options=OPTIONS, rng=rng)
        wrong += rows[0].value <= 0.05
    assert binom.ppf(1e-4, audits, 0.05) <= wrong <= binom.isf(1e-4, audits, 0.05)


def test_models_that_differ_are_found():
    rng = np.random.default_rng(4)
    assert metric_rows(rng, 2.0)["kernel_p"].value == 0.01
    assert metric_rows(rng, 0.0)["kernel_p"].value > 0.05


def test_models_as_far_from_one_as_from_the_other_are_seldom_called_nearer():
    """Half way between both, where the truth is 0 by symmetry; and intervals cover it."""
    rng, audits = np.random.default_rng(5), 300
    rows = [metric_rows(rng, 1.0) for _ in range(audits)]
    wrong = sum(row["kernel_nearer_p"].value <= 0.05 for row in rows)
    assert wrong <= binom.isf(1e-3, audits, 0.05)
    covered = sum(row["kernel_nearer"].ci_low <= 0 <= row["kernel_nearer"].ci_high for row in rows)
    assert covered >= 0.92 * audits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("originals", "copies", "shared", "models"), [(8, 4, 0.9, 32), (6, 3, 0.5, 18), (20, 2, 0.9, 8)]
)
def test_copies_of_an_original_count_once(originals, copies, shared, models):
    """Half way between retrained models and originals, by symmetry 0; what unlearned models keep of their original is
    the same in all of its copies, a ``shared`` part of their variance. ``models`` are retrained."""
    rng, audits, covered, wrong = np.random.default_rng(10), 250, 0, 0
    stems = np.repeat(np.arange(originals), copies)
    for _ in range(audits):
        trait, own, retrained = (rng.standard_normal((n, 3)) for n in (originals, len(stems), models))
        unlearned = 1 + np.sqrt(shared) * trait[stems] + np.sqrt(1 - shared) * own
        sides = {"unlearned": unlearned, "retrained": retrained, "original": 2 + trait}
        rows = metric.evaluate(**sides, stems=stems, options=OPTIONS, rng=rng)
        covered += rows[1].ci_low <= 0 <= rows[1].ci_high
        wrong += rows[2].value <= 0.05
    assert covered >= binom.ppf(0.01, audits, 0.94)
    assert wrong <= binom.isf(0.01, audits, 0.06)


@pytest.mark.parametrize("counts", [(30, 30, 6), (20, 5, 20)])
def test_populations_of_different_sizes_are_left_out_in_as_many_groups(counts):
    rng, audits, covered, wrong = np.random.default_rng(11), 250, 0, 0
    for _ in range(audits):
        parts = [normal_rows(rng, shift, n) for shift, n in zip((1.0, 0.0, 2.0), counts, strict=True)]
        sides = dict(zip(("unlearned", "retrained", "original"), parts, strict=True))
        rows = metric.evaluate(**sides, options=OPTIONS, rng=rng)
        covered += rows[1].ci_low <= 0 <= rows[1].ci_high
        wrong += rows[2].value <= 0.05
    assert covered >= binom.ppf(0.01, audits, 0.94)
    assert wrong <= binom.isf(0.01, audits, 0.06)


@pytest.mark.parametrize("models", [4, 7])
def test_the_interval_is_students_with_a_degree_for_each_model_but_one(models):
    row = metric_rows(np.random.default_rng(7), 0.5, models)
    near, chance = row["kernel_nearer"], row["kernel_nearer_p"].value
    error = near.value / t.isf(chance, models - 1)
    assert near.ci_high - near.value == pytest.approx(t.ppf(0.975, models - 1) * error)
    assert near.value - near.ci_low == pytest.approx(t.ppf(0.975, models - 1) * error)


def test_retraining_reads_one_and_doing_nothing_minus_one():
    rng = np.random.default_rng(6)
    near, far = (
        np.mean([metric_rows(rng, shift, 40)["kernel_nearer"].value for _ in range(10)]) for shift in (0.0, 2.0)
    )
    assert (near, far) == pytest.approx((1.0, -1.0), abs=0.08)
    assert metric_rows(rng, 0.0)["kernel_nearer_p"].value < 1e-3 < 0.99 < metric_rows(rng, 2.0)["kernel_nearer_p"].value


def test_what_cannot_be_said_is_empty_with_the_reason():
    rng = np.random.default_rng(7)
    assert all("3 models are too few" in row.note for row in metric_rows(rng, 0.0, models=3).values())
    still = np.zeros((5, 2))
    rows = metric.evaluate(unlearned=still, retrained=still, original=still, options=OPTIONS, rng=rng)
    assert {row.metric: np.isnan(row.value) for row in rows} == {
        "kernel_p": False, "kernel_nearer": True, "kernel_nearer_p": True,
    }  # fmt: skip
    assert rows[0].value == 1.0


def test_a_case_is_read_on_what_it_forgets_alone():
    rng, y = np.random.default_rng(8), np.arange(8) % 2
    forget = np.arange(8) < 4
    logits = {name: rng.standard_normal((6, 8, 2)) for name in ("mine", "retrain", "original")}
    logits["mine"][:, forget] = 3 * logits["original"][:, forget]
    for name in ("mine", "original"):
        logits[name][:, ~forget] += 50.0  # what is kept says nothing

    case = SimpleNamespace(
        unlearned_files=["mine"],
        compared_files=["retrain"],
        originals=["original"],
        data=SimpleNamespace(y=y),
        membership=SimpleNamespace(forget=np.tile(forget, (6, 1)), originals=lambda: (np.arange(6),) * 2),
        answers=lambda files: Held(logits[files[0]]),
    )
    actual = [row.value for row in call.rows(metric, case, {})]
    logits = {name: np.where(forget[:, None], values, 0.0) for name, values in logits.items()}
    assert actual == [row.value for row in call.rows(metric, case, {})]
    case.compared_files = None
    with pytest.raises(ValueError, match="for itself controls: true"):
        call.rows(metric, case, {})


@pytest.mark.parametrize(("shift", "nearer"), [(0.0, 1), (4.0, -1)])
def test_a_case_is_held_against_its_retrained_models_and_its_originals(shift, nearer):
    """Forgotten samples are read as retrained models read them, or as the originals do."""
    rng, y = np.random.default_rng(9), np.zeros(6, int)
    logits = {name: rng.standard_normal((12, 6, 2)) for name in ("mine", "retrain", "original")}
    for name, trace in (("mine", shift), ("original", 4.0)):
        logits[name][..., 0] += trace
    case = SimpleNamespace(
        unlearned_files=["mine"],
        compared_files=["retrain"],
        originals=["original"],
        data=SimpleNamespace(y=y),
        membership=SimpleNamespace(forget=np.ones((12, 6), bool), originals=lambda: (np.arange(12),) * 2),
        answers=lambda files: Held(logits[files[0]]),
    )
    value = {row.metric: row.value for row in call.rows(metric, case, {})}
    assert value["kernel_nearer"] * nearer > 0.8
    assert (value["kernel_p"] < 0.01) == (nearer < 0)


@pytest.mark.parametrize(("first", "distinct"), [(np.arange(0, 12, 2), 6), (np.array([0]), 12)])
def test_a_case_reads_each_original_once_and_a_single_one_as_it_is(first, distinct):
    rng, y = np.random.default_rng(12), np.zeros(3, int)
    stems = np.repeat(np.arange(len(first)), 12 // len(first))
    logits = {name: rng.standard_normal((12, 3, 2)) for name in ("mine", "retrain", "original")}
    logits["original"] = logits["original"][first][stems]
    case = SimpleNamespace(
        unlearned_files=["mine"], compared_files=["retrain"], originals=["original"], data=SimpleNamespace(y=y),
        membership=SimpleNamespace(forget=np.ones((12, 3), bool), originals=lambda: (first, stems)),
        answers=lambda files: Held(logits[files[0]]),
    )  # fmt: skip
    assert [row.n for row in call.rows(metric, case, {})] == [distinct] * 3

"""Kernel tests of models: exact levels, which of two populations is nearer, and which samples of a case are read."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, t
from unlearning_audit.metrics import kernel as metric

import metric_calls as call
from held_answers import Held
from slow_cases import slow

OPTIONS, ALL = metric.Options(permutations=99), np.arange(12)


def rows_of(unlearned, retrained, original, rng, stems=None):
    """Metric → row of populations [models, samples]."""
    return {row.metric: row for row in metric.evaluate([unlearned, retrained, original], OPTIONS, rng, stems)}


def drawn(rng, shift, counts=(12, 12, 12)):
    """Rows of unlearned models at ``shift``, retrained ones at 0 and originals at 2."""
    sides = [where + rng.standard_normal((count, 3)) for where, count in zip((shift, 0, 2), counts, strict=True)]
    return rows_of(*sides, rng)


def audited(audits, draw):
    """How many intervals of ``kernel_nearer`` hold 0, and how many models are called nearer by mistake."""
    tables = [draw() for _ in range(audits)]
    covered = sum(rows["kernel_nearer"].ci_low <= 0 <= rows["kernel_nearer"].ci_high for rows in tables)
    return covered, sum(rows["kernel_nearer_p"].value <= 0.05 for rows in tables)


@pytest.mark.parametrize("models", [4, *slow(12)])
def test_models_drawn_as_retrained_ones_differ_in_one_of_twenty(models):
    """Heavy tails, few models: the level is exact."""
    rng, audits = np.random.default_rng(3), 200
    p = [rows_of(*rng.standard_t(2, (3, models, 3)), rng)["kernel_p"].value for _ in range(audits)]
    assert binom.ppf(1e-4, audits, 0.05) <= sum(np.array(p) <= 0.05) <= binom.isf(1e-4, audits, 0.05)


def test_models_of_one_original_are_no_independent_witnesses():
    """Each model is distributed as a retrained one, but the four of an original are nearly alike."""
    rng, stems, audits = np.random.default_rng(6), np.repeat(np.arange(6), 4), 100
    worlds = ((rng.standard_normal((6, 3))[stems], *rng.standard_normal((2, 24, 3))) for _ in range(audits))
    found = sum(rows_of(u, r, o[:6], rng, stems)["kernel_p"].value <= 0.05 for u, r, o in worlds)
    assert found <= binom.isf(1e-4, audits, 0.05)


@pytest.mark.parametrize(("counts", "audits"), [((12, 12, 12), 60), *slow(((30, 30, 6), 250), ((20, 5, 20), 250))])
def test_models_as_far_from_one_as_from_the_other_are_seldom_called_nearer(counts, audits):
    """Half way between both, where the truth is 0 by symmetry; populations may differ in size."""
    rng = np.random.default_rng(11)
    covered, wrong = audited(audits, lambda: drawn(rng, 1.0, counts))
    assert covered >= binom.ppf(0.01, audits, 0.94)
    assert wrong <= binom.isf(0.01, audits, 0.06)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("originals", "copies", "shared", "models"), [(8, 4, 0.9, 32), (6, 3, 0.5, 18), (20, 2, 0.9, 8)]
)
def test_copies_of_an_original_count_once(originals, copies, shared, models):
    """Half way between retrained models and originals, by symmetry 0; what unlearned models keep of their original is
    the same in all of its copies, a ``shared`` part of their variance. ``models`` are retrained."""
    rng, stems, audits = np.random.default_rng(10), np.repeat(np.arange(originals), copies), 250

    def draw():
        trait, own, retrained = (rng.standard_normal((n, 3)) for n in (originals, len(stems), models))
        unlearned = 1 + np.sqrt(shared) * trait[stems] + np.sqrt(1 - shared) * own
        return rows_of(unlearned, retrained, 2 + trait, rng, stems)

    covered, wrong = audited(audits, draw)
    assert covered >= binom.ppf(0.01, audits, 0.94)
    assert wrong <= binom.isf(0.01, audits, 0.06)


@pytest.mark.parametrize("models", [4, 7])
def test_the_interval_is_students_with_a_degree_for_each_model_but_one(models):
    rows = drawn(np.random.default_rng(7), 0.5, (models,) * 3)
    near, chance = rows["kernel_nearer"], rows["kernel_nearer_p"].value
    half = t.ppf(0.975, models - 1) * near.value / t.isf(chance, models - 1)
    assert [near.ci_low, near.ci_high] == pytest.approx([near.value - half, near.value + half])


def test_what_cannot_be_said_is_empty_with_the_reason():
    rng, still = np.random.default_rng(7), np.zeros((5, 2))
    assert all("3 models are too few" in row.note for row in drawn(rng, 0.0, (3, 3, 3)).values())
    values = [row.value for row in rows_of(still, still, still, rng).values()]
    np.testing.assert_array_equal(values, [1.0, np.nan, np.nan])
    few = np.array([[1.0], [0.0], [0.0], [1.0]])  # without one of them, originals are no further than by chance
    near = rows_of(0 * few, 0 * few, few, rng)["kernel_nearer"]
    assert (near.value, near.note) == (pytest.approx(1), "without one model nothing differs: no interval")
    same = rows_of(0 * few, 0 * few, 0 * few + 1, rng)["kernel_nearer"]
    assert (same.value, np.isnan(same.ci_low), same.note) == (1, True, "without one model nothing differs: no interval")


def evaluation(logits, *, forget, first=ALL, stems=None):
    """A case of models that all forget the samples ``forget``; ``logits``: mine, of retrained models, of originals."""
    return SimpleNamespace(
        unlearned_files=["mine"], compared_files=["retrain"], originals=["original"],
        data=SimpleNamespace(y=np.zeros(len(forget), int)), outputs=lambda files: Held(logits[files[0]]),
        membership=SimpleNamespace(forget=np.tile(forget, (12, 1)), originals=lambda: (first, stems), copied=stems),
    )  # fmt: skip


def world(seed, samples=6):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((12, samples, 2)) for name in ("mine", "retrain", "original")}


def test_a_case_is_read_on_what_it_forgets_alone():
    logits, forget = world(8, samples=8), np.arange(8) < 4
    example = evaluation(logits, forget=forget)
    expected = [row.value for row in call.rows(metric, example, {})]
    for name in ("mine", "original"):
        logits[name][:, ~forget] += 50.0  # what is kept says nothing
    assert expected == [row.value for row in call.rows(metric, example, {})]
    example.compared_files = None
    with pytest.raises(ValueError, match="for itself controls: true"):
        call.rows(metric, example, {})


@pytest.mark.parametrize(("shift", "nearer"), [(0.0, 1), (4.0, -1)])
def test_a_case_is_held_against_its_retrained_models_and_its_originals(shift, nearer):
    """Forgotten samples are read as retrained models read them, or as the originals do."""
    logits = world(9)
    for name, trace in (("mine", shift), ("original", 4.0)):
        logits[name][..., 0] += trace
    value = {row.metric: row.value for row in call.rows(metric, evaluation(logits, forget=np.ones(6, bool)), {})}
    assert value["kernel_nearer"] * nearer > 0.8
    assert (value["kernel_p"] < 0.01) == (nearer < 0)


@pytest.mark.parametrize(("first", "distinct"), [(np.arange(0, 12, 2), 6), (np.array([0]), 12)])
def test_a_case_reads_each_original_once_and_a_single_one_as_it_is(first, distinct):
    logits, stems = world(12), np.repeat(np.arange(len(first)), 12 // len(first))
    logits["original"] = logits["original"][first][stems]
    copied = stems if distinct < 12 else None
    example = evaluation(logits, forget=np.ones(6, bool), first=first, stems=copied)
    assert [row.n for row in call.rows(metric, example, {})] == [distinct] * 3

"""The competition: ε by brute force, rows where every ε is 0 or the cap, and simulations with known truth."""

import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import beta
from scipy.stats import t as student
from unlearning_audit import stats
from unlearning_audit.evaluation.cohort import Group
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _epsilon, _null, competition
from unlearning_audit.metrics._epsilon import bound_table, epsilon_bounds, epsilon_table, epsilons, points
from unlearning_audit.stats import paired

from epsilon_cases import DELTA, brute_force, equation_1, published_grid
from held_answers import Held
from row_places import about

TOLD = np.arange(8) < 4  # samples whose phi is 1 after unlearning and 0 after retraining; 2 in all models elsewhere


def phi(models: int, of: float, samples: np.ndarray = TOLD) -> np.ndarray:
    return np.tile(np.where(samples, of, 2.0), (models, 1))


def models(count: int, of: float, retain: float | None = None, test: float | None = None) -> competition.Models:
    accuracies = (None if value is None else np.full(count, value) for value in (retain, test))
    return competition.Models(phi(count, of), *accuracies)


def rows_of(unlearned, retrained, independent=None, **options) -> dict[str, Row]:
    sides = {"unlearned": unlearned, "retrained": retrained, "independent": independent}
    rows = competition.evaluate(**sides, options=competition.Options(**options), rng=np.random.default_rng(0))
    assert len({row.metric for row in rows}) == len(rows)
    return {row.metric: row for row in rows}


def limits(row: Row) -> tuple[float, ...]:
    return row.value, row.ci_low, row.ci_high


def told(row: Row) -> tuple[str, int, str]:
    """What a row is about, the number of samples and the note."""
    return about(row), row.n, row.note


#: Of the mean of four zeros and four ones, when models do not differ.
HALF = student(7).ppf(0.975) * math.sqrt(2 / 7 / 8)


@pytest.fixture(scope="module")
def rows():
    return rows_of(models(41, 1.0, 0.8, 0.6), models(40, 0.0, 0.9, 0.8))


def test_rows_of_half_the_samples_told_apart(rows):
    """ε is the cap or 0, F is 1/2, and retrained models agree, so that F₀ is 1."""
    share, halves = stats.clopper_pearson(successes=4, n=8), np.array([0.5, 0.5 - HALF, 0.5 + HALF])
    for name, expected in {
        "epsilon_mean": 50 * halves, "epsilon_at_cap_share": (0.5, share.low, share.high),
        "forgetting_quality": halves, "forgetting_quality_null": (1, 1, 1), "forgetting_quality_over_null": halves,
        "retain_accuracy_ratio": (8 / 9,) * 3, "test_accuracy_ratio": (3 / 4,) * 3, "score": 8 / 9 * 3 / 4 * halves,
    }.items():  # fmt: skip
        assert limits(rows[name]) == pytest.approx(tuple(expected)), name
    of_all = "rule=exact;models=40", 8
    assert told(rows["forgetting_quality"]) == (*of_all, "41 unlearned and 40 retrained models")
    note = "random halves, 20 models on each side, mean of 2 splits"
    assert told(rows["forgetting_quality_over_null"]) == ("rule=exact;models=20", 8, note)
    assert (told(rows["score"]), rows["test_accuracy_ratio"].n) == ((*of_all, ""), 40)


def test_the_share_at_the_cap_is_that_of_all_models():
    # told apart but for the first model of each side, which are left out together
    first = np.tile(np.arange(9)[:, None] == 0, (1, 8))
    numbers = rows_of(competition.Models(1.0 - first), competition.Models(1.0 * first))
    assert numbers["epsilon_at_cap_share"].value == 0
    assert numbers["epsilon_mean"].value == pytest.approx(math.log(9 * (8 / 9 - 1e-5)))


@pytest.mark.parametrize(("groups", "hits"), [(2, (40, 44)), (3, (40, 44, 45))])
def test_the_interval_of_the_share_at_the_cap_adds_students_t_over_groups_in_squares(groups, hits):
    share = competition._share(np.arange(100) < np.array([[42], *([hit] for hit in hits)]))
    exact = stats.clopper_pearson(successes=42, n=100)
    error = math.sqrt((groups - 1) * np.var(hits)) / 100  # a jackknife's
    half = student(groups - 1).ppf(0.975) * error
    low, high = 0.42 - math.hypot(0.42 - exact.low, half), 0.42 + math.hypot(exact.high - 0.42, half)
    assert (share.value, share.low, share.high) == pytest.approx((0.42, low, high))
    assert not share.note
    alone = competition._share(np.arange(100) < np.array([[42], [40]]))
    assert alone == replace(exact, note="too few models for an interval over models")


def test_bounds_are_those_of_perfect_separation_on_the_other_halves(rows):
    bound, largest = (bound_table(21, 20, 1e-5, level)[21, 0] for level in (0.95, 1 - 0.05 / 8))
    mean, how = stats.mean_interval(values=np.where(TOLD, bound, 0.0)), "threshold chosen on 20, bounded on 21 models"
    for name, expected, scope in (
        ("mean", (bound / 2, max(mean.low, 0), mean.high), "interval over samples"),
        ("max", (largest, largest, np.inf), "holds for all samples together; one-sided"),
    ):
        row = rows[f"epsilon_lower_bound_{name}"]
        assert limits(row) == pytest.approx(expected)
        assert told(row) == ("confidence=0.95", 8, f"{how} of each kind; {scope}")
    assert 0 < largest < bound


def test_options_reach_the_numbers():
    rows = rows_of(models(9, 1.0), models(10, 0.0), splits=3, groups=5, confidence=0.5, rule="grid")
    assert limits(rows["epsilon_mean"]) == pytest.approx((25, 50 * (0.5 - HALF), 50 * (0.5 + HALF)))
    assert rows["epsilon_at_cap_share"].value == 0.5
    note = "random halves, 4 models on each side, mean of 3 splits"
    assert told(rows["forgetting_quality_null"]) == ("rule=grid;models=4", 8, note)
    assert about(rows["epsilon_lower_bound_max"]) == "confidence=0.5"


def test_a_second_retrained_population_is_the_null():
    numbers = rows_of(models(6, 1.0), models(7, 0.0), models(5, 2.0))
    # retrained models differ from independent ones on the same half of the samples: F₀ = F, sample by sample
    assert limits(numbers["forgetting_quality_null"]) == pytest.approx((0.5, 0.5 - HALF, 0.5 + HALF))
    assert limits(numbers["forgetting_quality_over_null"]) == pytest.approx((1, 1, 1), abs=1e-9)
    note = "5 retrained against 5 independently retrained models; F / F₀ is of the first 5 models of each kind"
    assert numbers["forgetting_quality_null"].note == numbers["forgetting_quality_over_null"].note == note
    assert about(numbers["forgetting_quality_null"]) == "rule=exact;models=5"
    paired = rows_of(models(6, 1.0), models(6, 0.0), models(6, 2.0))
    assert paired["forgetting_quality_null"].note == "6 retrained against 6 independently retrained models"
    nothing = competition.Models(phi(6, 5.0, TOLD | True))
    empty = rows_of(models(6, 1.0), models(6, 0.0), nothing)["forgetting_quality_over_null"]
    assert (empty.note, empty.n) == ("F₀ is 0 (6 retrained against 6 independently retrained models)", 8)


@pytest.mark.parametrize("sizes", [(3, 9), (9, 3), (4, 9), (9, 7), (8, 9), (9, 8)])
def test_how_many_models_are_needed(sizes):
    rows = rows_of(models(sizes[0], 1.0), models(sizes[1], 0.0))
    for names, least, why in (
        (("forgetting_quality_null", "forgetting_quality_over_null"), 8, "halves need 8 models of each kind"),
        (("epsilon_lower_bound_mean", "epsilon_lower_bound_max"), 4, "half of the models needs four of each kind"),
    ):
        for name in names:
            few = min(sizes) < least
            assert (math.isnan(rows[name].value), why in rows[name].note, rows[name].n) == (few, few, 8)


@pytest.mark.parametrize(
    ("unlearned", "retrained", "missing"),
    [((None, 0.6), (0.9, 0.8), "retain"), ((0.8, 0.6), (0.9, None), "test"), ((0.8, 0.6), (0.9, 0.0), "test")],
)
def test_what_of_accuracy_is_missing_is_said(unlearned, retrained, missing):
    rows = rows_of(models(9, 1.0, *unlearned), models(9, 0.0, *retrained))
    ratio, score = rows[f"{missing}_accuracy_ratio"], rows["score"]
    assert (ratio.n, ratio.note) == (9, f"there is no {missing} accuracy above 0 of retrained models")
    assert np.isnan([ratio.value, score.value]).all()
    assert score.note == "the final score needs retain and test accuracy of both populations"


def test_the_interval_of_the_score_is_widened_by_those_of_its_factors_in_squares():
    score, ratio = stats.Estimate(0.5, 0.4, 0.7, 9), stats.Estimate(2.0, 1.8, 2.2, 9)
    wide = competition._widened(score, [ratio, replace(ratio, high=2.0)])
    expected = 0.5 - math.hypot(0.1, 0.05), 0.5 + math.hypot(0.2, 0.05)
    assert (wide.value, wide.low, wide.high) == pytest.approx((0.5, *expected))


def test_groups_are_left_out_of_both_sides_from_three_models_on():
    subsets = _null.subsets(3, 5, competition.Options())
    assert [[side.tolist() for side in pair] for pair in subsets] == [
        [[True] * 3, [True] * 5],
        [[False, True, True], [False, False, True, True, True]],
        [[True, False, True], [True, True, False, False, True]],
        [[True, True, False], [True, True, True, True, False]],
    ]
    # a group stays where without it a side has one model: two of three would go with one of two groups
    for u, r, groups, count in ((2, 9, 4, 1), (9, 2, 4, 1), (3, 9, 4, 4), (9, 9, 4, 5), (3, 3, 2, 1), (4, 4, 2, 3)):
        assert len(_null.subsets(u, r, competition.Options(groups=groups))) == count


def test_limits_end_at_zero_and_at_one():
    apart, once = np.arange(8) < 7, 0.9 * np.eye(9)[0] + 0.01
    unlearned = competition.Models(phi(9, 1.0, apart), once, once)
    retrained = competition.Models(phi(9, 0.0, apart), *np.full((2, 9), 0.1))
    numbers = rows_of(unlearned, retrained)
    for name in ("forgetting_quality", "forgetting_quality_over_null", "score", "retain_accuracy_ratio"):
        assert numbers[name].value > 0
        assert numbers[name].ci_low == 0
    other = competition.Models(phi(9, 0.0, np.arange(8) < 6))  # told from the retrained models by one sample of eight
    assert limits(rows_of(unlearned, retrained, other)["forgetting_quality_null"])[::2] == (7 / 8, 1)


def contributed(*populations, groups: int = 4):
    """The effect to F/F₀ of unlearned, retrained and independently retrained models; None if there is none."""
    options, index = competition.Options(groups=groups), np.arange(populations[0].shape[1])
    parts = competition.over_null(populations, index, options, np.random.default_rng(0))
    return parts.get("forgetting_quality_over_null")


def test_effects_are_those_of_groups_and_samples():
    part = contributed(phi(9, 1.0), phi(8, 0.0), None)
    np.testing.assert_allclose(part.value, np.full((1, 4), 0.5))
    assert (part.unit.tolist(), part.rule.ideal) == ([0, 1, 2, 3], 1)
    # each sample moves the mean by what it lies above it
    np.testing.assert_allclose(part.influence[0], np.tile((~TOLD - 0.5) / 8, (4, 1)), atol=0.01)
    assert contributed(phi(9, 1.0), phi(9, 0.0), phi(9, 0.0), groups=2).value.tolist() == [[0.5, 0.5]]
    np.testing.assert_allclose(contributed(phi(3, 1.0), phi(3, 0.0), phi(3, 1.0)).value, 1, atol=1e-12)


@pytest.mark.parametrize(("control", "ratio"), [(True, 1.0), (False, 0.5)])
def test_a_control_takes_the_place_of_halves(monkeypatch, control, ratio):
    monkeypatch.setattr(competition, "population", lambda group: competition.Models(group.phi(None)))
    groups = [SimpleNamespace(phi=lambda rows, of=of: phi(9, of)) for of in (1.0, 0.0, 2.0)]
    evaluation = SimpleNamespace(
        yardsticks=lambda: groups if control else [*groups[:2], None], seed=0, imported=False,
        membership=SimpleNamespace(forget=np.ones((9, 8), bool), copied=None),
    )  # fmt: skip
    rows = competition.rows(evaluation, competition.Options(), np.random.default_rng(0))
    (row,) = [row for row in rows if row.metric == "forgetting_quality_over_null"]
    part = competition.effects(evaluation, competition.Options())["forgetting_quality_over_null"]
    assert (row.value, part.value.mean()) == pytest.approx((ratio, ratio))


def test_bounds_rest_on_one_copy_of_each_original():
    populations = {"unlearned": models(12, 1.0), "retrained": models(9, 0.0), "options": competition.Options()}
    rows = competition.evaluate(**populations, rng=np.random.default_rng(0), one_of_each=np.arange(0, 12, 3))
    assert (
        "threshold chosen on 2, bounded on 2 models"
        in {row.metric: row.note for row in rows}["epsilon_lower_bound_max"]
    )


def test_too_few_models_or_samples_contribute_nothing():
    def of_samples(told):
        return [phi(3, of, np.array(told)) for of in (1.0, 0.0, 0.0)]

    assert contributed(phi(3, 1.0), phi(3, 0.0), phi(3, 0.0))
    assert contributed(*of_samples([True, False]))
    for populations in (
        (phi(7, 1.0), phi(8, 0.0), None), (phi(8, 1.0), phi(7, 0.0), None), (phi(2, 1.0), phi(3, 0.0), phi(3, 0.0)),
        of_samples([False]), (phi(3, 1.0), phi(3, 0.0), phi(3, 9.0, TOLD | True)),  # F₀ is 0
    ):  # fmt: skip
        assert contributed(*populations) is None


def test_a_population_is_read_where_it_was_taught_and_tested_where_it_is_true():
    y, clean = np.array([0, 1, 0, 1, 0, 1]), np.array([1, 1, 0, 1, 1, 1])
    guess = np.array([[0, 1, 0, 1, 1, 1], [0, 0, 1, 1, 0, 1]])
    logits = np.where(np.eye(2)[guess] > 0, 3.0, 0.0)
    forget = np.tile(np.arange(6) == 1, (2, 1))
    retain = np.array([[1, 0, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0]], bool)
    case = SimpleNamespace(
        labels=y, membership=SimpleNamespace(forget=forget, retain=retain), outputs=lambda files: Held(logits),
        data=SimpleNamespace(y=y, y_clean=clean, part=np.array([0, 0, 0, 0, 1, 1])),
    )  # fmt: skip
    population = competition.population(Group(case, ["own"]))
    np.testing.assert_allclose(population.phi, [[3], [-3]], atol=1e-6)
    for accuracy in (population.retain_accuracy, population.test_accuracy):
        assert accuracy.mean(axis=1).tolist() == [1, 0.5]
    case.data.part = np.zeros(6)
    assert competition.population(Group(case, ["own"])).test_accuracy is None


@pytest.mark.parametrize(
    ("null", "ends"),
    [([[1, 1, 0], [1, 1, 0], [1, 1, 0]], True), ([[1, 1, 0], [1, 1, 0], [0, 0, 0]], False),
     ([[1, 0, 0], [1, 0, 0], [1, 0, 0]], False), ([[1, 1, 0], [1, 1, 0], [1, 0, 0]], False),
     ([[1], [1], [1]], True), ([[1], [1], [0]], False)],
    ids=["stands", "without a group", "without a sample", "without both", "one sample", "one sample and a group"],
)  # fmt: skip
def test_a_null_that_rests_on_one_group_or_one_sample_leaves_no_interval(null, ends):
    null = np.array(null, float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ratio = competition._ratio(null / 2, null, "why")
    assert ratio.value == 0.5
    assert np.isfinite([ratio.low, ratio.high]).all() == ends
    assert ratio.note == ("why" if ends else "no interval: F₀ is 0 without some samples or some models (why)")


# ---------------------------------------------------------------- simulations


def crossed_effects(rng, models: int, samples: int, sd: tuple[float, float, float]) -> np.ndarray:
    """a_m + b_s + e_ms, float64 [models, samples]."""
    of_models, of_samples, of_both = (
        s * rng.normal(size=shape) for s, shape in zip(sd, ((models, 1), (1, samples), (models, samples)), strict=True)
    )
    return of_models + of_samples + of_both


def share_allowed(share: float, repeats: int) -> float:
    """What a share of successes with this probability exceeds in nearly all simulations of so many repeats."""
    return share - 3.1 * math.sqrt(share * (1 - share) / repeats)


#: Models that differ in how well they know all samples.
SKILL = (0.5, 0, math.sqrt(0.75))


@pytest.mark.slow
def test_a_verdict_on_forgetting_quality_covers_and_is_no_wider_than_its_interval():
    """F/F₀ of retrained models is 1. Points jump as models are left out, which must not count twice: what a verdict
    rests on is as wide as the interval of the metric itself, not the two to three times of bias-corrected values."""
    rng, models, repeats, inside, widths = np.random.default_rng(13), 16, 60, 0, []
    options = competition.Options(groups=8)
    for _ in range(repeats):
        u, r, c = (1.5 * crossed_effects(rng, models, 16, SKILL) for _ in range(3))
        part = competition.over_null((u, r, c), np.arange(16), options, rng)["forgetting_quality_over_null"]
        read = paired.distances(value=part.value, influence=part.influence, unit=part.unit)
        sides = {"unlearned": u, "retrained": r, "independent": c}
        rows = competition.evaluate(
            **{name: competition.Models(phi) for name, phi in sides.items()}, options=options, rng=rng
        )
        (row,) = [row for row in rows if row.metric == "forgetting_quality_over_null"]
        inside += abs(read.value[0] - 1) <= read.half_widths()[0]
        widths.append((read.half_widths()[0], (row.ci_high - row.ci_low) / 2))
    assert inside / repeats >= share_allowed(0.94, repeats)
    verdict, metric = np.mean(widths, axis=0)
    assert verdict <= 1.2 * metric


def test_halves_are_of_one_size_and_share_no_model(monkeypatch):
    compared, options = [], competition.Options(groups=3, splits=2)

    def epsilon(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        compared.append((first[:, 0], second[:, 0]))
        return np.ones(1)

    monkeypatch.setattr(_null, "epsilons_of", lambda _: epsilon)
    u, r = -1 - np.arange(6.0)[:, None], np.arange(20.0)[:, None]
    _null._points_of_halves(u, r, options, np.random.default_rng(14))
    assert len(compared) == 2 * 2 * 4  # splits, both comparisons, all models and without each group
    assert all(max(len(first), len(second)) <= 3 and not set(first) & set(second) for first, second in compared)
    assert [(len(first), len(second)) for first, second in (*compared[:2], *compared[8:10])] == [(3, 3)] * 4
    assert all((first < 0).all() and (second >= 0).all() for first, second in compared[::2])
    assert all((first >= 0).all() and (second >= 0).all() for first, second in compared[1::2])


@pytest.mark.parametrize("sizes", [(8, 16), (16, 16)])
def test_halves_lose_one_model_of_each_kind_whatever_group_is_left_out(monkeypatch, sizes):
    compared, options, half = [], competition.Options(splits=1), min(sizes) // 2

    def epsilon(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        compared.append((len(first), len(second)))
        return np.ones(1)

    monkeypatch.setattr(_null, "epsilons_of", lambda _: epsilon)
    _null._points_of_halves(*(np.zeros((size, 1)) for size in sizes), options, np.random.default_rng(15))
    assert compared == [(half, half)] * 2 + [(half - 1, half - 1)] * 2 * half


def test_halves_keep_two_models_whatever_group_is_left_out():
    u, r = np.random.default_rng(9).normal(size=(2, 8, 3))
    for seed in range(10):
        h, null = _null._points_of_halves(u, r, competition.Options(groups=2), np.random.default_rng(seed))
        assert h.shape == null.shape == (3, 3)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(4, 16, 16), (16, 16, 4), (12, 16, 16)])
def test_perfect_unlearning_scores_its_null_whatever_population_is_smaller(sizes):
    """F depends on the number of models, so that of fewer unlearned models is no measure for F₀ of more retrained."""
    rng, options, ratios = np.random.default_rng(sum(sizes)), competition.Options(groups=4), []
    for _ in range(12):
        of_samples = rng.normal(0, 2, 100)
        phi = [of_samples + rng.normal(size=(models, 100)) for models in sizes]
        sides = dict(zip(("unlearned", "retrained", "independent"), map(competition.Models, phi), strict=True))
        table = {row.metric: row for row in competition.evaluate(**sides, options=options, rng=rng)}
        ratios.append(table["forgetting_quality_over_null"])
        assert table["forgetting_quality_null"].models == min(sizes)
        assert ratios[-1].ci_low <= ratios[-1].value <= ratios[-1].ci_high
        assert competition.over_null(phi, np.arange(100), options, rng)
    values = np.array([ratio.value for ratio in ratios])
    assert abs(values.mean() - 1) < 4 * values.std() / np.sqrt(len(values))


@pytest.mark.slow
@pytest.mark.parametrize("models", [4, 5])
def test_the_share_at_the_cap_covers_where_models_move_all_samples_together(models):
    """Each model knows all samples better or worse than the others do; the truth is the mean of many draws."""
    rng, audits, shares = np.random.default_rng(17), 120, []
    masks = _null.subsets(models, models, competition.Options())
    for _ in range(audits):
        base = 2 * rng.normal(size=100)
        u, r = (base + shift + crossed_effects(rng, models, 100, (1, 0, 1)) for shift in (1.5, 0))
        at_cap = [epsilons(unlearned=u[a], retrained=r[b]) >= 50 for a, b in masks]
        shares.append(competition._share(np.array(at_cap)))
    truth = np.mean([share.value for share in shares])
    assert truth > 0.01
    assert np.mean([share.low <= truth <= share.high for share in shares]) >= share_allowed(0.95, audits)


def test_ratios_of_accuracies_and_the_score_cover_other_samples():
    """A method that is wrong on some samples in all of its models: which test samples were drawn decides as much as
    which models were. F is 1/2 on average; audits of 16 models, 360 test and 500 retained samples."""
    rng, audits, models = np.random.default_rng(18), 100, 16
    inside = {"retain_accuracy_ratio": 0, "test_accuracy_ratio": 0, "score": 0}

    def right(samples: int) -> np.ndarray:
        """Right on 9 of 10 of the samples that are known, and the method on half of those that it loses."""
        known, lost = rng.random(samples) < 0.8, rng.random(samples) < 0.25
        kept = np.stack([1 - 0.5 * lost, np.ones(samples)])[:, None]
        return rng.random((2, models, samples)) < 0.9 * known * kept

    for _ in range(audits):
        u, r = (
            competition.Models(np.zeros((models, 30)), *sides) for sides in zip(right(500), right(360), strict=True)
        )
        h = np.broadcast_to(rng.choice([0.25, 0.75], 30), (models + 1, 30))
        for row in competition._final_rows(u, r, h, {}, competition.Options()):
            truth = 0.875 if row.metric != "score" else 0.5 * 0.875**2
            inside[row.metric] += row.ci_low <= truth <= row.ci_high
    assert min(inside.values()) / audits >= share_allowed(0.95, audits)


#: Cases in which the best set of scores begins or ends with one of negatives alone, because of the box or because of
#: rules that equation (1) discards.
ENDS_WITH_NEGATIVES = [
    ([-1, 1.75, 0], [3.75, 2.75, 3.75, 1.25, 3.75]),
    ([1, 2, -2, -3], [12, -2, -3, 4.5, -1.5]),
    ([12, 0, 7, -1, 7, -1, 7], [-2, 4]),
    ([-2, 3.75, 5.75, 11.25, -11], [4.5, 5.5, -11.5, 7.25, -15.25, 10.25]),
    ([4, -6, -3, 6, -5, 0, 1], [-1, -1, 7, 1, 2, 1, 0]),
    ([-7.5, 1, 23, 33, -32.5, -13.5, -3.5], [3, 5, 5.5, -3, 25.5, -9.5]),
    ([2, 4, 0, -4, -2, 0, 3], [1, -1, 1, -1, 0, -1, 0]),
]


def lattice(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Few scores on a coarse lattice, in which ties, equal medians, equal ranges and edges of the box are common."""
    (n, m), width = rng.integers(2, 7, 2), rng.integers(1, 9, 2)
    step = rng.choice([0.25, 0.5, 1.0])
    return rng.integers(0, width[0] + 1, n) * step, (rng.integers(0, width[1] + 1, m) + rng.integers(0, 4)) * step


def scores(rng: np.random.Generator, largest: int) -> tuple[np.ndarray, np.ndarray]:
    """Phi of all scales, shifts and shapes."""
    (n, m), scale = rng.integers(3, largest, 2), 10 ** rng.uniform(-1.5, 1.1)
    u = rng.normal(size=n) * scale * rng.choice([0.3, 1, 3])
    return u, (rng.normal(size=m) + rng.choice([0, 0.5, 1, 3])) * scale


def epsilon_of(u, r, **options) -> float:
    """ε of a single sample."""
    return epsilons(unlearned=np.array(u)[:, None], retrained=np.array(r)[:, None], **options)[0]


def test_exact_equals_brute_force():
    rng = np.random.default_rng(0)
    cases = [scores(rng, 9) for _ in range(40)] + [scores(rng, 40)]
    cases += [lattice(rng) for _ in range(60)] + ENDS_WITH_NEGATIVES + [case[::-1] for case in ENDS_WITH_NEGATIVES]
    spreads = [sorted(map(np.ptp, case)) for case in cases]
    cases = [case for case, (narrow, wide) in zip(cases, spreads, strict=True) if narrow > 0.01 * wide]
    actual = [epsilon_of(*case) for case in cases]
    np.testing.assert_allclose(actual, [brute_force(*map(np.array, case)) for case in cases], atol=1e-12)


def test_every_sample_is_read_by_itself():
    rng = np.random.default_rng(1)
    u, r = rng.normal(size=(7, 15)), rng.normal(size=(9, 15)) * rng.uniform(0.5, 2, 15) + rng.normal(size=15)
    for rule in ("exact", "grid"):
        alone = [epsilon_of(*case, rule=rule) for case in zip(u.T, r.T, strict=True)]
        np.testing.assert_array_equal(epsilons(unlearned=u, retrained=r, rule=rule), alone)


def test_grid_equals_the_published_thresholds():
    rng = np.random.default_rng(1)
    for u, r in [*(scores(rng, 12) for _ in range(3)), *(lattice(rng) for _ in range(3))]:
        if min(np.ptp(u), np.ptp(r)) >= 0.01 * max(np.ptp(u), np.ptp(r)) > 0:
            assert epsilon_of(u, r, rule="grid") == pytest.approx(published_grid(u, r), abs=1e-12)


X = np.random.default_rng(3).normal(size=50)
#: One model on the wrong side of a perfect cut: FPR = 1/50 and FNR = 1/50 is the best cut left.
LEFT, RIGHT = np.r_[np.arange(49.0), 49.6], np.r_[48.5, np.arange(1, 50) + 49.5]


@pytest.mark.parametrize(
    ("u", "r", "options", "epsilon"),
    [
        (X + 100, X, {}, 50), (X, X[::-1], {}, 0), (X + 100, X, {"rule": "grid"}, 50),
        (X, X[::-1], {"rule": "grid"}, 0), ([2, 2], [2, 2], {}, 0), ([2, 2], [3, 3], {}, 50),
        (RIGHT, LEFT, {}, math.log((1 - DELTA - 0.02) / 0.02)),
        # 1 of 100 is no less than a hundredth; scores of 1 or more are 2 of the 3 and 1 of the 2
        ([0, 1], [0, 50, 100], {}, math.log((1 - DELTA - 1 / 2) / (1 / 3))),
        ([0, 0.99], [0, 50, 100], {}, 50),
        # two of the three positives need one false positive, or equation (1) discards them: it is the next one below,
        # if the set is no wider than the range by more than the buffer
        *(
            ([0, 1, 2], [-10, -9, below, 2, 2, 7, 10], {}, math.log(truth * (2 / 3 - DELTA)))
            for below, truth in ((-2.5, 7), (-3, 7), (-3.5, 3.5))
        ),
    ],
)  # fmt: skip
def test_closed_forms(u, r, options, epsilon):
    assert epsilon_of(u, r, **options) == pytest.approx(epsilon, rel=1e-12)


def test_bad_phi_is_refused():
    x = np.zeros((4, 3))
    for u, r in ((x[:1], x), (x[:, :0], x[:, :0]), (x + np.nan, x)):
        with pytest.raises(ValueError, match=r"at least two|NaN or infinite"):
            epsilons(unlearned=u, retrained=r)


def test_points_are_the_published_bins():
    values = np.array([0.0, 0.49, 0.5, 1.0, 1.5, 1.99, 6.0, 6.49, 7.0, 50.0, np.inf])
    expected = [1, 1, 0.5, 0.25, 0.125, 0.125, 2.0**-12, 2.0**-12, 0, 0, 0]
    np.testing.assert_array_equal(points(values, models=512), expected)
    # ⌈ln(N − 1)⌉: two bins for N = 3, none for N = 2; two of width 1 for N = 4
    np.testing.assert_array_equal(points([0.2, 0.7, 1.0], models=3), [1, 0.5, 0])
    np.testing.assert_array_equal(points([0.2], models=2), [0])
    np.testing.assert_array_equal(points([0.0, 0.99, 1, 2], models=4, width=1.0), [1, 1, 0.5, 0])
    # 13 bins as printed or 14 as ⌈ln(N − 1)⌉ has it: no finite ε tells them apart
    table = epsilon_table(512, 512, DELTA)
    assert table[np.isfinite(table)].max() < 6.5


def test_the_table_of_bounds_holds_both_rates_at_their_upper_limits():
    def upper(k: int, n: int) -> float:
        return 1.0 if k == n else beta.ppf(0.8, k + 1, n - k)

    expected = [[equation_1(upper(fp, 12), upper(9 - tp, 9), 0.05) for fp in range(13)] for tp in range(10)]
    table = bound_table(9, 12, 0.05, confidence=0.6)
    np.testing.assert_allclose(table, np.maximum(np.nan_to_num(expected), 0), atol=1e-12)
    assert (table > 0).sum() > 20


def test_the_interval_of_a_bound_is_the_best_of_all_and_ends_midway_or_is_open():
    rng = np.random.default_rng(4)
    for _ in range(60):
        sides = lattice(rng)
        table, t = bound_table(*map(len, sides), 1e-5, 0.5), np.unique(np.concatenate(sides))
        spans = {(low, high): [((low <= side) & (side <= high)).sum() for side in sides] for low in t for high in t}
        actual, low, high = _epsilon._best_interval(*sides, 1e-5, 0.5)
        assert actual == max(table[*counts] for counts in spans.values())
        assert actual == table[*[((low <= side) & (side <= high)).sum() for side in sides]]
    for negative, ends in (([0, 1, 7], (2, 6)), ([0, 1, 1], (2, np.inf)), ([7, 9, 8], (-np.inf, 6))):
        actual = _epsilon._best_interval(np.array([3.0, 4, 5]), np.array(negative, float), DELTA, 0.3)
        assert actual == (bound_table(3, 3, DELTA, 0.3)[3, 0], *ends)


LOW, HIGH, AROUND = [0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15], [0, 1, 2, 20, 21, 22]


@pytest.mark.parametrize(
    ("halves", "counts"),
    [
        ((HIGH, HIGH, LOW, LOW), (6, 0)),
        # 7.5, midway, belongs to the rule: an unlearned model there is found, a retrained one there is a false alarm
        ((HIGH, [7.5, *HIGH[1:]], LOW, LOW), (6, 0)), ((HIGH, HIGH, LOW, [7.5, *LOW[1:]]), (6, 1)),
        ((LOW, [7.5, *LOW[1:]], HIGH, HIGH), (6, 0)), ((LOW, LOW, HIGH, [7.5, *HIGH[1:]]), (6, 1)),
        # a rule that says "retrained": they lie between the unlearned ones, and one of them does not on the other half
        ((AROUND, AROUND, HIGH, [30, *HIGH[1:]]), (5, 0)),
        # models that the choice cannot tell apart give no rule, whatever the other halves say
        ((LOW, HIGH, LOW, LOW), (0, 0)),
    ],
)  # fmt: skip
def test_a_bound_reads_the_chosen_rule_on_the_other_halves(halves, counts):
    u, u_test, r, r_test = (np.array(half, float)[:, None] for half in halves)
    (bound,) = epsilon_bounds((u, u_test), (r, r_test), 0.9, DELTA)
    assert bound == bound_table(6, 6, DELTA, 0.9)[counts]


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.0])
def test_bound_holds_at_its_confidence(epsilon):
    # phi = ±1 by randomised response has exactly this ε; a little noise keeps thresholds apart from ties
    rng = np.random.default_rng(6)
    samples, models, confidence = 800, 60, 0.9
    p = 1 / (1 + math.exp(-epsilon))
    signs = (np.where(rng.random((models, samples)) < rate, 1.0, -1.0) for rate in (p, 1 - p))
    u, r = (np.split(sign + 1e-3 * rng.normal(size=sign.shape), 2) for sign in signs)
    bounds = epsilon_bounds(u, r, confidence, DELTA)
    allowed = 1 - confidence
    assert (bounds > epsilon).mean() <= allowed + 3 * math.sqrt(allowed * confidence / samples)
    if epsilon == 2.0:
        assert np.median(bounds) > 0.5

"""Where a verdict would be wrong: models without partners, attacks that are blind, few samples that are kept."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom
from unlearning_audit import stats
from unlearning_audit.comparisons import distances, planning, sensitivity, verdicts
from unlearning_audit.evaluation.effects import DecisionRule, single
from unlearning_audit.stats import crossed, decide, paired, ratio

import verdict_worlds as worlds
from comparison_cases import MARGINS, compare, scenario, verdicts_of
from folder_cases import parts as effects


def tables(cases: dict):
    """The tables of one audit of imported models."""
    parts = {method: effects(entry, worlds.SETTINGS) for method, entry in cases.items()}
    return verdicts.compare(parts, {}, margins=MARGINS, draws=100, seed=0)


def judged(cases: dict) -> dict[str, dict]:
    """Method → its line of one audit of imported models."""
    return {line["method"]: line for line in tables(cases).verdicts}


def answering(evaluation, logits):
    """The case with other ``logits``."""
    evaluation.__dict__.update(unlearned=logits, outputs=lambda files: worlds.Held(logits))
    return evaluation


def read(part, metric="advantage", draws=300):
    """The distance of a method from the value that theory gives."""
    contrast, rng = distances.Contrast(part, None, distances.THEORY), np.random.default_rng(0)
    return distances.read(contrast, metric, margins=MARGINS, rng=rng, draws=draws)


def test_the_order_of_imported_models_changes_nothing():
    cases = worlds.world(np.random.default_rng(0), 3, 3, harder=0.5, skill=0.7, varying=0.5)
    before = judged(cases)
    answering(cases["retrain"], np.roll(cases["retrain"].unlearned, 1, axis=0))
    after = judged(cases)
    for method in ("mine", "none"):
        assert before[method]["verdict"] == after[method]["verdict"]
        for column in ("distance", "ci_low", "ci_high", "p_holm"):
            assert before[method][column] == pytest.approx(after[method][column], rel=1e-9)


def test_one_model_against_one_has_no_yardstick_and_is_not_broken():
    """How such models vary nobody knows, so that every class would be a guess."""
    audit = tables(worlds.world(np.random.default_rng(1), 1, 1, harder=0.5, varying=0.6))
    lines = {line["method"]: line for line in audit.verdicts}
    assert {(line["verdict"], str(line["p_holm"])) for line in lines.values()} == {(decide.NO_YARDSTICK, "nan")}
    assert "retrain a second model" in lines["mine"]["note"]
    assert np.isfinite([lines["mine"]["distance"], lines["mine"]["ci_low"]]).all()
    assert lines["mine"]["against_none"] == ""
    assert "not distinguishable" not in lines["mine"]["note"], "which nobody has tested"
    assert audit.ranks == []


@pytest.mark.parametrize("size", [(1, 2), (2, 1)])
def test_a_second_model_on_either_side_is_a_yardstick(size):
    lines = judged(worlds.world(np.random.default_rng(2), *size, harder=0.5, shared=1.0))
    assert decide.NO_YARDSTICK not in {lines[method]["verdict"] for method in ("mine", "none")}
    assert (distances.LONE in lines["mine"]["note"]) == (size[0] == 1), "which borrows how models vary"


def test_of_few_retrained_models_more_are_asked_for():
    """Two retrained models find nothing of a distance that three find, and nothing is wrong with the attacks."""
    lines = judged(worlds.world(np.random.default_rng(3), 1, 2, harder=0.5, varying=0.1))
    assert lines["none"]["verdict"] == decide.NOTHING_TO_FIND
    assert "too few retrained models: doing nothing lies" in lines["none"]["note"]
    assert "if its distance is the upper limit of the interval, a study of this size finds it" in lines["none"]["note"]
    assert "retrained models find it" in lines["mine"]["note"]


def reference(sampled=0.0, spread=0.0, audited=1, band=1.0, known=False):
    return planning.Reference(sampled, spread, audited, band, known)


def test_the_least_distance_and_the_room_of_the_normal_distribution():
    """Beside one model of known spread, and where samples alone say how far."""
    for of, count, band, error in (
        (reference(spread=0.25, known=True), 1, 1.0, 0.5 * np.sqrt(2)),
        (reference(sampled=1e-4, band=1.2), 2, 1.2, 0.01),
    ):
        assert of.least_distance(count) == pytest.approx((band * 1.959964 + 0.841621) * error, rel=1e-4)
        assert of.room_needed(count) == pytest.approx((band * 1.644854 + 1.281552) * error, rel=1e-4)


@pytest.mark.parametrize(("audited", "others"), [(1, 2), (1, 10), (3, 5)])
def test_a_distance_of_that_size_is_found_and_retraining_shown_equivalent_with_power_of_four_fifths(audited, others):
    """Simulated as `stats.unpaired` reads them: models of spread 1, without noise of samples."""
    rng, audits, of = np.random.default_rng(10), 20_000, reference(spread=1.0, audited=audited)
    error = np.sqrt(1 / audited + 1 / others)
    value = error * rng.standard_normal(audits)

    def half(dof, p):
        return stats.t_quantile(p=p, dof=dof) * np.sqrt(rng.chisquare(dof, audits) / dof) * error

    found = np.abs(value + of.least_distance(others)) > half(others - 1, 0.975)
    assert found.mean() == pytest.approx(0.8, abs=0.01)
    inside = np.abs(value) + half(others - 1 if audited == 1 else min(audited, others) - 1, 0.95) < of.room_needed(
        others
    )
    assert 0.79 < inside.mean() < 0.91  # half of the missing power is left to each side


def test_the_least_numbers_of_retrained_models_that_decide_are_named_once_each():
    of = reference(spread=4e-4)
    needed = {decide.EQUIVALENT: of.room_needed, decide.DISTINGUISHABLE: of.least_distance}
    distance = SimpleNamespace(estimate=SimpleNamespace(low=-0.08, high=0.11))
    reading = SimpleNamespace(margin=(-0.1, 0.12), distance=distance)
    (alike, *_), *found = plans = planning.deciding_counts(reading, needed, 2, planning.MOST_RETRAINED)
    assert [plan[1:] for plan in plans] == [
        (decide.EQUIVALENT, 0.0), (decide.DISTINGUISHABLE, -0.08), (decide.DISTINGUISHABLE, 0.11)
    ]  # fmt: skip
    assert of.room_needed(alike) <= 0.1 < of.room_needed(alike - 1)
    for count, _, limit in found:
        assert of.least_distance(count) <= abs(limit) < of.least_distance(count - 1)
    reading.margin = (-1e-3, 1.0)
    assert len(planning.deciding_counts(reading, needed, 2, 256)) == 2, "what the most models do not show has no row"


def test_a_far_distance_of_doing_nothing_is_said_to_be_one():
    row = compare(scenario(np.random.default_rng(4), {"none": (-0.3,), "retrain": (0.0,), "x": (0.0,)}))[1]["none"]
    assert row["verdict"] == decide.NOTHING_TO_FIND
    assert row["note"].startswith(sensitivity.FAR_NONE)
    assert sensitivity.reason(row) == sensitivity.FAR_NONE


@pytest.mark.parametrize(("distance", "blind"), [(0.0, [False, True]), (0.075, None)])
def test_what_a_blind_attack_reads_must_lie_within_twice_the_margin(distance, blind):
    """The second attack sees nothing in doing nothing; of x it reads nothing, or more than the margin of .05."""
    reads, truth = {}, {"none": (0.5, 0.0), "x": (0.0, distance)}
    parts = scenario(np.random.default_rng(5), truth, pairs=8, models=1, samples=400, k=20)
    for method, values in truth.items():
        part = parts[method]["advantage"]
        reads[method] = read(replace(part, value=part.value + np.subtract(values, part.value.mean(axis=1))[:, None]))
    sighted = reads["x"].with_blind_attacks(reads["none"], 0.5, 0.5).blind
    assert blind == (None if sighted is None else sighted.tolist())


def test_choosing_the_largest_of_several_numbers_widens_intervals_and_tests_by_its_factor():
    """Of two attacks; without errors no factor is known, which is 1."""
    of = read(scenario(np.random.default_rng(5), {"x": (0.3, 0.0)}, pairs=6)["x"]["advantage"])
    factors, widths = of.together.joint_half / of.numbers.half_widths(), of.chance.half_widths(units=False)
    assert factors.min() > 1.05
    assert (np.sign(of.weights) == np.sign(of.numbers.value)).all()
    assert (of.widening, of.mean_widening, of.widening_of_test) == pytest.approx(
        (factors[of.chosen], np.abs(of.weights) @ factors, (of.together.null_half / widths)[of.chosen])
    )
    still = replace(of.numbers, influence=np.zeros_like(of.numbers.influence)).of_samples()
    sure = replace(of, numbers=still, chance=still)
    assert (sure.widening, sure.mean_widening, sure.widening_of_test) == (1, 1, 1)


@pytest.mark.parametrize("lacking", ["retrain", "x", ""])
def test_a_coarse_metric_neither_blocks_equivalence_nor_is_asked_for_more(lacking):
    """It decides distinguishability alone, whoever lacks it: retraining, or a method."""
    truth = {"none": (0.3,), "retrain": (0.0,), "retrain_control": (0.0,), "x": (0.0,)}
    size = {"pairs": 12, "models": 1, "samples": 600, "k": 80} if lacking else {"pairs": 3, "models": 1, "k": 40}
    parts = scenario(np.random.default_rng(2), truth, **size)
    for method in truth:
        part = parts[method]["advantage"]
        coarse = replace(part.rule, coarse=True, narrows=False)
        if not lacking or not method.startswith(lacking):
            noise = np.linspace(-0.3, 0.3, size["pairs"])[part.unit]
            parts[method]["coarse"] = replace(part, rule=coarse, value=part.value + noise)
    row = compare(parts)[1]["x"]
    assert "coarse" not in row["note"]
    assert row["verdict"] == (decide.EQUIVALENT if lacking else decide.INCONCLUSIVE)
    assert ("if the method is like retraining" in row["note"]) == (not lacking)


@pytest.mark.parametrize(
    ("half", "coarse"),
    [
        ({"retrain": 0.01, "retrain_control": 0.01, "x": 0.9}, set()),
        ({"retrain": 0.01, "retrain_control": 0.9, "x": 0.01}, {"tail"}),
        ({"retrain": 0.9, "retrain_control": 0.01, "x": 0.01}, {"tail"}),
        ({"none": 0.01, "x": 0.01}, {"tail"}),
    ],
)
def test_a_metric_is_too_coarse_where_retraining_itself_is_not_shown_to_be_equivalent(half, coarse):
    def of(half: float, *metrics: str) -> SimpleNamespace:
        distance, reads = SimpleNamespace(within=half < 0.1), {}
        for metric in metrics:
            contrast = SimpleNamespace(audited=SimpleNamespace(rule=SimpleNamespace(coarse=metric == "tail")))
            reads[metric] = SimpleNamespace(distance=distance, contrast=contrast)
        return SimpleNamespace(reads_by=lambda deciding: reads)

    assert verdicts._unproven_coarse({method: of(width, "tail", "auc") for method, width in half.items()}) == coarse
    assert verdicts._unproven_coarse({method: of(width, "tail") for method, width in half.items()}) == set()


def test_no_number_of_a_method_is_more_than_the_margin_away_in_a_coarse_metric_with_an_end():
    parts = scenario(np.random.default_rng(2), {"none": (0.3,), "retrain": (0.0,)}, pairs=3, models=1, k=40)
    for metrics in parts.values():
        wide = replace(metrics["advantage"].rule, coarse=True, coarse_margin=0.12)
        metrics["coarse"] = replace(metrics["advantage"], rule=wide)
    rows = [row for row in compare(parts)[0].distances if row["method"] == "none"]
    found = {row["metric"]: (row["margin_far"], row["margin_near"]) for row in rows}
    assert found["coarse"] == pytest.approx((-0.12, 0.12), abs=0.02)
    assert found["advantage"] == (-0.05, 0.05)


@pytest.mark.slow
def test_a_method_that_keeps_three_per_cent_is_not_equivalent():
    """Three of a hundred forgotten samples stand out in every model; the largest advantage does not see them."""
    kept, sound = (
        [worlds.audit(name, 16, 16, seed)["mine"]["verdict"] for seed in range(6)]
        for name in ("pairs, the method keeps 3 %", "pairs, one attack")
    )
    assert "equivalent" not in kept
    assert sound.count("equivalent") >= 4


@pytest.mark.slow
@pytest.mark.parametrize(("pairs", "models", "attacks"), [(3, 3, 12), (8, 1, 20)])
def test_the_share_closed_of_retraining_covers_all_of_it_whatever_the_number_of_attacks(pairs, models, attacks):
    rng, audits = np.random.default_rng(8), 40
    truth = {"none": (0.3, *[0.0] * (attacks - 1)), "retrain": (0.0,) * attacks, "x": (0.0,) * attacks}
    covered, narrow, closer, size = 0, 0, 0, {"pairs": pairs, "models": models, "samples": 300, "k": 60}
    for _ in range(audits):
        parts = {m: {"advantage": p["advantage"]} for m, p in scenario(rng, truth, **size).items()}
        (row,) = (row for row in compare(parts)[0].distances if row["method"] == "x")
        covered += row["share_high"] >= 1
        narrow += row["share_low"] > 0.3
        closer += row["closer_low"] <= 0.3 <= row["closer_high"]
    assert covered >= 36  # of 40 with .95 each at least 34 but once in 2,000; without a band 8 to 20 are
    assert closer >= 36  # so of how much closer it is than doing nothing, whose advantage is .3
    assert narrow >= 30  # it does not cover by saying nothing


def test_a_method_is_further_than_doing_nothing_by_both_intervals_or_by_none():
    influence = np.random.default_rng(3).standard_normal((2, 1, 40))
    both = paired.distances(value=np.zeros((2, 1)), influence=influence, unit=np.zeros(1, int))
    half = both.combined([[-1.0, 1.0]]).half_widths()[0]
    both = replace(both, value=np.array([9 + (1 + 1 / np.sqrt(2)), 9.0]) * half)
    ends = (
        distances.closer(both, factor=2.0).high,
        ratio.share_closed(distances=both, significant=True, factor=2.0).high,
    )
    np.testing.assert_allclose(ends, 0.0, atol=1e-6)


@pytest.mark.parametrize("units", [(0, 0, 0), (0, 1, 2)])
def test_models_that_agree_on_every_sample_do_not_make_few_samples_certain(units):
    """What a method keeps lies beyond the margin; of 20 samples three models of a kind know the same."""
    rule = DecisionRule(1, "accuracy", lowest=0.0, highest=1.0)

    def of_three(right):
        number = crossed.per_model(value=np.tile(right * 1.0, (3, 1)), weight=np.ones((3, 20)))
        return {"right": single(**vars(number), unit=np.array(units), rule=rule)}

    known, kept = np.random.default_rng(2).random((2, 60, 20)) < [[[0.5]], [[0.12]]]
    similar, covered = 0, 0
    for k, m in zip(known, kept, strict=True):
        parts = {"none": of_three(k | m), "retrain": of_three(k), "mine": of_three(k | m), "same": of_three(k)}
        similar += verdicts_of(parts)["mine"]["verdict"] == decide.EQUIVALENT
        contrasts = [distances.contrast_or_reason(name, "right", parts) for name in ("same", "mine")]
        nearer = distances.closer(distances.joint([(contrast, np.ones(1)) for contrast in contrasts]))
        covered += nearer.low <= 0.06 <= nearer.high
    assert similar <= 7  # of 60 at .05, more but once in 100
    assert covered >= 52  # of 60 at .95, less but once in 100


def test_a_retrained_model_that_lies_there_three_times_is_one():
    """Copies would say that retrained models do not vary, so that any distance from them is certain."""
    cases = worlds.world(np.random.default_rng(5), 1, 3, harder=0.5, varying=0.3)
    assert judged(cases)["mine"]["verdict"] != decide.NO_YARDSTICK
    retrain = cases["retrain"]
    answering(retrain, retrain.unlearned[[0, 0, 0]] + np.array([[[0.0]], [[1.0]], [[1e-7]]]))
    retrain.__dict__.pop("copied")
    assert retrain.copied.tolist() == [0, 0, 0]
    lines = judged(cases)
    assert lines["mine"]["verdict"] == lines["none"]["verdict"] == decide.NO_YARDSTICK


def gaps(evaluation, rule):
    """A user's number of one value for each model: how much more confident it is in forgotten than in held-out ones."""
    member = evaluation.membership
    contrasts = zip(
        stats.phi(logits=evaluation.unlearned, y=evaluation.data.y), member.forget, member.heldout, strict=True
    )
    value = np.array([np.median(phi[forget]) - np.median(phi[heldout]) for phi, forget, heldout in contrasts])
    return {"gap": single(value=value, unit=member.block, rule=rule)}


def accused(audits: int, draw: bool) -> int:
    """How often a retrained model is called anything by `gaps` where forgotten samples are harder by themselves."""
    count, rule = 0, DecisionRule(direction=1, margin="0.5", ideal=0.0, draw=draw).without_draw()
    for seed in range(audits):
        cases = worlds.world(np.random.default_rng([seed, 7]), 3, 3, harder=1.5, varying=0.3)
        parts = {method: gaps(evaluation, rule) for method, evaluation in cases.items()}
        lines = {line["method"]: line for line in verdicts.compare(parts, {}, margins={}, draws=100, seed=0).verdicts}
        count += lines["mine"]["verdict"] in (decide.DISTINGUISHABLE, decide.OVER_UNLEARNED, decide.BROKEN)
    return count


@pytest.mark.slow
def test_what_a_users_number_reads_in_theory_counts_where_samples_are_a_fair_draw():
    """Elsewhere retrained models tell; by theory, which the file may insist on, a sound model is accused."""
    assert DecisionRule(direction=1, margin="0.5", ideal=0.0).draw
    assert accused(40, draw=True) <= binom.ppf(0.999, 40, 0.05)
    assert accused(10, draw=False) > 5


@pytest.mark.parametrize("theory", [0.0, np.nan])
def test_one_model_without_samples_shows_nothing_of_how_it_varies(theory):
    """Its distance from theory, or from one other model, would be certain however small it is."""
    rule = DecisionRule(direction=1, margin="0.5", ideal=theory, draw=False)

    def audit(models):
        sizes = {"none": 0.3, "retrain": 0.0, "mine": 0.1}
        parts = {name: {"gap": single(value=np.full(models, size), unit=np.arange(models), rule=rule)}
                 for name, size in sizes.items()}  # fmt: skip
        return verdicts.compare(parts, {}, margins={}, draws=100, seed=0)

    assert audit(1).distances == []
    (line,) = (line for line in audit(1).verdicts if line["method"] == "mine")
    assert line["verdict"] in decide.STATES
    assert "its uncertainty is unknown" in line["note"]
    assert audit(2).distances

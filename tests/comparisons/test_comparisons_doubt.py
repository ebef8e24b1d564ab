"""Where a verdict would be wrong: models without partners, attacks that are blind, few samples that are kept."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import verdict_worlds as worlds
from scipy.stats import binom
from unlearning_audit import stats
from unlearning_audit.comparisons import distances, retrained, sensitivity, verdicts
from unlearning_audit.evaluation.contributions import Contribution, Standard, single
from unlearning_audit.stats import decide

from comparison_cases import MARGINS, compare, scenario
from folder_cases import parts as contributions


def judged(cases: dict, margins=MARGINS, settings=None) -> dict[str, dict]:
    """Method → its line of one audit of imported models."""
    parts = {method: contributions(entry, settings or worlds.SETTINGS) for method, entry in cases.items()}
    return {line["method"]: line for line in verdicts.compare(parts, {}, margins=margins, draws=300, seed=0).verdicts}


def test_the_order_of_imported_models_changes_nothing():
    rng = np.random.default_rng(0)
    cases = worlds.world(rng, 3, 3, harder=0.5, skill=0.7, varying=0.5)
    before = judged(cases)
    moved = cases["retrain"]
    moved.__dict__["unlearned"] = logits = np.roll(moved.unlearned, 1, axis=0)
    moved.__dict__["answers"] = lambda files: worlds.Held(logits)
    after = judged(cases)
    for method in ("mine", "none"):
        assert before[method]["verdict"] == after[method]["verdict"]
        for column in ("distance", "ci_low", "ci_high", "p_holm"):
            assert before[method][column] == pytest.approx(after[method][column], rel=1e-9)


def test_one_model_against_one_has_no_yardstick_and_is_not_broken():
    """How such models vary nobody knows, so that every class would be a guess."""
    cases = worlds.world(np.random.default_rng(1), 1, 1, harder=0.5, varying=0.6)
    lines = judged(cases)
    assert {line["verdict"] for line in lines.values()} == {decide.NO_YARDSTICK}
    assert all(np.isnan(line["p_holm"]) for line in lines.values())
    assert "retrain a second model" in lines["mine"]["note"]
    assert np.isfinite(lines["mine"]["distance"])
    assert np.isfinite(lines["mine"]["ci_low"])
    assert lines["mine"]["against_none"] == ""
    assert "not distinguishable" not in lines["mine"]["note"], "which nobody has tested"
    parts = {method: contributions(entry, worlds.SETTINGS) for method, entry in cases.items()}
    assert verdicts.compare(parts, {}, margins=MARGINS, draws=100, seed=0).ranks == []


@pytest.mark.slow
def test_an_interval_over_samples_says_little_of_one_model_against_one():
    """Why they have no class: of models that are drawn alike it leaves out 0 far more often than in 5 % of audits."""
    audits, out = 24, 0
    for seed in range(audits):
        cases = worlds.world(np.random.default_rng([seed, 6]), 1, 1, harder=0.5, shared=0.5, varying=0.6)
        parts = {method: contributions(entry, worlds.SETTINGS) for method, entry in cases.items()}
        lines = verdicts.compare(parts, {}, margins=MARGINS, draws=100, seed=0).distances
        (auc,) = (line for line in lines if (line["method"], line["metric"]) == ("mine", "auc"))
        out += not auc["ci_low"] <= 0 <= auc["ci_high"]
    assert out > 0.25 * audits


@pytest.mark.parametrize("size", [(1, 2), (2, 1), (2, 2)])
def test_a_second_model_on_either_side_is_a_yardstick(size):
    lines = judged(worlds.world(np.random.default_rng(2), *size, harder=0.5, shared=1.0))
    assert decide.NO_YARDSTICK not in {lines[method]["verdict"] for method in ("mine", "none")}


def test_of_few_retrained_models_more_are_asked_for():
    """Two retrained models find nothing of a distance that three find, and nothing is wrong with the attacks."""
    lines = judged(worlds.world(np.random.default_rng(3), 1, 2, harder=0.5, varying=0.1))
    assert lines["none"]["verdict"] == decide.NOTHING_TO_FIND
    assert "too few retrained models: doing nothing lies" in lines["none"]["note"]
    assert "if its distance is the upper limit of the interval, a study of this size finds it" in lines["none"]["note"]
    assert "retrained models find it" in lines["mine"]["note"]


def test_beside_one_model_of_known_spread_distances_are_found_as_far_away_as_the_normal_distribution_has_it():
    yardstick = retrained.Yardstick(sampled=0.0, spread=0.25, audited=1, band=1.0, known=True)
    error = 0.5 * np.sqrt(2)
    assert yardstick.least_distance(1) == pytest.approx((1.959964 + 0.841621) * error, rel=1e-4)
    assert yardstick.room_needed(1) == pytest.approx((1.644854 + 1.281552) * error, rel=1e-4)


@pytest.mark.parametrize(("audited", "retrained_models"), [(1, 2), (1, 3), (1, 10), (3, 5)])
def test_a_distance_of_that_size_is_found_and_retraining_shown_equivalent_with_power_of_four_fifths(
    audited, retrained_models
):
    """Simulated as `stats.unpaired` reads them: models of spread 1, without noise of samples."""
    rng, audits = np.random.default_rng(10), 20000
    yardstick = retrained.Yardstick(sampled=0.0, spread=1.0, audited=audited, band=1.0)
    error = np.sqrt(1 / audited + 1 / retrained_models)
    value = error * rng.standard_normal(audits)
    dof = retrained_models - 1
    shown = np.sqrt(rng.chisquare(dof, audits) / dof) * error
    least = yardstick.least_distance(retrained_models)
    found = np.abs(value + least) > stats.t_quantile(p=np.array([0.975]), dof=np.array([float(dof)])) * shown
    assert found.mean() == pytest.approx(0.8, abs=0.01)
    dof = dof if audited == 1 else min(audited, retrained_models) - 1
    shown = np.sqrt(rng.chisquare(dof, audits) / dof) * error
    room = yardstick.room_needed(retrained_models)
    inside = np.abs(value) + stats.t_quantile(p=np.array([0.95]), dof=np.array([float(dof)])) * shown < room
    assert 0.79 < inside.mean() < 0.91  # half of the missing power is left to each side


def test_samples_limit_what_more_retrained_models_find():
    yardstick = retrained.Yardstick(sampled=1e-4, spread=4e-4, audited=1, band=1.2)
    sizes = [yardstick.least_distance(count) for count in (2, 3, 10, 100)]
    assert sizes == sorted(sizes, reverse=True)
    of_samples = retrained.Yardstick(sampled=1e-4, spread=0.0, audited=1, band=1.2)
    assert of_samples.least_distance(2) == pytest.approx((1.2 * 1.95996 + 0.84162) * 0.01, rel=1e-4)
    assert of_samples.room_needed(2) == pytest.approx((1.2 * 1.64485 + 1.28155) * 0.01, rel=1e-4)


def test_the_least_numbers_of_retrained_models_that_decide_are_named_once_each(monkeypatch):
    yardstick = retrained.Yardstick(sampled=0.0, spread=4e-4, audited=1, band=1.0)
    monkeypatch.setattr(retrained.Yardstick, "of", lambda read: yardstick)
    distance = SimpleNamespace(estimate=SimpleNamespace(low=-0.08, high=0.11))
    read = SimpleNamespace(margin=(-0.1, 0.1), side=SimpleNamespace(retrained=2), given="", distance=distance)
    plans = retrained.deciding_counts(read)
    assert [(outcome, limit) for _, outcome, limit in plans] == [
        (decide.EQUIVALENT, 0.0), (decide.DISTINGUISHABLE, -0.08), (decide.DISTINGUISHABLE, 0.11)
    ]  # fmt: skip
    (equivalent, *_), *found = plans
    assert yardstick.room_needed(equivalent) <= 0.1 < yardstick.room_needed(equivalent - 1)
    for count, _, limit in found:
        assert yardstick.least_distance(count) <= abs(limit) < yardstick.least_distance(count - 1)


def test_only_models_without_partners_borrow_how_they_vary():
    alone = judged(worlds.world(np.random.default_rng(2), 1, 2, harder=0.5))["mine"]
    _, paired = compare(scenario(np.random.default_rng(0), {"none": (0.3,), "retrain": (0.0,), "x": (0.1,)}, models=1))
    assert distances.LONE in alone["note"]
    assert distances.LONE not in paired["x"]["note"]


def test_a_far_distance_of_doing_nothing_is_said_to_be_one():
    parts = scenario(np.random.default_rng(4), {"none": (-0.3,), "retrain": (0.0,), "x": (0.0,)})
    _, rows = compare(parts)
    assert rows["none"]["verdict"] == decide.NOTHING_TO_FIND
    assert rows["none"]["note"].startswith(sensitivity.FAR_NONE)
    assert "all the same" not in rows["none"]["note"]
    assert sensitivity.reason(rows["none"]) == sensitivity.FAR_NONE


@pytest.mark.parametrize(("distance", "blind"), [(0.0, [False, True]), (0.075, [False, False])])
def test_what_a_blind_attack_reads_must_lie_within_twice_the_margin(distance, blind):
    """The second attack sees nothing in doing nothing; of x it reads nothing, or more than the margin of .05."""
    reads = {}
    truth = {"none": (0.5, 0.0), "x": (0.0, distance)}
    parts = scenario(np.random.default_rng(5), truth, pairs=8, models=1, samples=400, k=20)
    for method, values in truth.items():
        part = parts[method]["advantage"]
        value = part.value + (np.array(values) - part.value.mean(axis=1))[:, None]
        side = distances.Side(replace(part, value=value), None, distances.THEORY)
        reads[method] = distances.read(
            side, "advantage", margins=MARGINS, rng=np.random.default_rng(0), draws=300
        )  # fmt: skip
    sighted = reads["x"].sighted(reads["none"], 0.5, 0.5)
    assert blind == (sighted.blind.tolist() if sighted.blind is not None else [False, False])


def test_choosing_the_largest_of_several_numbers_widens_intervals_and_tests_by_its_factor():
    """Of two attacks; without errors no factor is known, which is 1."""
    part = scenario(np.random.default_rng(5), {"x": (0.3, 0.0)}, pairs=6)["x"]["advantage"]
    side, rng = distances.Side(part, None, distances.THEORY), np.random.default_rng(0)
    read = distances.read(side, "advantage", margins=MARGINS, rng=rng, draws=300)
    together, numbers = read.together, read.numbers
    factors = together.half / numbers.half_widths()
    assert factors.min() > 1.05
    assert read.factor == pytest.approx(factors[read.place])
    assert read.factor_of_largest == pytest.approx(np.abs(read.weights) @ factors)
    of_test = together.alone / read.chance.half_widths(units=False)
    assert read.factor_of_test == pytest.approx(of_test[read.place])
    still = replace(numbers, influence=np.zeros_like(numbers.influence)).of_samples()
    sure = replace(read, numbers=still, chance=still)
    assert (sure.factor, sure.factor_of_largest, sure.factor_of_test) == (1, 1, 1)


def test_a_coarse_metric_without_a_reading_of_retraining_does_not_decide_equivalence():
    parts = scenario(np.random.default_rng(6), {"none": (0.4,), "retrain": (0.0,), "x": (0.0,)}, pairs=12, k=150)
    advantage = parts["x"]["advantage"]
    coarse = replace(advantage.standard, coarse=True)
    noise = np.where(advantage.unit % 2, 0.5, -0.5)
    for method in ("none", "x"):
        parts[method]["coarse"] = replace(parts[method]["advantage"], standard=coarse, value=advantage.value + noise)
    _, rows = compare(parts)
    assert rows["x"]["verdict"] == decide.EQUIVALENT


@pytest.mark.parametrize("lacking", [True, False])
def test_a_coarse_metric_neither_blocks_equivalence_nor_is_asked_for_more(lacking):
    """It decides distinguishability alone: by a method that lacks it, and by what would decide on one that has it."""
    truth = {"none": (0.3,), "retrain": (0.0,), "retrain_control": (0.0,), "x": (0.0,)}
    size = {"pairs": 12, "models": 1, "samples": 600, "k": 80} if lacking else {"pairs": 3, "models": 1, "k": 40}
    parts = scenario(np.random.default_rng(2), truth, **size)
    for method in truth:
        part = parts[method]["advantage"]
        coarse = replace(part.standard, coarse=True, narrows=False)
        if method != "x" or not lacking:
            noise = np.linspace(-0.3, 0.3, size["pairs"])[part.unit]
            parts[method]["coarse"] = replace(part, standard=coarse, value=part.value + noise)
    _, rows = compare(parts)
    assert "coarse" not in rows["x"]["note"]
    if lacking:
        assert rows["x"]["verdict"] == decide.EQUIVALENT
    else:
        assert rows["x"]["verdict"] == decide.INCONCLUSIVE
        assert "if the method is like retraining" in rows["x"]["note"]


@pytest.mark.parametrize(
    ("half", "coarse"),
    [
        ({"retrain": 0.01, "retrain_control": 0.01, "x": 0.9}, set()),
        ({"retrain": 0.01, "retrain_control": 0.9, "x": 0.01}, {"tail"}),
        ({"retrain": 0.9, "x": 0.01}, {"tail"}),
        ({"none": 0.01, "x": 0.01}, {"tail"}),
    ],
)
def test_a_metric_is_too_coarse_where_retraining_itself_is_not_shown_to_be_equivalent(half, coarse):
    def judged(half: float, *metrics: str) -> SimpleNamespace:
        reads = {
            metric: SimpleNamespace(
                distance=SimpleNamespace(inner=(-half, half)), margin=(-0.1, 0.1),
                side=SimpleNamespace(audited=SimpleNamespace(standard=SimpleNamespace(coarse=metric == "tail"))),
            ) for metric in metrics
        }  # fmt: skip
        return SimpleNamespace(of=lambda deciding: reads)

    assert verdicts._coarse({method: judged(width, "tail", "auc") for method, width in half.items()}) == coarse
    assert verdicts._coarse({method: judged(width, "tail") for method, width in half.items()}) == set()


@pytest.mark.slow
def test_a_method_that_keeps_three_per_cent_is_not_equivalent():
    """Three of a hundred forgotten samples stand out in every model; the largest advantage does not see them."""
    lines = [worlds.audit("pairs, the method keeps 3 %", 16, 16, seed)["mine"] for seed in range(6)]
    assert "equivalent" not in {line["verdict"] for line in lines}
    sound = [worlds.audit("pairs, one attack", 16, 16, seed)["mine"] for seed in range(6)]
    assert [line["verdict"] for line in sound].count("equivalent") >= 4


@pytest.mark.slow
def test_the_share_closed_of_retraining_covers_all_of_it_whatever_the_number_of_attacks():
    rng, audits, attacks = np.random.default_rng(8), 40, 12
    truth = {"none": (0.3, *[0.0] * (attacks - 1)), "retrain": (0.0,) * attacks, "x": (0.0,) * attacks}
    covered, narrow, closer = 0, 0, 0
    for _ in range(audits):
        parts = {m: {"advantage": p["advantage"]} for m, p in scenario(rng, truth, pairs=3, samples=300, k=60).items()}
        (row,) = (row for row in compare(parts)[0].distances if row["method"] == "x")
        covered += row["share_high"] >= 1
        narrow += row["share_low"] > 0.3
        closer += row["closer_low"] <= 0.3 <= row["closer_high"]
    assert covered >= 36  # of 40 with .95 each at least 34 but once in 2,000; without a band 8 to 20 are
    assert closer >= 36  # so of how much closer it is than doing nothing, whose advantage is .3
    assert narrow >= 30  # it does not cover by saying nothing


def test_no_number_of_a_method_is_more_than_the_margin_away_in_a_coarse_metric_with_an_end():
    side = distances.Side(
        scenario(np.random.default_rng(9), {"none": (0.0,)})["none"]["advantage"], None, distances.THEORY
    )
    wide = replace(side.audited, standard=replace(side.audited.standard, coarse=True, coarse_margin=0.2))
    read = distances.read(replace(side, audited=wide), "tail", margins=MARGINS, rng=np.random.default_rng(0), draws=100)
    assert read.with_coarse_margin().margin == (-0.2, 0.2)
    assert read.with_coarse_margin().capped(0.1).margin == (-0.05, 0.05)
    assert replace(read, margin=(-0.3, 0.3)).with_coarse_margin().margin == (-0.3, 0.3)


def test_a_retrained_model_that_lies_there_three_times_is_one():
    """Copies would say that retrained models do not vary, so that any distance from them is certain."""
    cases = worlds.world(np.random.default_rng(5), 1, 3, harder=0.5, varying=0.3)
    assert judged(cases)["mine"]["verdict"] != decide.NO_YARDSTICK
    retrain = cases["retrain"]
    retrain.__dict__["unlearned"] = logits = retrain.unlearned[[0, 0, 0]] + np.array([[[0.0]], [[1.0]], [[1e-7]]])
    retrain.__dict__["answers"] = lambda files: worlds.Held(logits)
    retrain.__dict__.pop("copies")
    assert retrain.copies == [1, 2]
    lines = judged(cases)
    assert lines["mine"]["verdict"] == lines["none"]["verdict"] == decide.NO_YARDSTICK


def gaps(case) -> Contribution:
    """A user's number of one value for each model: how much more confident it is in forgotten than in held-out ones."""
    member = case.membership
    sides = zip(stats.phi(logits=case.unlearned, y=case.data.y), member.forget, member.heldout, strict=True)
    value = np.array([np.median(phi[forget]) - np.median(phi[heldout]) for phi, forget, heldout in sides])
    return single(value=value, unit=member.block, standard=Standard(direction=1, margin="0.5", ideal=0.0))


def accused(audits: int, draw: bool) -> int:
    """How often a retrained model is called anything by `gaps` where forgotten samples are harder by themselves."""
    count = 0
    for seed in range(audits):
        cases = worlds.world(np.random.default_rng([seed, 7]), 3, 3, harder=1.5, varying=0.3)
        parts = {method: gaps(case) for method, case in cases.items()}
        standards = {method: replace(part.standard, draw=draw).without_draw() for method, part in parts.items()}
        read = {method: {"gap": replace(part, standard=standards[method])} for method, part in parts.items()}
        lines = {line["method"]: line for line in verdicts.compare(read, {}, margins={}, draws=100, seed=0).verdicts}
        count += lines["mine"]["verdict"] in (decide.DISTINGUISHABLE, decide.OVER_UNLEARNED, decide.BROKEN)
    return count


@pytest.mark.slow
def test_what_a_users_number_reads_in_theory_counts_where_samples_are_a_fair_draw():
    """Elsewhere retrained models tell; by theory, which the file may insist on, a sound model is accused."""
    assert Standard(direction=1, margin="0.5", ideal=0.0).draw
    assert accused(40, draw=True) <= binom.ppf(0.999, 40, 0.05)
    assert accused(10, draw=False) > 5


@pytest.mark.parametrize("theory", [0.0, np.nan])
def test_one_model_without_samples_shows_nothing_of_how_it_varies(theory):
    """Its distance from theory, or from one other model, would be certain however small it is."""
    one, unit = np.array([0.1]), np.array([0])
    standard = Standard(direction=1, margin="0.5", ideal=theory, draw=False)
    parts = {
        method: {"gap": single(value=one * size, unit=unit, standard=standard)}
        for method, size in (("none", 3), ("retrain", 0), ("mine", 1))
    }
    judgement = verdicts.compare(parts, {}, margins={}, draws=100, seed=0)
    assert judgement.distances == []
    (line,) = (line for line in judgement.verdicts if line["method"] == "mine")
    assert line["verdict"] in decide.STATES
    assert "its uncertainty is unknown" in line["note"]
    several = {
        method: {"gap": single(value=np.repeat(part["gap"].value[0], 2), unit=np.arange(2), standard=standard)}
        for method, part in parts.items()
    }
    assert verdicts.compare(several, {}, margins={}, draws=100, seed=0).distances

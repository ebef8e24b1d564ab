"""One retrained model decides where the spread of such models is given, at the error rates of several."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.comparisons import distances, sensitivity, verdicts
from unlearning_audit.evaluation.effects import DecisionRule, single
from unlearning_audit.stats import decide

from comparison_cases import MARGINS, without_forecasts
from slow_cases import slow
from stat_cases import at_most

STANDARD = DecisionRule(1, "auc", units="models")
#: Of retrained models: equivalence within ±.05 can be shown.
SPREAD = 0.012


def part(value, moved=0.0, rule=STANDARD):
    """Effects of models with these values, each of which 40 samples move alike."""
    value = np.atleast_1d(np.asarray(value, np.float64))
    influence = np.full((len(value), 40), moved)
    return single(value=value, influence=influence, unit=np.zeros(len(value), np.int64), rule=rule)


def judged(cases, spreads=None):
    """Method → its line; ``cases``: method → metric → effect."""
    rows = verdicts.compare(cases, {}, margins=MARGINS, draws=100, seed=0, spreads=spreads).verdicts
    return {row["method"]: row for row in rows}


def mine(value, spreads=None, *, retrain=0.5, moved=0.0):
    """The line of a method with one number, beside doing nothing, which is held against ``retrain``."""
    values = {"mine": value, "none": 0.9, "retrain": retrain}
    return judged({name: {"auc": part(value, moved)} for name, value in values.items()}, spreads)["mine"]


def test_without_a_spread_the_line_says_which_would_make_it_chance():
    line = mine(0.7, moved=0.003)
    assert (line["verdict"], line["retrain_spread"]) == (decide.NO_YARDSTICK, None)
    assert sensitivity.condition(line["note"]) == f"{sensitivity.BY_CHANCE} 0.072 or more"  # 0.2/(1.96·√2)


@pytest.mark.parametrize(("spread", "verdict"), [(0.0719, decide.DISTINGUISHABLE), (0.0725, decide.INCONCLUSIVE)])
def test_a_distance_is_found_below_the_spread_that_would_make_it_chance(spread, verdict):
    """Of one method alone, which no other one shares α with, and whose samples say nothing."""
    line = judged({"mine": {"auc": part(0.7)}, "retrain": {"auc": part(0.5)}}, {"auc": spread})["mine"]
    assert (line["verdict"], line["retrain_spread"]) == (verdict, spread)
    assert f"given that retrained models have a standard deviation of {spread}" in line["note"]


def test_a_p_value_of_ones_own_counts_only_where_there_is_nothing_to_hold_against():
    exact, held = (
        replace(part(0.7, 0.003, DecisionRule(1, "auc", ideal=ideal, units="models")), p=np.array([1.23e-5]))
        for ideal in (0.5, np.nan)
    )
    first, second = (
        verdicts.compare(cases, {}, margins=MARGINS, draws=100, seed=0, spreads={"auc": 0.05}).distances[0]["p"]
        for cases in ({"mine": {"auc": exact}}, {"mine": {"auc": held}, "retrain": {"auc": part(0.5, 0.003)}})
    )
    assert first == pytest.approx(1.23e-5) != second


def test_two_numbers_at_the_same_end_are_saturated():
    """One model whose samples have a standard error of .003·√40 = .019."""
    rule = DecisionRule(-1, "auc", units="models", lowest=0.0, highest=1.0)
    high, higher, below, low = (part(value, 0.003, rule) for value in (0.97, 0.99, 0.96, 0.02))
    four = SimpleNamespace(value=np.array([[0.7, 0.9, 0.7, 0.9]]), influence=np.zeros((1, 4, 2)), rule=rule)
    assert [distances._nearby_end(one, 0) for one in (high, below, low, four)] == ["ceiling", "", "floor", ""]
    sentences = [
        distances.Read.saturated.func(SimpleNamespace(contrast=SimpleNamespace(audited=high, reference=one), chosen=0))
        for one in (higher, below, low)
    ]
    assert sentences == [distances.SATURATED.format("ceiling"), "", ""]
    line = judged({"mine": {"auc": high}, "none": {"auc": low}, "retrain": {"auc": higher}}, {"auc": 0.01})["mine"]
    assert line["verdict"] == decide.INCONCLUSIVE
    assert f"nothing to compare with by auc ({sentences[0]})" in line["note"]


def test_a_small_spread_shows_that_a_method_is_like_retraining():
    for spreads, alike in (({"auc": 0.01}, True), ({decide.EVERY: 0.01}, True), ({"auc": 0.03}, False),
                           ({"advantage": 0.01}, False)):  # fmt: skip
        assert (mine(0.5, spreads)["verdict"] == decide.EQUIVALENT) == alike


def test_what_has_no_spread_shows_no_equivalence():
    worth = DecisionRule(-1, "accuracy", deciding=False)
    cases = {name: {"auc": part(value), "accuracy_test": part(0.9, 0.001, worth)}
             for name, value in (("mine", 0.5), ("none", 0.9), ("retrain", 0.5))}  # fmt: skip
    line = judged(cases, {"auc": 0.01})["mine"]
    assert line["verdict"] == decide.INCONCLUSIVE
    assert f"accuracy_test ({sensitivity.NO_SPREAD})" in line["note"]
    assert judged(cases, {"auc": 0.01, "accuracy": 0.01})["mine"]["verdict"] == decide.EQUIVALENT


def test_several_retrained_models_show_their_spread_themselves():
    lines = [mine(0.7, spreads, retrain=[0.48, 0.5, 0.53]) for spreads in ({"auc": 0.3}, None)]
    assert str(lines[0]) == str(lines[1])


@without_forecasts
def share(seed, audited, audits, told=1.0, distance=0.0):
    """How often a method at a true ``distance`` is (found to differ from retraining, said to be like it), if retrained
    models vary by `SPREAD` and ``told`` times as much is given."""
    rng, hits = np.random.default_rng(seed), np.zeros(2)
    for _ in range(audits):
        value, retrain = 0.5 + distance + SPREAD * rng.standard_normal(audited), 0.5 + SPREAD * rng.standard_normal()
        line = mine(value, {"auc": told * SPREAD}, retrain=retrain)
        hits += line["p_holm"] <= decide.ALPHA, line["verdict"] == decide.EQUIVALENT
    return hits / audits


LARGER = slow((1, 1.0, 1500), (4, 1.0, 1500))


@pytest.mark.parametrize(("audited", "told", "audits"), [(1, 1.0, 25), *LARGER, *slow((1, 1.5, 1000), (4, 1.5, 1000))])
def test_a_method_that_is_retraining_is_seldom_said_to_leave_traces(audited, told, audits):
    assert share(audited, audited, audits, told)[0] <= at_most(0.05, audits)


@pytest.mark.parametrize(("audited", "told", "audits"), [(1, 1.0, 25), *LARGER])
def test_a_method_at_the_margin_is_seldom_said_to_be_like_retraining(audited, told, audits):
    assert share(10 + audited, audited, audits, told, MARGINS["auc"])[1] <= at_most(0.05, audits)

"""The metrics of metrics against tables whose answer is known."""

import math

import numpy as np
import pytest
from unlearning_audit.comparisons import meta
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.report import naming
from unlearning_audit.report.tables import meta as display

from meta_cases import changed, evaluated, only, rows, several

RISING = {"a": 0.5, "b": 0.6, "c": 0.9}
TURNED = {"a": 0.9, "b": 0.6, "c": 0.5}
EFFICACY = {"metric": "efficacy_median", "attack": ""}
PRIVACY = {"metric": "privacy_auc", "attack": "ruli"}
ERROR = 0.1 / 1.959964 * math.sqrt(2)  # of a difference of two numbers whose intervals reach by .1


def of(table, name, metric="Q", **how):
    return only(evaluated(table, **how), metric, name)


def test_grounding_is_the_distance_of_retrain_from_perfect():
    row = of(rows({"retrain": 0.98, "none": 0.7}), "grounding")
    assert [row[name] for name in ("value", "ci_low", "ci_high")] == pytest.approx([-0.02, -0.03, -0.01])
    unknown = of(rows({"retrain": 1.0, "none": 3.0}, **EFFICACY), "grounding", "efficacy")
    assert (str(unknown["value"]), unknown["note"]) == ("nan", "no value is known for perfect unlearning")


def test_separation_counts_standard_errors_in_the_direction_of_the_metric():
    row = of(rows({"retrain": 1.0, "none": 0.7}, half=0.1), "separation")
    half = (row["ci_high"] - row["ci_low"]) / 2
    assert (row["value"], half) == pytest.approx((0.3 / ERROR, 1.959964), rel=1e-6)
    # An AUC of .3 is as far from forgetting as one of .7.
    mirrored = [of(rows({"retrain": 0.5, "none": none}, **PRIVACY, half=0.1), "separation", "RULI privacy AUC")
                for none in (0.3, 0.7)]  # fmt: skip
    assert [row["value"] for row in mirrored] == pytest.approx([0.2 / ERROR] * 2, rel=1e-6)
    # Becker & Liebig 2022: forgetting lowers efficacy, which is compared by its logarithm.
    table = [
        changed(entry, **{name: math.exp(getattr(entry.row, name)) for name in ("value", "ci_low", "ci_high")})
        for entry in rows({"retrain": 0.0, "none": 2.0}, **EFFICACY, half=0.1)
    ]
    assert of(table, "separation", "efficacy")["value"] == pytest.approx(2 / ERROR, rel=1e-6)
    assert of([changed(entry, ci_high=math.inf) for entry in table], "separation", "efficacy")["value"] == 0.0


@pytest.mark.parametrize(
    ("table", "name", "note"),
    [
        (rows({"none": 0.7}), "grounding", "retrain was not measured"),
        (rows({"none": 0.7}), "separation", "retrain and none were not both measured"),
        (rows({"retrain": 1.0, "none": 0.7}, half=0.0), "separation", "retrain or none has no interval, or one"),
        ([changed(r, ci_low=math.nan) for r in rows({"retrain": 1.0, "none": 0.7})], "separation", "retrain or none"),
        (rows({"a": 0.7}), "power", "fewer than two methods have an interval"),
    ],
)
def test_what_a_table_does_not_show_is_said(table, name, note):
    row = of(table, name)
    assert (str(row["value"]), row["note"][: len(note)]) == ("nan", note)


def test_models_are_seeds_by_which_methods_are_ranked():
    """The median stands for all models, efficacies of single ones for a seed each; neither counts as the other."""
    low, high = {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 3.0, "b": 2.0, "c": 1.0}
    single = {"metric": "efficacy", "attack": ""}
    of_seeds = [row for i in range(3) for row in rows(low, **single, model=i)]
    table = rows(low, **EFFICACY) + rows(high, **single) + of_seeds
    row = of(table, "agreement over seeds", "efficacy")
    assert (row["value"], row["n"], of(table, "power", "efficacy")["n"]) == (1.0, 3, 3)
    table = rows(low, **EFFICACY) + rows(high, **single, model=0) + of_seeds[3:]
    assert of(table, "agreement over seeds", "efficacy")["value"] == pytest.approx((1 - 1 - 1) / 3)


def test_what_is_read_of_some_samples_only_is_not_taken_for_the_whole():
    """RULI reads vulnerable samples apart, whichever comes first."""
    whole = rows({"retrain": 0.5, "none": 0.7}, **PRIVACY)
    subset = rows({"retrain": 0.6, "none": 0.9}, **PRIVACY, target="vulnerable")
    grounding = [of(table, "grounding", "RULI privacy AUC")["value"] for table in (whole + subset, subset + whole)]
    assert grounding == [0.0, 0.0]


def test_power_is_the_share_of_pairs_that_are_told_apart():
    row = of(rows({"a": 0.5, "b": 0.501, "c": 0.9, "d": math.nan, "retrain_control": 0.1}), "power")
    assert (row["value"], row["n"]) == (pytest.approx(2 / 3), 3)
    just = [of(rows({"a": 0.5, "b": 0.5 + gap}), "power")["value"] for gap in (0.0141, 0.0142)]  # .01·√2
    assert just == [0, 1]
    pairs = [row for p, a in enumerate((0.5, 0.5, 0.5, math.inf)) for row in rows({"a": a, "b": 0.5}, pair=p)]
    assert of(rows({"a": 0.5, "b": 0.5}) + pairs, "power")["value"] == 0


def of_pairs(rng, truth: dict[str, float], pairs=4, common=0.2, noise=0.01):
    """What a metric reads of every pair by itself, which differ far more than methods do, and of all together."""
    shared = common * rng.standard_normal(pairs)
    values = {m: v + shared + noise * rng.standard_normal(pairs) for m, v in truth.items()}
    table = rows({m: float(v.mean()) for m, v in values.items()}, half=common)
    for p in range(pairs):
        table += rows({m: float(v[p]) for m, v in values.items()}, pair=p, half=common)
    return table


def test_power_is_read_from_differences_pair_by_pair():
    """What pairs have in common cancels: intervals of .2 overlap, differences of .1 ± .01 do not."""
    for pairs, value, note in ((4, 1.0, "paired over 4"), (2, 0.0, "as if methods were independent")):
        row = of(of_pairs(np.random.default_rng(0), {"a": 0.5, "b": 0.6, "c": 0.7}, pairs), "power")
        assert (row["value"], row["n"], row["note"].endswith(note)) == (value, 3, True)


def test_methods_that_are_equal_are_told_apart_in_a_twentieth():
    rng, studies = np.random.default_rng(1), 300
    powers = [of(of_pairs(rng, {"a": 0.5, "b": 0.5}), "power")["value"] for _ in range(studies)]
    assert np.mean(powers) == pytest.approx(0.05, abs=3.1 * np.sqrt(0.05 * 0.95 / studies))


def test_agreement_is_one_for_equal_rankings_and_minus_one_for_reversed():
    same = [row for p in range(3) for row in rows({m: v + p / 100 for m, v in RISING.items()}, pair=p)]
    row = of(same, "agreement over seeds")
    assert (row["value"], row["ci_low"], row["ci_high"], row["n"]) == (1, 1, 1, 3)
    mixed = rows(RISING, pair=0) + rows(TURNED, pair=1)
    assert of(mixed, "agreement over seeds")["value"] == -1
    # One of six rankings exchanges two methods, τ = ⅓ with each other; without it the mean is 1, without another 11/15,
    # and the jackknife's standard error is 2/9, of five degrees of freedom.
    six = [*same, *rows(RISING, pair=3), *rows(RISING, pair=4), *rows(RISING | {"a": 0.7}, pair=5)]
    row = of(six, "agreement over seeds")
    assert (row["value"], row["ci_low"], row["ci_high"]) == pytest.approx((7 / 9, 7 / 9 - 2.570582 * 2 / 9, 1))
    sizes = rows(RISING, axes={"size": "400"}) + rows(RISING, axes={"size": "800"})
    assert of(sizes + rows(TURNED, pair=0, axes={"size": "800"}), "agreement over sizes")["value"] == 1
    failed = rows({"a": 0.5, "b": 0.9, "c": math.nan}, pair=0) + rows({"a": 0.5, "b": 0.9, "c": 0.7}, pair=1)
    note = of(failed, "agreement over seeds")["note"]
    assert note.startswith("needs two rankings of at least three methods, but there are 2 of 2 methods; c: no")


def by_budget(methods):
    """Rows of three budgets; ``methods``: base → method → value."""
    return [
        row for e, base in (("0.5", 0.9), ("8", 0.8), ("inf", 0.6)) for row in rows(methods(base), axes={"epsilon": e})
    ]


def test_monotonicity_is_minus_one_where_every_method_falls_with_the_budget():
    falling = by_budget(lambda base: {"none": base, "neggrad": base + 0.02, "retrain": 1.0 - base})
    row = of(falling, "monotonicity")
    assert (row["value"], row["n"]) == (-1, 2)
    swapped = by_budget(lambda base: {"none": {0.9: 0.8, 0.8: 0.9}.get(base, base), "neggrad": base + 0.02})
    assert of(swapped, "monotonicity")["value"] == pytest.approx((-1 - 0.5) / 2)


def test_theory_says_nothing_of_methods_that_break_models():
    """With broken models a method reads worst where theory wants it best."""
    table = by_budget(lambda base: {"none": base, "neggrad": 1 - base, "retrain": 1.0})
    assert of(table, "monotonicity")["value"] == 0
    for lost, left in ((0.2, (-1, 1)), (0.105, (0, 2))):  # the interval ends at .19 and at .095
        gaps = rows({"neggrad": lost}, metric="accuracy_gap", attack="", role="test", axes={"epsilon": "0.5"})
        row = of([*table, *gaps], "monotonicity")
        assert (row["value"], row["n"]) == left
        assert ("without neggrad, which breaks models" in row["note"]) == (left[1] == 1)
        assert of([*table, *gaps], "monotonicity", broken=0.2)["value"] == 0
    assert of(rows({"none": 1.0}, axes={"epsilon": "8"}), "monotonicity")["note"].startswith("needs three budgets")


def test_models_are_counted_from_memberships():
    """Copies of one original are trained once; the adversary's models count only for who reads them."""
    flags, shadow = np.zeros((6, 3), bool), np.array([False] * 4 + [True] * 2)
    seed, replicate = np.array([7, 7, 7, 7, 8, 9]), np.array([0, 1, 2, 3, 0, 0])
    member = Membership(flags, flags, flags, seed, seed * 0, seed * 0, shadow, replicate=replicate)
    metrics = meta.declared_comparisons(naming.quantities().values())
    counts = {name: meta.models_needed(metric, "swap", member).value for name, metric in metrics.items()}
    # RULI's other target models are its shadow models.
    expected = {"MIA score": 5, "Q": 9, "F / F₀": 9, "accuracy gap": 9, "RULI privacy AUC": 5}
    assert {name: counts[name] for name in expected} == expected
    of_ruli = meta.models_needed(metrics["RULI efficacy AUC"], "ruli", member)
    assert (of_ruli.value, of_ruli.note) == (3 + 6 + 4, "3 trained, 6 unlearned, 4 retrained")


def test_measures_are_compared_where_most_of_them_are():
    spoken = meta.overview(several())
    places = {("F / F₀", "grounding"): "noisy", ("Q", "monotonicity"): "budget", ("efficacy", "power"): "other",
              ("Q", "models"): "noisy"}  # fmt: skip
    assert {place: spoken[place]["scenario"] for place in places} == places
    assert ("F / F₀", "monotonicity") not in spoken


def test_a_scenario_whose_rows_are_empty_shows_no_power():
    """Values without intervals in the first, of which nothing but the cost is known."""
    table = rows({"retrain": 0.99}, scenario="bare", half=math.nan)
    for scenario, half in (("bare", math.nan), ("noisy", 0.01)):
        methods = {"retrain": 0.9, "none": 0.1, "a": 0.4, "b": 0.3}
        table += rows(methods, metric="forgetting_quality_over_null", attack="", scenario=scenario, half=half)
    whole = evaluated(table + rows({"retrain": 0.99, "none": 0.6, "a": 0.8, "b": 0.7}))
    empty = [row for row in whole if (row["scenario"], row["property"]) == ("bare", "power")]
    assert [str(row["value"]) for row in empty] == ["nan", "nan"]
    assert (meta.common_scenario(whole, "power"), meta.common_scenario(empty, "power")) == ("noisy", "bare")
    assert meta.overview(whole)["Q", "power"]["scenario"] == "noisy"


@pytest.mark.parametrize(
    ("measure", "good", "neither", "bad"),
    [
        ("grounding", (-0.1, 0.1), (math.nan, math.nan), (0.01, 0.1)),
        ("separation", (0.3, 4.2), (math.nan, math.nan), (-0.3, 3.6)),
        ("agreement over seeds", (0.2, 1.0), (-0.2, 1.0), (-1.0, -0.2)),
        ("monotonicity", (-1.0, -0.3), (-1.0, 0.3), (0.1, 0.3)),
    ],
)
def test_verdicts_on_measures(measure, good, neither, bad):
    for interval, verdict in ((good, "good"), (neither, ""), (bad, "bad")):
        assert meta.verdict({"property": measure, "ci_low": interval[0], "ci_high": interval[1]}) == verdict
    assert [meta.verdict({"property": name, "ci_low": 9, "ci_high": 9}) for name in ("power", "models")] == ["", ""]


def test_metrics_that_rank_methods_alike_agree_whichever_way_they_run():
    order = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    falling = {m: 5 - value for m, value in order.items()}
    swapped = {**order, "c": 4.0, "d": 3.0}  # one of six pairs the other way round: τ = 4/6
    table = rows(order) + rows(falling, **EFFICACY) + rows(swapped, attack="extended")
    table += rows({**falling, "retrain_control": 9.0}, metric="ic_score", attack="")
    table += rows(falling, metric="q_crossfit", scenario="other")  # on other models
    agreements = [row for row in evaluated(table) if row["property"].startswith(meta.WITH)]
    tau = {(row["metric"], row["property"].removeprefix(meta.WITH)): row["value"] for row in agreements}
    expected = {("Q", "efficacy"): 1, ("efficacy", "Q"): 1, ("Q", "Q, extended"): 4 / 6, ("Q", "IC score"): -1}
    assert {pair: tau[pair] for pair in expected} == pytest.approx(expected)
    assert {name for pair in tau for name in pair} == {"Q", "Q, extended", "efficacy", "IC score"}
    assert {(row["n"], row["scenario"]) for row in agreements} == {(4, "noisy")}
    between = display.sheets(evaluated(table))[1]
    assert [cell.text for cell in between.lines[0].cells] == ["·", "0.67", "1.00", "−1.00"]

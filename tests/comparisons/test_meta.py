"""The metrics of metrics against tables whose answer is known."""

import math

import numpy as np
import pytest
from unlearning_audit.comparisons import compared, meta
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.report import naming
from unlearning_audit.report.tables import meta as display

from meta_cases import changed, evaluated, only, rows, several


def test_grounding_is_the_distance_of_retrain_from_perfect():
    table = evaluated(rows({"retrain": 0.98, "none": 0.7}))
    row = only(table, "Q", "grounding")
    assert row["value"] == pytest.approx(-0.02)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((-0.03, -0.01))


def test_a_measure_without_known_ideal_has_no_grounding_but_a_reason():
    row = only(
        evaluated(rows({"retrain": 1.0, "none": 3.0}, metric="efficacy_median", attack="")), "efficacy", "grounding"
    )
    assert math.isnan(row["value"])
    assert "perfect" in row["note"]


def test_separation_counts_standard_errors():
    row = only(evaluated(rows({"retrain": 1.0, "none": 0.7}, half=0.1)), "Q", "separation")
    error = 0.1 / 1.959964 * math.sqrt(2)
    assert row["value"] == pytest.approx(0.3 / error, rel=1e-6)


def test_the_distance_counts_where_a_measure_is_two_sided():
    """An AUC of .3 is as far from forgetting as one of .7."""
    table = {"retrain": 0.5, "none": 0.3}
    mirrored = {"retrain": 0.5, "none": 0.7}
    first, second = (
        only(evaluated(rows(t, metric="privacy_auc", attack="ruli")), "RULI privacy AUC", "separation")["value"]
        for t in (table, mirrored)
    )
    assert first == pytest.approx(second)
    assert first > 0


def test_less_is_better_where_a_measure_falls_and_ratios_count_where_it_spans_orders_of_magnitude():
    """Becker & Liebig 2022: forgetting lowers efficacy. e² against e⁰, both within a factor of e^±0.1."""
    table = rows({"retrain": 0.0, "none": 2.0}, metric="efficacy_median", attack="", half=0.1)
    limits = ("value", "ci_low", "ci_high")
    table = [changed(entry, **{name: math.exp(getattr(entry.row, name)) for name in limits}) for entry in table]
    row = only(evaluated(table), "efficacy", "separation")
    assert row["value"] == pytest.approx(2 / (0.1 / 1.959964 * math.sqrt(2)), rel=1e-6)
    infinite = [changed(entry, ci_high=math.inf) for entry in table]
    assert only(evaluated(infinite), "efficacy", "separation")["value"] == 0.0


def test_models_are_seeds_by_which_methods_are_ranked():
    """The median stands for all models, efficacies of single ones for a seed each; neither counts as the other."""
    low, high = {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 3.0, "b": 2.0, "c": 1.0}
    of_seeds = [rows(low, metric="efficacy", attack="", model=i) for i in range(3)]
    median = rows(low, metric="efficacy_median", attack="")
    mean = rows(high, metric="efficacy", attack="")
    table = evaluated([*median, *mean, *(row for seed_rows in of_seeds for row in seed_rows)])
    row = only(table, "efficacy", "agreement over seeds")
    assert (row["value"], row["n"]) == (1.0, 3)
    assert only(table, "efficacy", "power")["n"] == 3
    of_seeds[0] = rows(high, metric="efficacy", attack="", model=0)
    table = evaluated([*median, *(row for seed_rows in of_seeds for row in seed_rows)])
    assert only(table, "efficacy", "agreement over seeds")["value"] == pytest.approx((1 - 1 - 1) / 3)


def test_what_is_read_of_some_samples_only_is_not_taken_for_the_whole():
    """RULI reads vulnerable samples apart, whichever comes first."""
    whole = rows({"retrain": 0.5, "none": 0.7}, metric="privacy_auc", attack="ruli")
    subset = rows({"retrain": 0.6, "none": 0.9}, metric="privacy_auc", attack="ruli", target="vulnerable")
    grounding = [only(evaluated(table), "RULI privacy AUC", "grounding") for table in (whole + subset, subset + whole)]
    assert [row["value"] for row in grounding] == [0.0, 0.0]


def test_power_is_the_share_of_pairs_that_are_told_apart():
    table = evaluated(rows({"a": 0.5, "b": 0.501, "c": 0.9, "retrain_control": 0.1}))
    assert only(table, "Q", "power")["value"] == pytest.approx(2 / 3)
    assert only(table, "Q", "power")["n"] == 3


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
    table = evaluated(of_pairs(np.random.default_rng(0), {"a": 0.5, "b": 0.6, "c": 0.7}))
    row = only(table, "Q", "power")
    assert (row["value"], row["n"]) == (1.0, 3)
    assert row["note"].endswith("paired over 4")
    two_pairs = evaluated(of_pairs(np.random.default_rng(0), {"a": 0.5, "b": 0.6, "c": 0.7}, pairs=2))
    assert only(two_pairs, "Q", "power")["value"] == 0
    assert only(two_pairs, "Q", "power")["note"].endswith("as if methods were independent")


def test_methods_that_are_equal_are_told_apart_in_a_twentieth():
    rng, studies = np.random.default_rng(1), 600
    powers = [only(evaluated(of_pairs(rng, {"a": 0.5, "b": 0.5})), "Q", "power")["value"] for _ in range(studies)]
    assert np.mean(powers) == pytest.approx(0.05, abs=3.1 * np.sqrt(0.05 * 0.95 / studies))


def test_agreement_is_one_for_equal_rankings_and_minus_one_for_reversed():
    values = {"a": 0.5, "b": 0.6, "c": 0.9}
    turned = {"a": 0.9, "b": 0.6, "c": 0.5}
    same = [row for p in range(3) for row in rows({m: v + p / 100 for m, v in values.items()}, pair=p)]
    row = only(evaluated(same), "Q", "agreement over seeds")
    assert (row["value"], row["ci_low"], row["ci_high"], row["n"]) == (1, 1, 1, 3)
    mixed = rows(values, pair=0) + rows(turned, pair=1)
    assert only(evaluated(mixed), "Q", "agreement over seeds")["value"] == -1
    # two of three pairs of rankings are reversed: (1 − 1 − 1) / 3
    three = mixed + rows(values, pair=2)
    assert only(evaluated(three), "Q", "agreement over seeds")["value"] == pytest.approx(-1 / 3)


def test_agreement_over_sizes_reads_the_size_axis_and_no_pair():
    values = {"a": 0.5, "b": 0.6, "c": 0.9}
    turned = {"a": 0.9, "b": 0.6, "c": 0.5}
    table = (
        rows(values, axes={"size": "400"})
        + rows(values, axes={"size": "800"})
        + rows(turned, pair=0, axes={"size": "800"})
    )
    assert only(evaluated(table), "Q", "agreement over sizes")["value"] == 1


def test_monotonicity_is_minus_one_where_every_method_falls_with_the_budget():
    falling = [
        row
        for e, base in (("0.5", 0.9), ("8", 0.8), ("inf", 0.6))
        for row in rows({"none": base, "neggrad": base + 0.02, "retrain": 1.0 - base}, axes={"epsilon": str(e)})
    ]
    row = only(evaluated(falling), "Q", "monotonicity")
    assert (row["value"], row["n"]) == (-1, 2)
    swapped = [
        changed(r, value={0.9: 0.8, 0.8: 0.9}.get(r.row.value, r.row.value)) if r.method == "none" else r
        for r in falling
    ]
    assert only(evaluated(swapped), "Q", "monotonicity")["value"] == pytest.approx((-1 - 0.5) / 2)


def test_theory_says_nothing_of_methods_that_break_models():
    """With broken models a method reads worst where theory wants it best."""
    table = [
        row
        for e, base in (("0.5", 0.9), ("8", 0.8), ("inf", 0.6))
        for row in rows({"none": base, "neggrad": 1 - base, "retrain": 1.0}, axes={"epsilon": str(e)})
    ]
    assert only(evaluated(table), "Q", "monotonicity")["value"] == 0
    for lost, left in ((0.2, (-1, 1)), (0.105, (0, 2))):  # the interval ends at .19 and at .095
        gaps = rows({"neggrad": lost}, metric="accuracy_gap", attack="", role="test", axes={"epsilon": "0.5"})
        row = only(evaluated([*table, *gaps]), "Q", "monotonicity")
        assert (row["value"], row["n"]) == left
        assert ("without neggrad, which breaks models" in row["note"]) == (left[1] == 1)
        assert only(evaluated([*table, *gaps], broken=0.2), "Q", "monotonicity")["value"] == 0


def test_a_failed_method_is_left_out_of_power_and_named_in_agreement():
    failed = rows({"a": 0.5, "b": 0.9, "c": math.nan})
    assert only(evaluated(failed), "Q", "power")["n"] == 1
    pairs = rows({"a": 0.5, "b": 0.9, "c": math.nan}, pair=0) + rows({"a": 0.5, "b": 0.9, "c": 0.7}, pair=1)
    note = only(evaluated(pairs), "Q", "agreement over seeds")["note"]
    assert note.startswith("needs two rankings of at least three methods, but there are 2 of 2 methods; c: no")


# ---------------------------------------------------------------- cost


def test_models_are_counted_from_memberships():
    """Copies of one original are trained once; the adversary's models count only for who reads them."""
    flags = np.zeros((6, 3), bool)
    shadow = np.array([False] * 4 + [True] * 2)
    seed, replicate = np.array([7, 7, 7, 7, 8, 9]), np.array([0, 1, 2, 3, 0, 0])
    member = Membership(flags, flags, flags, seed, seed * 0, seed * 0, shadow, replicate=replicate)
    model_counts = compared.model_counts("swap", member)
    assert model_counts == compared.ModelCounts("swap", trained=1, unlearned=4, shadow_trained=2, shadow_unlearned=2)
    metrics = compared.metrics(naming.quantities().values())
    counts = {name: compared.models(metric, model_counts).value for name, metric in metrics.items()}
    assert counts["MIA score"] == 1 + 4
    assert counts["Q"] == counts["MIA score"] + 2 + 2
    assert counts["F / F₀"] == counts["accuracy gap"] == counts["MIA score"] + 4
    assert counts["RULI privacy AUC"] == counts["MIA score"]  # the other target models are its shadow models
    of_ruli = compared.models(metrics["RULI efficacy AUC"], compared.model_counts("ruli", member))
    assert (of_ruli.value, of_ruli.note) == (3 + 6 + 4, "3 trained, 6 unlearned, 4 retrained")


def test_measures_are_compared_where_most_of_them_are():
    spoken = meta.overview(several())
    assert spoken["F / F₀", "grounding"]["scenario"] == "noisy"
    assert spoken["Q", "monotonicity"]["scenario"] == "budget"
    assert spoken["efficacy", "power"]["scenario"] == "other"
    assert ("F / F₀", "monotonicity") not in spoken
    assert spoken["Q", "models"]["scenario"] == "noisy"


def test_a_scenario_whose_rows_are_empty_shows_no_power():
    """Values without intervals in the first, of which nothing but the cost is known."""
    table = rows({"retrain": 0.99}, scenario="bare", half=math.nan)
    for scenario in ("bare", "noisy"):
        half = math.nan if scenario == "bare" else 0.01
        methods = {"retrain": 0.9, "none": 0.1, "a": 0.4, "b": 0.3}
        table += rows(methods, metric="forgetting_quality_over_null", attack="", scenario=scenario, half=half)
    table += rows({"retrain": 0.99, "none": 0.6, "a": 0.8, "b": 0.7})
    whole = evaluated(table)
    empty = [row for row in whole if (row["scenario"], row["property"]) == ("bare", "power")]
    assert len(empty) == 2
    assert all(math.isnan(row["value"]) for row in empty)
    assert meta.common(whole, "power") == "noisy"
    assert meta.overview(whole)["Q", "power"]["scenario"] == "noisy"
    assert meta.common(empty, "power") == "bare"
    by_none = [{**row, "scenario": "rare"} for row in empty] + [row for row in whole if row["scenario"] == "noisy"]
    of_others = [{**row, "metric": "other", "scenario": "third"} for row in whole if row["property"] == "power"] * 3
    spoken = meta.overview([*of_others, *by_none])
    assert spoken["Q", "power"]["scenario"] == "noisy", "the first scenario that has a value, not the first"


@pytest.mark.parametrize(
    ("measure", "interval", "verdict"),
    [
        ("grounding", (-0.1, 0.1), "good"),
        ("grounding", (0.01, 0.1), "bad"),
        ("separation", (0.3, 4.2), "good"),
        ("separation", (-0.3, 3.6), "bad"),
        ("agreement over seeds", (0.2, 1.0), "good"),
        ("agreement over sizes", (-0.2, 1.0), ""),
        ("agreement over sizes", (-1.0, -0.2), "bad"),
        ("monotonicity", (-1.0, -0.3), "good"),
        ("monotonicity", (-1.0, 0.3), ""),
        ("monotonicity", (0.1, 0.3), "bad"),
        ("grounding", (math.nan, math.nan), ""),
        ("power", (0.1, 0.3), ""),
        ("models", (10, 10), ""),
    ],
)
def test_verdicts_on_measures(measure, interval, verdict):
    assert meta.verdict({"property": measure, "ci_low": interval[0], "ci_high": interval[1]}) == verdict


def test_metrics_that_rank_methods_alike_agree_whichever_way_they_run():
    order = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    falling = {m: 5 - value for m, value in order.items()}
    swapped = {**order, "c": 4.0, "d": 3.0}  # one of six pairs the other way round: τ = 4/6
    table = rows(order) + rows(falling, metric="efficacy_median", attack="") + rows(swapped, attack="extended")
    table += rows({**falling, "retrain_control": 9.0}, metric="ic_score", attack="")
    table += rows(falling, metric="q_crossfit", scenario="other")  # on other models
    agreements = [row for row in evaluated(table) if row["property"].startswith(meta.WITH)]
    tau = {(row["metric"], row["property"].removeprefix(meta.WITH)): row["value"] for row in agreements}
    assert tau["Q", "efficacy"] == tau["efficacy", "Q"] == 1
    assert tau["Q", "Q, extended"] == pytest.approx(4 / 6)
    assert tau["Q", "IC score"] == -1
    assert {name for pair in tau for name in pair} == {"Q", "Q, extended", "efficacy", "IC score"}
    assert {(row["n"], row["scenario"]) for row in agreements} == {(4, "noisy")}
    between = display.sheets(evaluated(table))[1]
    assert [cell.text for cell in between.lines[0].cells] == ["·", "0.67", "1.00", "−1.00"]

"""The measures of measures against tables whose answer is known."""

import math

import pytest

from unlearning import meta


def rows(values, *, metric="q", attack="paper", scenario="noisy", setting="", half=0.01):
    return [
        {"scenario": scenario, "method": m, "attack": attack, "metric": metric, "setting": setting, "value": v,
         "ci_low": v - half, "ci_high": v + half, "n": 100, "note": ""}
        for m, v in values.items()
    ]  # fmt: skip


def only(found, measure, what):
    (row,) = [r for r in found if r["measure"] == measure and r["property"] == what]
    return row


def test_grounding_is_the_distance_of_retrain_from_perfect():
    found = meta.evaluate(rows({"retrain": 0.98, "none": 0.7}))
    row = only(found, "Q", "grounding")
    assert row["value"] == pytest.approx(-0.02)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((-0.03, -0.01))


def test_a_measure_without_known_ideal_has_no_grounding_but_a_reason():
    row = only(
        meta.evaluate(rows({"retrain": 1.0, "none": 3.0}, metric="efficacy_median", attack="")), "efficacy", "grounding"
    )
    assert math.isnan(row["value"])
    assert "perfect" in row["note"]


def test_separation_counts_standard_errors():
    row = only(meta.evaluate(rows({"retrain": 1.0, "none": 0.7}, half=0.1)), "Q", "separation")
    error = 0.1 / 1.959964 * math.sqrt(2)
    assert row["value"] == pytest.approx(0.3 / error, rel=1e-6)


def test_the_distance_counts_where_a_measure_is_two_sided():
    """An AUC of .3 is as far from forgetting as one of .7."""
    table = {"retrain": 0.5, "none": 0.3}
    mirrored = {"retrain": 0.5, "none": 0.7}
    one, other = (
        only(meta.evaluate(rows(t, metric="privacy_auc", attack="ruli")), "RULI privacy AUC", "separation")["value"]
        for t in (table, mirrored)
    )
    assert one == pytest.approx(other)
    assert one > 0


def test_less_is_better_where_a_measure_falls():
    """Becker & Liebig 2022: forgetting lowers efficacy."""
    found = meta.evaluate(rows({"retrain": 1.0, "none": 3.0}, metric="efficacy_median", attack="", half=0.1))
    assert only(found, "efficacy", "separation")["value"] == pytest.approx(
        2 / (0.1 / 1.959964 * math.sqrt(2)), rel=1e-6
    )


def test_models_are_seeds_by_which_methods_are_ranked():
    """The median stands for all models, efficacies of single ones for a seed each; neither counts as the other."""
    low, high = {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 3.0, "b": 2.0, "c": 1.0}
    of_seeds = [rows(low, metric="efficacy", attack="", setting=f"model={i}") for i in range(3)]
    median = rows(low, metric="efficacy_median", attack="")
    mean = rows(high, metric="efficacy", attack="")
    found = meta.evaluate([*median, *mean, *(row for one in of_seeds for row in one)])
    row = only(found, "efficacy", "agreement over seeds")
    assert (row["value"], row["n"]) == (1.0, 3)
    assert only(found, "efficacy", "power")["n"] == 3
    of_seeds[0] = rows(high, metric="efficacy", attack="", setting="model=0")
    found = meta.evaluate([*median, *(row for one in of_seeds for row in one)])
    assert only(found, "efficacy", "agreement over seeds")["value"] == pytest.approx((1 - 1 - 1) / 3)


def test_power_is_the_share_of_pairs_that_are_told_apart():
    found = meta.evaluate(rows({"a": 0.5, "b": 0.501, "c": 0.9, "retrain_control": 0.1}))
    assert only(found, "Q", "power")["value"] == pytest.approx(2 / 3)
    assert only(found, "Q", "power")["n"] == 3


def test_agreement_is_one_for_equal_rankings_and_minus_one_for_reversed():
    values = {"a": 0.5, "b": 0.6, "c": 0.9}
    turned = {"a": 0.9, "b": 0.6, "c": 0.5}
    same = [row for p in range(3) for row in rows({m: v + p / 100 for m, v in values.items()}, setting=f"pair={p}")]
    row = only(meta.evaluate(same), "Q", "agreement over seeds")
    assert (row["value"], row["ci_low"], row["ci_high"], row["n"]) == (1, 1, 1, 3)
    mixed = rows(values, setting="pair=0") + rows(turned, setting="pair=1")
    assert only(meta.evaluate(mixed), "Q", "agreement over seeds")["value"] == -1
    # two of three pairs of rankings are reversed: (1 − 1 − 1) / 3
    three = mixed + rows(values, setting="pair=2")
    assert only(meta.evaluate(three), "Q", "agreement over seeds")["value"] == pytest.approx(-1 / 3)


def test_agreement_over_sizes_reads_the_size_axis_and_no_pair():
    values = {"a": 0.5, "b": 0.6, "c": 0.9}
    turned = {"a": 0.9, "b": 0.6, "c": 0.5}
    table = (
        rows(values, setting="size=400") + rows(values, setting="size=800") + rows(turned, setting="size=800;pair=0")
    )
    assert only(meta.evaluate(table), "Q", "agreement over sizes")["value"] == 1


def test_monotonicity_is_minus_one_where_every_method_falls_with_the_budget():
    falling = [
        row
        for e, base in (("0.5", 0.9), ("8", 0.8), ("inf", 0.6))
        for row in rows({"none": base, "neggrad": base + 0.02, "retrain": 1.0 - base}, setting=f"epsilon={e}")
    ]
    row = only(meta.evaluate(falling), "Q", "monotonicity")
    assert (row["value"], row["n"]) == (-1, 2)
    swapped = [
        {**r, "value": {0.9: 0.8, 0.8: 0.9}.get(r["value"], r["value"])} if r["method"] == "none" else r
        for r in falling
    ]
    assert only(meta.evaluate(swapped), "Q", "monotonicity")["value"] == pytest.approx((-1 - 0.5) / 2)


def test_two_budgets_are_too_few_and_say_so():
    table = rows({"none": 0.9, "retrain": 1.0}, setting="epsilon=8") + rows(
        {"none": 0.7, "retrain": 1.0}, setting="epsilon=inf"
    )
    row = only(meta.evaluate(table), "Q", "monotonicity")
    assert math.isnan(row["value"])
    assert "three" in row["note"]


def test_a_failed_method_is_left_out_of_power_and_named_in_agreement():
    failed = rows({"a": 0.5, "b": 0.9, "c": math.nan})
    assert only(meta.evaluate(failed), "Q", "power")["n"] == 1
    pairs = rows({"a": 0.5, "b": 0.9, "c": math.nan}, setting="pair=0") + rows(
        {"a": 0.5, "b": 0.9, "c": 0.7}, setting="pair=1"
    )
    assert "no value" in only(meta.evaluate(pairs), "Q", "agreement over seeds")["note"]


def test_the_table_has_a_line_for_each_measure_and_a_reason_for_each_blank(tmp_path):
    from unlearning.display import formats
    from unlearning.display.meta import sheet

    table = rows({"retrain": 0.99, "none": 0.6, "a": 0.8}) + rows(
        {"retrain": 1.0, "none": 3.0}, metric="efficacy_median", attack="", scenario="other"
    )
    shown = sheet(meta.evaluate(table))
    assert [line.label for line in shown.lines] == ["Q", "efficacy"]
    assert [head.label for head in shown.heads] == ["grounding", "separation", "power"]
    ungrounded = shown.lines[1].cells[0]
    assert ungrounded.text == "—"
    assert "perfect" in ungrounded.notes[0]
    files = {kind: tmp_path / f"meta.{kind}" for kind in ("csv", "md", "tex")}
    formats.write([shown], **files)
    assert all(path.stat().st_size for path in files.values())

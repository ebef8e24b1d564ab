"""Displays of RULI: columns for what is asked of a scenario, and figures that show the numbers they are given."""

import re
from importlib import import_module

import numpy as np
import pytest
from unlearning_audit.protocols import ruli as protocol
from unlearning_audit.report import style
from unlearning_audit.report.figures import curves, samples
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.tables import formats, grid

from display_cases import NAN, case, failed, order, row
from ruli_cases import Folder, memberships, trained

METHODS = ("none", "scrub", "retrain")


def numbers():
    """Two scenarios: random has all target samples only, mixed both kinds apart as well; scrub failed in random."""
    cases = [case(name, method, protocol="ruli") for name in ("random", "mixed") for method in METHODS]
    rows = []
    for entry in cases:
        if (entry["scenario"], entry["method"]) == ("random", "scrub"):
            rows.append(failed(entry, "diverged", "", "it diverged"))
            continue
        kinds = ("", "vulnerable") if entry["scenario"] == "mixed" else ("",)
        for attack, value in (("ruli", 0.7), ("population", 0.6)):
            for kind in kinds:
                rows.append(row(entry, "privacy_accuracy", value, value - 0.1, value + 0.1, attack, target=kind))
                rows.append(row(entry, "privacy_tpr_at_1pct_fpr", value / 10, 0.0, 0.2, attack, target=kind))
        rows.append(row(entry, "efficacy_accuracy", 0.9, 0.8, 1.0, "ruli"))
        for rate, tpr in ((0.001, NAN), (0.01, 0.1), (0.1, 0.4), (0.05, 0.3)):
            for metric in curves.TESTS:
                rows.append(row(entry, metric, tpr, tpr - 0.05, tpr + 0.05, "ruli", rate=rate))
                rows.append(row(entry, metric, 0.9, 0.8, 1.0, "ruli", target="vulnerable", rate=rate))
        rows.append(row(entry, "highly_memorized", 627.0, 627.0, 627.0, "lira"))
    return cases, rows


CASES, ROWS = numbers()


def sheet_of(scenarios=("random", "mixed"), **wish):
    subset = [entry for entry in CASES if entry["scenario"] in scenarios]
    return grid.sheet(Numbers(ROWS, subset), order(CASES, list(scenarios), **wish), [])


# ---------------------------------------------------------------- tables


def test_each_scenario_has_a_column_for_every_setting_that_it_answers():
    request = {
        "metric": "privacy_accuracy",
        "attack": "ruli",
        "where": [{}, {"target": "vulnerable"}, {"target": "protected"}],
    }
    table = sheet_of(**request)
    heads = [(head.group, head.label) for head in table.heads]
    assert heads == [("random", "all"), ("mixed", "all"), ("mixed", "target = vulnerable")]
    assert [cell.text for cell in table.lines[1].cells] == ["model damaged", "0.70 [0.60, 0.80]", "0.70 [0.60, 0.80]"]
    assert [record["metric"] for record in table.records[:3]] == ["privacy_accuracy"] * 3
    assert [record.get("target") for record in table.records[:3]] == [None, None, "vulnerable"]
    body = formats.latex(table)
    assert {
        len(re.findall(r"(?<!\\)&", line)) for line in body.splitlines() if line.startswith(("none", "retrain"))
    } == {3}


def test_several_metrics_keep_their_own_decimals_and_readings():
    table = sheet_of(["mixed"], metric=["privacy_accuracy", "highly_memorized"], attack=["ruli", "population", "lira"])
    assert [head.label for head in table.heads] == [
        "privacy accuracy, ruli", "privacy accuracy, population", "highly memorized, lira",
    ]  # fmt: skip
    assert [cell.text for cell in table.lines[0].cells][1:] == ["0.60 [0.50, 0.70]", "627 [627, 627]"]
    assert [head.group for head in table.heads] == ["", "", ""]


def test_a_footer_stands_once_below_all_columns_of_its_scenario():
    rows = [*ROWS, *(row(c, "accuracy", 0.5, 0.4, 0.6, role="test") for c in CASES if c["method"] == "none")]
    request = order(CASES, ["random", "mixed"], metric="privacy_accuracy", attack="ruli",
                    where=[{}, {"target": "vulnerable"}], footer=["accuracy"])  # fmt: skip
    table = grid.sheet(Numbers(rows, CASES), request, [])
    assert [cell.text for cell in table.footer[0].cells] == ["0.50", "0.50", ""]


# ---------------------------------------------------------------- figures


def draw_kind(kind, scenarios, cases=CASES, rows=ROWS):
    subset = [{"files": {}, **entry} for entry in cases if entry["scenario"] in scenarios]
    wish = {"kind": kind, "title": kind, "axis": None, "attack": ""}
    settings = {"name": kind, "figure": wish, "methods": list(METHODS), "cases": subset}
    return import_module(f"unlearning_audit.report.figures.{kind}").draw(Numbers(rows, subset), settings)


def text_of(figure, folder, name="f"):
    paths = {kind: folder / f"{name}.{kind}" for kind in ("svg", "png")}
    style.save(figure, **paths)
    return paths["svg"].read_text()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["attackers", "curves", "privacy_and_efficacy", "samples"])
def test_the_same_numbers_give_the_same_bytes(tmp_path, kind):
    first, second = (text_of(draw_kind(kind, ["random", "mixed"]), tmp_path, str(i)) for i in range(2))
    assert first == second
    assert "scrub<" in first


def test_both_attacks_stand_on_their_own_line_with_their_numbers(tmp_path):
    figure = draw_kind("attackers", ["mixed"])
    accuracy, tpr = figure.axes
    found = "“one attack for each sample” 1 of 1, “one attack for all” 0 of 1"
    assert figure.get_label() == f"Above chance: {found}"
    marks = {line.get_marker(): line.get_xdata()[0] for line in accuracy.lines if line.get_marker() in "os"}
    assert marks == {"o": 0.7, "s": 0.6}
    assert sum(line.get_marker() == "o" for line in tpr.lines) == len(METHODS)
    assert ">model damaged<" in text_of(draw_kind("attackers", ["random"]), tmp_path)


def test_a_curve_is_that_of_all_targets_by_rising_fpr_without_what_is_not_resolved():
    mixed = CASES[3]
    points = curves.points(Numbers(ROWS, CASES), mixed, "efficacy_roc")
    assert [(fpr, cell.value) for fpr, cell in points] == [(0.01, 0.1), (0.05, 0.3), (0.1, 0.4)]
    assert curves.points(Numbers(ROWS, CASES), CASES[1], "efficacy_roc") == []
    figure = draw_kind("curves", ["random", "mixed"])
    assert figure.get_label() == "Outputs after unlearning differ: 1 of 1 from never seen, 1 of 1 from retrained"
    visible = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title(loc="left") for axis in visible] == [*METHODS] * 2
    lines = [line for line in visible[0].lines if line.get_marker() == "o"]
    assert [list(line.get_ydata()) for line in lines] == [[0.1, 0.3, 0.4]] * 2


def test_single_samples_are_read_from_shadow_models_only(tmp_path):
    """Forgotten samples at 3 before and 1 after unlearning, held-out ones at 0 and 0.5, kept ones far away."""
    parts = memberships(protocol.Options(target_size=60, target_blocks=1, shadow_blocks=40))
    folder = Folder(tmp_path, parts)

    def after(member):
        return np.where(member.shadow[:, None], np.where(member.forget, 1.0, np.where(member.heldout, 0.5, 99.0)), -50)

    original, unlearned = folder.add("original", trained), folder.add("unlearned", after)
    splits = [str(tmp_path / f"splits{i}.npz") for i in range(2)]
    files = {"data": str(tmp_path / "data.npz"), "splits": splits, "originals": original, "unlearned": unlearned}
    values = samples.values(files)
    assert len(values) == samples.SAMPLES
    assert {len(phi) for sides in values for phi in sides} == {40}
    means = np.array([[phi.mean() for phi in sides] for sides in values]).mean(axis=0)
    # 640 values of standard deviation 1 each
    np.testing.assert_allclose(means, [1.0, 0.5, 0.0], atol=4 / np.sqrt(640))
    columns = samples.chosen_samples(parts[0])
    assert (parts[0].weight[columns] > 0).all()
    np.testing.assert_array_equal(columns, samples.chosen_samples(parts[0]))
    subject = {**case("s", "scrub", protocol="ruli"), "files": files}
    figure = draw_kind("samples", ["s"], [subject], [])
    assert figure.get_label() == "0 of 16 samples stand out after scrub"
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert len(dots) == 3 * samples.SAMPLES
    medians = [line.get_ydata()[0] for line in dots if line.get_color() == style.INK]
    assert medians == sorted(medians)

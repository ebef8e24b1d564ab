"""Displays of RULI: columns for what is asked of a scenario, and figures that show the numbers they are given."""

import numpy as np
from unlearning_audit.protocols import ruli as protocol
from unlearning_audit.report import style
from unlearning_audit.report.figures import curves, samples
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.tables import grid

from display_cases import NAN, case, failed, figure, order, row, words_of
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
        for attack, value in (("ruli", 0.7), ("population", 0.6)):
            for kind in ("", "vulnerable")[: 1 + (entry["scenario"] == "mixed")]:
                rows.append(row(entry, "privacy_accuracy", value, value - 0.1, value + 0.1, attack, target=kind))
                rows.append(row(entry, "privacy_tpr_at_1pct_fpr", value / 10, 0.0, 0.2, attack, target=kind))
        rows.append(row(entry, "efficacy_accuracy", 0.9, 0.8, 1.0, "ruli"))
        for rate, tpr in ((0.001, NAN), (0.01, 0.1), (0.1, 0.4), (0.05, 0.3)):
            for metric in curves.TESTS:
                rows.append(row(entry, metric, tpr, tpr - 0.05, tpr + 0.05, "ruli", rate=rate))
                rows.append(row(entry, metric, 0.9, 0.8, 1.0, "ruli", target="vulnerable", rate=rate))
        rows.append(row(entry, "highly_memorized", 627.0, 627.0, 627.0, "lira"))
        rows += [row(entry, "accuracy", 0.5, 0.4, 0.6, role="test")] if entry["method"] == "none" else []
    return cases, rows


CASES, ROWS = numbers()


def sheet_of(scenarios, **wish):
    subset = [entry for entry in CASES if entry["scenario"] in scenarios]
    return grid.sheet(Numbers(ROWS, subset), order(CASES, scenarios, **wish), [])


# ---------------------------------------------------------------- tables


def test_each_scenario_has_a_column_for_every_setting_that_it_answers_and_one_footer():
    where = [{}, {"target": "vulnerable"}, {"target": "protected"}]
    table = sheet_of(["random", "mixed"], metric="privacy_accuracy", attack="ruli", where=where, footer=["accuracy"])
    heads = [(head.group, head.label) for head in table.heads]
    assert heads == [("random", "all"), ("mixed", "all"), ("mixed", "target = vulnerable")]
    assert [cell.text for cell in table.lines[1].cells] == ["model damaged", "0.70 [0.60, 0.80]", "0.70 [0.60, 0.80]"]
    assert [(record["metric"], record.get("target")) for record in table.records[:3]] == [
        ("privacy_accuracy", None), ("privacy_accuracy", None), ("privacy_accuracy", "vulnerable")
    ]  # fmt: skip
    assert [cell.text for cell in table.footer[0].cells] == ["0.50", "0.50", ""]


def test_several_metrics_keep_their_own_decimals_and_readings():
    table = sheet_of(["mixed"], metric=["privacy_accuracy", "highly_memorized"], attack=["ruli", "population", "lira"])
    assert [(head.group, head.label) for head in table.heads] == [
        ("", "privacy accuracy, ruli"), ("", "privacy accuracy, population"), ("", "highly memorized, lira")
    ]  # fmt: skip
    assert [cell.text for cell in table.lines[0].cells][1:] == ["0.60 [0.50, 0.70]", "627 [627, 627]"]


# ---------------------------------------------------------------- figures


def test_both_attacks_stand_on_their_own_line_with_their_numbers():
    drawing = figure("attackers", CASES, ROWS, ["mixed"])
    accuracy, tpr = drawing.axes
    found = "“one attack for each sample” 1 of 1, “one attack for all” 0 of 1"
    assert drawing.get_label() == f"Above chance: {found}"
    marks = {line.get_marker(): line.get_xdata()[0] for line in accuracy.lines if line.get_marker() in "os"}
    assert marks == {"o": 0.7, "s": 0.6}
    assert sum(line.get_marker() == "o" for line in tpr.lines) == len(METHODS)
    assert "model damaged" in words_of(figure("attackers", CASES, ROWS, ["random"]))
    both = figure("privacy_and_efficacy", CASES, ROWS, ["mixed"])
    assert [line.get_xdata()[0] for line in both.axes[0].lines if line.get_marker() == "D"] == [0.9] * len(METHODS)


def test_a_curve_is_that_of_all_targets_by_rising_fpr_without_what_is_not_resolved():
    found = [curves.points(Numbers(ROWS, CASES), entry, "efficacy_roc") for entry in (CASES[3], CASES[1])]
    assert [[(fpr, cell.value) for fpr, cell in line] for line in found] == [[(0.01, 0.1), (0.05, 0.3), (0.1, 0.4)], []]
    drawing = figure("curves", CASES, ROWS)
    assert drawing.get_label() == "Outputs after unlearning differ: 1 of 1 from never seen, 1 of 1 from retrained"
    visible = [axis for axis in drawing.axes if axis.get_visible()]
    assert [axis.get_title(loc="left") for axis in visible] == [*METHODS] * 2
    lines = [line for line in visible[0].lines if line.get_marker() == "o"]
    assert [list(line.get_ydata()) for line in lines] == [[0.1, 0.3, 0.4]] * 2


def test_single_samples_are_read_from_shadow_models_only(tmp_path):
    """Forgotten samples at 3 before and 1 after unlearning, held-out ones at 0 and 0.5, kept ones far away."""
    parts = memberships(protocol.Options(target_size=60, target_blocks=1, shadow_blocks=40))
    folder = Folder(tmp_path, parts)

    def after(member):
        return np.where(member.shadow[:, None], np.where(member.forget, 1.0, np.where(member.heldout, 0.5, 99.0)), -50)

    files = {"data": str(tmp_path / "data.npz"), "splits": [str(tmp_path / f"splits{i}.npz") for i in range(2)],
             "originals": folder.add("original", trained), "unlearned": folder.add("unlearned", after)}  # fmt: skip
    values = samples.values(files)
    assert (len(values), {len(phi) for sides in values for phi in sides}) == (samples.SAMPLES, {40})
    means = np.array([[phi.mean() for phi in sides] for sides in values]).mean(axis=0)
    # 640 values of standard deviation 1 each
    np.testing.assert_allclose(means, [1.0, 0.5, 0.0], atol=4 / np.sqrt(640))
    assert (parts[0].weight[samples.chosen_samples(parts[0])] > 0).all()
    drawing = figure("samples", [{**case("s", "scrub", protocol="ruli"), "files": files}], [])
    assert drawing.get_label() == "0 of 16 samples stand out after scrub"
    dots = [line for line in drawing.axes[0].lines if line.get_marker() == "o"]
    assert len(dots) == 3 * samples.SAMPLES
    medians = [line.get_ydata()[0] for line in dots if line.get_color() == style.INK]
    assert medians == sorted(medians)
    targets = {name: paths if name == "data" else paths[:1] for name, paths in files.items()}
    drawing = figure("samples", [{**case("s", "scrub", protocol="ruli"), "files": targets}], [])
    assert [text.get_text() for text in drawing.axes[0].texts] == ["no shadow models"]

"""Distributions over models: what is drawn is what was measured, panel by panel and row by row."""

import math
from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit.report import style
from unlearning_audit.report.figures import _densities

from display_cases import case, figure, row, words_of

FRACTIONS, METHODS, MODELS = ("0.1", "0.5", "1"), ("none", "amnesiac", "retrain"), 12


def study():
    """(cases, rows, values): efficacies of every model, their bounds ten times as large, and probabilities."""
    rng = np.random.default_rng(0)
    cases, rows, values = [], [], {}
    for i, fraction in enumerate(FRACTIONS):
        for j, method in enumerate(METHODS):
            entry = case("mnist", method, {"fraction": fraction}, protocol="efficacy")
            cases.append(entry)
            efficacy = 10 ** (rng.normal(size=MODELS) * 0.3 - i - 2 * j)
            belief = 1 / (1 + np.exp(rng.normal(size=MODELS) + i))
            values[fraction, method] = efficacy, belief
            for metric, attack, readings in (
                ("efficacy", "", efficacy), ("efficacy_upper_bound", "", 10 * efficacy),
                ("attack_probability", "art/own", belief),
            ):  # fmt: skip
                rows += [row(entry, metric, v, attack=attack, model=m) for m, v in enumerate(readings)]
                rows.append(row(entry, metric, readings.mean(), attack=attack))
    return cases, rows, values


CASES, ROWS, VALUES = study()


def ticks(axis):
    """Values of the models in each row, by height."""
    lines = [line for line in axis.lines if line.get_marker() == "|"]
    return [np.sort(line.get_xdata()) for line in sorted(lines, key=lambda line: line.get_ydata()[0])]


@pytest.mark.parametrize(("kind", "index", "curves"), [("efficacy", 0, 2), ("membership", 1, 1)])
def test_a_panel_for_each_method_and_a_row_for_each_fraction(kind, index, curves):
    drawing = figure(kind, CASES, ROWS[::-1], axis="fraction")
    assert [axis.get_title(loc="left") for axis in drawing.axes] == list(METHODS)
    assert [text.get_text() for text in drawing.axes[0].get_yticklabels()] == list(FRACTIONS)  # rows are shared
    for axis, method in zip(drawing.axes, METHODS, strict=True):
        for positions, fraction in zip(ticks(axis), FRACTIONS, strict=True):
            np.testing.assert_allclose(positions, np.sort(VALUES[fraction, method][index]))
        assert sum(line.is_dashed() for line in axis.lines) == (curves - 1) * len(FRACTIONS)
    assert len({axis.get_xlim() for axis in drawing.axes}) == 1
    if kind == "efficacy":  # the dashed ridge of bounds lies a decade to the right
        ridge = {line.is_dashed(): line for line in drawing.axes[0].lines if len(line.get_xdata()) > MODELS}
        modes = {dashed: line.get_xdata()[np.argmin(line.get_ydata())] for dashed, line in ridge.items()}
        assert modes[True] / modes[False] == pytest.approx(10, rel=0.05)


def test_without_an_axis_methods_are_rows():
    drawing = figure("efficacy", [entry for entry in CASES if entry["axes"]["fraction"] == "1"], ROWS)
    (axis,) = drawing.axes
    assert drawing.get_label() == "In the median, efficacy goes from 7.7e−07 (retrain) to 0.0080 (none)"
    assert [text.get_text() for text in axis.get_yticklabels()] == list(METHODS)
    for positions, method in zip(ticks(axis), METHODS, strict=True):
        np.testing.assert_allclose(positions, np.sort(VALUES["1", method][0]))


def test_efficacy_stands_against_probability_model_by_model():
    for axis, method in zip(figure("relation", CASES, ROWS[::-1], axis="fraction").axes, METHODS, strict=True):
        dots = [line for line in axis.lines if line.get_marker() == "o"]
        for line, fraction in zip(dots, FRACTIONS, strict=True):
            np.testing.assert_allclose(np.stack(line.get_data()), np.stack(VALUES[fraction, method]))
        assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")


def test_a_density_is_highest_where_values_are_and_nothing_where_there_are_too_few():
    at = np.linspace(-4, 4, 801)
    density = _densities.density(np.random.default_rng(1).normal(size=4000), at)
    np.testing.assert_allclose(density, np.exp(-(at**2) / 2), atol=0.06)
    for values in ([1.0, 2.0], [3.0] * 9):
        assert not _densities.density(np.array(values), at).any()


def test_what_has_no_place_on_a_logarithmic_axis_is_counted():
    infinite = [
        replace(r, row=replace(r.row, value=math.inf)) if r.method == "none" and r.row.model in (1, 2) else r
        for r in ROWS
    ]
    fewer = [r for r in ROWS if r.method != "none" or r.row.model is None]
    for rows, words in ((infinite, "+ 2 at 0 or ∞"), (fewer, "no number")):
        assert words_of(figure("efficacy", CASES, rows, axis="fraction")).count(words) == len(FRACTIONS)


@pytest.mark.parametrize(
    ("values", "median"),
    [((1, 2, 3, *[math.inf] * 5), []), ((1, 2, 3, math.inf), [math.sqrt(6)]), ((0, 0, 1, 2, math.inf), [1.0])],
)
def test_the_dot_is_the_median_of_all_models_and_has_no_place_where_that_is_infinite(values, median):
    (axis,) = style.panels(1, height=1.0)[1]
    _densities._row(axis, 0, list(map(float, values)), "black", dashed=False)
    dots = [float(line.get_xdata()[0]) for line in axis.lines if line.get_marker() == "o"]
    assert dots == pytest.approx(median)

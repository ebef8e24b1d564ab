"""Draw efficacy against probability of membership, a dot for each model: figures 4 and 8 of Becker & Liebig (2022)."""

import itertools
import math
from typing import Any

import numpy as np

from unlearning_audit import stats
from unlearning_audit.report.figures import Numbers, _densities, naming, style, words

#: Fields of a figure in a study that this kind reads.
READS = ("axis", "attack")


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw, for every model, an attack's mean probability of membership against efficacy, both logarithmic: a panel for
    each method and a colour for each value of the setting that the figure varies (its field ``axis``).

    If it varies none, draw a panel for each scenario and a colour for each method. Crosses mark the medians, and all
    panels have the same limits. The figure's label says whether the medians of both numbers rise together.
    """
    settings = order["figure"]
    panels = _densities.grouped(numbers, settings["axis"])  # title → [(label of a row, its case)]
    width = style.WHOLE if len(panels) > 1 else style.HALF
    figure, axes = style.panels(len(panels), height=2.0, columns=3, width=width)
    names = list(dict.fromkeys(name for lines in panels.values() for name, _ in lines))
    colours = dict(zip(names, itertools.cycle(style.PALETTE), strict=False))
    drawn, medians = [], []
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        for name, case in lines:
            of_case = points(numbers, case, settings["attack"])
            drawn += of_case
            if of_case:
                x, y = np.array(of_case).T
                axis.plot(x, y, "o", color=colours[name], ms=2.6, mew=0, alpha=0.55)
                median = np.median(np.log10([x, y]), axis=1)  # logarithms of both medians
                medians.append(median)
                axis.plot(*10**median, "+", color=colours[name], ms=8, mew=1.6)
        style.logarithmic(axis, subs=(1.0,))
        axis.set(title=title, yscale="log", xlabel="efficacy")
        axis.grid(which="major")
    if drawn:
        x, y = zip(*drawn, strict=True)
        for axis in axes:
            # A factor of 1.4 beyond the outermost points, so that they are not cut.
            axis.set(xlim=(min(x) / 1.4, max(x) * 1.4), ylim=(min(y) / 1.4, max(y) * 1.4))
    if len(medians) > 2:
        efficacies, probabilities = np.array(medians).T
        tau = stats.kendall(x=efficacies, y=probabilities).value
        verb = "rise together" if tau >= words.HOLDS else "do not rise together"
        figure.set_label(f"Efficacy and the attack's success {verb} (τ {words.plain(tau, 2)}, {len(medians)} medians)")
    figure.supylabel("mean probability of membership", fontsize=7.5)
    prefix = f"{naming.axis(settings['axis'])} " if settings["axis"] else ""
    style.legend(figure, [{"label": prefix + name, "color": colours[name], "marker": "o", "ls": ""} for name in names])
    return figure


def points(numbers: Numbers, case: dict[str, Any] | None, attack: str) -> list[tuple[float, float]]:
    """Return (efficacy, mean probability of membership by ``attack``) of every model for which both are positive and
    finite; [] without a case."""
    if case is None:
        return []
    # Both lists have a value for each model, in the same order; a list is empty if the case lacks its metric.
    pairs = zip(numbers.models(case, "efficacy"), numbers.models(case, "attack_probability", attack), strict=False)
    return [pair for pair in pairs if all(0 < value < math.inf for value in pair)]
